package load

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// loopback is the name of a server that was set up on this machine for a comparison.
const loopback = "127.0.0.1"

// trusting gives the client's side: only a server of this name (a host name or an address) counts whose chain ends in
// one of the roots. A chain is verified in full when it is first seen; a connection that shows the same octets again is
// compared with it, for as long as all of the chain is valid. That is what a relying party does that comes back every
// few seconds, and it keeps the clients, which share the server's machine, from verifying what the server signed once,
// in each of a thousand handshakes a second. That the peer holds the key of its certificate, crypto/tls checks in every
// full handshake; a resumed one proves that it took part in such a one.
func trusting(name string, roots ...*x509.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	for _, r := range roots {
		pool.AddCert(r)
	}
	t := &trust{name: name, roots: pool, now: time.Now}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: name,
		InsecureSkipVerify: true, // VerifyConnection does it, on resumed connections too
		VerifyConnection:   func(s tls.ConnectionState) error { return t.verify(s.PeerCertificates) },
	}
}

// A trust verifies chains of servers and remembers the last one. It is safe for concurrent use.
type trust struct {
	name  string
	roots *x509.CertPool
	now   func() time.Time
	last  atomic.Pointer[acquaintance]
}

// An acquaintance is a chain as a server showed it, with the time in which all certificates up to its root are valid.
type acquaintance struct {
	shown       []*x509.Certificate
	from, until time.Time
}

// verify refuses a chain, its leaf first, that does not end in a root, that is not valid now, that is not a server's,
// or whose leaf has another name.
func (t *trust) verify(shown []*x509.Certificate) error {
	now := t.now()
	if v := t.last.Load(); v != nil && v.covers(shown, now) {
		return nil
	}
	if len(shown) == 0 {
		return errors.New("the server showed no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range shown[1:] {
		between.AddCert(c)
	}
	chains, err := shown[0].Verify(x509.VerifyOptions{
		DNSName: t.name, Roots: t.roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return err
	}
	t.last.Store(newAcquaintance(shown, chains[0]))
	return nil
}

func newAcquaintance(shown, chain []*x509.Certificate) *acquaintance {
	v := &acquaintance{shown: slices.Clone(shown), from: chain[0].NotBefore, until: chain[0].NotAfter}
	for _, c := range chain[1:] {
		if c.NotBefore.After(v.from) {
			v.from = c.NotBefore
		}
		if c.NotAfter.Before(v.until) {
			v.until = c.NotAfter
		}
	}
	return v
}

// covers reports whether the verdict holds for the certificates that are shown now.
func (v *acquaintance) covers(shown []*x509.Certificate, now time.Time) bool {
	return !now.Before(v.from) && !now.After(v.until) &&
		slices.EqualFunc(v.shown, shown, func(a, b *x509.Certificate) bool { return bytes.Equal(a.Raw, b.Raw) })
}
