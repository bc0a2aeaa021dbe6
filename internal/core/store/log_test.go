package store_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

// readerVariable has the test binary read the SQLite file that it names until its input ends.
const readerVariable = "CHANCERY_STORE_READER"

// logMax is what the write-ahead log never outgrows while no other process reads it.
const logMax = 64 << 20

// said is a log to look at afterwards.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// openLogged is open with a log.
func openLogged(t *testing.T) (*store.Store, *said) {
	t.Helper()
	at, log := storetest.SQLite(t), &said{}
	s := storetest.OpenAt(t, store.Config{URL: at.URL, Log: slog.New(slog.NewTextHandler(log, nil))})
	at.Create(t, s)
	return s, log
}

// fill appends rows of 16 KB from 32 goroutines until enough says so, and gives the largest log that it saw.
func fill(t *testing.T, s *store.Store, enough func(rows int64) bool) (largest int64) {
	t.Helper()
	der := make([]byte, 16_000)
	var n, most atomic.Int64
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for !t.Failed() && !enough(n.Load()) {
				if _, err := s.Append(t.Context(), storetest.Certificate, storetest.Row(n.Add(1), der)); err != nil {
					t.Errorf("appending: %v", err)
				}
				for size := s.Stats().LogBytes; size > most.Load(); {
					most.Store(size)
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d rows; the write-ahead log grew to %d MB at most", n.Load(), most.Load()>>20)
	return most.Load()
}

// TestLogStaysBounded holds a snapshot while the write-ahead log fills: the reader is ended and named, and the log
// folded in.
func TestLogStaysBounded(t *testing.T) {
	s, log := openLogged(t)
	reading, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- s.Read(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.One([]any{new(int64)}, "SELECT COUNT(*) FROM sample_certificate"); err != nil {
				return err
			}
			close(reading)
			<-tx.Context().Done()
			_, err := tx.One([]any{new(int64)}, "SELECT COUNT(*) FROM sample_certificate")
			return err
		})
	}()
	<-reading
	largest := fill(t, s, func(rows int64) bool { return rows >= 6000 })
	if err := <-done; !errors.Is(err, store.Stale) {
		t.Errorf("the long read ended with %v", err)
	}
	if largest > logMax {
		t.Errorf("the write-ahead log grew to %d MB", largest>>20)
	}
	if text := log.String(); strings.Count(text, "ended reads") != 1 || !strings.Contains(text, "TestLogStaysBounded") {
		t.Errorf("the log does not name the reader once: %s", text)
	}
}

// TestLogStaysBoundedUnderShortReads has reads follow one another so closely that there is always one.
func TestLogStaysBoundedUnderShortReads(t *testing.T) {
	s, log := openLogged(t)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				err := s.Read(ctx, func(tx *store.Tx) error {
					_, err := tx.One([]any{new(int64)}, "SELECT COUNT(*) FROM sample_certificate")
					if err == nil {
						wait, done := context.WithTimeout(tx.Context(), 400*time.Millisecond)
						defer done()
						<-wait.Done()
					}
					return err
				})
				if err != nil && ctx.Err() == nil && !errors.Is(err, store.Stale) {
					t.Errorf("reading: %v", err)
				}
			}
		})
	}
	largest := fill(t, s, func(rows int64) bool { return rows >= 12_000 })
	stop()
	readers.Wait()
	if largest > logMax {
		t.Errorf("the write-ahead log grew to %d MB", largest>>20)
	}
	if text := log.String(); strings.Contains(text, "another process") {
		t.Errorf("somebody else is blamed: %s", text)
	}
}

// TestForeignReaderIsReported has another process hold a snapshot: nobody here can end it. It is named once, writing
// and reading go on, and the log is folded in once that process has ended.
func TestForeignReaderIsReported(t *testing.T) {
	s, log := openLogged(t)
	foreign := exec.CommandContext(t.Context(), os.Args[0])
	foreign.Env = append(os.Environ(), readerVariable+"="+pathOf(t, s))
	stdin, err := foreign.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := foreign.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("the other process says %q: %v", line, err)
	}
	fill(t, s, func(int64) bool { return s.Stats().LogBytes > 96<<20 })
	text := log.String()
	if strings.Count(text, "keeps the write-ahead log") != 1 || !strings.Contains(text, "another process") {
		t.Errorf("the other process is not reported once: %s", text)
	}
	if want := fmt.Sprintf("[%d]", foreign.Process.Pid); runtime.GOOS == "linux" && !strings.Contains(text, want) {
		t.Errorf("the process %s is not named: %s", want, text)
	}
	if held := s.Stats().LogHeld; held <= 0 {
		t.Errorf("the log is held for %v", held)
	}
	reading := time.Now().Add(1500 * time.Millisecond)
	var writers sync.WaitGroup
	writers.Go(func() { fill(t, s, func(int64) bool { return time.Now().After(reading) }) })
	if err := s.Read(t.Context(), func(tx *store.Tx) error { // not ended for another's sake
		for time.Now().Before(reading) {
			if _, err := tx.One([]any{new(int64)}, "SELECT COUNT(*) FROM sample_counter"); err != nil {
				return err
			}
			runtime.Gosched()
		}
		return nil
	}); err != nil {
		t.Errorf("a read of this process meanwhile: %v", err)
	}
	writers.Wait()
	if err := errors.Join(stdin.Close(), foreign.Wait()); err != nil {
		t.Errorf("the other process: %v", err)
	}
	fill(t, s, func(rows int64) bool { return s.Stats().LogBytes < 32<<20 })
}

func pathOf(t *testing.T, s *store.Store) (path string) {
	t.Helper()
	if err := s.Read(t.Context(), func(tx *store.Tx) error {
		_, err := tx.One([]any{&path}, "SELECT file FROM pragma_database_list WHERE name = 'main'")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return path
}

// readUntilTold holds a snapshot of the file until its standard input ends.
func readUntilTold(path string) error {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path)}).String())
	if err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	var rows int64
	if err := tx.QueryRow("SELECT COUNT(*) FROM sample_certificate").Scan(&rows); err != nil {
		return err
	}
	fmt.Println("reading")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return errors.Join(tx.Rollback(), db.Close())
}
