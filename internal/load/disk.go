package load

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"chancery/internal/core/store"
	"chancery/internal/load/bare"
)

// appenders is how many callers share the disk, as many as there are clients elsewhere.
const appenders = 64

func (r *LimitReport) measureDisk(ctx context.Context, c LimitConfig, dir string) error {
	previous := runtime.GOMAXPROCS(runtime.NumCPU() + 2) // a thread in fsync keeps its processor
	defer runtime.GOMAXPROCS(previous)
	for _, step := range []struct {
		key, work string
		workers   int
		open      func(context.Context, string) (do func() error, closed func() error, err error)
	}{
		{"fsync", "4 KiB written and synced, one after the other", 1, openFile},
		{"journal", fmt.Sprintf("group-committed log of %d-byte records, %d writers", bare.RecordBytes, appenders), appenders, openLog},
		{"sqlite", fmt.Sprintf("SQLite: one durable row of 1.2 KB, %d writers", appenders), appenders, openRows},
	} {
		c.Log.say("%s", step.work)
		do, closed, err := step.open(ctx, dir)
		if err != nil {
			return err
		}
		rate, err := repeat(ctx, step.workers, 5*c.Sample, do)
		if err := errors.Join(err, closed()); err != nil {
			return err
		}
		r.Limits = append(r.Limits, Limit{Key: step.key, Work: step.work, Both: &rate})
	}
	return nil
}

func openFile(_ context.Context, dir string) (do, closed func() error, err error) {
	f, err := os.Create(filepath.Join(dir, "synced"))
	if err != nil {
		return nil, nil, err
	}
	block := make([]byte, 4096)
	return func() error {
		if _, err := f.Write(block); err != nil {
			return err
		}
		return f.Sync()
	}, f.Close, nil
}

func openLog(_ context.Context, dir string) (do, closed func() error, err error) {
	j, err := bare.OpenJournal(filepath.Join(dir, "log"))
	if err != nil {
		return nil, nil, err
	}
	record := make([]byte, bare.RecordBytes)
	return func() error { return j.Append(record) }, j.Close, nil
}

// rows is a table like that of ordinary certificates, without what makes them findable.
var rows = &store.Hot{
	Table: "bench_row",
	Columns: []store.Column{
		{Name: "serial", Kind: store.Bytes}, {Name: "key_hash", Kind: store.Bytes}, {Name: "not_after", Kind: store.Int}, {Name: "der", Kind: store.Bytes},
	},
	Keys: [][]string{{"serial"}},
}

func openRows(ctx context.Context, dir string) (do, closed func() error, err error) {
	db, err := store.Open(ctx, store.Config{URL: "sqlite:" + filepath.Join(dir, "rows.db")})
	if err != nil {
		return nil, nil, err
	}
	closed = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return db.Close(ctx)
	}
	err = db.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec("CREATE TABLE bench_row (seq INTEGER PRIMARY KEY, serial BLOB NOT NULL UNIQUE, key_hash BLOB NOT NULL, not_after INTEGER NOT NULL, der BLOB NOT NULL)")
		return err
	})
	if err != nil {
		return nil, nil, errors.Join(err, closed())
	}
	return func() error {
		serial, der := make([]byte, 18), make([]byte, 1150)
		rand.Read(serial)
		got, err := db.Append(ctx, rows, []any{serial, serial, time.Now().UnixMilli(), der})
		if err == nil && got.Outcome != store.Inserted {
			err = errors.New("a fresh serial stood in the table already")
		}
		return err
	}, closed, nil
}
