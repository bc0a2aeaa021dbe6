package front

import (
	"net/netip"
	"sync"
	"time"

	"chancery/internal/base/fault"
)

// mostBuckets bounds the limiter's memory, at about 64 bytes a bucket.
const mostBuckets = 1 << 16

// A limiter bounds how often one address asks without credentials, or with wrong ones. It is safe for concurrent use.
type limiter struct {
	rate  float64 // a second
	burst float64

	mu      sync.Mutex
	buckets map[netip.Addr]bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newLimiter(rate float64, burst int) *limiter {
	return &limiter{rate: rate, burst: float64(burst), buckets: map[netip.Addr]bucket{}}
}

// take takes one token of the address. The fault is Limited, code rate_limited.
func (l *limiter) take(address netip.Addr, now time.Time) error {
	if l.rate <= 0 || !address.IsValid() {
		return nil
	}
	address = network(address)
	l.mu.Lock()
	defer l.mu.Unlock()
	b, known := l.buckets[address]
	if !known {
		l.makeRoom(now)
		b = bucket{l.burst, now}
	}
	b = l.refill(b, now)
	if b.tokens < 1 {
		missing := (1 - b.tokens) / l.rate
		return fault.New(fault.Limited, "rate_limited", "this address asks more often than is allowed without credentials").
			WithHint("wait as long as Retry-After says; callers with a valid credential are not limited").
			After(max(time.Duration(missing*float64(time.Second)), time.Second))
	}
	b.tokens--
	l.buckets[address] = b
	return nil
}

func (l *limiter) refill(b bucket, now time.Time) bucket {
	b.tokens = min(l.burst, b.tokens+max(now.Sub(b.at).Seconds(), 0)*l.rate)
	b.at = now
	return b
}

// makeRoom forgets a bucket when there are too many: of eight that come first, which in a map is at random, those that
// are full again, and else the last of them.
func (l *limiter) makeRoom(now time.Time) {
	if len(l.buckets) < mostBuckets {
		return
	}
	var last netip.Addr
	seen := 0
	for address, b := range l.buckets {
		if last = address; l.refill(b, now).tokens >= l.burst {
			delete(l.buckets, address)
		}
		if seen++; seen == 8 {
			break
		}
	}
	if len(l.buckets) >= mostBuckets {
		delete(l.buckets, last)
	}
}

// network gives what counts as one address: of IPv6 the /64, which one household holds whole.
func network(a netip.Addr) netip.Addr {
	if a.Is4() {
		return a
	}
	prefix, err := a.WithZone("").Prefix(64)
	if err != nil {
		return a
	}
	return prefix.Addr()
}
