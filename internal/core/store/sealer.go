package store

import (
	"sync/atomic"
	"time"
)

// sealer is what the sealing task keeps between rounds. Only sign and stale are shared with other goroutines.
type sealer struct {
	sign    atomic.Pointer[Sign]
	stale   atomic.Bool // a table was met that may not be among sources
	sources []source
	until   time.Time // the lease is ours until then
	looked  time.Time // for late rows and new tables
	signed  time.Time // the head
}

// due gives the signer when the head needs a signature.
func (l *sealer) due() (Sign, bool) {
	sign := l.sign.Load()
	if sign == nil || *sign == nil || time.Since(l.signed) < signEvery {
		return nil, false
	}
	return *sign, true
}
