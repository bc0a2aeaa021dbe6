package agentcert

import (
	"crypto/x509"
	"time"
)

// A principal is a verified certificate of somebody who may answer for agents.
type principal struct {
	cert          *x509.Certificate
	authorization *PrincipalAuthorization
	anchor        *x509.Certificate
	standing      bool // its key is held by a server
	verified      time.Time
	until         time.Time // while every certificate up to the root is valid
}

// principalOf finds the certificate with the key that uid names, presented or remembered. The newest that is known
// counts, so that an agent cannot bring back rights by presenting an older one.
func (v *Verifier) principalOf(uid *PrincipalUID, presented, others []*x509.Certificate, now time.Time) (*principal, *Refusal) {
	candidate, foreign := newestFor(uid, presented)
	known, found := v.principals.get(uid.KeyHash)
	fresh := found && now.Sub(known.verified) <= v.policy.MaxPrincipalAge && !now.After(known.until) &&
		uid.matches(known.cert.RawSubjectPublicKeyInfo)
	if fresh && (candidate == nil || !candidate.NotBefore.After(known.cert.NotBefore)) {
		return known, nil
	}
	if candidate == nil && foreign {
		return nil, refuse(StepPrincipal, "principal_key_mismatch",
			"no certificate that was presented has the key of %s; after a change of key agents need new certificates", uid)
	}
	if candidate == nil {
		return nil, refuse(StepPrincipal, "principal_absent",
			"the certificate of %s, who answers for the agent, was not presented and is not known here", uid)
	}
	p, refusal := v.verifyPrincipal(candidate, now, presented, others)
	if refusal == nil {
		v.principals.put(uid.KeyHash, p)
	}
	return p, refusal
}

// newestFor also tells whether a person's certificate with another key is among those presented.
func newestFor(uid *PrincipalUID, presented []*x509.Certificate) (newest *x509.Certificate, foreign bool) {
	for _, c := range presented {
		switch {
		case c.IsCA:
		case !uid.matches(c.RawSubjectPublicKeyInfo):
			foreign = foreign || hasExtension(c, OIDPrincipalAuthorization)
		case newest == nil || c.NotBefore.After(newest.NotBefore):
			newest = c
		}
	}
	return newest, foreign
}

func (v *Verifier) verifyPrincipal(cert *x509.Certificate, now time.Time, others ...[]*x509.Certificate) (*principal, *Refusal) {
	if hasExtension(cert, OIDExtension) {
		return nil, refuse(StepPrincipal, "agent_delegates", "the authorization was signed by an agent; agents cannot delegate on")
	}
	if cert.KeyUsage != 0 && cert.KeyUsage&x509.KeyUsageDigitalSignature == 0 {
		return nil, refuse(StepPrincipal, "principal_usage", "the principal's certificate is not meant for signatures")
	}
	at, refusal := v.instant(cert, now, StepPrincipal, "principal")
	if refusal != nil {
		return nil, refusal
	}
	path, _, err := v.provePath(cert, at, x509.ExtKeyUsageAny, others...)
	if err != nil {
		return nil, refuse(StepPrincipal, "principal_untrusted", "the principal's certificate does not come from a trusted authority").because(err)
	}
	authorization, err := AuthorizationFromCertificate(cert)
	if err != nil {
		return nil, refusalAt(StepPrincipal, err)
	}
	return &principal{
		cert:          cert,
		authorization: authorization,
		anchor:        path.anchor,
		standing:      underStandingApproval(cert),
		verified:      now,
		until:         earlier(path.until, cert.NotAfter),
	}, nil
}
