package agent

import (
	"bytes"
	"context"
	"encoding/hex"
	"slices"
	"time"

	"chancery/agentcert"
	"chancery/capability"
	"chancery/internal/base/fault"
	"chancery/internal/base/who"
)

// Issue gives an agent certificate for a delegation authorization that the person signed, durable on return. The
// agent identity comes as identity, or inside the certificate request as a requested extension.
//
// The order of the checks is the order of what they cost: size, freshness (stale evidence gives the certificate that it
// was used for, to the same key, or nothing), standing of all above, signatures. Whether fresh evidence was used before
// is the database's to say, at the insert. A refusal stores nothing and uses nothing up.
func (r *Registry) Issue(ctx context.Context, csr, identity []byte) (Certificate, error) {
	if err := r.mayHandIn(ctx); err != nil {
		return Certificate{}, err
	}
	start := time.Now()
	req, err := readRequest(csr)
	if err != nil {
		return Certificate{}, err
	}
	if identity == nil {
		identity = req.extension(agentcert.OIDExtension.String())
	}
	aic, err := readIdentity(identity)
	if err != nil {
		return Certificate{}, err
	}
	signed := aic.Authorization.Timestamp
	if age := r.now().Sub(signed); age.Abs() > r.conf.Skew {
		return r.issuedBefore(ctx, req, aic, age)
	}
	o, err := r.order(ctx, req, aic, identity)
	if err != nil {
		return Certificate{}, err
	}
	r.conf.Observe("verify", time.Since(start))
	return r.issue(ctx, o)
}

// issue orders the certificate and puts the principal's beside it, which verifiers need.
func (r *Registry) issue(ctx context.Context, o Order) (Certificate, error) {
	c, err := r.authority.CertifyAgent(ctx, o)
	c.Principal = o.PrincipalDER
	return c, err
}

func (r *Registry) mayHandIn(ctx context.Context) error {
	switch caller := who.From(ctx); {
	case caller.Kind == who.Agent:
		return fault.New(fault.Denied, "agent_delegation_denied", "agent %s may not hand in delegations", caller.Name)
	case caller.May(who.AgentIssue):
		return nil
	default:
		return caller.Need(who.AgentOwn)
	}
}

func readIdentity(der []byte) (*agentcert.AIC, error) {
	if len(der) == 0 {
		return nil, fault.New(fault.Invalid, "identity_missing", "the request has no agent identity: neither beside the certificate request nor as an extension in it")
	}
	aic, err := agentcert.ParseAIC(der)
	if err == nil {
		err = aic.Validate()
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "identity_malformed", "the agent identity cannot be used: %v", err)
	}
	if aic.Version != 2 {
		return nil, fault.New(fault.Invalid, "da_version_refused", "delegation authorizations of version %d are not bound to the agent's key; version 2 is needed", aic.Version)
	}
	return aic, nil
}

// issuedBefore answers for evidence that is no longer fresh: the certificate that was issued for it and the same key,
// or a refusal.
func (r *Registry) issuedBefore(ctx context.Context, req request, aic *agentcert.AIC, age time.Duration) (Certificate, error) {
	c, keyHash, found, err := r.authority.FindByEvidence(ctx, aic.Authorization.Timestamp, aic.Authorization.Nonce)
	if err != nil {
		return Certificate{}, err
	}
	if found && hex.EncodeToString(keyHash[:]) == req.keyHash {
		if p, known, err := r.principals.Get(ctx, hex.EncodeToString(aic.Principal.KeyHash)); err == nil && known {
			c.Principal = p.Certificate
		}
		return c, nil
	}
	return Certificate{}, fault.New(fault.Denied, "da_stale", "the delegation authorization was signed %v away from now; %v is allowed", age.Round(time.Second), r.conf.Skew).
		WithHint("sign a new one, and look at the clock of the machine that signs")
}

