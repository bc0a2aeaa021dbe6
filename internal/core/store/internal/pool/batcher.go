package pool

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"chancery/internal/core/store/internal/engine"
)

const (
	queueMax = 8192 // rows that wait; further callers wait outside, under their own deadline
	batchMax = 1024 // rows of one commit
	flushFor = 5 * time.Second
	triesMax = 4
)

// An Entry is one row on its way through a batch.
type Entry struct {
	Row    []any
	Result engine.Appended
	Again  bool // set by Flush: the rival that stood in its way is gone; append it again
}

// A Flusher appends batches on one connection, which it makes anew after it was lost.
type Flusher interface {
	// Flush appends rows of h in one commit and sets each entry's Result or Again. No two rows share a key. An error
	// speaks for all of them; Unknown where the outcome of the commit is not known.
	Flush(ctx context.Context, h *engine.Hot, rows []*Entry) error
	Close()
}

// Batcher appends the rows of many callers together, on each of its Flushers in turn. A batch is whatever came in
// while the connections were busy.
type Batcher struct {
	probe   engine.Probe
	judge   func(error) Verdict
	explain func(error) error
	queue   chan *caller
	waiting atomic.Int64
	oldest  []atomic.Int64 // a flusher: Unix nanoseconds of the oldest row that it works on
	closing chan struct{}
	refuse  context.CancelFunc // ends flushes under way
	workers sync.WaitGroup
}

type caller struct {
	Entry
	ctx    context.Context
	hot    *engine.Hot
	queued time.Time
	tries  int
	err    error
	done   chan struct{}
	taken  atomic.Uint32 // 0 waiting, 1 taken into a batch, 2 its caller left before
}

// NewBatcher starts one worker for each flusher.
func NewBatcher(d Dialect, probe engine.Probe, flushers ...Flusher) *Batcher {
	ctx, cancel := context.WithCancel(context.Background())
	b := &Batcher{
		probe: probe, judge: d.Judge, explain: d.Explain, queue: make(chan *caller, queueMax),
		oldest: make([]atomic.Int64, len(flushers)), closing: make(chan struct{}), refuse: cancel,
	}
	for i, f := range flushers {
		b.workers.Go(func() { b.work(ctx, f, &b.oldest[i]) })
	}
	return b
}

// Append is engine.Engine's.
func (b *Batcher) Append(ctx context.Context, h *engine.Hot, row []any) (engine.Appended, error) {
	c := &caller{Entry: Entry{Row: row}, ctx: ctx, hot: h, queued: time.Now(), done: make(chan struct{})}
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	select {
	case <-b.closing:
		return engine.Appended{}, engine.Closed
	default:
	}
	select {
	case b.queue <- c:
	case <-ctx.Done():
		return engine.Appended{}, engine.Left(ctx)
	case <-b.closing:
		return engine.Appended{}, engine.Closed
	}
	select {
	case <-c.done:
		return c.Result, c.err
	case <-ctx.Done():
		return c.leave()
	}
}

func (c *caller) leave() (engine.Appended, error) {
	if c.taken.CompareAndSwap(0, 2) {
		return engine.Appended{}, engine.Left(c.ctx)
	}
	select {
	case <-c.done:
		return c.Result, c.err
	default:
		return engine.Appended{}, engine.Unknown.Because(context.Cause(c.ctx))
	}
}

func (c *caller) settle(err error) {
	c.err = err
	close(c.done)
}

// Backlog says how many rows wait, and for how long the oldest has.
func (b *Batcher) Backlog() (int, time.Duration) {
	var age time.Duration
	for i := range b.oldest {
		if at := b.oldest[i].Load(); at != 0 {
			age = max(age, time.Since(time.Unix(0, at)))
		}
	}
	return int(b.waiting.Load()), age
}

// Close finishes what is queued until ctx ends, then refuses the rest and ends the statements under way.
func (b *Batcher) Close(ctx context.Context) error {
	close(b.closing)
	ended := make(chan struct{})
	go func() {
		b.workers.Wait()
		close(ended)
	}()
	defer b.refuse()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		b.refuse()
		<-ended // the connections obey the cancelled context
		return nil
	}
}

func (b *Batcher) work(ctx context.Context, f Flusher, oldest *atomic.Int64) {
	defer f.Close()
	for {
		select {
		case c := <-b.queue:
			oldest.Store(c.queued.UnixNano())
			b.serve(ctx, f, c)
			oldest.Store(0)
		case <-b.closing:
			for c := b.poll(); c != nil; c = b.poll() {
				b.serve(ctx, f, c)
			}
			return
		}
	}
}

