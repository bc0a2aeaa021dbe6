package cli

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chancery/api"
	"chancery/client"
	"chancery/internal/base/conf"
)

func (t *terminal) tokens() *cobra.Command {
	c := group("token", "API tokens")
	c.AddCommand(t.tokenCreate(), t.tokenList(), t.tokenEnd())
	return c
}

func (t *terminal) tokenCreate() *cobra.Command {
	var order api.NewToken
	var user, out string
	until := conf.Duration(90 * 24 * time.Hour)
	c := &cobra.Command{
		Use: "create", Short: "Make an API token; it is shown once", Args: cobra.NoArgs,
		RunE: t.remote(func(ctx context.Context, server *client.Client, _ []string) error {
			owner, err := accountID(ctx, server, user)
			if err != nil {
				return err
			}
			order.Account, order.Until = owner, time.Now().Add(time.Duration(until)).UTC().Truncate(time.Second)
			var made api.Token
			if err := server.Call(ctx, "POST", "/api/v1/tokens", order, &made); err != nil {
				return err
			}
			return t.handOver(made, out)
		}),
	}
	c.Flags().StringVar(&user, "user", "", "account that it is for, by name; default: the caller's own")
	c.Flags().StringVar(&order.Note, "note", "", "what it is for")
	c.Flags().StringSliceVar(&order.Permissions, "permission", nil, "narrow it to these permissions")
	durationFlag(c, &until, "until", "how long it is valid from now")
	tokenOut(c, &out)
	return c
}

func (t *terminal) tokenList() *cobra.Command {
	var user string
	var l listing
	c := &cobra.Command{
		Use: "list", Short: "List the tokens of an account", Args: cobra.NoArgs,
		RunE: t.remote(func(ctx context.Context, server *client.Client, _ []string) error {
			owner, err := accountID(ctx, server, user)
			if err != nil {
				return err
			}
			query := url.Values{}
			if owner != "" {
				query.Set("account", owner)
			}
			page, err := collect[api.Token](ctx, server, "/api/v1/tokens", query, l)
			if err != nil {
				return err
			}
			return browse(t, page, []string{"token", "note", "valid until", "permissions"}, func(k api.Token) []string {
				return []string{k.ID, k.Note, stamp(k.Until), strings.Join(k.Permissions, " ")}
			})
		}),
	}
	c.Flags().StringVar(&user, "user", "", "account, by name; default: the caller's own")
	l.flags(c)
	return c
}

func (t *terminal) tokenEnd() *cobra.Command {
	return &cobra.Command{
		Use: "end TOKEN", Short: "End a token at once, by its identifier", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			if err := server.Call(ctx, "DELETE", "/api/v1/tokens/"+url.PathEscape(args[0]), nil, nil); err != nil {
				return err
			}
			return t.show(map[string]string{"ended": args[0]}, func() { t.say("Ended: %s", args[0]) })
		}),
	}
}
