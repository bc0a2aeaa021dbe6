package agentcert

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"chancery/capability"
)

// A verification is one run through the steps. Each step finds what the later ones need.
type verification struct {
	verifier  *Verifier
	ctx       context.Context
	chain     []*x509.Certificate
	presented []*x509.Certificate
	op        capability.Operation
	now       time.Time

	path        *path
	agent       *AIC
	principal   *principal
	obligations capability.Obligations

	passed  int
	refusal *Refusal
}

// steps is the algorithm, in order.
var steps = [...]struct {
	code  string
	check func(*verification) *Refusal
	text  func(*verification) string
}{
	{StepChain, (*verification).checkChain, (*verification).sayChain},
	{StepExtension, (*verification).checkExtension, (*verification).sayExtension},
	{StepPrincipal, (*verification).checkPrincipal, (*verification).sayPrincipal},
	{StepAnchor, (*verification).checkAnchor, (*verification).sayAnchor},
	{StepRevocation, (*verification).checkRevocation, (*verification).sayRevocation},
	{StepVersion, (*verification).checkVersion, (*verification).sayVersion},
	{StepSignature, (*verification).checkSignature, (*verification).saySignature},
	{StepOwnKey, (*verification).checkOwnKey, (*verification).sayOwnKey},
	{StepLifetime, (*verification).checkLifetime, (*verification).sayLifetime},
	{StepTimestamp, (*verification).checkTimestamp, (*verification).sayTimestamp},
	{StepPrincipalConstraints, (*verification).checkPrincipalConstraints, (*verification).sayPrincipalConstraints},
	{StepAgentConstraints, (*verification).checkAgentConstraints, (*verification).sayAgentConstraints},
	{StepMode, (*verification).checkMode, (*verification).sayMode},
	{StepOperation, (*verification).checkOperation, (*verification).sayOperation},
}

func (x *verification) checkChain() *Refusal {
	if len(x.chain) == 0 || len(x.chain) > maxChain || len(x.presented) > maxChain {
		return refuse(StepChain, "chain_size", "1 to %d certificates can be presented", maxChain)
	}
	leaf := x.chain[0]
	at, refusal := x.verifier.instant(leaf, x.now, StepChain, "agent")
	if refusal != nil {
		return refusal
	}
	if !mayAuthenticate(leaf) {
		return refuse(StepChain, "chain_usage", "the certificate is not one with which an agent identifies itself")
	}
	var err error
	if x.path, err = x.verifier.pathOf(leaf, x.chain[1:], at); err != nil {
		return refuse(StepChain, "chain_untrusted", "the agent's certificate does not come from a trusted authority").because(err)
	}
	return nil
}

func (x *verification) checkExtension() *Refusal {
	a, err := FromCertificate(x.chain[0])
	if err != nil {
		return refusalAt(StepExtension, err)
	}
	x.agent = a
	return nil
}

func (x *verification) checkPrincipal() (refusal *Refusal) {
	x.principal, refusal = x.verifier.principalOf(&x.agent.Principal, x.presented, x.chain[1:], x.now)
	return refusal
}

func (x *verification) checkAnchor() *Refusal {
	if !x.path.anchor.Equal(x.principal.anchor) {
		return refuse(StepAnchor, "anchor_differs", "agent and principal have their certificates from different roots")
	}
	return nil
}

func (x *verification) checkRevocation() *Refusal {
	revoked := x.verifier.policy.Revoked
	if revoked == nil {
		return nil
	}
	if err := revoked(x.ctx, x.chain[0]); err != nil {
		return refuse(StepRevocation, "agent_revoked", "the agent's certificate is revoked, or nobody can say that it is not").because(err)
	}
	if err := revoked(x.ctx, x.principal.cert); err != nil {
		return refuse(StepRevocation, "principal_revoked", "the principal's certificate is revoked, or nobody can say that it is not").because(err)
	}
	return nil
}

