package agentcert

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"slices"
	"time"
)

// A path is a proven way from an issuing certificate up to a root. What it proves does not depend on the certificate
// below, so that later ones of the same issuer need only their own signature checked.
type path struct {
	issuer, anchor *x509.Certificate
	from, until    time.Time // while every certificate of the path is valid
}

var oidNameConstraints = asn1.ObjectIdentifier{2, 5, 29, 30}

// pathOf finds the way from an agent's certificate to a root, by one signature check if its issuer is known.
func (v *Verifier) pathOf(leaf *x509.Certificate, others []*x509.Certificate, at time.Time) (*path, error) {
	if p := v.knownPath(leaf, others, at); p != nil {
		return p, nil
	}
	p, reusable, err := v.provePath(leaf, at, x509.ExtKeyUsageClientAuth, others)
	if err == nil && reusable {
		v.paths.put(p.issuer.Raw, p)
	}
	return p, err
}

func (v *Verifier) knownPath(leaf *x509.Certificate, others []*x509.Certificate, at time.Time) *path {
	for _, list := range [...][]*x509.Certificate{others, v.issuers} {
		for _, issuer := range list {
			if !bytes.Equal(issuer.RawSubject, leaf.RawIssuer) {
				continue
			}
			p, found := v.paths.get(issuer.Raw)
			if found && !at.Before(p.from) && !at.After(p.until) && leaf.CheckSignatureFrom(p.issuer) == nil {
				return p
			}
		}
	}
	return nil
}

// provePath runs the full path validation of RFC 5280 section 6. The path may be reused for other certificates of the
// same issuer unless it constrains their names, which is checked against each certificate anew.
func (v *Verifier) provePath(leaf *x509.Certificate, at time.Time, usage x509.ExtKeyUsage, others ...[]*x509.Certificate) (p *path, reusable bool, err error) {
	pool := x509.NewCertPool()
	for _, list := range append(others, v.policy.Intermediates) {
		for _, c := range list {
			if c.IsCA {
				pool.AddCert(c)
			}
		}
	}
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots: v.roots, Intermediates: pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage},
	})
	if err != nil {
		return nil, false, err
	}
	above := chains[0][1:]
	if len(above) == 0 {
		return nil, false, x509.UnknownAuthorityError{Cert: leaf}
	}
	p = &path{issuer: above[0], anchor: above[len(above)-1], from: above[0].NotBefore, until: above[0].NotAfter}
	reusable = true
	for _, c := range above {
		p.from = later(p.from, c.NotBefore)
		p.until = earlier(p.until, c.NotAfter)
		reusable = reusable && !hasExtension(c, oidNameConstraints)
	}
	return p, reusable, nil
}

// instant gives the time at which to validate a certificate: now, or its beginning if that lies ahead by no more than
// clocks differ. Outside its validity it gives a refusal.
func (v *Verifier) instant(cert *x509.Certificate, now time.Time, step, whose string) (time.Time, *Refusal) {
	if now.After(cert.NotAfter) {
		return now, refuse(step, step+"_expired", "the %s's certificate expired at %s", whose, stamp(cert.NotAfter))
	}
	if now.Add(v.policy.Skew).Before(cert.NotBefore) {
		return now, refuse(step, step+"_not_yet_valid", "the %s's certificate is valid only from %s on", whose, stamp(cert.NotBefore))
	}
	return later(now, cert.NotBefore), nil
}

func mayAuthenticate(cert *x509.Certificate) bool {
	return !cert.IsCA && cert.KeyUsage&x509.KeyUsageDigitalSignature != 0 && len(cert.UnhandledCriticalExtensions) == 0 &&
		slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
