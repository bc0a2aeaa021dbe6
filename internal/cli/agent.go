package cli

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"chancery/api"
	"chancery/client"
)

func (t *terminal) agent() *cobra.Command {
	c := group("agent", "Agents: software that acts for a person, with a certificate that says so")
	c.AddCommand(t.agentCreate(), t.agentList(), t.agentShow(), t.agentInvite(), t.agentEnrol(), t.agentIssue(), t.agentRenew(), t.agentStop())
	return c
}

// group is a command that only holds others.
func group(name, short string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
}

func (t *terminal) agentCreate() *cobra.Command {
	var owner string
	c := &cobra.Command{
		Use: "create NAME", Short: "Register an agent", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			person, err := accountID(ctx, server, owner)
			if err != nil {
				return err
			}
			var made api.Agent
			if err := server.Call(ctx, "POST", "/api/v1/agents", api.NewAgent{Name: args[0], Owner: person}, &made); err != nil {
				return err
			}
			return t.showAgent(made)
		}),
	}
	c.Flags().StringVar(&owner, "owner", "", "the person who answers for it, by name; default: the caller")
	return c
}

func (t *terminal) showAgent(a api.Agent) error {
	return t.show(a, func() {
		t.card("Agent", a.ID, "Name", a.Name, "Owner", a.Owner, "Delegation", a.Delegation,
			"Key hash", a.KeyHash, "State", stateOf(a), "Created", stamp(a.CreatedAt), "Enrolled", stamp(a.EnrolledAt))
	})
}

func stateOf(a api.Agent) string {
	switch {
	case a.Stopped:
		return "stopped"
	case a.EnrolledAt.IsZero():
		return "not enrolled"
	}
	return "active"
}

func (t *terminal) agentList() *cobra.Command {
	var owner string
	var l listing
	c := &cobra.Command{
		Use: "list", Short: "List agents", Args: cobra.NoArgs,
		RunE: t.remote(func(ctx context.Context, server *client.Client, _ []string) error {
			query, err := ownedBy(ctx, server, owner)
			if err != nil {
				return err
			}
			page, err := collect[api.Agent](ctx, server, "/api/v1/agents", query, l)
			if err != nil {
				return err
			}
			return browse(t, page, []string{"agent", "name", "owner", "delegation", "state"}, func(a api.Agent) []string {
				return []string{a.ID, a.Name, a.Owner, a.Delegation, stateOf(a)}
			})
		}),
	}
	c.Flags().StringVar(&owner, "owner", "", "of this person; default: the caller's, or all for those who manage agents")
	l.flags(c)
	return c
}

func ownedBy(ctx context.Context, server *client.Client, owner string) (url.Values, error) {
	person, err := accountID(ctx, server, owner)
	if err != nil || person == "" {
		return url.Values{}, err
	}
	return url.Values{"owner": {person}}, nil
}

func (t *terminal) agentShow() *cobra.Command {
	return &cobra.Command{
		Use: "show AGENT", Short: "Show an agent, by identifier or name", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			found, err := findAgent(ctx, server, args[0])
			if err != nil {
				return err
			}
			return t.showAgent(found)
		}),
	}
}

func findAgent(ctx context.Context, server *client.Client, text string) (found api.Agent, err error) {
	agent, err := agentID(ctx, server, text)
	if err != nil {
		return found, err
	}
	return found, server.Call(ctx, "GET", "/api/v1/agents/"+agent, nil, &found)
}

func (t *terminal) agentInvite() *cobra.Command {
	var delegation, out string
	c := &cobra.Command{
		Use: "invite AGENT", Short: "Make a one-time token with which an agent enrols", Args: cobra.ExactArgs(1),
		Long: "Makes a token that binds a key to the agent, once, under a delegation. Give it to whoever runs the agent; there,\n`chancery agent enrol` uses it.",
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			agent, err := agentID(ctx, server, args[0])
			if err != nil {
				return err
			}
			var made api.Invitation
			if err := server.Call(ctx, "POST", "/api/v1/agents/"+agent+"/invitations", api.InvitationRequest{Delegation: delegation}, &made); err != nil {
				return err
			}
			if err := putAway(&made.Secret, out); err != nil {
				return err
			}
			return t.show(made, func() {
				t.card("Enrolment token", made.Secret, "Enrolment token in", out, "Works once, until", stamp(made.Until))
			})
		}),
	}
	c.Flags().StringVar(&delegation, "delegation", "", "identifier of the delegation under which it will work; see chancery delegation list (required)")
	tokenOut(c, &out)
	_ = c.MarkFlagRequired("delegation")
	return c
}

func (t *terminal) agentStop() *cobra.Command {
	return &cobra.Command{
		Use: "stop AGENT", Short: "Stop an agent at once, for good", Args: cobra.ExactArgs(1),
		Long: "Everything that the agent holds is dead in OCSP and CRL within a second, and it gets nothing more.",
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			agent, err := agentID(ctx, server, args[0])
			if err != nil {
				return err
			}
			return t.stop(ctx, server, agent)
		}),
	}
}

// stop ends an agent, a delegation, or all that a person delegated.
func (t *terminal) stop(ctx context.Context, server *client.Client, target string) error {
	if err := server.Call(ctx, "POST", "/api/v1/stop/"+url.PathEscape(target), nil, nil); err != nil {
		return err
	}
	return t.show(map[string]string{"stopped": target}, func() { t.say("Stopped: %s", target) })
}
