// Package drive sends requests to a server and times them.
//
// In a closed loop every connection sends its next request when it has its answer: the server is as busy as it can be,
// and the rate is the result. In an open loop requests start when a plan says so, whether the server keeps up or not,
// and latency counts from the moment at which a request was to start: a stall shows in every request that should have
// started meanwhile, sent or not. The room knows nothing of what it asks; jobs judge their own answers.
package drive

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// A Job is one request, and what becomes of its answer.
type Job struct {
	Question
	TLS *tls.Config // of a caller with a certificate of its own; nil: that of the load
	// Judge is asked about every answer that is no error: nil, and it is right. The answer's body lives until it returns.
	Judge func(Answer) error
	// Unanswered is told that no answer came, so that nobody knows what became of the request; nil: nobody is told.
	Unanswered func(error)
	// Again makes the job anew when it was refused for want of capacity and what it carries may be stale; nil: the same is sent.
	Again func() (Job, error)
	// Do is work of the client's own in place of a request; nil: there is none.
	Do func(context.Context) error
}

// A Stage is a part of a run that is counted by itself.
type Stage struct {
	Name      string
	Rate      float64       // arrivals a second, for Poisson
	For       time.Duration // how long
	Uncounted bool          // a warm-up
	Leave     bool          // in an open loop, who waits for a connection when it ends goes away: else the client's own line makes it longer for the server
}

// A Load says what is sent, by how many, and when.
type Load struct {
	Address     string // host:port
	TLS         *tls.Config
	Connections int // at once; in a closed loop, the clients
	Stages      []Stage
	Arrivals    Arrivals // when requests start; nil: a closed loop
	// Next makes a request. In a closed loop with n connections, connection k has the turns k, k+n, k+2n and so on; else
	// turns come from Arrivals. It is called concurrently.
	Next       func(turn int) (Job, error)
	Think      time.Duration              // in a closed loop, the pause after each answer, exponential with this mean
	Fresh      bool                       // every request has a connection of its own
	Obey       bool                       // who is refused for want of capacity comes again after Retry-After; a closed loop always does
	Patience   time.Duration              // for what has arrived and is not answered when the last stage ends; default 5 s, in a closed loop 10 s
	Late       func(left int)             // told once, a second after the last stage, how many are waited for, where patience is longer; nil: nobody is
	Each       func(second int, s Second) // told of every second that has gone by, by one goroutine; nil: nobody is
	Begin, End func(stage int)            // called when each of the Stages begins and ends, by one goroutine; nil: nothing to do
}

// In an open loop the line may be long when the last stage ends, and how much of it is served is the result; in a closed
// loop only the last answer of each client is missing, and a server that bounds how long a request waits has given it.
const (
	openPatience   = 5 * time.Second
	closedPatience = 10 * time.Second
)

// Run sends until the last stage is over or ctx ends, and gives what was counted. It ends within a second of ctx.
func (l Load) Run(ctx context.Context) *Tally {
	switch {
	case l.Patience > 0:
	case l.Arrivals == nil:
		l.Patience = closedPatience
	default:
		l.Patience = openPatience
	}
	t := newTally(time.Now(), l.Stages)
	var clocks sync.WaitGroup
	lasting, over := context.WithCancel(ctx)
	clocks.Go(func() { l.watch(lasting, t) })
	clocks.Go(func() { l.tell(lasting, t) })
	clocks.Go(func() { l.remind(lasting, t) })
	patient, done := context.WithDeadline(ctx, t.Until.Add(l.Patience))
	defer done()
	if l.Arrivals == nil {
		l.closed(ctx, patient, t)
	} else {
		l.open(ctx, patient, t)
	}
	over()
	clocks.Wait()
	t.finish(ctx.Err() != nil)
	return t
}

// watch says when stages begin and end. One that never began does not end.
func (l *Load) watch(ctx context.Context, t *Tally) {
	if l.Begin == nil || l.End == nil {
		return
	}
	for i, s := range t.Stages {
		if !Pause(ctx, time.Until(s.From)) {
			return
		}
		l.Begin(i)
		Pause(ctx, time.Until(s.Until))
		l.End(i)
	}
}

