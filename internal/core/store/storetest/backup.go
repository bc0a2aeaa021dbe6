package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"chancery/internal/base/fault"
	"chancery/internal/core/store"
)

// Move checks that a backup of one database is restored into another, whole or not at all.
func Move(t *testing.T, from, to func(testing.TB) Target) {
	t.Helper()
	source := bench{Target: from(t)}
	source.Store = OpenAt(t, store.Config{URL: source.URL})
	for i := range 700 {
		err := source.Write(t.Context(), func(tx *store.Tx) error {
			line := store.Line{Actor: fmt.Sprint("per_", i), Action: "test", Target: "Žluťoučký 🐎", Detail: `{"n":1}`}
			return errors.Join(tx.Audit(line), tx.Publish(store.Change{Topic: "agent", Key: "a"}))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	before := source.sealed(t)
	var kept bytes.Buffer
	if err := source.Backup(t.Context(), &kept); err != nil {
		t.Fatalf("backing up: %v", err)
	}
	movedWhole(t, source, to(t), kept.Bytes(), before)
	damagedRefused(t, kept.Bytes())
}

func movedWhole(t *testing.T, source bench, target Target, backup []byte, before store.Verification) {
	t.Helper()
	called := false
	c := store.Config{URL: target.URL, Accept: []string{"file_system"}}
	c.Restored = func(tx *store.Tx, takenAt int64) error {
		called = takenAt > 0
		return nil
	}
	if err := store.Restore(t.Context(), c, bytes.NewReader(backup)); err != nil {
		t.Fatalf("restoring: %v", err)
	}
	if !called {
		t.Error("the rooms were not asked to raise their numbers")
	}
	moved := bench{Target: target, Store: OpenAt(t, c)}
	want, got := source.lines(t), moved.lines(t)
	if diff := cmp.Diff(want, got[:len(got)-1]); diff != "" {
		t.Errorf("lines (-before +after):\n%s", diff)
	}
	if last := got[len(got)-1]; last[1] != "store.restore" {
		t.Errorf("the last line is %q", last)
	}
	after := moved.sealed(t)
	if len(after.Faults) > 0 || after.Earlier != before.Seals || after.Rows != before.Rows+1 {
		t.Errorf("after the restore: %+v", after)
	}
	if h := moved.Health(t.Context()); h.Epoch != 1 || !h.Reachable {
		t.Errorf("health after the restore: %+v", h)
	}
	if code := fault.CodeOf(store.Restore(t.Context(), c, bytes.NewReader(backup))); code != "store_not_empty" && code != "store_locked" {
		t.Errorf("a restore into a full database: %q", code)
	}
}

func (b bench) lines(t *testing.T) (lines [][]string) {
	t.Helper()
	err := b.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Each("SELECT actor, action, target, detail, hash FROM audit ORDER BY seq", nil, func(r store.Row) error {
			var hash []byte
			line := make([]string, 4)
			err := r.Scan(&line[0], &line[1], &line[2], &line[3], &hash)
			lines = append(lines, append(line, fmt.Sprintf("%x", hash)))
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// damagedRefused cuts the backup short and turns single bits.
func damagedRefused(t *testing.T, backup []byte) {
	t.Helper()
	for name, damaged := range map[string][]byte{
		"cut short": backup[:len(backup)-20],
		"a bit":     turned(backup, len(backup)/2),
		"a byte":    turned(backup, 20+rand.IntN(len(backup)-20)),
		"no backup": []byte("hello"),
	} {
		target := SQLite(t)
		c := store.Config{URL: target.URL, Accept: []string{"file_system"}}
		if code := fault.CodeOf(store.Restore(t.Context(), c, bytes.NewReader(damaged))); code != "backup_damaged" {
			t.Errorf("%s: got %q, want backup_damaged", name, code)
		}
		if name != "cut short" {
			continue
		}
		if _, err := store.Open(t.Context(), c); fault.CodeOf(err) != "restore_unfinished" {
			t.Errorf("after a failed restore: %v", err)
		}
	}
}

func turned(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 4
	return b
}
