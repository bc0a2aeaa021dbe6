package cli

import (
	"context"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"chancery/api"
	"chancery/client"
	"chancery/internal/base/conf"
	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/domain/account"
)

func (t *terminal) user() *cobra.Command {
	c := group("user", "People and service accounts, and what they may do")
	c.AddCommand(t.userAdd(), t.userList(), t.userShow(), t.userChange(), t.userCertify(), t.userBind(), t.userUnbind())
	return c
}

func roleNames() string {
	var names []string
	for _, r := range account.Roles() {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

func (t *terminal) userAdd() *cobra.Command {
	var service bool
	order := api.NewAccount{Kind: "person"}
	c := &cobra.Command{
		Use: "add NAME", Short: "Make an account for a person, or for a service with --service", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			order.Name = args[0]
			if service {
				order.Kind = "service"
			} else if len(order.Roles) == 0 {
				order.Roles = []string{"person"}
			}
			var made api.Account
			if err := server.Call(ctx, "POST", "/api/v1/accounts", order, &made); err != nil {
				return err
			}
			return t.showAccount(made)
		}),
	}
	c.Flags().BoolVar(&service, "service", false, "it is a service's, not a person's")
	c.Flags().StringVar(&order.Display, "display", "", "name for people to read")
	c.Flags().StringSliceVar(&order.Roles, "role", nil, "what it may do: "+roleNames()+"; without one a service may do nothing, and a person gets person: own agents, delegations and tokens")
	c.Flags().StringSliceVar(&order.Authorities, "authority", nil, "authorities that it may use; * is every one")
	return c
}

func (t *terminal) showAccount(a api.Account) error {
	return t.show(a, func() {
		t.card("Account", a.ID, "Name", a.Name, "Display", a.Display, "Kind", a.Kind,
			"Roles", strings.Join(a.Roles, " "), "Authorities", strings.Join(a.Authorities, " "),
			"State", enabled(a), "Created", stamp(a.CreatedAt))
	})
}

func enabled(a api.Account) string {
	if a.Enabled {
		return "enabled"
	}
	return "disabled"
}

func (t *terminal) userList() *cobra.Command {
	var kind string
	var l listing
	c := &cobra.Command{
		Use: "list", Short: "List accounts", Args: cobra.NoArgs,
		RunE: t.remote(func(ctx context.Context, server *client.Client, _ []string) error {
			query := url.Values{}
			if kind != "" {
				query.Set("kind", kind)
			}
			page, err := collect[api.Account](ctx, server, "/api/v1/accounts", query, l)
			if err != nil {
				return err
			}
			return browse(t, page, []string{"account", "name", "kind", "state", "roles"}, func(a api.Account) []string {
				return []string{a.ID, a.Name, a.Kind, enabled(a), strings.Join(a.Roles, " ")}
			})
		}),
	}
	c.Flags().StringVar(&kind, "kind", "", "person or service")
	l.flags(c)
	return c
}

func (t *terminal) userShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show an account, by name or identifier", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			var found api.Account
			if err := server.Call(ctx, "GET", "/api/v1/accounts/"+url.PathEscape(args[0]), nil, &found); err != nil {
				return err
			}
			return t.showAccount(found)
		}),
	}
}

func (t *terminal) userChange() *cobra.Command {
	var display string
	var roles, authorities []string
	var enable, disable bool
	c := &cobra.Command{
		Use: "change NAME", Short: "Change an account; what is not named stays", Args: cobra.ExactArgs(1),
		Long: "Changes an account. What hangs on a role that is gone, or on a disabled account, ends at once.",
	}
	c.RunE = t.remote(func(ctx context.Context, server *client.Client, args []string) error {
		person, err := accountID(ctx, server, args[0])
		if err != nil {
			return err
		}
		var order api.AccountChange
		changed := c.Flags().Changed
		if changed("display") {
			order.Display = &display
		}
		if changed("role") {
			order.Roles = &roles
		}
		if changed("authority") {
			order.Authorities = &authorities
		}
		if enable || disable {
			order.Enabled = &enable
		}
		var after api.Account
		if err := server.Call(ctx, "PATCH", "/api/v1/accounts/"+person, order, &after); err != nil {
			return err
		}
		return t.showAccount(after)
	})
	c.Flags().StringVar(&display, "display", "", "name for people to read")
	c.Flags().StringSliceVar(&roles, "role", nil, "the roles in place of those before: "+roleNames())
	c.Flags().StringSliceVar(&authorities, "authority", nil, "the authorities in place of those before")
	c.Flags().BoolVar(&enable, "enable", false, "let it in again")
	c.Flags().BoolVar(&disable, "disable", false, "let it in no more; its tokens and keys end at once")
	c.MarkFlagsMutuallyExclusive("enable", "disable")
	return c
}