func (x *verification) checkVersion() *Refusal {
	if x.agent.Version != 2 {
		return refuse(StepVersion, "da_version_unsupported",
			"the authorization has version %d, which does not name the agent's key; only version 2 is accepted", x.agent.Version)
	}
	return nil
}

func (x *verification) checkSignature() *Refusal {
	return refusalAt(StepSignature, VerifyAuthorization(x.agent, x.chain[0].RawSubjectPublicKeyInfo, x.principal.cert.PublicKey))
}

func (x *verification) checkOwnKey() *Refusal {
	reason := &x.agent.Authorization.Reason
	says := reason.Code == ReasonStandingApproval
	if x.principal.standing && (!says || !isDigest(reason.Description)) {
		return refuse(StepOwnKey, "standing_approval_unstated", "a server signed for the principal without saying under which standing approval")
	}
	if x.verifier.policy.RequireOwnKey && (says || x.principal.standing) {
		return refuse(StepOwnKey, "own_key_required", "a server signed under a standing approval; this service demands the person's own signature")
	}
	return nil
}

func isDigest(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32 && s == strings.ToLower(s)
}

func (x *verification) checkLifetime() *Refusal {
	leaf, most := x.chain[0], x.agent.Authorization.Lifetime
	if life := leaf.NotAfter.Sub(leaf.NotBefore); life > most {
		return refuse(StepLifetime, "lifetime_exceeded", "the certificate lives %s, but only %s were authorized", life, most)
	}
	return nil
}

func (x *verification) checkTimestamp() *Refusal {
	signed, made := x.agent.Authorization.Timestamp, x.chain[0].NotBefore
	if off := made.Sub(signed).Abs(); off > x.verifier.policy.Skew {
		return refuse(StepTimestamp, "da_timestamp_implausible",
			"the authorization was signed at %s, the certificate made at %s; at most %s may lie between", stamp(signed), stamp(made), x.verifier.policy.Skew)
	}
	return nil
}

func (x *verification) checkPrincipalConstraints() *Refusal {
	pa := x.principal.authorization
	if pa.Policy != nil {
		x.obligations.HardTimeout = time.Duration(pa.Policy.MaxSessionHours) * time.Hour
	}
	return x.constrain(StepPrincipalConstraints, pa.Constraints)
}

func (x *verification) checkAgentConstraints() *Refusal {
	return x.constrain(StepAgentConstraints, x.agent.Constraints)
}

func (x *verification) constrain(step string, constraints capability.Set) *Refusal {
	obligations, err := constraints.Evaluate(x.op)
	x.obligations = x.obligations.Merge(obligations)
	return refusalAt(step, err)
}

func (x *verification) checkMode() *Refusal {
	pa := x.principal.authorization
	if x.agent.Mode == Authorized {
		return refusalAt(StepMode, capability.Set(pa.Grants).Covers(x.agent.Capabilities))
	}
	if pa.Policy == nil || pa.Policy.AllowedMode != Representative {
		return refuse(StepMode, "representative_not_allowed", "the principal may not let an agent act as a representative")
	}
	return nil
}

func (x *verification) checkOperation() *Refusal {
	err := capability.Set(x.agent.Capabilities).Allow(x.op)
	if err == nil && x.agent.Mode == Representative {
		err = capability.Set(x.principal.authorization.Grants).Allow(x.op)
	}
	refusal := refusalAt(StepOperation, err)
	if refusal != nil && refusal.Code == capability.CodeNotGranted {
		refusal.Text += "; the agent may " + listed(x.agent.Capabilities)
	}
	return refusal
}

// refusalAt turns an error of this package or of capability into a refusal of its own, at the step where it matters.
func refusalAt(step string, err error) *Refusal {
	if err == nil {
		return nil
	}
	if r, ok := errors.AsType[*Refusal](err); ok {
		own := *r
		own.Step = step
		return &own
	}
	if r, ok := errors.AsType[*capability.Refusal](err); ok {
		return (&Refusal{Step: step, Code: r.Code, Text: r.Text}).because(err)
	}
	return refuse(step, step+"_failed", "the check could not be made").because(err)
}
