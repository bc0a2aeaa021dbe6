package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chancery/api"
	"chancery/client"
	"chancery/internal/base/conf"
)

func (t *terminal) delegation() *cobra.Command {
	c := group("delegation", "Delegations: what a person lets agents do, and until when")
	c.AddCommand(t.delegationApprove(), t.delegationList(), t.delegationShow(), t.delegationStop())
	return c
}

func (t *terminal) delegationApprove() *cobra.Command {
	terms := api.NewDelegation{}
	person, until, lifetime := "", conf.Duration(30*24*time.Hour), conf.Duration(10*time.Minute)
	c := &cobra.Command{
		Use: "approve CAPABILITY...", Short: "Approve what agents may do", Args: cobra.MinimumNArgs(1),
		Long:    "Approves a delegation. With --standing the server signs for each renewal of an agent under it, with a key that it holds\nfor the person; without, each certificate needs the person's own signature (`chancery agent issue`).",
		Example: "  chancery delegation approve calendar:read --standing --until 30d --lifetime 10m",
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			principal, err := accountID(ctx, server, person)
			if err != nil {
				return err
			}
			terms.Principal, terms.Capabilities, terms.LifetimeSec = principal, args, seconds(lifetime)
			terms.Until = time.Now().Add(time.Duration(until)).UTC().Truncate(time.Second)
			if terms.Name == "" {
				terms.Name = strings.Join(args, " ")
			}
			var made api.Delegation
			if err := server.Call(ctx, "POST", "/api/v1/delegations", terms, &made); err != nil {
				return err
			}
			return t.showDelegation(made)
		}),
	}
	f := c.Flags()
	f.StringVar(&person, "person", "", "who delegates, by name; default: the caller")
	f.StringVar(&terms.Name, "name", "", "what people call it; default: the capabilities")
	f.StringArrayVar(&terms.Constraints, "constraint", nil, "a condition that has to hold at each use; may be repeated")
	f.BoolVar(&terms.Standing, "standing", false, "the server may sign renewals for the person")
	f.BoolVar(&terms.Representative, "representative", false, "agents may follow the person's current grants")
	durationFlag(c, &until, "until", "how long it stands from now")
	durationFlag(c, &lifetime, "lifetime", "longest validity of each certificate")
	f.IntVar(&terms.MaxAgents, "agents", 1, "how many agents may enrol under it")
	return c
}

func (t *terminal) showDelegation(d api.Delegation) error {
	return t.show(d, func() {
		t.card("Delegation", d.ID, "Name", d.Name, "Person", d.Principal,
			"May", strings.Join(d.Capabilities, " "), "Only if", strings.Join(d.Constraints, " "),
			"Signed by", signer(d), "Until", stamp(d.Until),
			"Each certificate", conf.Duration(time.Duration(d.LifetimeSec)*time.Second).String(),
			"Agents", fmt.Sprint(d.MaxAgents), "State", standing(d))
	})
}

func signer(d api.Delegation) string {
	if d.Standing {
		return "the server, under this standing approval"
	}
	return "the person's own key, each time"
}

func standing(d api.Delegation) string {
	switch {
	case d.Stopped:
		return "stopped"
	case time.Now().After(d.Until):
		return "ended"
	}
	return "active"
}

func (t *terminal) delegationList() *cobra.Command {
	var person string
	var l listing
	c := &cobra.Command{
		Use: "list", Short: "List delegations", Args: cobra.NoArgs,
		RunE: t.remote(func(ctx context.Context, server *client.Client, _ []string) error {
			query, err := ownedBy(ctx, server, person)
			if err != nil {
				return err
			}
			page, err := collect[api.Delegation](ctx, server, "/api/v1/delegations", query, l)
			if err != nil {
				return err
			}
			return browse(t, page, []string{"delegation", "person", "until", "state", "may"}, func(d api.Delegation) []string {
				return []string{d.ID, d.Principal, day(d.Until), standing(d), strings.Join(d.Capabilities, " ")}
			})
		}),
	}
	c.Flags().StringVar(&person, "person", "", "of this person; default: the caller's, or all for those who manage delegations")
	l.flags(c)
	return c
}

func (t *terminal) delegationShow() *cobra.Command {
	return &cobra.Command{
		Use: "show DELEGATION", Short: "Show a delegation", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			var found api.Delegation
			if err := server.Call(ctx, "GET", "/api/v1/delegations/"+url.PathEscape(args[0]), nil, &found); err != nil {
				return err
			}
			return t.showDelegation(found)
		}),
	}
}

func (t *terminal) delegationStop() *cobra.Command {
	return &cobra.Command{
		Use: "stop DELEGATION", Short: "Stop a delegation at once, with every agent under it", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			return t.stop(ctx, server, args[0])
		}),
	}
}