func (t *terminal) userCertify() *cobra.Command {
	var order api.PrincipalRequest
	var out, csr, kind string
	var lifetime conf.Duration
	c := &cobra.Command{
		Use: "certify NAME", Short: "Certify a person's key, so that it can delegate to agents", Args: cobra.ExactArgs(1),
		Long:    "Issues a principal certificate: what the person may hand on to agents. The key is made here, in OUT.key for this user alone,\nunless it is there already or a certificate request is brought with --csr. The certificate goes into OUT.pem.",
		Example: "  chancery user certify alice --grant 'calendar:*' --out alice",
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			if len(order.Grants) == 0 {
				return fault.New(fault.Invalid, "grants_invalid", "a principal certificate needs at least one --grant").WithHint("such as --grant 'calendar:*'")
			}
			person, err := accountID(ctx, server, args[0])
			if err != nil {
				return err
			}
			request, err := pair(out).request(csr, key.Kind(kind), "")
			if err != nil {
				return err
			}
			order.Person, order.Request, order.LifetimeSec = person, request, seconds(lifetime)
			var issued api.Issued
			if err := server.Call(ctx, "POST", "/api/v1/principals", order, &issued); err != nil {
				return err
			}
			return t.deliver(issued, pair(out), container{})
		}),
	}
	f := c.Flags()
	f.StringArrayVar(&order.Grants, "grant", nil, "what the person may hand on, such as calendar:*; may be repeated")
	f.StringArrayVar(&order.Constraints, "constraint", nil, "a condition that binds every agent of the person; may be repeated")
	f.BoolVar(&order.Representative, "representative", false, "agents may follow the person's current grants")
	f.IntVar(&order.MaxAgents, "agents", 10, "how many agents the person may have")
	durationFlag(c, &lifetime, "lifetime", "how long it is valid; default: a year")
	f.StringVar(&out, "out", "", "OUT.key and OUT.pem are written")
	f.StringVar(&csr, "csr", "", "file with a certificate request, in place of a key made here")
	keyKind(c, &kind)
	return c
}

func (t *terminal) userBind() *cobra.Command {
	var note string
	c := &cobra.Command{
		Use: "bind NAME FILE", Short: "Let the holder of a certified key call as an account, over mTLS", Args: cobra.ExactArgs(2),
		Long:    "Binds the key of the certificate in FILE to the account. Whoever shows a good certificate of this authority for the key, on the\nmTLS listener, calls as the account, until it is unbound.",
		Example: "  chancery issue --profile tls-client --cn deploy --out deploy\n  chancery user bind deploy deploy.pem\n  chancery list --server https://localhost:8444 --cert deploy.pem --key deploy.key",
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			owner, err := accountID(ctx, server, args[0])
			if err != nil {
				return err
			}
			hash, err := keyHashOf(args[1])
			if err != nil {
				return err
			}
			if err := server.Call(ctx, "POST", "/api/v1/bindings", api.Binding{Account: owner, KeyHash: hash, Note: note}, nil); err != nil {
				return err
			}
			return t.show(map[string]string{"account": owner, "key_hash": hash}, func() { t.say("Bound: %s calls as %s", hash, args[0]) })
		}),
	}
	c.Flags().StringVar(&note, "note", "", "what it is for")
	return c
}

func (t *terminal) userUnbind() *cobra.Command {
	return &cobra.Command{
		Use: "unbind FILE", Short: "End the binding of the key of a certificate at once", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			hash, err := keyHashOf(args[0])
			if err != nil {
				return err
			}
			if err := server.Call(ctx, "DELETE", "/api/v1/bindings/"+hash, nil, nil); err != nil {
				return err
			}
			return t.show(map[string]string{"unbound": hash}, func() { t.say("Unbound: %s", hash) })
		}),
	}
}

// keyHashOf gives the hash of the key of the first certificate in a file, in hexadecimal.
func keyHashOf(path string) (string, error) {
	certificates, err := readCertificates(path)
	if err != nil {
		return "", err
	}
	hash := key.Hash(certificates[0].RawSubjectPublicKeyInfo)
	return hex.EncodeToString(hash[:]), nil
}