func (b *Batcher) poll() *caller {
	select {
	case c := <-b.queue:
		return c
	default:
		return nil
	}
}

// serve takes first and whoever waits behind it, and flushes until each has its outcome. Rows of another table, and
// rows that share a key with one of the batch, wait for the next flush.
func (b *Batcher) serve(ctx context.Context, f Flusher, first *caller) {
	var todo []*caller
	bytes := 0
	for c := first; c != nil; c = b.poll() {
		if c.take() {
			b.probe.Took(engine.QueueWait, time.Since(c.queued))
			todo = append(todo, c)
			bytes += engine.Size(c.Row)
		}
		if len(todo) == batchMax || bytes > engine.BatchBytes {
			break
		}
	}
	for len(todo) > 0 {
		batch, rest := split(todo)
		todo = append(b.flush(ctx, f, batch), rest...)
	}
}

// take claims c for a batch; a caller that has gone or whose time is over is settled instead.
func (c *caller) take() bool {
	if c.ctx.Err() == nil && c.taken.CompareAndSwap(0, 1) {
		return true
	}
	c.settle(engine.Left(c.ctx))
	return false
}

// split gives the callers that can share a statement with the first, and the others.
func split(callers []*caller) (batch, rest []*caller) {
	h, seen := callers[0].hot, map[string]bool{}
	for _, c := range callers {
		if c.hot == h && claim(h, c.Row, seen) {
			batch = append(batch, c)
		} else {
			rest = append(rest, c)
		}
	}
	return batch, rest
}

// claim enters the keys of row in seen, unless one stands there.
func claim(h *engine.Hot, row []any, seen map[string]bool) bool {
	keys := make([]string, 0, len(h.Keys))
	for i, names := range h.Keys {
		key, whole := keyOf(h, row, byte(i), names)
		if !whole {
			continue
		}
		if seen[key] {
			return false
		}
		keys = append(keys, key)
	}
	for _, key := range keys {
		seen[key] = true
	}
	return true
}

// keyOf encodes one key of row; whole is false where a part of it is NULL, since such keys collide with nothing.
func keyOf(h *engine.Hot, row []any, number byte, names []string) (key string, whole bool) {
	b := []byte{number}
	for _, n := range names {
		switch v := row[h.Index(n)].(type) {
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		case string:
			b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
		case []byte:
			b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
		default:
			return "", false
		}
	}
	return string(b), true
}

// flush appends one batch and settles those whose outcome is final; it gives back those to append again.
func (b *Batcher) flush(ctx context.Context, f Flusher, batch []*caller) (again []*caller) {
	entries := make([]*Entry, len(batch))
	for i, c := range batch {
		c.Again, c.tries = false, c.tries+1
		entries[i] = &c.Entry
	}
	start := time.Now()
	err := b.try(ctx, f, batch[0].hot, entries)
	b.probe.Took(engine.Statement, time.Since(start))
	b.probe.Batched(len(batch))
	if err != nil && b.judge(err) == Final && len(batch) > 1 && ctx.Err() == nil {
		return b.singly(ctx, f, batch)
	}
	for _, c := range batch {
		switch {
		case err != nil:
			c.settle(b.explain(err))
		case c.Again && c.tries < triesMax:
			again = append(again, c)
		case c.Again:
			c.settle(engine.Busy)
		default:
			c.settle(nil)
		}
	}
	return again
}

// singly appends the rows of a refused batch one by one, so that the one at fault does not fail the others.
func (b *Batcher) singly(ctx context.Context, f Flusher, batch []*caller) (again []*caller) {
	for _, c := range batch {
		again = append(again, b.flush(ctx, f, []*caller{c})...)
	}
	return again
}

// try flushes until the server undoes it no more.
func (b *Batcher) try(ctx context.Context, f Flusher, h *engine.Hot, rows []*Entry) error {
	ctx, cancel := context.WithTimeout(ctx, flushFor)
	defer cancel()
	for run := 0; ; run++ {
		err := f.Flush(ctx, h, rows)
		if err == nil || b.judge(err) != Undone {
			return err
		}
		if !pause(ctx, run) {
			return engine.Left(ctx)
		}
	}
}
