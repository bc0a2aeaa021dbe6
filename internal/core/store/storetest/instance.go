package storetest

import (
	"sync"
	"testing"
	"time"

	"chancery/internal/core/store"
)

// second gives another instance on the same database, or leaves the check out where there can be none.
func (b bench) second(t *testing.T, c store.Config) *store.Store {
	t.Helper()
	if !b.Shared {
		t.Skipf("%s has one instance only", b.Name)
	}
	c.URL = b.URL
	return OpenAt(t, c)
}

// startAtOnce opens instances side by side on a database without tables.
func startAtOnce(t *testing.T, b bench) {
	b.second(t, store.Config{})
	fresh := b.again(t)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			s, err := store.Open(t.Context(), store.Config{URL: fresh.URL})
			if err != nil {
				t.Errorf("opening: %v", err)
				return
			}
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("closing: %v", err)
			}
		})
	}
	group.Wait()
}

// hearing collects the keys of a topic.
func hearing(t *testing.T, s *store.Store, topic string) <-chan string {
	t.Helper()
	heard := make(chan string, 100)
	t.Cleanup(s.Subscribe(topic, func(c store.Change) { heard <- c.Key }))
	return heard
}

func wantHeard(t *testing.T, heard <-chan string, key string) {
	t.Helper()
	limit := time.After(time.Second)
	for {
		select {
		case got := <-heard:
			if got == key {
				return
			}
		case <-limit:
			t.Fatalf("%q was not heard within a second", key)
		}
	}
}

func publish(key string) func(*store.Tx) error {
	return func(tx *store.Tx) error { return tx.Publish(store.Change{Topic: "agent", Key: key}) }
}

func feedElsewhere(t *testing.T, b bench) {
	other := b.second(t, store.Config{})
	heard := hearing(t, other, "agent")
	for _, key := range []string{"one", "two", "three"} {
		if err := b.Write(t.Context(), publish(key)); err != nil {
			t.Fatal(err)
		}
		wantHeard(t, heard, key)
	}
	select {
	case again := <-heard:
		t.Errorf("%q was told twice", again)
	case <-time.After(time.Second):
	}
}

// feedReversed has the first of two transactions commit after the second.
func feedReversed(t *testing.T, b bench) {
	other := b.second(t, store.Config{})
	heard := hearing(t, other, "agent")
	numbered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var group sync.WaitGroup
	group.Go(func() {
		err := b.Write(t.Context(), func(tx *store.Tx) error {
			if err := publish("first number")(tx); err != nil {
				return err
			}
			once.Do(func() { close(numbered) })
			<-release
			return nil
		})
		if err != nil {
			t.Errorf("the first: %v", err)
		}
	})
	<-numbered
	if err := b.Write(t.Context(), publish("second number")); err != nil {
		t.Errorf("the second: %v", err)
	}
	wantHeard(t, heard, "second number")
	close(release)
	group.Wait()
	wantHeard(t, heard, "first number")
}

func leaseHasOneHolder(t *testing.T, b bench) {
	later := func() time.Time { return time.Now().Add(2 * time.Minute) }
	other := b.second(t, store.Config{})
	late := b.second(t, store.Config{Now: later})
	for i, step := range []struct {
		who  *store.Store
		held bool
	}{{b.Store, true}, {other, false}, {b.Store, true}, {late, true}, {b.Store, false}, {late, true}} {
		held, err := step.who.Lease(t.Context(), "some work", time.Minute)
		if err != nil || held != step.held {
			t.Errorf("step %d: held %v, %v; want %v", i+1, held, err, step.held)
		}
	}
	if err := late.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if held, err := other.Lease(t.Context(), "some work", time.Minute); err != nil || !held {
		t.Errorf("after its holder closed: held %v, %v", held, err)
	}
}
