package store_test

import (
	"fmt"
	"testing"

	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

func TestExpireRemovesWhatIsOverAndSaysSo(t *testing.T) {
	s := storetest.Open(t)
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Exec("CREATE TABLE ticket (id TEXT NOT NULL PRIMARY KEY, until BIGINT NOT NULL)"); err != nil {
			return err
		}
		for i := range 1200 {
			if _, err := tx.Exec("INSERT INTO ticket (id, until) VALUES (?, ?)", fmt.Sprint(i), i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Expire(t.Context(), "ticket", "id", "until", 1100, "over")
	if err != nil || rows != 1100 {
		t.Fatalf("Expire = %d, %v, want 1100 rows", rows, err)
	}
	var left int
	if err := s.Read(t.Context(), func(tx *store.Tx) error {
		_, err := tx.One([]any{&left}, "SELECT COUNT(*) FROM ticket")
		return err
	}); err != nil || left != 100 {
		t.Errorf("%d rows are left (%v), want 100", left, err)
	}
	lines, err := s.AuditLines(t.Context(), store.AuditQuery{Target: "ticket", Limit: 10})
	if err != nil || len(lines) != 3 {
		t.Errorf("%d audit lines (%v), want one a step of 500: 3", len(lines), err)
	}
	if _, err := s.Expire(t.Context(), "ticket; DROP TABLE ticket", "id", "until", 0, ""); err == nil {
		t.Error("a table's name that is none was taken")
	}
}
