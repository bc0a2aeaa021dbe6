package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

func TestBackupSQLiteWhileRetiring(t *testing.T)   { backupWhileRetiring(t, storetest.SQLite(t)) }
func TestBackupPostgresWhileRetiring(t *testing.T) { backupWhileRetiring(t, storetest.Postgres(t)) }
func TestBackupMariaDBWhileRetiring(t *testing.T)  { backupWhileRetiring(t, storetest.MariaDB(t)) }

// backupWhileRetiring takes backups while old rows are retired and new ones come, and holds what is restored against
// the model of one moment: every old row is there or in a retirement's line, and of two things that were written in one
// transaction there are as many of one as of the other.
func backupWhileRetiring(t *testing.T, at storetest.Target) {
	const old, young = 3000, 1_000_000
	var clock atomic.Int64
	s := storetest.OpenAt(t, store.Config{URL: at.URL, Now: func() time.Time { return time.UnixMilli(clock.Load()) }})
	write := func(n int) {
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			for range n {
				if err := tx.Audit(store.Line{Actor: "per_1", Action: "one"}); err != nil {
					return err
				}
			}
			return tx.Audit(store.Line{Actor: "per_1", Action: "other"})
		})
		if err != nil && t.Context().Err() == nil {
			t.Errorf("writing: %v", err)
		}
	}
	for clock.Store(1); clock.Load() <= old; clock.Add(10) {
		write(9)
	}
	clock.Store(young)
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	busy.Go(func() {
		for ctx.Err() == nil {
			write(9)
		}
	})
	busy.Go(func() {
		for before := int64(0); before <= old && ctx.Err() == nil; before += 100 {
			if _, err := s.Retire(t.Context(), "audit", store.Lifetime{Born: "at", Ends: "at"}, before, "old"); err != nil {
				t.Errorf("retiring: %v", err)
			}
		}
	})
	var backups [3]bytes.Buffer
	for i := range backups {
		if err := s.Backup(t.Context(), &backups[i]); err != nil {
			t.Errorf("backing up: %v", err)
		}
	}
	stop()
	busy.Wait()
	for i := range backups {
		restoredAtOnce(t, backups[i].Bytes(), old, young)
	}
}

func restoredAtOnce(t *testing.T, backup []byte, old, young int64) {
	t.Helper()
	c := store.Config{URL: storetest.SQLite(t).URL, Accept: []string{"file_system"}}
	if err := store.Restore(t.Context(), c, bytes.NewReader(backup)); err != nil {
		t.Fatalf("restoring: %v", err)
	}
	s := storetest.OpenAt(t, c)
	if v, err := s.VerifyAudit(t.Context(), nil, nil); err != nil || len(v.Faults) > 0 {
		t.Errorf("the audit after a restore: %v, %q", err, v.Faults)
	}
	var left, gone, one, other int64
	err := s.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Each("SELECT at, action, detail FROM audit", nil, func(r store.Row) error {
			var at int64
			var action, detail string
			if err := r.Scan(&at, &action, &detail); err != nil {
				return err
			}
			switch {
			case at < young:
				left++
			case action == "one":
				one++
			case action == "other":
				other++
			case action == "store.retire":
				var step struct{ Rows int64 }
				err := json.Unmarshal([]byte(detail), &step)
				gone += step.Rows
				return err
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d old rows left, %d retired, %d transactions since", left, gone, other)
	if left+gone != old {
		t.Errorf("%d old rows are there and %d retired, of %d", left, gone, old)
	}
	if one != 9*other {
		t.Errorf("%d and %d rows of transactions of 9 and 1", one, other)
	}
}
