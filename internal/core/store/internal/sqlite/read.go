package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
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

// views knows the reads that are open, so that those which hold the log open can be ended. The zero value is ready.
type views struct {
	mu   sync.Mutex
	open map[*view]struct{}
}

type view struct {
	since time.Time
	end   context.CancelCauseFunc
}

func (v *views) begin(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	one := &view{since: time.Now(), end: cancel}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open == nil {
		v.open = map[*view]struct{}{}
	}
	v.open[one] = struct{}{}
	return ctx, func() {
		v.mu.Lock()
		delete(v.open, one)
		v.mu.Unlock()
		cancel(nil)
	}
}

// end ends the reads that are open for longer than grace and says how many there were.
func (v *views) end(grace time.Duration) (ended int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for one := range v.open {
		if time.Since(one.since) >= grace {
			one.end(engine.Stale)
			ended++
		}
	}
	return ended
}

// oldest says for how long the oldest read has been open.
func (v *views) oldest() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	var age time.Duration
	for one := range v.open {
		age = max(age, time.Since(one.since))
	}
	return age
}
