package agent

import (
	"context"
	"crypto/x509"
	"strings"

	"chancery/agentcert"
	"chancery/capability"
	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
)

// ownScheme is the scheme of capabilities that mean a permission here: chancery:certificate:issue is the permission
// certificate:issue.
const ownScheme = "chancery"

// Caller gives the caller that an agent certificate stands for. The certificate has been verified up to our root; the
// rest is checked here at each use: nothing above it is revoked, agent and delegation stand. Its permissions are those
// that the delegation names and its owner holds right now, and whatever an agent may do about itself; the authorities
// are the owner's. No permission lets an agent make credentials: they would outlive the agent.
func (r *Registry) Caller(ctx context.Context, cert *x509.Certificate, owner who.Caller) (who.Caller, error) {
	aic, err := agentcert.FromCertificate(cert)
	if err != nil {
		return who.Caller{}, fault.New(fault.Unauthenticated, "identity_malformed", "the client certificate is not an agent certificate that can be used: %v", err)
	}
	serial := id.SerialOf(cert.SerialNumber).String()
	a, d, err := r.enrolled(ctx, aic.AgentID)
	if err != nil {
		return who.Caller{}, err
	}
	if target, revoked := r.authority.Revoked("crt:" + serial); revoked {
		return who.Caller{}, fault.New(fault.Unauthenticated, "certificate_revoked", "the client certificate %s is revoked", target)
	}
	return who.Caller{
		Kind: who.Agent, ID: a.ID, Name: a.Name, Owner: a.Owner, Credential: serial, KeyHash: key.Hash(cert.RawSubjectPublicKeyInfo),
		Permissions: append(permissions(d.Granted).And(owner.Permissions), who.AgentSelf),
		Authorities: owner.Authorities, AllAuthorities: owner.AllAuthorities,
	}, nil
}

// permissions gives the permissions that capabilities of our own scheme name; a trailing wildcard names all that fit.
func permissions(granted capability.Set) who.Set {
	set := who.Set{}
	for _, p := range who.Permissions() {
		if makesCredentials(p) {
			continue
		}
		for _, c := range granted {
			if c.Scheme == ownScheme && len(c.Parameters) == 0 && names(c.ID, string(p)) {
				set = append(set, p)
				break
			}
		}
	}
	return set
}

func makesCredentials(p who.Permission) bool {
	return p == who.TokenOwn || p == who.TokenManage || p == who.AccountManage
}

func names(pattern, permission string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	return pattern == permission || (wild && strings.HasPrefix(permission, prefix))
}

// Owner gives the person who answers for an agent; for authenticating, not for showing.
func (r *Registry) Owner(ctx context.Context, agentID string) (string, error) {
	a, found, err := r.agents.Get(ctx, agentID)
	if err == nil && !found {
		err = fault.New(fault.Unauthenticated, "agent_unknown", "no agent %.40q is registered", agentID)
	}
	return a.Owner, err
}
