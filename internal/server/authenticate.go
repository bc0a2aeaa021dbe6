package server

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"slices"
	"sync"
	"time"

	"chancery/agentcert"
	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/domain/account"
	"chancery/internal/domain/agent"
	"chancery/internal/domain/ca"
)

// authenticator finds the caller behind a credential: a token, a certificate bound to an account, or an agent's own.
type authenticator struct {
	authority *ca.Hierarchy
	accounts  *account.Directory
	agents    *agent.Registry
	seen      *signatures
}

// ByToken finds the caller of an API token.
func (a authenticator) ByToken(ctx context.Context, raw string) (who.Caller, error) {
	return a.accounts.CallerByToken(ctx, raw)
}

// ByCertificate finds the caller of a TLS client certificate: it has to come from one of our authorities, be valid now
// and not revoked.
func (a authenticator) ByCertificate(ctx context.Context, chain []*x509.Certificate) (who.Caller, error) {
	leaf := chain[0]
	if err := a.ours(ctx, leaf); err != nil {
		return who.Caller{}, err
	}
	if now := time.Now(); now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return who.Caller{}, fault.New(fault.Unauthenticated, "certificate_expired", "the client certificate is valid from %s to %s, and it is %s now",
			leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339), now.UTC().Format(time.RFC3339)).
			WithHint("an agent renews on the listener without client certificates, with a request signed by its last key")
	}
	identify := a.byKey
	if isAgent(leaf) {
		identify = a.byAgent
	}
	caller, err := identify(ctx, leaf)
	if err == nil {
		err = a.good(ctx, leaf)
	}
	if err != nil {
		return who.Caller{}, err
	}
	return caller, nil
}

// good refuses a certificate that is revoked, or that falls with something above it: the same rule as in OCSP.
func (a authenticator) good(ctx context.Context, leaf *x509.Certificate) error {
	serial := id.SerialOf(leaf.SerialNumber)
	status, err := a.authority.Status(ctx, "", serial)
	if err == nil && status.State != ca.Good {
		err = fault.New(fault.Unauthenticated, "certificate_revoked", "the client certificate %s is %s", serial, status.State)
	}
	return err
}

func isAgent(cert *x509.Certificate) bool {
	for _, e := range cert.Extensions {
		if e.Id.Equal(agentcert.OIDExtension) {
			return true
		}
	}
	return false
}

func (a authenticator) byAgent(ctx context.Context, leaf *x509.Certificate) (who.Caller, error) {
	aic, err := agentcert.FromCertificate(leaf)
	if err != nil {
		return who.Caller{}, fault.New(fault.Unauthenticated, "identity_malformed", "the agent certificate cannot be used: %v", err)
	}
	person, err := a.agents.Owner(ctx, aic.AgentID)
	if err != nil {
		return who.Caller{}, err
	}
	owner, err := a.accounts.Holder(ctx, person)
	if kind := fault.KindOf(err); err != nil && (kind == fault.Denied || kind == fault.NotFound) {
		err = fault.New(fault.Denied, "account_disabled", "%s, who answers for the agent, is disabled or gone", person).Because(err)
	}
	if err != nil {
		return who.Caller{}, err
	}
	return a.agents.Caller(ctx, leaf, owner)
}

// byKey finds the account that a key is bound to; there need be none. The key alone allows its holder to renew the
// certificate.
func (a authenticator) byKey(ctx context.Context, leaf *x509.Certificate) (who.Caller, error) {
	hash := key.Hash(leaf.RawSubjectPublicKeyInfo)
	caller, err := a.accounts.CallerByKey(ctx, hash)
	if fault.CodeOf(err) == "key_unbound" {
		caller, err = who.Caller{Kind: who.Machine, Name: leaf.Subject.CommonName, Credential: id.SerialOf(leaf.SerialNumber).String(), KeyHash: hash}, nil
	}
	caller.Permissions = append(slices.Clip(caller.Permissions), who.CertificateRenew) // what the directory remembers is shared
	return caller, err
}

// ours refuses a certificate that none of our authorities signed.
func (a authenticator) ours(ctx context.Context, leaf *x509.Certificate) error {
	if a.seen.has(leaf.Raw) {
		return nil
	}
	signed, err := a.authority.Signed(ctx, leaf)
	if err != nil {
		return err
	}
	if !signed {
		return fault.New(fault.Unauthenticated, "certificate_foreign", "the client certificate of %.100q was issued by %.100q, which is none of the authorities here", leaf.Subject, leaf.Issuer)
	}
	a.seen.add(leaf.Raw)
	return nil
}

// signatures remembers which certificates were found to be signed by us, so that each is verified once.
type signatures struct {
	mu    sync.Mutex
	known map[[32]byte]struct{}
}

const signaturesMax = 1 << 16

func (s *signatures) has(der []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.known[sha256.Sum256(der)]
	return ok
}

func (s *signatures) add(der []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= signaturesMax {
		s.known = map[[32]byte]struct{}{}
	}
	s.known[sha256.Sum256(der)] = struct{}{}
}
