package ca

import (
	"bytes"
	"testing"
	"time"

	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

// TestListNumbersGoOnAfterARestore gives out lists after a backup, whose numbers had run ahead of the clock.
func TestListNumbersGoOnAfterARestore(t *testing.T) {
	w := newWorld(t)
	number := func(w *world) int64 {
		t.Helper()
		list, err := w.CRL(t.Context(), "machines")
		if err != nil {
			t.Fatal(err)
		}
		return list.Number
	}
	number(w)
	if err := w.db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE crl SET number = number + 1000000")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var backup bytes.Buffer
	if err := w.db.Backup(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	var last int64
	for range 5 {
		w.clock.advance(time.Second)
		w.revoke(t, "crt:"+w.certificate(t, serverOrder(t, "a.example.org")).Serial.String(), Superseded)
		last = number(w)
	}
	c := store.Config{URL: storetest.SQLite(t).URL, Now: w.clock.now, Accept: []string{"file_system"}, Restored: Restored}
	if err := store.Restore(t.Context(), c, &backup); err != nil {
		t.Fatal(err)
	}
	if first := number(open(t, c, w.clock)); first <= last {
		t.Errorf("the first list after the restore has number %d; %d was given out", first, last)
	}
}
