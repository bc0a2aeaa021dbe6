// Package agentapi is the HTTP face of agents: principals, delegations, enrolment and agent certificates.
//
// It translates between the bodies of package api and the agent room, and decides nothing. The two routes that agents
// call all day, issuing and renewing, are raw: certificate requests as JSON with PEM, or DER in and out.
package agentapi

import (
	"context"
	"net/http"

	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/domain/agent"
	"chancery/internal/edge/rest"
)

// Register declares the routes of agents.
func Register(a *rest.API, agents *agent.Registry, stopped Stopped) {
	f := face{agents, stopped}
	f.principals(a)
	f.registry(a)
	f.delegations(a)
	f.certificates(a)
}

// Stopped says whether one of some things was revoked; see ca.Hierarchy.
type Stopped func(targets ...string) bool

type face struct {
	agents  *agent.Registry
	stopped Stopped
}

type (
	named struct {
		ID string `path:"id" maxLength:"64"`
	}
	byOwner struct {
		rest.Paging
		Owner string `query:"owner" maxLength:"64" doc:"a person; default: the caller, or everybody for those who may read all agents"`
	}
)

// self gives person, or the caller itself where it is empty and the caller is a person.
func self(ctx context.Context, person string) string {
	if caller := who.From(ctx); person == "" && caller.Kind == who.Person {
		return caller.ID
	}
	return person
}

// answering gives who answers for what is made: person, or the caller itself.
func answering(ctx context.Context, person string) (string, error) {
	if person = self(ctx, person); person == "" {
		return "", fault.New(fault.Invalid, "person_missing", "%s is not a person: say who answers for it", who.From(ctx).Kind).
			WithHint("on the command line: --owner NAME for an agent, --person NAME for a delegation")
	}
	return person, nil
}

// listed gives whose things a list shows: a person's own unless the caller may read everybody's.
func listed(ctx context.Context, person string) string {
	if who.From(ctx).May(who.AgentRead) {
		return person
	}
	return self(ctx, person)
}

var tag = []string{"agents"}

func (f face) registry(a *rest.API) {
	rest.Route(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/agents", Permission: who.AgentOwn, Or: who.AgentManage, Status: http.StatusCreated, Tags: tag, Summary: "Register an agent"},
		func(ctx context.Context, in *rest.Body[api.NewAgent]) (*rest.Body[api.Agent], error) {
			owner, err := answering(ctx, in.Body.Owner)
			if err != nil {
				return nil, err
			}
			made, err := f.agents.Create(ctx, owner, in.Body.Name)
			return rest.Reply(f.agent(made), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/agents", Permission: who.AgentOwn, Or: who.AgentRead, Tags: tag, Summary: "List agents"},
		func(ctx context.Context, in *byOwner) (*rest.Body[api.Page[api.Agent]], error) {
			after, err := in.After()
			if err != nil {
				return nil, err
			}
			page, err := f.agents.Agents(ctx, listed(ctx, in.Owner), after, in.Limit)
			return rest.Reply(rest.PageOf(page.Items, page.Next, f.agent), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/agents/{id}", Permission: who.AgentOwn, Or: who.AgentRead, Tags: tag, Summary: "Show an agent"},
		func(ctx context.Context, in *named) (*rest.Body[api.Agent], error) {
			found, err := f.agents.Agent(ctx, in.ID)
			return rest.Reply(f.agent(found), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/agents/{id}/invitations", Permission: who.AgentOwn, Or: who.AgentManage, Status: http.StatusCreated, Tags: tag,
		Summary: "Make a one-time enrolment token"},
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body api.InvitationRequest
		}) (*rest.Body[api.Invitation], error) {
			made, err := f.agents.Invite(ctx, in.ID, in.Body.Delegation)
			return rest.Reply(api.Invitation(made), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/stop/{id}", Permission: who.AgentOwn, Or: who.AgentStop, Status: http.StatusNoContent, Tags: tag,
		Summary: "Stop an agent, a delegation, or all that a person delegated", Description: "Everything below is dead in OCSP and CRL within a second. What is stopped stays stopped."},
		func(ctx context.Context, in *named) (*struct{}, error) { return nil, f.agents.Stop(ctx, in.ID) })
}

func (f face) agent(a agent.Agent) api.Agent {
	return api.Agent{ID: a.ID, Name: a.Name, Owner: a.Owner, Delegation: a.Delegation, KeyHash: a.KeyHash, Stopped: f.stopped(a.ID, a.Owner, a.Delegation), CreatedAt: a.CreatedAt, EnrolledAt: a.EnrolledAt}
}
