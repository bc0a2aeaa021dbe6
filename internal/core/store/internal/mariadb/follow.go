package mariadb

import (
	"context"
	"fmt"
	"time"

	"chancery/internal/core/store/internal/engine"
	"chancery/internal/core/store/internal/pool"
)

const (
	pollEvery = 300 * time.Millisecond
	// overlap is longer than any transaction may last: a number that was given out so long ago is committed or gone.
	overlap = pool.Longest + 5*time.Second
)

// follower polls, and reads an overlap again and again, since transactions commit in another order than that of their
// numbers.
type follower struct {
	e     *Engine
	marks []mark // what was the highest number when, oldest first
}

type mark struct {
	at  time.Time
	seq int64
}

// Follow begins to read the change feed from here on; see engine.Engine.
func (e *Engine) Follow(ctx context.Context) (engine.Follower, error) {
	var settled int64
	before := time.Now().Add(-2 * overlap).UnixMilli()
	err := e.DB.QueryRowContext(ctx, "SELECT COALESCE(MAX(seq), 0) FROM feed WHERE at < ?", before).Scan(&settled)
	if err != nil {
		return nil, fmt.Errorf("finding the end of the change feed: %w", err)
	}
	return &follower{e: e, marks: []mark{{time.Now().Add(-overlap), settled}}}, nil
}

// Next is engine.Follower's.
func (f *follower) Next(ctx context.Context) (rows []engine.FeedRow, err error) {
	asked := time.Now()
	for len(f.marks) > 1 && asked.Sub(f.marks[1].at) > overlap {
		f.marks = f.marks[1:]
	}
	highest := f.marks[len(f.marks)-1].seq
	result, err := f.e.DB.QueryContext(ctx, "SELECT seq, topic, item, origin FROM feed WHERE seq > ? ORDER BY seq", f.marks[0].seq)
	if err != nil {
		return nil, err
	}
	defer func() { _ = result.Close() }() // read to its end, or failed already
	for result.Next() {
		var r engine.FeedRow
		if err := result.Scan(&r.Seq, &r.Topic, &r.Item, &r.Origin); err != nil {
			return nil, err
		}
		rows = append(rows, r)
		highest = max(highest, r.Seq)
	}
	if err := result.Err(); err != nil {
		return nil, err
	}
	f.marks = append(f.marks, mark{asked, highest})
	return rows, nil
}

// Wait is engine.Follower's.
func (f *follower) Wait(ctx context.Context) {
	select {
	case <-time.After(pollEvery):
	case <-ctx.Done():
	}
}

// Wake does nothing: MariaDB has no way to call.
func (f *follower) Wake() {}

// Close is engine.Follower's.
func (f *follower) Close() {}

// Positions are numbers that are given out before the commit, so that rows may appear below others.
func (e *Engine) Positions() engine.Positions {
	return engine.Positions{
		Unique: true, Column: "seq", Select: "seq", After: "seq > ?", UpTo: "seq <= ?",
		Bound: "SELECT COALESCE(MAX(seq), 0) FROM TABLE", Late: overlap,
	}
}
