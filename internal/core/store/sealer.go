package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sealer is what the sealing task keeps between rounds. Only sources and sign are shared with other goroutines.
type sealer struct {
	sign    atomic.Pointer[Sign]
	mu      sync.Mutex
	sources []source
	until   time.Time // the lease is ours until then
	looked  time.Time // for late rows
	signed  time.Time // the head
}

func (l *sealer) add(src source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.ContainsFunc(l.sources, func(other source) bool { return other.table == src.table }) {
		l.sources = append(l.sources, src)
	}
}

// all gives the sources, the audit lines first.
func (l *sealer) all() []source {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]source{auditSource}, l.sources...)
}

// due gives the signer when the head needs a signature.
func (l *sealer) due() (Sign, bool) {
	sign := l.sign.Load()
	if sign == nil || *sign == nil || time.Since(l.signed) < signEvery {
		return nil, false
	}
	return *sign, true
}
