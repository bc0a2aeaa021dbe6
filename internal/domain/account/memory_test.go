package account

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chancery/internal/base/who"
	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

func TestManyMissesAskOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	release := make(chan struct{})
	m := newMemory(10, time.Now, func(context.Context, string) (int, bool, error) {
		asked.Add(1)
		<-release
		return 7, true, nil
	})
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			if v, found, err := m.get(context.Background(), "a"); v != 7 || !found || err != nil {
				t.Errorf("got %d, %v, %v", v, found, err)
			}
		})
	}
	close(release)
	callers.Wait()
	if got := asked.Load(); got != 1 {
		t.Errorf("the store was asked %d times, want once", got)
	}
}

func TestACallerWhoLeavesHarmsNobody(t *testing.T) {
	t.Parallel()
	release, started := make(chan struct{}), make(chan struct{})
	m := newMemory(10, time.Now, func(ctx context.Context, _ string) (int, bool, error) {
		close(started)
		<-release
		return 7, true, ctx.Err()
	})
	impatient, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, _, err := m.get(impatient, "a")
		left <- err
	}()
	<-started
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who left got %v", err)
	}
	close(release)
	if v, found, err := m.get(t.Context(), "a"); v != 7 || !found || err != nil {
		t.Errorf("the caller who stayed got %d, %v, %v", v, found, err)
	}
}

func TestAnAnswerIsNotKeptPastAChange(t *testing.T) {
	t.Parallel()
	var state atomic.Int64
	asked, release := make(chan struct{}, 2), make(chan struct{}, 2)
	m := newMemory(10, time.Now, func(context.Context, string) (int64, bool, error) {
		seen := state.Load()
		asked <- struct{}{}
		<-release
		return seen, true, nil
	})
	early := make(chan int64)
	go func() {
		v, _, _ := m.get(context.Background(), "a")
		early <- v
	}()
	<-asked // the question has seen the old state and is still under way
	state.Store(1)
	m.forget("a", false)
	late := make(chan int64)
	go func() {
		v, _, _ := m.get(context.Background(), "a")
		late <- v
	}()
	<-asked
	release <- struct{}{}
	release <- struct{}{}
	if v := <-late; v != 1 {
		t.Errorf("who came after the change got %d", v)
	}
	<-early
	if v, _, _ := m.get(t.Context(), "a"); v != 1 {
		t.Errorf("after both answers the memory holds %d", v)
	}
}

func TestAnAbsenceIsNotKeptPastAChange(t *testing.T) {
	t.Parallel()
	var there atomic.Bool
	asked, release := make(chan struct{}, 2), make(chan struct{}, 2)
	m := newMemory(10, time.Now, func(context.Context, string) (int, bool, error) {
		seen := there.Load()
		asked <- struct{}{}
		<-release
		return 1, seen, nil
	})
	early := make(chan bool)
	go func() {
		_, found, _ := m.get(context.Background(), "a")
		early <- found
	}()
	<-asked
	there.Store(true)
	m.forget("a", false)
	release <- struct{}{}
	<-early
	release <- struct{}{}
	if _, found, err := m.get(t.Context(), "a"); !found || err != nil {
		t.Errorf("what was made meanwhile is not found (%v)", err)
	}
}

func TestAbsenceIsRememberedBriefly(t *testing.T) {
	t.Parallel()
	c := newClock()
	asked := 0
	m := newMemory(10, c.Now, func(context.Context, string) (int, bool, error) {
		asked++
		return 0, false, nil
	})
	ask := func(want int) {
		t.Helper()
		if _, found, err := m.get(t.Context(), "a"); found || err != nil || asked != want {
			t.Errorf("found %v, %v, asked %d times, want %d", found, err, asked, want)
		}
	}
	ask(1)
	ask(1)
	m.forget("a", false)
	ask(2)
	m.forget("", true)
	ask(3)
	c.pass(missLasts)
	ask(4)
}

