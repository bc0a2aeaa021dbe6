package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"chancery/internal/base/fault"
	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

// open gives a SQLite store with the sample tables.
func open(t *testing.T) *store.Store {
	t.Helper()
	at := storetest.SQLite(t)
	s := storetest.OpenAt(t, store.Config{URL: at.URL})
	at.Create(t, s)
	return s
}

func count(name string) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		_, err := tx.InsertNew("INSERT INTO sample_counter (name, value) VALUES (?, ?)", name, 1)
		return err
	}
}

func exists(t *testing.T, s *store.Store, name string) (found bool) {
	t.Helper()
	if err := s.Read(t.Context(), func(tx *store.Tx) (err error) {
		var value int64
		found, err = tx.One([]any{&value}, "SELECT value FROM sample_counter WHERE name = ?", name)
		return err
	}); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return found
}

// sharedBatch holds the writer while eleven callers queue up for one SQL transaction, has odd do what it does as one of
// them, and checks that the others are stored.
func sharedBatch(t *testing.T, odd func(s *store.Store, name string)) {
	t.Helper()
	s := open(t)
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var group sync.WaitGroup
	group.Go(func() {
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			once.Do(func() { close(held) })
			<-release
			return count("first")(tx)
		})
		if err != nil {
			t.Errorf("the first of the batch: %v", err)
		}
	})
	<-held
	for i := range 10 {
		group.Go(func() {
			name := fmt.Sprint("n", i)
			if i == 5 {
				odd(s, name)
			} else if err := s.Write(t.Context(), count(name)); err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	for waiting := 0; waiting < 10; waiting, _ = s.Backlog() {
		runtime.Gosched()
	}
	close(release)
	group.Wait()
	for _, name := range []string{"first", "n0", "n1", "n2", "n3", "n4", "n6", "n7", "n8", "n9"} {
		if !exists(t, s, name) {
			t.Errorf("%s is not stored", name)
		}
	}
	if exists(t, s, "n5") {
		t.Error("what the odd one did is stored")
	}
}

func TestOneOfABatchLeaves(t *testing.T) {
	sharedBatch(t, func(s *store.Store, name string) {
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if err := s.Write(ctx, count(name)); !errors.Is(err, context.Canceled) || !errors.Is(err, store.Busy) {
			t.Errorf("the caller that left: %v", err)
		}
	})
}

// TestOneOfABatchEndsTheTransaction has SQLite roll the whole transaction back for one closure's statement, as it does
// for an interrupt or when memory runs out.
func TestOneOfABatchEndsTheTransaction(t *testing.T) {
	sharedBatch(t, func(s *store.Store, name string) {
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			if err := count(name)(tx); err != nil {
				return err
			}
			_, err := tx.Exec("INSERT OR ROLLBACK INTO sample_counter (name, value) VALUES (?, ?)", name, 2)
			return err
		})
		if err == nil {
			t.Error("the closure whose transaction was lost was answered with success")
		}
	})
}

// TestDiskFull lets the file grow no further: writes are refused with a reason, what fits goes on, and there is no
// restart afterwards.
func TestDiskFull(t *testing.T) {
	s := open(t)
	limit := func(more int64) {
		t.Helper()
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			var n int64
			if _, err := tx.One([]any{&n}, "PRAGMA page_count"); err != nil {
				return err
			}
			_, err := tx.One([]any{&n}, fmt.Sprint("PRAGMA max_page_count = ", n+more))
			return err
		})
		if err != nil {
			t.Fatalf("setting max_page_count: %v", err)
		}
	}
	limit(40)
	var group sync.WaitGroup
	outcomes := make([]error, 200)
	for i := range outcomes {
		group.Go(func() {
			_, outcomes[i] = s.Append(t.Context(), storetest.Certificate, storetest.Row(int64(i), make([]byte, 4000)))
		})
	}
	group.Wait()
	full := 0
	for i, err := range outcomes {
		if err != nil && !errors.Is(err, store.Full) {
			t.Errorf("row %d: %v", i, err)
		}
		if err != nil {
			full++
		}
	}
	if full == 0 || full == len(outcomes) {
		t.Errorf("%d of %d rows were refused by a disk with room for some", full, len(outcomes))
	}
	t.Logf("%d of %d rows refused", full, len(outcomes))
	limit(1_000_000)
	for i, before := range outcomes {
		want := store.Inserted
		if before == nil {
			want = store.Exists
		}
		got, err := s.Append(t.Context(), storetest.Certificate, storetest.Row(int64(i), make([]byte, 4000)))
		if err != nil || got.Outcome != want {
			t.Errorf("row %d, answered %v before, now: %v, %v", i, before, got.Outcome, err)
		}
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	at := storetest.SQLite(t)
	storetest.OpenAt(t, store.Config{URL: at.URL})
	_, err := store.Open(t.Context(), store.Config{URL: at.URL, Accept: []string{"file_system"}})
	f, ok := fault.As(err)
	if !ok || f.Code != "store_locked" {
		t.Fatalf("a second open: %v", err)
	}
	if want := fmt.Sprintf("The database is in use by process %d.", os.Getpid()); f.Text != want {
		t.Errorf("got %q, want %q", f.Text, want)
	}
}

func TestFileModeKeepsOthersOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chancery.db")
	s := storetest.OpenAt(t, store.Config{URL: "sqlite:" + path})
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.Audit(store.Line{Actor: "per_1", Action: "test"}) }); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", info.Name(), info.Mode().Perm())
		}
	}
}

// TestAppendIsOneStatement counts what a new row costs on SQLite.
func TestAppendIsOneStatement(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	at := storetest.SQLite(t)
	s := storetest.OpenAt(t, store.Config{URL: at.URL, Trace: func(statement string) {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(statement, "INTO sample_certificate") || strings.Contains(statement, "FROM sample_certificate WHERE serial") {
			seen = append(seen, statement)
		}
	}})
	at.Create(t, s)
	mu.Lock()
	seen = nil
	mu.Unlock()
	if _, err := s.Append(t.Context(), storetest.Certificate, storetest.Row(1, []byte("der"))); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 1 {
		t.Errorf("a new row took %d statements: %q", len(seen), seen)
	}
}
