package front

import (
	"net/netip"
	"testing"
	"time"

	"chancery/internal/base/fault"
)

// A clock is moved by hand.
type clock struct{ now time.Time }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }
func (c *clock) read() time.Time      { return c.now }

func newClock() *clock { return &clock{time.Unix(1_800_000_000, 0)} }

// churn lets one leave and one enter, n times, evenly over d.
func churn(t *testing.T, g *Gate, c *clock, n int, d time.Duration) {
	t.Helper()
	for range n {
		c.pass(d / time.Duration(n))
		g.Leave(1)
		if err := g.Enter(1); err != nil {
			t.Fatalf("a place that became free was not given: %v", err)
		}
	}
}

func fill(g *Gate, most int) (entered int) {
	for entered < most && g.Enter(1) == nil {
		entered++
	}
	return entered
}

func TestGateAdmitsAsMuchAsDrainsInItsWait(t *testing.T) {
	t.Parallel()
	c := newClock()
	g := NewGate(Capacity{Wait: 500 * time.Millisecond}, c.read)
	fill(g, 300)
	churn(t, g, c, 20_000, 2*time.Second) // 10,000 a second
	if more := fill(g, 10_000); more < 4500 || more > 5000 {
		t.Errorf("%d more were admitted with a drain of 10,000/s and a wait of 500 ms, want about 4700", more)
	}
}

func TestGateIdleHourSaysNothingOfCapacity(t *testing.T) {
	t.Parallel()
	c := newClock()
	g := NewGate(Capacity{Wait: 500 * time.Millisecond}, c.read)
	fill(g, 300)
	churn(t, g, c, 20_000, 2*time.Second)
	for range 300 {
		g.Leave(1)
	}
	for range 3600 { // one request a second
		c.pass(time.Second)
		fill(g, 1)
		g.Leave(1)
	}
	if burst := fill(g, 10_000); burst < 4500 {
		t.Errorf("after an idle hour a burst of %d was admitted, want about 5000", burst)
	}
}

func TestGateClosesWhenNothingDrainsAndOpensAgain(t *testing.T) {
	t.Parallel()
	c := newClock()
	g := NewGate(Capacity{Wait: 500 * time.Millisecond}, c.read)
	fill(g, 400)
	for range 50 {
		c.pass(window)
		g.Enter(1)
	}
	err := g.Enter(1)
	f, ok := fault.As(err)
	if !ok || f.Kind != fault.Unavailable || f.RetryAfter < leastRetry || f.RetryAfter > mostRetry {
		t.Fatalf("with nothing draining: %#v", err)
	}
	inside, _, _ := g.Load()
	for range inside {
		c.pass(100 * time.Microsecond)
		g.Leave(1)
	}
	c.pass(window)
	if n := fill(g, 500); n < 400 {
		t.Errorf("after the stall only %d were admitted", n)
	}
}

func TestGateBytes(t *testing.T) {
	t.Parallel()
	g := NewGate(Capacity{Bytes: 10}, newClock().read)
	if g.Enter(6) != nil || g.Enter(4) != nil || g.Enter(1) == nil {
		t.Error("the bound on bytes is not 10")
	}
	g.Leave(4)
	if g.Enter(4) != nil {
		t.Error("what was given back is not free")
	}
}

func TestGateRate(t *testing.T) {
	t.Parallel()
	c := newClock()
	g := NewGate(Capacity{Rate: 1000}, c.read)
	admitted := 0
	for range 5 * 5000 { // 5,000 a second for 5 s
		c.pass(200 * time.Microsecond)
		if g.Enter(1) == nil {
			admitted++
			g.Leave(1)
		}
	}
	if admitted < 4990 || admitted > 5150 {
		t.Errorf("%d were admitted in 5 s at 1,000/s", admitted)
	}
}

func TestGateSpreadsThoseItRefuses(t *testing.T) {
	t.Parallel()
	g := NewGate(Capacity{Rate: 100}, newClock().read)
	seconds := map[int]int{}
	for range 2000 {
		if f, ok := fault.As(g.Enter(1)); ok {
			seconds[int(f.RetryAfter/time.Second)]++
		}
	}
	for s := 1; s < 10; s++ {
		if seconds[s] < 80 || seconds[s] > 400 {
			t.Errorf("%d of 2000 come back in second %d: %v", seconds[s], s, seconds)
		}
	}
}

func TestLimiterIsBounded(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := newLimiter(1, 1)
	for i := range 2 * mostBuckets {
		if err := l.take(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), c.now); err != nil {
			t.Fatalf("an address that never asked was refused: %v", err)
		}
	}
	if n := len(l.buckets); n > mostBuckets {
		t.Errorf("%d buckets are kept", n)
	}
}

func TestLimiterCountsAHouseholdOnce(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := newLimiter(1, 1)
	one, other, far := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::ffff:1"), netip.MustParseAddr("2001:db8:0:1::1")
	if l.take(one, c.now) != nil || l.take(other, c.now) == nil || l.take(far, c.now) != nil {
		t.Error("a /64 is not one address")
	}
	c.pass(time.Second)
	if l.take(other, c.now) != nil {
		t.Error("a token does not come back")
	}
}

func FuzzBearer(f *testing.F) {
	f.Add("Bearer abc")
	f.Add("bearer  ")
	f.Fuzz(func(t *testing.T, header string) {
		token, given, err := bearer([]string{header})
		if !given || (err == nil) != (token != "") {
			t.Errorf("%q: token %q, given %v, error %v", header, token, given, err)
		}
	})
}
