package hinder

import (
	"context"
	"sync"
	"time"
)

// A gate keeps callers waiting: each for the delay, and all of them while it is stalled.
type gate struct {
	mu      sync.Mutex
	delay   time.Duration
	stalls  int           // how many hold it shut now
	changed chan struct{} // closed, and made anew, with every change of these two

	open func()        // lets everybody through, now and for good
	gone chan struct{} // closed by open
}

func newGate(delay time.Duration) *gate {
	g := &gate{delay: delay, changed: make(chan struct{}), gone: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.gone) })
	return g
}

func (g *gate) change(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *gate) set(delay time.Duration) {
	g.change(func() { g.delay = delay })
}

// stall holds the gate shut for so long, or until ctx or the gate ends, and returns then.
func (g *gate) stall(ctx context.Context, length time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	g.change(func() { g.stalls++ })
	defer g.change(func() { g.stalls-- })
	select {
	case <-ctx.Done():
	case <-g.gone:
	}
}

// pass returns when somebody who came at a time may go on.
func (g *gate) pass(came time.Time) {
	for {
		left, changed := g.look(came)
		if left <= 0 {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-g.gone:
		}
		timer.Stop()
	}
}

// ages is longer than anybody waits: what is left while the gate is shut.
const ages = 1000 * time.Hour

// look gives the time that somebody still has to wait, if nothing changes.
func (g *gate) look(came time.Time) (left time.Duration, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.gone:
		return 0, nil
	default:
	}
	switch {
	case g.stalls > 0:
		return ages, g.changed
	case g.delay <= 0:
		return 0, nil
	}
	return g.delay - time.Since(came), g.changed
}
