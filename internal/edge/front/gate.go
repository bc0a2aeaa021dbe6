package front

import (
	"cmp"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"chancery/internal/base/fault"
)

// Capacity says how much may be inside a Gate. The zero value of each field stands for its default.
type Capacity struct {
	Bytes int64         // estimated memory of all that is inside: 128 MiB
	Wait  time.Duration // the longest expected wait: 2 s
	Rate  float64       // the most entries a second: 0 is no limit but the wait
}

const (
	window     = 100 * time.Millisecond // the drain rate is measured over
	fewInside  = 64                     // inside a gate do not wait for one another, and prove nothing about the drain rate
	firstDrain = 5000                   // entries a second, until it was measured
	leastRetry = time.Second
	mostRetry  = 10 * time.Second // of Retry-After; below the freshness of a delegation authorization
)

// A Gate admits work while it fits into memory and is expected to be finished soon. It counts what is inside and
// measures how fast that leaves; inside ÷ drain rate is the expected wait (Little's law). The drain rate is only
// lowered by times when enough was inside to keep everything busy: an idle hour says nothing about capacity. Refusing
// takes one mutex and no allocation but the refusal. A Gate is safe for concurrent use.
type Gate struct {
	capacity Capacity
	now      func() time.Time

	mu     sync.Mutex
	bytes  int64
	inside int
	drain  float64   // entries a second that leave, EWMA
	since  time.Time // start of the window
	left   int       // in this window
	fewest int       // inside at any moment of this window
	next   time.Time // when the rate admits the next entry
	due    time.Time // when the latest refused entry was told to come again
}

// NewGate makes an open gate.
func NewGate(c Capacity, now func() time.Time) *Gate {
	c.Bytes = cmp.Or(c.Bytes, 128<<20)
	c.Wait = cmp.Or(c.Wait, 2*time.Second)
	return &Gate{capacity: c, now: now, drain: firstDrain, since: now()}
}

// Enter admits work that holds the given bytes. Who was admitted must Leave with the same number. The fault is
// Unavailable, code overloaded, with the time after which there should be room.
func (g *Gate) Enter(bytes int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.measure(now)
	switch {
	case g.bytes+bytes > g.capacity.Bytes:
		return g.refuse(now, "the memory for requests is in use")
	case g.inside >= fewInside && g.wait() > g.capacity.Wait:
		return g.refuse(now, "more requests wait than can be served soon")
	case !g.inTime(now):
		return g.refuse(now, "requests come faster than is allowed")
	}
	g.inside++
	g.bytes += bytes
	return nil
}

// Leave gives back what Enter took.
func (g *Gate) Leave(bytes int64) { g.leave(bytes, 1) }

// GiveUp is Leave for work that was not done: it tells nothing of how fast work is.
func (g *Gate) GiveUp(bytes int64) { g.leave(bytes, 0) }

func (g *Gate) leave(bytes int64, done int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.bytes -= bytes
	g.left += done
	g.fewest = min(g.fewest, g.inside)
	g.measure(g.now())
}

// Load gives how many are inside, the bytes they hold, and how long the next is expected to wait.
func (g *Gate) Load() (inside int, bytes int64, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside, g.bytes, g.wait()
}

func (g *Gate) wait() time.Duration {
	return time.Duration(float64(g.inside) / g.drain * float64(time.Second))
}

// measure ends the window when its time is over. A higher rate is believed quickly. A lower one is believed only if
// the gate was never nearly empty, the more the longer the window lasted.
func (g *Gate) measure(now time.Time) {
	elapsed := now.Sub(g.since)
	if elapsed < window {
		return
	}
	rate := float64(g.left) / elapsed.Seconds()
	switch {
	case rate > g.drain:
		g.drain += (rate - g.drain) / 2
	case g.fewest >= fewInside:
		g.drain += (rate - g.drain) * (1 - math.Pow(0.8, float64(elapsed)/float64(window)))
	}
	g.drain = max(g.drain, 1)
	g.since, g.left, g.fewest = now, 0, g.inside
}

// inTime reports whether the rate admits an entry now, and books it. A tenth of a second's worth may come at once.
func (g *Gate) inTime(now time.Time) bool {
	if g.capacity.Rate <= 0 {
		return true
	}
	if g.next.Sub(now) > time.Second/10 {
		return false
	}
	g.next = later(g.next, now).Add(time.Duration(float64(time.Second) / g.capacity.Rate))
	return true
}

// refuse tells each refused entry a time of its own, as far apart as the gate can serve them, so that they do not all
// come back at once. Past mostRetry the times are spread at random.
func (g *Gate) refuse(now time.Time, why string) error {
	rate := g.drain
	if g.capacity.Rate > 0 {
		rate = min(rate, g.capacity.Rate)
	}
	g.due = later(g.due, now.Add(g.wait())).Add(time.Duration(float64(time.Second) / rate))
	after := g.due.Sub(now)
	if after > mostRetry {
		g.due = now.Add(mostRetry)
		after = leastRetry + rand.N(mostRetry-leastRetry)
	}
	return (&fault.Error{
		Kind: fault.Unavailable, Code: "overloaded", Text: "the server cannot take this now: " + why,
		Hint: "nothing was done; send the same request again after the time in Retry-After",
	}).After(max(after, leastRetry))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
