package sqlite

import (
	"context"
	"sync"
	"time"

	"chancery/internal/core/store/internal/engine"
)

// A job is one caller's work in the writer's queue: a closure, or a row when hot is set.
type job struct {
	ctx    context.Context
	queued time.Time
	worked time.Time // end of its last run
	work   engine.Work
	hot    *engine.Hot
	row    []any
	result engine.Appended
	alone  bool // its commit failed in company: run it in a transaction of its own
	err    error
	done   chan struct{} // closed once err and result are final

	mu   sync.Mutex // held while the work runs, so that no caller leaves during it
	left bool       // the caller has gone
	ran  bool       // it has run at least once, so a commit may carry it
}

func newJob(ctx context.Context) *job {
	return &job{ctx: ctx, queued: time.Now(), done: make(chan struct{})}
}

func (j *job) settle(err error) {
	j.err = err
	close(j.done)
}

// enter claims the job for a run; it reports false where there is nobody left to run it for. When it reports true,
// the caller of enter calls exit after the run.
func (j *job) enter() bool {
	j.mu.Lock()
	if j.left || j.ctx.Err() != nil && !j.ran {
		j.mu.Unlock()
		return false
	}
	j.ran = true
	return true
}

func (j *job) exit() { j.mu.Unlock() }

// leave ends the wait of a caller whose context has ended. It waits for a run in progress, and says Unknown where the
// work has run and its commit may be under way.
func (j *job) leave() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.done:
		return j.err
	default:
	}
	j.left = true
	if j.ran {
		return engine.Unknown.Because(context.Cause(j.ctx))
	}
	return engine.Left(j.ctx)
}
