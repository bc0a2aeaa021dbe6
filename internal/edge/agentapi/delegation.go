package agentapi

import (
	"context"
	"net/http"
	"time"

	"chancery/api"
	"chancery/capability"
	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/domain/agent"
	"chancery/internal/edge/rest"
)

func (f face) principals(a *rest.API) {
	rest.Route(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/principals", Permission: who.AgentManage, Status: http.StatusCreated, Tags: tag,
		Summary: "Certify a person's key for delegating", Description: "The grants are what the person may hand on to agents."},
		func(ctx context.Context, in *rest.Body[api.PrincipalRequest]) (*rest.Body[api.Issued], error) {
			terms, err := principalTerms(in.Body)
			if err != nil {
				return nil, err
			}
			c, err := f.agents.Certify(ctx, terms, []byte(in.Body.Request))
			return rest.Reply(issued(c), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/principals/{id}", Permission: who.AgentOwn, Or: who.AgentRead, Tags: tag, Summary: "List a person's principal certificates"},
		func(ctx context.Context, in *named) (*rest.Body[api.Page[api.Principal]], error) {
			all, err := f.agents.Principals(ctx, in.ID)
			return rest.Reply(rest.PageOf(all, "", principal), err)
		})
}

func principalTerms(in api.PrincipalRequest) (agent.PrincipalTerms, error) {
	terms := agent.PrincipalTerms{Person: in.Person, Representative: in.Representative, MaxAgents: in.MaxAgents, Validity: time.Duration(in.LifetimeSec) * time.Second}
	var err error
	if terms.Grants, err = parseAll(in.Grants); err != nil {
		return terms, err
	}
	terms.Constraints, err = parseAll(in.Constraints)
	return terms, err
}

func parseAll(texts []string) (capability.Set, error) {
	var set capability.Set
	for _, text := range texts {
		c, err := capability.Parse(text)
		if err != nil {
			return nil, fault.New(fault.Invalid, "capability_malformed", "%.100q: %v", text, err)
		}
		set = append(set, c)
	}
	return set, nil
}

func principal(p *agent.Principal) api.Principal {
	out := api.Principal{Serial: p.Serial, Person: p.Person, UID: p.UID.String(), HeldHere: p.HeldAs != "", NotAfter: p.NotAfter, PEM: rest.CertificatePEM(p.Certificate), Grants: []string{}}
	for _, c := range p.Grants.Grants {
		out.Grants = append(out.Grants, c.String())
	}
	return out
}

func (f face) delegations(a *rest.API) {
	rest.Route(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/delegations", Permission: who.DelegationOwn, Or: who.DelegationManage, Status: http.StatusCreated, Tags: tag, Summary: "Approve a delegation",
		Description: "What the agent may do, until when, how long each certificate may live, and for how many agents."},
		func(ctx context.Context, in *rest.Body[api.NewDelegation]) (*rest.Body[api.Delegation], error) {
			person, err := answering(ctx, in.Body.Principal)
			if err != nil {
				return nil, err
			}
			made, err := f.agents.Delegate(ctx, terms(person, in.Body))
			return rest.Reply(f.delegation(made), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/delegations", Permission: who.DelegationOwn, Or: who.AgentRead, Tags: tag, Summary: "List delegations"},
		func(ctx context.Context, in *byOwner) (*rest.Body[api.Page[api.Delegation]], error) {
			after, err := in.After()
			if err != nil {
				return nil, err
			}
			page, err := f.agents.Delegations(ctx, listed(ctx, in.Owner), after, in.Limit)
			return rest.Reply(rest.PageOf(page.Items, page.Next, f.delegation), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/delegations/{id}", Permission: who.DelegationOwn, Or: who.AgentRead, Tags: tag, Summary: "Show a delegation"},
		func(ctx context.Context, in *named) (*rest.Body[api.Delegation], error) {
			found, err := f.agents.Delegation(ctx, in.ID)
			return rest.Reply(f.delegation(found), err)
		})
}

func terms(person string, in api.NewDelegation) agent.Terms {
	return agent.Terms{
		Principal: person, Name: in.Name, Capabilities: in.Capabilities, Constraints: in.Constraints, Representative: in.Representative,
		Standing: in.Standing, Until: in.Until, LifetimeSec: in.LifetimeSec, MaxAgents: max(in.MaxAgents, 1),
	}
}

func (f face) delegation(d agent.Delegation) api.Delegation {
	return api.Delegation{
		ID: d.ID, Hash: d.Hash, CreatedAt: d.CreatedAt, Stopped: f.stopped(d.ID, d.Principal),
		NewDelegation: api.NewDelegation{
			Principal: d.Principal, Name: d.Name, Capabilities: d.Capabilities, Constraints: d.Constraints, Representative: d.Representative,
			Standing: d.Standing, Until: d.Until, LifetimeSec: d.LifetimeSec, MaxAgents: d.MaxAgents,
		},
	}
}
