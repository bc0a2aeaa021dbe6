package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"chancery/internal/core/store/internal/engine"
)

// Read runs fn on one snapshot. A read that lasts longer than a second may be ended with engine.Stale while the
// writer needs its log back.
func (e *Engine) Read(ctx context.Context, fn func(engine.Session) error) error {
	ctx, end := e.views.begin(ctx)
	defer end()
	start := time.Now()
	s, err := e.pool.take(ctx)
	if err != nil {
		return readError(ctx, err)
	}
	e.Probe.Took(engine.PoolWait, time.Since(start))
	usable, err := s.snapshot(ctx, fn)
	e.pool.give(s, usable)
	return readError(ctx, err)
}

// snapshot ends its transaction under a context of its own: the caller's may be over, and the connection lives on. One
// that cannot be rolled back is not used again.
func (s *session) snapshot(ctx context.Context, fn func(engine.Session) error) (usable bool, err error) {
	s.ctx = ctx
	if _, err := s.Exec("BEGIN", nil); err != nil {
		return false, err
	}
	err = fn(s)
	s.ctx = context.WithoutCancel(ctx)
	_, undo := s.Exec("ROLLBACK", nil)
	return undo == nil, err
}

// A readPool is the connections that read. Each keeps its statements prepared, which for a look at one row is as much
// work as the look itself.
type readPool struct {
	db     *sql.DB
	traced func(statement string)
	idle   chan *session
	all    chan struct{} // one for each connection that is open
	waits  atomic.Int64
	waited atomic.Int64 // nanoseconds
	closed atomic.Bool
}

func newReadPool(db *sql.DB, traced func(string)) *readPool {
	return &readPool{db: db, traced: traced, idle: make(chan *session, readers), all: make(chan struct{}, readers)}
}

// take gives a connection of the caller's own: an idle one, a new one, or the first that is given back.
func (r *readPool) take(ctx context.Context) (*session, error) {
	select {
	case s := <-r.idle:
		return s, nil
	default:
	}
	select {
	case r.all <- struct{}{}:
		return r.open(ctx)
	default:
	}
	start := time.Now()
	defer func() {
		r.waits.Add(1)
		r.waited.Add(int64(time.Since(start)))
	}()
	select {
	case s := <-r.idle:
		return s, nil
	case r.all <- struct{}{}: // one was given up
		return r.open(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *readPool) open(ctx context.Context) (*session, error) {
	conn, err := r.db.Conn(ctx)
	if err != nil {
		<-r.all
		return nil, err
	}
	return newSession(conn, r.traced), nil
}

// give takes a connection back, for the next one who reads.
func (r *readPool) give(s *session, usable bool) {
	if usable && !r.closed.Load() {
		r.idle <- s // there is room for all
		if r.closed.Load() {
			r.drain()
		}
		return
	}
	r.end(s)
}

func (r *readPool) end(s *session) {
	if s.forget() != nil {
		_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = s.conn.Close() // it only reads
	<-r.all
}

// close ends the idle connections now, and the others when they are given back.
func (r *readPool) close() {
	r.closed.Store(true)
	r.drain()
}

func (r *readPool) drain() {
	for {
		select {
		case s := <-r.idle:
			r.end(s)
		default:
			return
		}
	}
}

func readError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, own := errors.AsType[engine.Own](err); own || ctx.Err() == nil {
		return explain(err)
	}
	if cause := context.Cause(ctx); errors.Is(cause, engine.Stale) {
		return engine.Stale.Because(err)
	}
	return fmt.Errorf("%w (%w)", engine.Left(ctx), err)
}
