package store_test

import (
	"fmt"
	"testing"

	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

// TestRetireLooksPastWhatStays: rows that live long lie among those that go, over more than one look.
func TestRetireLooksPastWhatStays(t *testing.T) {
	s := storetest.Open(t)
	const rows, longLived = 5000, 7
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Exec("CREATE TABLE pass (seq INTEGER PRIMARY KEY, born BIGINT NOT NULL, ends BIGINT NOT NULL)"); err != nil {
			return err
		}
		for i := range rows {
			ends := i + 10
			if i%longLived == 0 {
				ends = 1 << 40
			}
			if _, err := tx.Exec("INSERT INTO pass (born, ends) VALUES (?, ?)", i, ends); err != nil {
				return fmt.Errorf("row %d: %w", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	for i := range rows {
		if i%longLived != 0 && i+10 < 4500 {
			want++
		}
	}
	got, err := s.Retire(t.Context(), "pass", store.Lifetime{Born: "born", Ends: "ends"}, 4500, "over")
	if err != nil || got != want {
		t.Errorf("Retire = %d, %v, want %d rows", got, err, want)
	}
	if got, err = s.Retire(t.Context(), "pass", store.Lifetime{Born: "born", Ends: "ends"}, 4500, "over"); err != nil || got != 0 {
		t.Errorf("a second Retire = %d, %v, want nothing left to do", got, err)
	}
}