// tell tells of each second that is over, also of one in which nothing came back.
func (l *Load) tell(ctx context.Context, t *Tally) {
	if l.Each == nil {
		return
	}
	for n := 0; Pause(ctx, time.Until(t.Began.Add(time.Duration(n+1)*time.Second))); n++ {
		l.Each(n+1, t.gone(n))
	}
}

// lateAfter is how long after the last stage a run tells what it still waits for.
const lateAfter = time.Second

func (l *Load) remind(ctx context.Context, t *Tally) {
	if l.Late != nil && l.Patience > lateAfter && Pause(ctx, time.Until(t.Until)+lateAfter) {
		l.Late(int(t.left.Load()))
	}
}

func (l *Load) closed(ctx, patient context.Context, t *Tally) {
	var clients sync.WaitGroup
	for i := range l.Connections {
		clients.Go(func() { l.client(ctx, patient, i, t) })
	}
	clients.Wait()
}

// client asks until the last stage is over or ctx ends. The answer to its last question is waited for until patient ends.
func (l *Load) client(ctx, patient context.Context, number int, t *Tally) {
	c := l.connection()
	defer c.Close()
	for turn := number; ctx.Err() == nil && time.Now().Before(t.Until); turn += l.Connections {
		j, err := l.Next(turn)
		if err != nil {
			t.fail(time.Now(), "client: "+err.Error())
			return
		}
		a := arrival{turn: turn, intended: time.Now(), job: &j}
		t.offer(a.intended)
		if l.insist(patient, c, &a, t) == cut && ctx.Err() == nil { // an interrupted run says nothing of what it left
			t.fail(a.intended, "no answer: timeout")
		}
		t.left.Add(-1)
		if l.Think > 0 {
			left := float64(time.Until(t.Until))
			Pause(ctx, time.Duration(min(left, rand.ExpFloat64()*float64(l.Think))))
		}
	}
}

// insist sends a job of a closed loop until it is settled, and as long as the run lasts. Who is refused goes on waiting,
// to the end of the run where the server asks for more: latency counts from the first time that the job was sent.
func (l *Load) insist(ctx context.Context, c *Connection, a *arrival, t *Tally) fate {
	for {
		wait, f := l.see(ctx, c, a, t)
		if f != refused {
			return f
		}
		left := time.Until(t.Until)
		if !Pause(ctx, min(wait, left)) || wait >= left {
			return refused
		}
		if err := a.prepare(l); err != nil {
			t.fail(a.intended, "client: "+err.Error())
			return settled
		}
	}
}

func (l *Load) connection() *Connection { return &Connection{Address: l.Address, TLS: l.TLS} }

// A fate is what became of a job.
type fate uint8

const (
	settled fate = iota // answered or failed, and counted
	refused             // for want of capacity
	cut                 // the end of the run came before the answer
)

// see sends one job. Refused, it says when to come again.
func (l *Load) see(ctx context.Context, c *Connection, a *arrival, t *Tally) (wait time.Duration, f fate) {
	if a.job.TLS != nil && c.TLS != a.job.TLS {
		c.Close()
		c.TLS = a.job.TLS
	}
	sent := time.Now()
	if a.job.Do != nil {
		err := a.job.Do(ctx)
		if err != nil && ctx.Err() != nil {
			return 0, cut
		}
		t.settle(a.intended, sent, err)
		return 0, settled
	}
	answer, err := c.Ask(ctx, a.job.Question)
	if l.Fresh {
		c.Close()
	}
	t.shook(a.intended, answer)
	switch {
	case err != nil:
		if a.job.Unanswered != nil {
			a.job.Unanswered(err)
		}
		if ctx.Err() != nil {
			return 0, cut
		}
		t.fail(a.intended, "no answer: "+kind(err))
		Pause(ctx, 20*time.Millisecond) // before dialling a server that may be down
		return 0, settled
	case answer.Busy():
		t.refuse(a.intended, sent)
		return max(answer.RetryAfter, 10*time.Millisecond), refused
	case answer.Status >= http.StatusBadRequest:
		t.fail(a.intended, answer.Refusal())
		return 0, settled
	}
	t.settle(a.intended, sent, a.job.Judge(answer))
	return 0, settled
}

// Pause waits for d or until ctx ends, and reports whether it waited to the end.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
