package store_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

// servers are the databases that lie behind a network.
var servers = []struct {
	name string
	make func(testing.TB) storetest.Target
}{{"postgres", storetest.Postgres}, {"mariadb", storetest.MariaDB}}

// wire forwards connections to a server until it is told to swallow everything, as a dead network does.
type wire struct {
	address string
	silent  atomic.Bool
	mu      sync.Mutex
	open    []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{address: l.Addr().String()}
	t.Cleanup(func() {
		_ = l.Close()
		w.cut()
	})
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(near, to)
		}
	}()
	return w
}

func (w *wire) carry(near net.Conn, to string) {
	w.keep(near)
	if w.silent.Load() {
		return // accepted, and never answered
	}
	far, err := net.Dial("tcp", to)
	if err != nil {
		_ = near.Close()
		return
	}
	w.keep(far)
	go w.pump(near, far)
	w.pump(far, near)
}

func (w *wire) pump(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !w.silent.Load() {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if !w.silent.Load() {
				_ = to.Close()
			}
			return
		}
	}
}

func (w *wire) keep(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(w.open, c)
}

// cut ends every connection, so that both sides learn of it.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.open {
		_ = c.Close()
	}
	w.open = nil
}

// through gives target's address with the wire in between.
func through(t *testing.T, target storetest.Target) (*wire, storetest.Target) {
	t.Helper()
	u, err := url.Parse(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, u.Host)
	u.Host = w.address
	target.URL = u.String()
	return w, target
}

// gentle fails unless err is one of the faults of a database that cannot be had.
func gentle(t *testing.T, err error) {
	t.Helper()
	for _, known := range []error{store.Unknown, store.Unreachable, store.Busy} {
		if errors.Is(err, known) {
			return
		}
	}
	t.Errorf("a database that is away gave: %v", err)
}

// TestSilentServer lets the network swallow everything: calls end by their deadlines, Close in bounded time, and when
// the network is back the store works without a restart.
func TestSilentServer(t *testing.T) {
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			w, target := through(t, server.make(t))
			s := storetest.OpenAt(t, store.Config{URL: target.URL})
			target.Create(t, s)
			w.silent.Store(true)
			var group sync.WaitGroup
			for i := range 12 {
				group.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
					defer cancel()
					start := time.Now()
					var err error
					switch i % 3 {
					case 0:
						err = s.Write(ctx, count("silent"))
					case 1:
						_, err = s.Append(ctx, storetest.Certificate, storetest.Row(int64(i), []byte("der")))
					case 2:
						err = s.Read(ctx, func(tx *store.Tx) error {
							_, err := tx.One([]any{new(int64)}, "SELECT value FROM sample_counter")
							return err
						})
					}
					gentle(t, err)
					if took := time.Since(start); took > 2*time.Second {
						t.Errorf("call %d took %v", i, took)
					}
				})
			}
			group.Wait()
			w.silent.Store(false)
			w.cut()
			recovers(t, s)
			w.silent.Store(true)
			closesSoon(t, s)
		})
	}
}

// recovers fails unless writes and appends work again within a few seconds.
func recovers(t *testing.T, s *store.Store) {
	t.Helper()
	limit := time.Now().Add(15 * time.Second)
	for n := int64(1000); ; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		_, appended := s.Append(ctx, storetest.Certificate, storetest.Row(n, []byte("der")))
		written := s.Write(ctx, count("back"))
		cancel()
		if appended == nil && written == nil {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("the database is back, but: append %v, write %v", appended, written)
		}
	}
}

func closesSoon(t *testing.T, s *store.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	_ = s.Close(ctx) // may say that the connections do not answer
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("closing took %v", took)
	}
}

// TestSilentFromTheStart opens a store on an address that accepts and says nothing.
func TestSilentFromTheStart(t *testing.T) {
	for _, scheme := range []string{"postgres", "mysql"} {
		t.Run(scheme, func(t *testing.T) {
			w := newWire(t, "")
			w.silent.Store(true)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			_, err := store.Open(ctx, store.Config{URL: scheme + "://user@" + w.address + "/db"})
			if !errors.Is(err, store.Unreachable) {
				t.Errorf("opening: %v", err)
			}
			if took := time.Since(start); took > 4*time.Second {
				t.Errorf("opening took %v", took)
			}
		})
	}
}

