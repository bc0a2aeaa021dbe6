package front

import (
	"crypto/tls"
	"errors"
	"runtime"
	"time"
)

// handshakeBytes is what a handshake in progress holds in memory, roughly.
const handshakeBytes = 16 << 10

var errBusy = errors.New("too many handshakes at once")

// tlsConfig makes the TLS side of a listener: version 1.2 or higher (RFC 8996), session tickets on. On MTLS a client
// certificate is requested and its possession proved by TLS, but its chain is not verified: the Authenticator does
// that, so that whoever comes with an expired or foreign one learns why it is refused.
func (f *Front) tlsConfig(l Listener) *tls.Config {
	c := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: f.config.Certificates,
		Time:           f.config.Now,
		// Called when a ClientHello has been read and nothing has been computed.
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return nil, f.admitHandshake(hello) },
	}
	if l == MTLS {
		c.ClientAuth = tls.RequestClientCert
	}
	return c
}

// admitHandshake asks for capacity. The connection gives it back with the server's first flight. The time that the
// connection waited for its turn does not count against its peer.
func (f *Front) admitHandshake(hello *tls.ClientHelloInfo) error {
	c, ok := hello.Conn.(*conn)
	if !ok {
		return nil
	}
	if !f.hello.enter() {
		f.metrics.refused("handshake_overloaded")
		return errBusy
	}
	c.handshake.Store(f.hello)
	return c.SetDeadline(time.Now().Add(f.config.ReadHead))
}

// handshakes admits TLS handshakes while they are expected to be done soon, and has as many compute at a time as there
// are processors, in the order in which they came. Were all to compute side by side, a thousand would be done together
// at the end, when their clients have gone, and everything else would stand in line with them meanwhile.
type handshakes struct {
	gate *Gate
	turn chan struct{}
}

func newHandshakes(c Capacity, now func() time.Time) *handshakes {
	return &handshakes{NewGate(c, now), make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// enter waits for its turn, for as long as the gate lets anybody expect; false means that there is none in time, and
// that nothing was computed. Whoever entered must leave.
func (h *handshakes) enter() bool {
	if h.gate.Enter(handshakeBytes) != nil {
		return false
	}
	select {
	case h.turn <- struct{}{}:
		return true
	default:
	}
	limit := time.NewTimer(h.gate.capacity.Wait)
	defer limit.Stop()
	select {
	case h.turn <- struct{}{}:
		return true
	case <-limit.C:
		h.gate.GiveUp(handshakeBytes)
		return false
	}
}

func (h *handshakes) leave() {
	<-h.turn
	h.gate.Leave(handshakeBytes)
}
