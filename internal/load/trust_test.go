package load

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"testing"
	"time"
)

// A branch is an authority with a key, for chains of any kind.
type branch struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// below makes a certificate that b signs; a nil b makes a root.
func (b *branch) below(t *testing.T, change func(*x509.Certificate)) *branch {
	t.Helper()
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "Trust"}, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	}
	change(template)
	parent, signer := template, key
	if b != nil {
		parent, signer = b.cert, b.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &branch{cert, key}
}

// A keyed signs with another key than its public one.
type keyed struct {
	*ecdsa.PrivateKey
	signs *ecdsa.PrivateKey
}

func (k keyed) Sign(r io.Reader, digest []byte, o crypto.SignerOpts) ([]byte, error) {
	return k.signs.Sign(r, digest, o)
}

func as(*x509.Certificate) {}

func server127(c *x509.Certificate) {
	c.IsCA, c.KeyUsage = false, x509.KeyUsageDigitalSignature
	c.IPAddresses, c.ExtKeyUsage = []net.IP{net.IPv4(127, 0, 0, 1)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
}

func named(name string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.Subject.CommonName = name }
}

func TestTrustIsStrict(t *testing.T) {
	root := (*branch)(nil).below(t, as)
	other := (*branch)(nil).below(t, as) // the same name, another key
	issuer := root.below(t, named("Issuer"))
	good := issuer.below(t, server127)
	dying := root.below(t, func(c *x509.Certificate) { c.Subject.CommonName, c.NotAfter = "Dying", time.Now().Add(30*time.Minute) })
	chain := func(all ...*branch) (shown []*x509.Certificate) {
		for _, b := range all {
			shown = append(shown, b.cert)
		}
		return shown
	}
	later := func(c *x509.Certificate) { server127(c); c.NotBefore = time.Now().Add(10 * time.Minute) }
	for name, c := range map[string]struct {
		shown []*x509.Certificate
		after time.Duration
		ok    bool
	}{
		"good":              {shown: chain(good, issuer), ok: true},
		"good, a key again": {shown: chain(issuer.below(t, server127), issuer), ok: true},
		"nothing":           {},
		"expired":           {shown: chain(good, issuer), after: 2 * time.Hour},
		"not valid yet":     {shown: chain(good, issuer), after: -2 * time.Hour},
		"leaf from later":   {shown: chain(issuer.below(t, later), issuer)},
		"issuer expired":    {shown: chain(dying.below(t, server127), dying), after: 45 * time.Minute},
		"another root":      {shown: chain(other.below(t, named("Issuer")).below(t, server127), issuer)},
		"its own chain":     {shown: chain(other.below(t, server127), other)},
		"no issuer":         {shown: chain(good)},
		"another name": {shown: chain(issuer.below(t, func(c *x509.Certificate) {
			server127(c)
			c.IPAddresses, c.DNSNames = []net.IP{net.IPv4(127, 0, 0, 2)}, []string{"127.0.0.1"}
		}), issuer)},
		"a client's": {shown: chain(issuer.below(t, func(c *x509.Certificate) {
			server127(c)
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}), issuer)},
		"issued by a leaf": {shown: chain(good.below(t, server127), good, issuer)},
	} {
		for _, remembered := range [][]*x509.Certificate{nil, chain(good, issuer), chain(dying.below(t, server127), dying), c.shown} {
			config := trusting(loopback, root.cert)
			trust := trustOf(t, root.cert)
			if remembered != nil {
				_ = trust.verify(remembered) // may be refused, and must not be believed then
			}
			trust.now = func() time.Time { return time.Now().Add(c.after) }
			if err := trust.verify(c.shown); (err == nil) != c.ok {
				t.Errorf("%s: got %v, want accepted %v", name, err, c.ok)
			}
			if c.after != 0 {
				continue
			}
			if err := config.VerifyConnection(tls.ConnectionState{PeerCertificates: c.shown}); (err == nil) != c.ok {
				t.Errorf("%s, in a connection: got %v, want accepted %v", name, err, c.ok)
			}
		}
	}
}

func trustOf(t *testing.T, root *x509.Certificate) *trust {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(root)
	return &trust{name: loopback, roots: pool, now: time.Now}
}

// The verdict is kept: the chain is not verified again while it is the same.
func TestTrustIsKept(t *testing.T) {
	root := (*branch)(nil).below(t, as)
	shown := []*x509.Certificate{root.below(t, server127).cert}
	trust := trustOf(t, root.cert)
	if err := trust.verify(shown); err != nil {
		t.Fatal(err)
	}
	trust.roots = x509.NewCertPool() // from here on nothing can be verified
	if err := trust.verify(shown); err != nil {
		t.Errorf("a chain that was verified is verified again: %v", err)
	}
	if err := trust.verify([]*x509.Certificate{root.below(t, server127).cert}); err == nil {
		t.Error("another leaf is believed unseen")
	}
}

// Who shows a trusted chain without holding its key gets no connection, verdict or not: that is what crypto/tls checks.
func TestTrustNeedsTheKey(t *testing.T) {
	root := (*branch)(nil).below(t, as)
	leaf, thief := root.below(t, server127), root.below(t, server127)
	config := trusting(loopback, root.cert)
	shake := func(key *ecdsa.PrivateKey) error {
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		deadline := time.Now().Add(10 * time.Second)
		if err := errors.Join(here.SetDeadline(deadline), there.SetDeadline(deadline)); err != nil {
			return err
		}
		server := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.cert.Raw}, PrivateKey: keyed{leaf.key, key}}}})
		go server.Handshake()
		return tls.Client(here, config).Handshake()
	}
	if err := shake(leaf.key); err != nil {
		t.Fatal(err)
	}
	if shake(thief.key) == nil {
		t.Error("a server without the key of its certificate is accepted")
	}
}
