package front

import (
	"crypto/tls"
	"errors"
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

// admitHandshake asks for capacity. The connection gives it back with the server's first flight.
func (f *Front) admitHandshake(hello *tls.ClientHelloInfo) error {
	c, ok := hello.Conn.(*conn)
	if !ok {
		return nil
	}
	if f.hello.Enter(handshakeBytes) != nil {
		f.metrics.refused("handshake_overloaded")
		return errBusy
	}
	c.handshake.Store(f.hello)
	return nil
}
