package sqlite

import (
	"context"
	"errors"

	"chancery/internal/core/store/internal/engine"
)

// Settings reads what a commit on this file stands on; see engine.Engine.
func (e *Engine) Settings(ctx context.Context) ([]engine.Setting, error) {
	var mode, synchronous string
	err := e.Write(ctx, engine.Synced, engine.Work{Run: func(s engine.Session) error {
		return errors.Join(pragma(s, "journal_mode", &mode), pragma(s, "synchronous", &synchronous))
	}})
	if err != nil {
		return nil, err
	}
	return []engine.Setting{
		{Name: "journal_mode", Value: mode, Safe: mode == "wal", Why: "without the write-ahead log, readers and the writer block each other"},
		{Name: "synchronous", Value: synchronous, Safe: synchronous == "2" || synchronous == "3", Why: "commits are not synced to disk"},
		fileSystem(e.Path),
	}, nil
}

func pragma(s engine.Session, name string, value *string) (err error) {
	rows, err := s.Query("PRAGMA "+name, nil)
	if err != nil {
		return err
	}
	defer closeRows(rows, &err)
	if rows.Next() {
		return rows.Scan(value)
	}
	return rows.Err()
}
