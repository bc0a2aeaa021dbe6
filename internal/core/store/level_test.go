package store_test

import (
	"testing"

	"chancery/internal/core/store"
)

// TestLevelHoldsEveryTime goes back and forth between the levels: SQLite obeys its pragma when it is compiled, so a
// statement that is kept prepared would be obeyed once only.
func TestLevelHoldsEveryTime(t *testing.T) {
	s := open(t)
	want := map[store.Durability]int64{store.Synced: 2, store.Written: 1}
	for i := range 6 {
		level := []store.Durability{store.Written, store.Synced}[i%2]
		err := s.WriteAs(t.Context(), level, func(tx *store.Tx) error {
			var is int64
			_, err := tx.One([]any{&is}, "PRAGMA synchronous")
			if is != want[level] {
				t.Errorf("write %d has synchronous = %d, want %d", i, is, want[level])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
