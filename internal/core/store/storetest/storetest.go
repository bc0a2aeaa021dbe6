// Package storetest makes throw-away stores for tests, and holds the conformance suite that says, one test a sentence,
// what a store promises on every database.
//
// The suite runs against SQLite always, and against the servers named in CHANCERY_TEST_POSTGRES and
// CHANCERY_TEST_MARIADB. It knows the store by its exported methods only.
package storetest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"chancery/internal/core/store"
)

// Open gives a fresh SQLite store that ends with the test.
func Open(t testing.TB) *store.Store {
	t.Helper()
	return OpenAt(t, store.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "chancery.db")})
}

// OpenAt opens the store of c; it ends with the test. Temporary folders often lie in memory, so the file system is
// accepted as it is.
func OpenAt(t testing.TB, c store.Config) *store.Store {
	t.Helper()
	c.Accept = append(c.Accept, "file_system")
	s, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatalf("opening the store: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	return s
}