// TestServerGoneAndBack has the server end all sessions under load, again and again: nothing acknowledged is lost, and
// nothing but gentle faults is seen.
func TestServerGoneAndBack(t *testing.T) {
	at := storetest.Postgres(t)
	s := storetest.OpenAt(t, store.Config{URL: at.URL})
	at.Create(t, s)
	admin := adminOf(t, at)
	ctx, stop := context.WithCancel(t.Context())
	var n atomic.Int64
	var stored sync.Map
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for ctx.Err() == nil {
				row := storetest.Row(n.Add(1), []byte("der"))
				got, err := s.Append(t.Context(), storetest.Certificate, row)
				if err != nil {
					gentle(t, err)
				} else if got.Outcome == store.Inserted {
					stored.Store(string(row[0].([]byte)), true)
				}
				if err := s.Write(t.Context(), count(string(row[0].([]byte)))); err != nil {
					gentle(t, err)
				}
			}
		})
	}
	for range 5 {
		<-time.After(100 * time.Millisecond) // load between two interruptions
		endSessions(t, admin)
	}
	stop()
	group.Wait()
	recovers(t, s)
	acknowledged := 0
	err := s.Read(t.Context(), func(tx *store.Tx) (err error) {
		stored.Range(func(serial, _ any) bool {
			var at int64
			var found bool
			found, err = tx.One([]any{&at}, "SELECT not_before FROM sample_certificate WHERE serial = ?", []byte(serial.(string)))
			if err == nil && !found {
				t.Errorf("%s was acknowledged and is missing", serial)
			}
			acknowledged++
			return err == nil
		})
		return err
	})
	if err != nil || acknowledged == 0 {
		t.Errorf("%d acknowledged, %v", acknowledged, err)
	}
	t.Logf("%d rows acknowledged", acknowledged)
}

func adminOf(t *testing.T, at storetest.Target) *sql.DB {
	t.Helper()
	admin, err := sql.Open("pgx", at.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	return admin
}

func endSessions(t *testing.T, admin *sql.DB) {
	t.Helper()
	_, err := admin.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if err != nil {
		t.Errorf("ending the sessions: %v", err)
	}
}

// TestPostgresReadOnly turns the database read-only and back.
func TestPostgresReadOnly(t *testing.T) {
	at := storetest.Postgres(t)
	s := storetest.OpenAt(t, store.Config{URL: at.URL})
	at.Create(t, s)
	admin := adminOf(t, at)
	set := func(value string) {
		t.Helper()
		_, err := admin.ExecContext(t.Context(), "BEGIN READ WRITE; DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = "+value+"', current_database()); END $$; COMMIT")
		if err != nil {
			t.Fatal(err)
		}
		endSessions(t, admin)
	}
	set("on")
	for range 3 { // the first may meet a session that has just ended
		if err := s.Write(t.Context(), count("a")); !errors.Is(err, store.ReadOnly) {
			gentle(t, err)
		}
	}
	if err := s.Write(t.Context(), count("a")); !errors.Is(err, store.ReadOnly) {
		t.Errorf("a write while read-only: %v", err)
	}
	if _, err := s.Append(t.Context(), storetest.Certificate, storetest.Row(1, []byte("der"))); !errors.Is(err, store.ReadOnly) {
		t.Errorf("an append while read-only: %v", err)
	}
	set("off")
	recovers(t, s)
}

// TestUnsafeSettingIsRefused has the server confirm commits early for one database.
func TestUnsafeSettingIsRefused(t *testing.T) {
	at := storetest.Postgres(t)
	if _, err := adminOf(t, at).ExecContext(t.Context(), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$"); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), store.Config{URL: at.URL})
	if fault.CodeOf(err) != "store_not_durable" {
		t.Fatalf("opening: %v", err)
	}
	s := storetest.OpenAt(t, store.Config{URL: at.URL, Accept: []string{"synchronous_commit"}})
	h := s.Health(t.Context())
	if len(h.Accepted) != 1 || h.Accepted[0] != "synchronous_commit" {
		t.Errorf("health accepts %q", h.Accepted)
	}
}

// TestSQLiteReadOnly forbids the writing connection to write. There is no way back from that but a restart.
func TestSQLiteReadOnly(t *testing.T) {
	s := open(t)
	if err := s.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.One([]any{new(int64)}, "PRAGMA query_only = 1")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), count("a")); !errors.Is(err, store.ReadOnly) {
		t.Errorf("a write while read-only: %v", err)
	}
	if _, err := s.Append(t.Context(), storetest.Certificate, storetest.Row(1, []byte("der"))); !errors.Is(err, store.ReadOnly) {
		t.Errorf("an append while read-only: %v", err)
	}
}
