package store_test

import (
	"context"
	"testing"

	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

// counting is a load that counts how often it is asked and answers with the count.
type counting struct{ asked int }

func (c *counting) load(_ context.Context, key string) (int, bool, error) {
	c.asked++
	return c.asked, key != "missing", nil
}

func publish(t *testing.T, s *store.Store, key string) {
	t.Helper()
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.Publish(store.Change{Topic: "thing", Key: key}) }); err != nil {
		t.Fatal(err)
	}
}

func TestMemoRemembersUntilTheFeedNamesTheKey(t *testing.T) {
	s, c := storetest.Open(t), &counting{}
	m := store.NewMemo(s, "thing", 8, c.load)
	get := func(key string, want int) {
		t.Helper()
		if got, _, err := m.Get(t.Context(), key); err != nil || got != want {
			t.Errorf("Get(%s) = %d, %v, want the answer of load %d", key, got, err, want)
		}
	}
	get("a", 1)
	get("a", 1)
	publish(t, s, "a")
	get("a", 2)
	publish(t, s, "b")
	get("a", 2)
	publish(t, s, "")
	get("a", 3)
	miss := func(loads int) {
		t.Helper()
		if _, found, err := m.Get(t.Context(), "missing"); err != nil || found || c.asked != loads {
			t.Errorf("Get(missing) = %v, %v after %d loads, want a miss after %d", found, err, c.asked, loads)
		}
	}
	miss(4)
	miss(4)
	publish(t, s, "missing")
	miss(5)
}

func TestMemoDoesNotKeepWhatChangedWhileItWasRead(t *testing.T) {
	s := storetest.Open(t)
	loads := 0
	m := store.NewMemo(s, "thing", 8, func(context.Context, string) (int, bool, error) {
		loads++
		if loads == 1 {
			publish(t, s, "a")
		}
		return loads, true, nil
	})
	for want := 1; want <= 2; want++ {
		if got, _, err := m.Get(t.Context(), "a"); err != nil || got != want {
			t.Errorf("Get = %d, %v, want %d: a value read before a change was kept", got, err, want)
		}
	}
}

func TestMemoIsBounded(t *testing.T) {
	s, c := storetest.Open(t), &counting{}
	m := store.NewMemo(s, "thing", 8, c.load)
	keys := "abcdefghijklmnopqrstuvwxyz"
	for _, k := range keys {
		if _, _, err := m.Get(t.Context(), string(k)); err != nil {
			t.Fatal(err)
		}
	}
	before := c.asked
	for _, k := range keys {
		if _, _, err := m.Get(t.Context(), string(k)); err != nil {
			t.Fatal(err)
		}
	}
	if again := c.asked - before; again < len(keys)-8 {
		t.Errorf("%d of 26 values were loaded again, want all but the 8 that fit", again)
	}
}

func TestMemoMissesDriveNothingOut(t *testing.T) {
	s, c := storetest.Open(t), &counting{}
	m := store.NewMemo(s, "thing", 8, func(ctx context.Context, key string) (int, bool, error) {
		n, _, err := c.load(ctx, key)
		return n, key == "good", err
	})
	for _, k := range append([]string{"good"}, "abcdefghijklmnopqrstuvwxyz") {
		if _, _, err := m.Get(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if _, _, err := m.Get(t.Context(), string(rune('a'+i))); err != nil {
			t.Fatal(err)
		}
	}
	before := c.asked
	if got, found, err := m.Get(t.Context(), "good"); err != nil || !found || got != 1 || c.asked != before {
		t.Errorf("Get(good) = %d, %v, %v after %d more loads, want it from memory", got, found, err, c.asked-before)
	}
}
