package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"chancery/internal/core/store/internal/engine"
)

const (
	queueMax = 8192                  // jobs in a queue; callers wait outside of it under their own deadline
	batchMax = 2048                  // jobs in one SQL transaction
	batchFor = 25 * time.Millisecond // work in one SQL transaction, so that no answer waits long for its commit
)

// writer owns the writing connection. One goroutine runs everything on it.
type writer struct {
	e       *Engine
	session *session
	queues  [2]chan *job      // by durability
	level   engine.Durability // the connection's setting now
	gone    bool              // set by the rollback hook: the whole transaction has ended
	plans   map[*engine.Hot]*plan

	chores  chan chore // run between transactions
	waiting atomic.Int64
	oldest  atomic.Int64  // Unix nanoseconds of the oldest job not yet committed, 0 when idle
	fold    fold          // what it knows of a log that has grown large
	closing chan struct{} // closed: take nothing more, finish what is queued
	refuse  atomic.Bool   // finish nothing more either
	stopped chan struct{} // closed: the goroutine has ended
}

func newWriter(ctx context.Context, e *Engine) (*writer, error) {
	conn, err := e.write.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("taking the writing connection: %w", err)
	}
	w := &writer{
		e:       e,
		session: newSession(conn, e.Probe.Traced),
		queues:  [2]chan *job{make(chan *job, queueMax), make(chan *job, queueMax)},
		plans:   map[*engine.Hot]*plan{},
		chores:  make(chan chore),
		closing: make(chan struct{}),
		stopped: make(chan struct{}),
	}
	return w, conn.Raw(func(c any) error {
		hooks, ok := c.(sqlite.HookRegisterer)
		if !ok {
			return errors.New("the SQLite driver offers no rollback hook")
		}
		hooks.RegisterRollbackHook(func() { w.gone = true })
		return nil
	})
}

// do queues j and waits for its outcome.
func (w *writer) do(j *job, level engine.Durability) error {
	w.waiting.Add(1)
	defer w.waiting.Add(-1)
	select {
	case <-w.closing:
		return engine.Closed
	default:
	}
	select {
	case w.queues[level] <- j:
	case <-j.ctx.Done():
		return engine.Left(j.ctx)
	case <-w.closing:
		return engine.Closed
	}
	select {
	case <-j.done:
		return j.err
	case <-j.ctx.Done():
		return j.leave()
	case <-w.stopped:
		return w.afterEnd(j)
	}
}

// afterEnd answers a job that may have slipped into the queue while the writer ended.
func (w *writer) afterEnd(j *job) error {
	select {
	case <-j.done:
		return j.err
	default:
		return engine.Closed
	}
}

func (w *writer) run() {
	defer close(w.stopped)
	for {
		select {
		case j := <-w.queues[engine.Synced]:
			w.serve(j, engine.Synced)
		case j := <-w.queues[engine.Written]:
			w.serve(j, engine.Written)
		case c := <-w.chores:
			c.done <- c.run(w.session.conn)
		case <-w.closing:
			w.drain()
			return
		}
	}
}

// drain works off what is queued.
func (w *writer) drain() {
	for level := range w.queues {
		for {
			j := w.poll(engine.Durability(level))
			if j == nil {
				break
			}
			w.serve(j, engine.Durability(level))
		}
	}
}

func (w *writer) poll(level engine.Durability) *job {
	select {
	case j := <-w.queues[level]:
		return j
	default:
		return nil
	}
}

// serve runs first, and whoever queues up behind it, until each has its outcome.
func (w *writer) serve(first *job, level engine.Durability) {
	w.oldest.Store(first.queued.UnixNano())
	runtime.Gosched() // whoever is about to queue up shares the commit; when idle, this is nothing
	for todo := []*job{first}; len(todo) > 0; {
		todo = w.transact(todo, level)
	}
	w.oldest.Store(0)
	w.tidy()
}

func (w *writer) backlog() (int, time.Duration) {
	n, oldest := int(w.waiting.Load()), w.oldest.Load()
	if n == 0 || oldest == 0 {
		return n, 0
	}
	return n, time.Since(time.Unix(0, oldest))
}

// close stops the writer: what is queued is finished until ctx ends, the rest refused.
func (w *writer) close(ctx context.Context) error {
	close(w.closing)
	select {
	case <-w.stopped:
	case <-ctx.Done():
		w.refuse.Store(true)
		select { // one transaction may be under way; it is short unless the disk hangs
		case <-w.stopped:
		case <-time.After(time.Second):
			return fmt.Errorf("closing %s: the disk does not answer: %w", w.e.Path, context.Cause(ctx))
		}
	}
	return errors.Join(w.session.forget(), w.session.conn.Close())
}
