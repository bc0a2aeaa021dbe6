package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"chancery/internal/core/store/internal/engine"
)

const (
	pollEvery   = 400 * time.Millisecond
	notifyEvery = 50 * time.Millisecond
)

// follower listens on a connection of its own and reads from the oldest transaction that may still commit: below
// pg_snapshot_xmin nothing can appear any more, above it rows are read again and again.
type follower struct {
	e     *Engine
	log   *slog.Logger
	conn  *pgx.Conn
	from  string // transaction id, in decimal
	wake  chan struct{}
	ended context.CancelFunc
}

// Follow begins to read the change feed from here on; see engine.Engine.
func (e *Engine) Follow(ctx context.Context) (engine.Follower, error) {
	f := &follower{e: e, log: e.log, wake: make(chan struct{}, 1)}
	if err := e.DB.QueryRowContext(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text").Scan(&f.from); err != nil {
		return nil, fmt.Errorf("finding the end of the change feed: %w", err)
	}
	background, cancel := context.WithCancel(context.Background())
	f.ended = cancel
	go f.notify(background)
	return f, nil
}

// Next is engine.Follower's.
func (f *follower) Next(ctx context.Context) (rows []engine.FeedRow, err error) {
	if err := f.connect(ctx); err != nil {
		return nil, err
	}
	var settled string
	// One statement has one snapshot: the bound and the rows belong together.
	result, err := f.conn.Query(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text, seq, topic, item, origin
		FROM (SELECT 1) one LEFT JOIN feed ON xact >= $1::text::xid8 ORDER BY seq`, f.from)
	if err != nil {
		return nil, err
	}
	defer result.Close()
	for result.Next() {
		var seq *int64
		var topic, item, origin *string
		if err := result.Scan(&settled, &seq, &topic, &item, &origin); err != nil {
			return nil, err
		}
		if seq != nil {
			rows = append(rows, engine.FeedRow{Seq: *seq, Topic: *topic, Item: *item, Origin: *origin})
		}
	}
	if err := result.Err(); err != nil {
		return nil, err
	}
	f.from = settled
	return rows, nil
}

func (f *follower) connect(ctx context.Context) error {
	if f.conn != nil && !f.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, f.e.config)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "LISTEN chancery_feed"); err != nil {
		_ = conn.Close(ctx) // given up; err says why
		return err
	}
	f.conn = conn
	return nil
}

// Wait is engine.Follower's.
func (f *follower) Wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pollEvery)
	defer cancel()
	if f.conn == nil || f.conn.IsClosed() {
		<-ctx.Done()
		return
	}
	_, _ = f.conn.WaitForNotification(ctx) // a timeout is as good; a lost connection shows in Next
	if f.conn.IsClosed() {
		<-ctx.Done()
	}
}

// Wake is engine.Follower's.
func (f *follower) Wake() {
	select {
	case f.wake <- struct{}{}:
	default: // one is on its way already
	}
}

// notify sends at most one notification in notifyEvery, outside of the transactions that it speaks of: a commit that
// carries one takes a lock that all commits share.
func (f *follower) notify(ctx context.Context) {
	for {
		select {
		case <-f.wake:
		case <-ctx.Done():
			return
		}
		once, cancel := context.WithTimeout(ctx, dialTime)
		_, err := f.e.DB.ExecContext(once, "SELECT pg_notify('chancery_feed', '')")
		cancel()
		if err != nil && ctx.Err() == nil {
			f.log.Warn("waking other instances; they look by themselves within a second", "error", err)
		}
		select {
		case <-time.After(notifyEvery):
		case <-ctx.Done():
			return
		}
	}
}

// Close ends listening and notifying.
func (f *follower) Close() {
	f.ended()
	if f.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_ = f.conn.Close(ctx) // given up either way
}

// Positions are transaction ids, several rows to one; below the oldest running transaction none can appear.
func (e *Engine) Positions() engine.Positions {
	return engine.Positions{
		Column: "xact", Select: "xact::text::bigint", After: "xact > ?::bigint::text::xid8", UpTo: "xact <= ?::bigint::text::xid8",
		Bound: "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1",
	}
}
