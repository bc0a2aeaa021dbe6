package agent

import (
	"context"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/who"
)

// reasonStopped is the revocation reason of what a person stops (RFC 5280 §5.3.1).
const reasonStopped = "cessationOfOperation"

// Stop ends an agent, a delegation, or all delegations of a person: one revocation each, durable and in force here on
// return, and everything below is dead in OCSP and CRL within a second. What is stopped stays stopped; a person who
// stopped everything can delegate anew.
func (r *Registry) Stop(ctx context.Context, target string) error {
	person, err := r.answersFor(ctx, target)
	if err != nil {
		return err
	}
	if err := mayActFor(ctx, person, who.AgentStop, who.AgentOwn); err != nil {
		return err
	}
	if target == person {
		return r.stopAll(ctx, person)
	}
	return r.authority.Revoke(ctx, target, reasonStopped)
}

// stopAll stops every delegation of a person. One that failed in the middle has stopped some; it can be called again.
func (r *Registry) stopAll(ctx context.Context, person string) error {
	for after, more := "", true; more; {
		page, err := r.delegationsOf(ctx, person, after, 500)
		if err != nil {
			return err
		}
		for _, d := range page.Items {
			if err := r.authority.Revoke(ctx, d.ID, reasonStopped); err != nil {
				return err
			}
		}
		after, more = page.Next, page.Next != ""
	}
	return nil
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
