package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"chancery/internal/core/store/internal/engine"
)

// Read runs fn on one snapshot. A read that lasts longer than a second may be ended with engine.Stale while the
// writer needs its log back.
func (e *Engine) Read(ctx context.Context, fn func(engine.Session) error) error {
	ctx, end := e.views.begin(ctx)
	defer end()
	start := time.Now()
	conn, err := e.read.Conn(ctx)
	if err != nil {
		return readError(ctx, err)
	}
	e.Probe.Took(engine.PoolWait, time.Since(start))
	err = readError(ctx, e.snapshot(ctx, conn, fn))
	if closing := conn.Close(); err == nil {
		err = closing
	}
	return err
}

// snapshot ends its transaction under a context of its own: the caller's may be over, and the connection lives on. One
// that cannot be rolled back is not used again.
func (e *Engine) snapshot(ctx context.Context, conn *sql.Conn, fn func(engine.Session) error) error {
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	s := &session{ctx: ctx, conn: conn, prepared: map[string]*sql.Stmt{}, traced: e.Probe.Traced}
	err := fn(s)
	_, undo := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	if s.forget() != nil || undo != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
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
