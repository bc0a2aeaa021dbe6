package observe

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"chancery/internal/core/store/storetest"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// servers are the databases of the test's servers, those that there are.
var servers = map[string]struct {
	make                func(testing.TB) storetest.Target
	take, free, waiting string
	idle                string
	versioned           string
	settings            int
}{
	"postgres": {storetest.Postgres, "SELECT pg_advisory_lock(7)", "SELECT pg_advisory_unlock(7)", "Lock:advisory", "Client:ClientRead", "server_version", 7},
	"mariadb":  {storetest.MariaDB, "DO GET_LOCK('observe', 30)", "DO RELEASE_LOCK('observe')", "User lock", "Sleep", "version", 6},
}

// TestWatchSessions lets one session wait for another, and a watch see it. Its own session is not among them.
func TestWatchSessions(t *testing.T) {
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			target := s.make(t)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			db, err := Connect(target.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			holder, waiter := session(ctx, t, db), session(ctx, t, db)
			run(ctx, t, holder, s.take)
			waited := make(chan error, 1)
			go func() {
				_, err := waiter.ExecContext(ctx, s.take)
				waited <- err
			}()
			look, err := newSessions(target.URL)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "it waits", func() bool {
				all, err := look.waits(ctx)
				if err != nil {
					t.Fatal(err)
				}
				return all[s.waiting] == 1 && all[s.idle] == 1 && len(all) == 2 // not the one that asks
			})
			look.close()
			r := watched(t, Config{Database: target.URL})
			run(ctx, t, holder, s.free)
			if err := <-waited; err != nil {
				t.Error(err)
			}
			if r.Unlisted > 0 {
				t.Fatalf("%+v", r)
			}
			last := r.Samples[len(r.Samples)-1].Waits
			sum := 0
			for _, n := range last {
				sum += n
			}
			if last[s.waiting] != 1 || last[s.idle] < 1 || sum > 3 { // the one that looked may be there
				t.Errorf("waits %v, want one %s, one %s, and not the watch itself", last, s.waiting, s.idle)
			}
		})
	}
}

// TestSessionsOfASmallAccount asks in a way that the server refuses, as it does where an account may not read the
// performance schema.
func TestSessionsOfASmallAccount(t *testing.T) {
	s, err := newSessions(storetest.MariaDB(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	s.query = "SELECT what, 1 FROM performance_schema.not_for_you"
	for range 2 {
		if all, err := s.waits(t.Context()); err != nil || len(all) != 0 || s.plain != "" {
			t.Errorf("%v, %v", all, err)
		}
	}
}

func session(ctx context.Context, t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	c, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func run(ctx context.Context, t *testing.T, c *sql.Conn, statement string) {
	t.Helper()
	if _, err := c.ExecContext(ctx, statement); err != nil {
		t.Fatal(err)
	}
}

func TestDurability(t *testing.T) {
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			got, err := Durability(t.Context(), s.make(t).URL)
			if err != nil || len(got) != s.settings || got[0].Name != s.versioned {
				t.Fatalf("%v, %v; want %d settings, %s first", got, err, s.settings, s.versioned)
			}
			for _, one := range got {
				if one.Value == "" && one.Name != "innodb_flush_method" {
					t.Errorf("%s is empty", one.Name)
				}
			}
			t.Logf("%v", got)
		})
	}
}

func TestDurabilityWithoutAServer(t *testing.T) {
	for _, file := range []string{"", "sqlite:some.db"} {
		if got, err := Durability(t.Context(), file); got != nil || err != nil {
			t.Errorf("%q: %v, %v", file, got, err)
		}
	}
	for _, gone := range []string{"postgres://me:secret@127.0.0.1:1/x", "mysql://me:secret@127.0.0.1:1/x", "postgres://me:secret@[/x", "secret:"} {
		if got, err := Durability(t.Context(), gone); err == nil || contains(err.Error(), "secret") && gone != "secret:" {
			t.Errorf("%v, error %v", got, err)
		}
	}
}

// TestWatchOfADatabaseThatIsGone goes on without it.
func TestWatchOfADatabaseThatIsGone(t *testing.T) {
	r := watched(t, Config{Database: "postgres://127.0.0.1:1/x"})
	if r.Unlisted == 0 || r.Samples[0].Waits != nil || r.Samples[0].At.IsZero() {
		t.Errorf("%+v", r)
	}
}

// watched watches quickly until something was seen.
func watched(t *testing.T, c Config) (r Record) {
	t.Helper()
	eventually(t, "a sample", func() bool {
		w, err := begin(t.Context(), c, 5*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond)
		r = w.End()
		return len(r.Samples) > 0
	})
	return r
}
