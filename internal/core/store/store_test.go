package store_test

import (
	"testing"

	"chancery/internal/core/store/storetest"
)

func TestMain(m *testing.M) {
	asFatalChild()
	storetest.Main(m)
}

func TestSQLite(t *testing.T) { storetest.Conform(t, storetest.SQLite) }

func TestPostgres(t *testing.T) { storetest.Conform(t, storetest.Postgres) }

func TestMariaDB(t *testing.T) { storetest.Conform(t, storetest.MariaDB) }

func TestMoveSQLiteToSQLite(t *testing.T)   { storetest.Move(t, storetest.SQLite, storetest.SQLite) }
func TestMoveSQLiteToPostgres(t *testing.T) { storetest.Move(t, storetest.SQLite, storetest.Postgres) }
func TestMovePostgresToMariaDB(t *testing.T) {
	storetest.Move(t, storetest.Postgres, storetest.MariaDB)
}
func TestMoveMariaDBToSQLite(t *testing.T) { storetest.Move(t, storetest.MariaDB, storetest.SQLite) }