// order checks everything that has to stand above a certificate, then the signature, and writes the order.
func (r *Registry) order(ctx context.Context, req request, aic *agentcert.AIC, identity []byte) (Order, error) {
	p, err := r.principal(ctx, hex.EncodeToString(aic.Principal.KeyHash))
	if err != nil {
		return Order{}, err
	}
	a, d, err := r.enrolled(ctx, aic.AgentID)
	if err != nil {
		return Order{}, err
	}
	if err := r.matches(ctx, aic, p, a, d); err != nil {
		return Order{}, err
	}
	if err := agentcert.VerifyAuthorization(aic, req.spki, p.Key); err != nil {
		return Order{}, fault.New(fault.Denied, "da_signature_invalid", "the delegation authorization is not signed by %s for this agent and this key", p.UID.Identifier).Because(err)
	}
	return Order{
		Agent: a.ID, Name: a.Name, SPKI: req.spki, AIC: identity,
		Lifetime:    min(aic.Authorization.Lifetime, time.Duration(d.LifetimeSec)*time.Second, r.conf.Lifetime),
		NotAfterMax: earliest(p.NotAfter, d.Until), SignedAt: aic.Authorization.Timestamp, Nonce: aic.Authorization.Nonce,
		Delegation: d.ID, Principal: p.Person, PrincipalSerial: p.Serial, PrincipalDER: p.Certificate, Request: hex.EncodeToString(aic.Authorization.Nonce),
	}, nil
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// enrolled gives an agent with the delegation that it works under, both live, as is the person who answers for them.
func (r *Registry) enrolled(ctx context.Context, agentID string) (Agent, Delegation, error) {
	a, found, err := r.agents.Get(ctx, agentID)
	if err != nil {
		return a, Delegation{}, err
	}
	if !found {
		return a, Delegation{}, fault.New(fault.Denied, "agent_unknown", "no agent %.40q is registered", agentID)
	}
	if a.Delegation == "" {
		return a, Delegation{}, fault.New(fault.Denied, "agent_not_enrolled", "agent %s works under no delegation yet", a.ID).
			WithHint("enrol it with a one-time token: `chancery agent invite`, then `chancery agent enrol`")
	}
	d, found, err := r.delegations.Get(ctx, a.Delegation)
	if err != nil {
		return a, d, err
	}
	if !found {
		return a, d, fault.New(fault.Denied, "delegation_unknown", "agent %s works under delegation %s, which does not exist", a.ID, a.Delegation)
	}
	if _, err := r.people.Person(ctx, a.Owner); err != nil {
		return a, d, err
	}
	return a, d, r.standing(a, d)
}

// matches refuses an agent identity that says more than the delegation, or something else.
func (r *Registry) matches(ctx context.Context, aic *agentcert.AIC, p *Principal, a Agent, d Delegation) error {
	caller := who.From(ctx)
	if !caller.May(who.AgentIssue) && caller.ID != p.Person {
		return fault.New(fault.Denied, "principal_foreign", "the delegation authorization is another person's")
	}
	if p.Person != a.Owner || aic.Principal.Realm != p.UID.Realm || aic.Principal.Identifier != p.UID.Identifier {
		return fault.New(fault.Denied, "principal_foreign", "agent %s does not answer to %s", a.ID, aic.Principal.Identifier)
	}
	if err := r.unrevoked(p); err != nil {
		return err
	}
	if (aic.Mode == agentcert.Representative) != d.Representative {
		return fault.New(fault.Denied, "mode_denied", "the delegation %s was approved for another mode", d.ID)
	}
	if err := d.Granted.Covers(aic.Capabilities); err != nil {
		return fault.New(fault.Denied, "capability_beyond_grant", "delegation %s does not allow this: %s", d.ID, plain(err))
	}
	if err := withinGrants(p, d.Representative, aic.Capabilities, 1); err != nil {
		return err
	}
	return keepsConstraints(aic.Constraints, d)
}

// keepsConstraints demands every constraint of the delegation to the letter; more constraints only narrow.
func keepsConstraints(kept []capability.Capability, d Delegation) error {
	for _, wanted := range d.Constrained {
		if !slices.ContainsFunc(kept, func(c capability.Capability) bool { return equal(c, wanted) }) {
			return fault.New(fault.Denied, "constraint_missing", "delegation %s demands the constraint %s, which the agent identity lacks", d.ID, wanted)
		}
	}
	return nil
}

func equal(a, b capability.Capability) bool {
	return a.String() == b.String() || (a.Scheme == b.Scheme && a.ID == b.ID && bytes.Equal(a.Parameters, b.Parameters))
}
