package drive

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// An arrival is a request that is to start, or that was refused and is to start again.
type arrival struct {
	turn     int
	intended time.Time // when it was to start first: latency counts from here
	due      time.Time // when it is to be sent
	job      *Job      // nil until it is sent first
}

// A line is what has arrived and waits for a connection, and what will arrive.
type line struct {
	load    *Load
	tally   *Tally
	ready   chan *arrival
	changed chan struct{} // somebody was sent away and will come again

	planned time.Time // when the next one arrives; this and the next two are the dispatcher's
	turn    int
	more    bool // there is a next one
	open    int  // connections; this is the dispatcher's, too
	serving sync.WaitGroup

	mu    sync.Mutex
	later waiting // by due
}

// readyMax is how many may have arrived without a free connection before the clock of arrivals stands still; their
// latency goes on counting.
const readyMax = 1 << 16

// openAtFirst is how many connections there are from the start. More are opened when all are busy, one for each arrival,
// up to the load's bound.
const openAtFirst = 256

// open sends what the plan lets arrive, each at its time, on whichever connection is free.
func (l *Load) open(ctx, patient context.Context, t *Tally) {
	q := &line{load: l, tally: t, ready: make(chan *arrival, readyMax), changed: make(chan struct{}, 1)}
	for range min(l.Connections, openAtFirst) {
		q.another(patient)
	}
	q.dispatch(patient)
	q.serving.Wait()
	if ctx.Err() == nil { // an interrupted run leaves everything unserved; that says nothing
		q.rest()
	}
}

// dispatch lets everything arrive at its time and returns when all is settled or ctx ends.
func (q *line) dispatch(ctx context.Context) {
	defer close(q.ready)
	q.advance()
	for ctx.Err() == nil {
		next, again := q.soonest()
		switch {
		case q.more && (!again || !next.After(q.planned)):
			if !q.sleep(ctx, q.planned) {
				continue // somebody may be due earlier now
			}
			q.tally.offer(q.planned)
			q.put(ctx, &arrival{turn: q.turn, intended: q.planned})
			q.advance()
		case again:
			if q.sleep(ctx, next) {
				q.put(ctx, q.pop())
			}
		case q.tally.left.Load() == 0:
			return
		default: // all are on their way
			select {
			case <-q.changed:
			case <-ctx.Done():
			}
		}
	}
}

func (q *line) advance() {
	after, turn, more := q.load.Arrivals.next()
	q.planned, q.turn, q.more = q.tally.Began.Add(after), turn, more
}

func (q *line) another(ctx context.Context) {
	q.open++
	q.serving.Go(func() { q.serve(ctx) })
}

func (q *line) put(ctx context.Context, a *arrival) {
	select {
	case q.ready <- a:
		if len(q.ready) > 0 && q.open < q.load.Connections { // nobody was free to take it
			q.another(ctx)
		}
	case <-ctx.Done():
		q.mu.Lock()
		heap.Push(&q.later, a)
		q.mu.Unlock()
	}
}

// sleep waits until a moment. It reports false when the line changed or ctx ended before.
func (q *line) sleep(ctx context.Context, until time.Time) bool {
	if left := time.Until(until) - exactly; left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-q.changed:
			return false
		case <-ctx.Done():
			return false
		}
	}
	nanosleep(time.Until(until))
	return true
}

// exactly is how long before its time an arrival is waited for with the system's clock: the runtime's timers are up to
// a millisecond late, which would count as latency.
const exactly = 2 * time.Millisecond

func (q *line) soonest() (due time.Time, any bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.later) == 0 {
		return time.Time{}, false
	}
	return q.later[0].due, true
}

func (q *line) pop() *arrival {
	q.mu.Lock()
	defer q.mu.Unlock()
	return heap.Pop(&q.later).(*arrival)
}

func (q *line) come(a *arrival, wait time.Duration) {
	a.due = time.Now().Add(wait)
	q.mu.Lock()
	heap.Push(&q.later, a)
	q.mu.Unlock()
	q.wake()
}

func (q *line) wake() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// rest counts those that were never settled, by when they were to start. Those count as offered, too, that a full line
// kept from arriving; a plan may hold billions of them, so they are counted by seconds and stages, not one by one.
func (q *line) rest() {
	if q.more {
		q.tally.unserved(q.planned, 1)
	}
	for at := q.planned; q.more && at.Before(q.tally.Until); {
		end := q.tally.border(at)
		q.tally.unserved(at, q.load.Arrivals.skip(end.Sub(q.tally.Began)))
		at = end
	}
	for a := range q.ready {
		q.tally.fail(a.intended, Unserved)
	}
	for _, a := range q.later {
		q.tally.fail(a.intended, Unserved)
	}
}

// serve is one connection.
func (q *line) serve(ctx context.Context) {
	c := q.load.connection()
	defer c.Close()
	for ctx.Err() == nil {
		select {
		case a, open := <-q.ready:
			if !open {
				return
			}
			q.settle(ctx, c, a)
		case <-ctx.Done():
		}
	}
}

func (q *line) settle(ctx context.Context, c *Connection, a *arrival) {
	if q.left(a) {
		q.tally.fail(a.intended, Unserved)
	} else if err := a.prepare(q.load); err != nil {
		q.tally.fail(a.intended, "client: "+err.Error())
	} else if wait, f := q.load.see(ctx, c, a, q.tally); f == cut || (f == refused && q.load.Obey) {
		q.come(a, wait)
		return
	}
	if q.tally.left.Add(-1) == 0 {
		q.wake()
	}
}

// left says whether whoever wanted a request has gone away before it was sent.
func (q *line) left(a *arrival) bool {
	s := q.tally.stage(a.intended)
	return s.Leave && a.job == nil && time.Now().After(s.Until)
}

// prepare makes the job of an arrival, anew where it was refused and may be stale.
func (a *arrival) prepare(l *Load) error {
	var j Job
	var err error
	switch {
	case a.job == nil:
		j, err = l.Next(a.turn)
	case a.job.Again != nil:
		j, err = a.job.Again()
	default:
		return nil
	}
	a.job = &j
	return err
}

// waiting is a heap of arrivals by when they are due.
type waiting []*arrival

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, j int) bool { return w[i].due.Before(w[j].due) }
func (w waiting) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }

// Push and Pop are for container/heap.
func (w *waiting) Push(a any) { *w = append(*w, a.(*arrival)) }

// Pop takes the last one off.
func (w *waiting) Pop() any {
	all := *w
	last := all[len(all)-1]
	all[len(all)-1] = nil
	*w = all[:len(all)-1]
	return last
}
