package store_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

func TestMain(m *testing.M) {
	asFatalChild()
	if address := os.Getenv(tracedVariable); address != "" {
		if err := acknowledge(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(readerVariable); path != "" {
		if err := readUntilTold(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	storetest.Main(m)
}

func TestSQLite(t *testing.T)   { storetest.Conform(t, storetest.SQLite) }
func TestPostgres(t *testing.T) { storetest.Conform(t, storetest.Postgres) }
func TestMariaDB(t *testing.T)  { storetest.Conform(t, storetest.MariaDB) }

func TestMoveSQLiteToSQLite(t *testing.T)   { storetest.Move(t, storetest.SQLite, storetest.SQLite) }
func TestMoveSQLiteToPostgres(t *testing.T) { storetest.Move(t, storetest.SQLite, storetest.Postgres) }
func TestMovePostgresToMariaDB(t *testing.T) {
	storetest.Move(t, storetest.Postgres, storetest.MariaDB)
}
func TestMoveMariaDBToSQLite(t *testing.T) { storetest.Move(t, storetest.MariaDB, storetest.SQLite) }

// The test binary under strace: the store's address, whether it leaves the sync out, and whether its changes are long.
const (
	tracedVariable  = "CHANCERY_STORE_TRACED_CHILD"
	writtenVariable = "CHANCERY_STORE_TRACED_WRITTEN"
	longVariable    = "CHANCERY_STORE_TRACED_LONG"
	tracedWrites    = 40
)

// acknowledge makes changes one after the other, and says so on its output after each.
func acknowledge(address string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{URL: address, Accept: []string{"file_system"}})
	if err != nil {
		return err
	}
	level := store.Synced
	if os.Getenv(writtenVariable) != "" {
		level = store.Written
	}
	for i := range tracedWrites {
		if err := s.WriteAs(ctx, level, count(traced(i, os.Getenv(longVariable) != ""))); err != nil {
			return err
		}
		fmt.Println("acknowledged", i)
	}
	return s.Close(ctx)
}

// traced names a change: shortly, or at such length that the log of all of them is longer than SQLite lets it become. A
// name is stored twice, in the table and in its index.
func traced(i int, long bool) string {
	if long {
		return fmt.Sprint("traced ", i, strings.Repeat(".", 300_000))
	}
	return fmt.Sprint("traced ", i)
}
