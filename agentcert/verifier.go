package agentcert

import (
	"context"
	"crypto/x509"
	"time"

	"chancery/capability"
)

// A Policy is what a service demands beyond the format. The zero value is a sound policy without revocation checks.
type Policy struct {
	// RequireOwnKey refuses agents whose authorization was signed by a server under a standing approval.
	RequireOwnKey bool
	// Intermediates are authorities' certificates that need not come with an agent's chain.
	Intermediates []*x509.Certificate
	// MaxPrincipalAge is how long a principal's certificate may be used from memory before it must be presented again;
	// 0 means five minutes, a negative value never.
	MaxPrincipalAge time.Duration
	// Skew is how far clocks may differ, and how long the authority may have taken between signature and certificate;
	// 0 means a minute.
	Skew time.Duration
	// Revoked reports why a certificate does not count any more, nil if it does; an error of any kind refuses. It is
	// called for the agent's and for the principal's certificate at every verification. A nil Revoked leaves revocation
	// to the short life of agent certificates.
	Revoked func(context.Context, *x509.Certificate) error
	// Now tells the time; nil means time.Now.
	Now func() time.Time
}

const (
	defaultSkew         = time.Minute
	defaultPrincipalAge = 5 * time.Minute
	maxChain            = 10 // certificates presented; a hostile longer list costs nothing
	cachedPaths         = 64
	cachedPrincipals    = 10_000
)

// A Verifier decides offline whether an agent may do something. It remembers the issuing chains and principals that it
// has verified, in bounded memory, and is safe for concurrent use.
type Verifier struct {
	policy     Policy
	roots      *x509.CertPool
	issuers    []*x509.Certificate // roots and intermediates at hand
	paths      *cache[*path]       // by the DER of the issuing certificate
	principals *cache[*principal]  // by key hash
	sessions   *sessions
}

// NewVerifier makes a Verifier that trusts chains to these roots only.
func NewVerifier(roots []*x509.Certificate, policy Policy) *Verifier {
	if policy.Now == nil {
		policy.Now = time.Now
	}
	if policy.Skew == 0 {
		policy.Skew = defaultSkew
	}
	if policy.MaxPrincipalAge == 0 {
		policy.MaxPrincipalAge = defaultPrincipalAge
	}
	v := &Verifier{
		policy:     policy,
		roots:      x509.NewCertPool(),
		paths:      newCache[*path](cachedPaths),
		principals: newCache[*principal](cachedPrincipals),
		sessions:   newSessions(maxSessions),
	}
	for _, root := range roots {
		v.roots.AddCert(root)
	}
	v.issuers = append(append(v.issuers, policy.Intermediates...), roots...)
	return v
}

// Verify decides whether the agent of chain[0] may do op. The rest of chain are certificates of authorities; principals
// are certificates of which one must have the key that signed the authorization, unless it is remembered. Both lists
// may be the same, as a TLS client sends them. Whoever presents the chain must have proved possession of the agent's
// key, which TLS does.
//
// A nil error allows op under the obligations of the Decision, which the caller must keep; Middleware does. Otherwise
// the error is a *Refusal, and the Decision tells how far the verification came. An op without a time is done now.
func (v *Verifier) Verify(ctx context.Context, chain, principals []*x509.Certificate, op capability.Operation) (Decision, error) {
	decision, refusal := v.verify(ctx, chain, principals, op)
	if refusal != nil {
		return decision, refusal
	}
	return decision, nil
}

func (v *Verifier) verify(ctx context.Context, chain, principals []*x509.Certificate, op capability.Operation) (Decision, *Refusal) {
	x := &verification{verifier: v, ctx: ctx, chain: chain, presented: principals, op: op, now: v.policy.Now()}
	if x.op.Time.IsZero() {
		x.op.Time = x.now
	}
	for _, s := range steps {
		if x.refusal = s.check(x); x.refusal != nil {
			break
		}
		x.passed++
	}
	return x.decision(), x.refusal
}
