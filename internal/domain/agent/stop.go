package agent

import (
	"context"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/who"
)

// reasonStopped is the revocation reason of what a person stops (RFC 5280 §5.3.1).
const reasonStopped = "cessationOfOperation"

// Stop ends an agent, a delegation or a person's whole delegation at once: one revocation, durable and in force here
// on return, and everything below it is dead in OCSP and CRL within a second. What is stopped stays stopped.
func (r *Registry) Stop(ctx context.Context, target string) error {
	person, err := r.answersFor(ctx, target)
	if err != nil {
		return err
	}
	if err := mayActFor(ctx, person, who.AgentStop, who.AgentOwn); err != nil {
		return err
	}
	return r.authority.Revoke(ctx, target, reasonStopped)
}

// answersFor gives the person who answers for an agent, a delegation, or themselves.
func (r *Registry) answersFor(ctx context.Context, target string) (string, error) {
	switch {
	case id.Is(id.Agent, target):
		a, err := r.Agent(ctx, target)
		return a.Owner, err
	case id.Is(id.Delegation, target):
		d, err := r.Delegation(ctx, target)
		return d.Principal, err
	case id.Is(id.Person, target):
		return target, nil
	}
	return "", fault.New(fault.Invalid, "target_invalid", "%.40q is neither an agent, nor a delegation, nor a person", target)
}
