package store_test

import (
	"testing"

	"chancery/internal/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestSQLite(t *testing.T) { storetest.Conform(t, storetest.SQLite) }

func TestPostgres(t *testing.T) { storetest.Conform(t, storetest.Postgres) }

func TestMariaDB(t *testing.T) { storetest.Conform(t, storetest.MariaDB) }
