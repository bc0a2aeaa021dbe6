package front

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"net/http"
	"strings"

	"chancery/internal/base/fault"
	"chancery/internal/base/who"
)

// An Authenticator finds the caller behind a credential, or says why it is not accepted. It is asked at each request
// and keeps what caches it needs.
type Authenticator interface {
	// ByToken finds the caller of an API token.
	ByToken(ctx context.Context, raw string) (who.Caller, error)
	// ByCertificate finds the caller of a TLS client certificate, the first of chain. TLS has proved that the peer
	// holds its key, and nothing else: neither issuer nor time have been looked at.
	ByCertificate(ctx context.Context, chain []*x509.Certificate) (who.Caller, error)
}

const mostCredential = 4 << 10 // bytes of an Authorization header

// authenticate finds the caller of a request. A request without any credential is Nobody's.
func (f *Front) authenticate(r *http.Request, p *peer) (who.Caller, error) {
	caller, err := f.identify(r, p)
	if err == nil && caller.Kind != who.Nobody {
		return caller, nil
	}
	if err != nil && fault.KindOf(err) == fault.Internal {
		return who.Caller{}, err
	}
	if limited := f.limiter.take(p.address, f.config.Now()); limited != nil {
		return who.Caller{}, limited
	}
	return caller, err
}

func (f *Front) identify(r *http.Request, p *peer) (who.Caller, error) {
	token, given, err := bearer(r.Header.Values("Authorization"))
	chain := peerCertificates(r)
	switch {
	case err != nil:
		return who.Caller{}, err
	case given && p.listener == Public:
		return who.Caller{}, fault.New(fault.Unauthenticated, "credentials_in_clear", "this listener takes no credentials: they would travel in clear").
			WithHint("revoke that token, and use https")
	case given:
		caller, err := f.auth.ByToken(r.Context(), token)
		return withKey(caller, chain), err
	case p.operator != nil:
		return *p.operator, nil
	case len(chain) > 0:
		caller, err := f.auth.ByCertificate(r.Context(), chain)
		return withKey(caller, chain), err
	}
	return who.Caller{}, nil
}

// bearer reads a token from the Authorization headers (RFC 6750, section 2.1).
func bearer(headers []string) (token string, given bool, err error) {
	switch {
	case len(headers) == 0:
		return "", false, nil
	case len(headers) > 1:
		return "", true, fault.New(fault.Invalid, "credential_invalid", "there is more than one Authorization header")
	case len(headers[0]) > mostCredential:
		return "", true, fault.New(fault.Invalid, "head_too_large", "the Authorization header is longer than %d bytes", mostCredential)
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", true, fault.New(fault.Unauthenticated, "credential_invalid", "the Authorization header is not of the form `Bearer TOKEN`")
	}
	return token, true, nil
}

func peerCertificates(r *http.Request) []*x509.Certificate {
	if r.TLS == nil {
		return nil
	}
	return r.TLS.PeerCertificates
}

// withKey notes the hash of the TLS client key, whatever proved the caller: who signs with it in TLS need not prove
// its possession again.
func withKey(c who.Caller, chain []*x509.Certificate) who.Caller {
	if len(chain) > 0 && c.KeyHash == [32]byte{} {
		c.KeyHash = sha256.Sum256(chain[0].RawSubjectPublicKeyInfo)
	}
	return c
}
