package sqlite

import (
	"context"
	"strconv"

	"chancery/internal/core/store/internal/engine"
)

// Settings reads what a commit on this file stands on; see engine.Engine.
func (e *Engine) Settings(ctx context.Context) ([]engine.Setting, error) {
	var mode string
	var synchronous int
	err := e.Read(ctx, func(s engine.Session) error {
		rows, err := s.Query("PRAGMA journal_mode", nil)
		if err != nil {
			return err
		}
		defer closeRows(rows, &err)
		if rows.Next() {
			err = rows.Scan(&mode)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = e.Write(ctx, engine.Synced, engine.Work{Run: func(s engine.Session) (err error) {
		rows, err := s.Query("PRAGMA synchronous", nil)
		if err != nil {
			return err
		}
		defer closeRows(rows, &err)
		if rows.Next() {
			err = rows.Scan(&synchronous)
		}
		return err
	}})
	if err != nil {
		return nil, err
	}
	return []engine.Setting{
		{Name: "journal_mode", Value: mode, Safe: mode == "wal", Why: "without the write-ahead log, readers and the writer block each other"},
		{Name: "synchronous", Value: strconv.Itoa(synchronous), Safe: synchronous >= 2, Why: "commits are not synced to disk"},
		fileSystem(e.Path),
	}, nil
}