func TestErrorsAreNotRemembered(t *testing.T) {
	t.Parallel()
	broken := errors.New("database gone")
	m := newMemory(10, time.Now, func(context.Context, string) (int, bool, error) {
		err := broken
		broken = nil
		return 1, true, err
	})
	if _, _, err := m.get(t.Context(), "a"); err == nil {
		t.Error("the error is lost")
	}
	if v, found, err := m.get(t.Context(), "a"); v != 1 || !found || err != nil {
		t.Errorf("after recovery: %d, %v, %v", v, found, err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := newMemory(10, time.Now, func(_ context.Context, n int) (int, bool, error) { return n, n%2 == 0, nil })
	for n := range 3 * missesMax {
		if _, _, err := m.get(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.cells) > 10 || len(m.misses) > missesMax {
		t.Errorf("%d values and %d misses are kept", len(m.cells), len(m.misses))
	}
}

func TestOneChangeForgetsOnlyItself(t *testing.T) {
	t.Parallel()
	d := openDirectory(t, storetest.SQLite(t), newClock())
	for i := range 20 {
		_, raw := createToken(t, d, create(t, d, fmt.Sprintf("p%d", i), Reader).ID, TokenSpec{})
		if _, err := d.CallerByToken(t.Context(), raw); err != nil {
			t.Fatal(err)
		}
	}
	changed, err := d.FindByName(t.Context(), "p3")
	if err != nil {
		t.Fatal(err)
	}
	no := false
	if _, err := d.Change(operator(t), changed.ID, Change{Enabled: &no}); err != nil {
		t.Fatal(err)
	}
	if len(d.grants.cells) != 19 || len(d.credentials.cells) != 20 {
		t.Errorf("%d accounts and %d credentials are still known, want 19 and 20", len(d.grants.cells), len(d.credentials.cells))
	}
}

// BenchmarkChange measures one changed account and one new token among 50,000 people with 500,000 tokens, each with
// the lookup that sees it; "bare" is a commit of one audit line, which is the disk's share.
func BenchmarkChange(b *testing.B) {
	d := openDirectory(b, storetest.SQLite(b), newClock())
	fill(b, d, 50_000, 10)
	alice := create(b, d, "alice", Reader)
	_, raw := createToken(b, d, alice.ID, TokenSpec{})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := d.db.Write(b.Context(), func(tx *store.Tx) error { return audit(tx, "bench", "bench", "") }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("account", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			roles := []Role{Reader, Revoker}[:1+i%2]
			if _, err := d.Change(operator(b), alice.ID, Change{Roles: &roles}); err != nil {
				b.Fatal(err)
			}
			if c, err := d.CallerByToken(b.Context(), raw); err != nil || c.May(who.CertificateRevoke) != (len(roles) == 2) {
				b.Fatal(c, err)
			}
		}
	})
	b.Run("token", func(b *testing.B) {
		for b.Loop() {
			token, raw := createToken(b, d, alice.ID, TokenSpec{})
			if _, err := d.CallerByToken(b.Context(), raw); err != nil {
				b.Fatal(err)
			}
			if err := d.DeleteToken(operator(b), token.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := d.CallerByToken(b.Context(), raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func fill(b *testing.B, d *Directory, people, tokensEach int) {
	b.Helper()
	const step = 500
	for from := 0; from < people; from += step {
		if err := d.db.Write(b.Context(), func(tx *store.Tx) error {
			for i := from; i < from+step; i++ {
				a, err := Spec{Kind: who.Person, Name: fmt.Sprintf("person-%d", i), Roles: []Role{Self}}.account(d.now())
				if err != nil {
					return err
				}
				if _, err := tx.Exec("INSERT INTO account ("+accountColumns+", administers) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
					a.ID, a.Name, a.Display, a.Email, join(a.Roles), "", 1, 0, 0, 0); err != nil {
					return err
				}
				for range tokensEach {
					t, raw, err := TokenSpec{}.token(d.now(), a.ID)
					if err != nil {
						return err
					}
					hash, _ := hashToken(raw)
					if _, err := tx.Exec("INSERT INTO account_token ("+tokenColumns+", hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
						t.ID, t.Account, "", 0, "", 0, int64(never), hash[:]); err != nil {
						return err
					}
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}
