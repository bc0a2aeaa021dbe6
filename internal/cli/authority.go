package cli

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"chancery/api"
	"chancery/client"
	"chancery/internal/base/conf"
	"chancery/internal/server"
)

func (t *terminal) authority() *cobra.Command {
	c := group("authority", "Authorities: roots and those that issue below them")
	c.AddCommand(t.authorityList(), t.authorityShow(), t.authorityCreate(), t.authorityRevoke(), t.authorityExport(), t.authorityDetach())
	return c
}

func (t *terminal) authorityList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List authorities", Args: cobra.NoArgs,
		RunE: t.remote(func(ctx context.Context, server *client.Client, _ []string) error {
			var page api.Page[api.Authority]
			if err := server.Call(ctx, "GET", "/api/v1/authorities", nil, &page); err != nil {
				return err
			}
			return browse(t, page, []string{"authority", "below", "key", "status", "valid until", "subject"}, func(a api.Authority) []string {
				return []string{a.Name, cmp.Or(a.Issuer, "-"), a.KeyKind, a.Status, day(a.NotAfter), a.Subject}
			})
		}),
	}
}

func (t *terminal) authorityShow() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "show AUTHORITY", Short: "Show an authority with its certificate", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			var found api.Authority
			if err := server.Call(ctx, "GET", "/api/v1/authorities/"+url.PathEscape(args[0]), nil, &found); err != nil {
				return err
			}
			if out != "" {
				if err := replace(out, []byte(found.PEM), 0o644); err != nil {
					return err
				}
			}
			return t.showAuthority(found)
		}),
	}
	c.Flags().StringVar(&out, "out", "", "write its certificate into this file")
	return c
}

func (t *terminal) showAuthority(a api.Authority) error {
	return t.show(a, func() {
		t.card("Authority", a.Name, "Below", a.Issuer, "Subject", a.Subject, "Key", a.KeyKind,
			"Status", a.Status, "Valid from", stamp(a.NotBefore), "Valid until", stamp(a.NotAfter))
	})
}

func (t *terminal) authorityCreate() *cobra.Command {
	var order api.NewAuthority
	c := &cobra.Command{
		Use: "create NAME", Short: "Make an issuing authority", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			order.Name = args[0]
			var made api.Authority
			if err := server.Call(ctx, "POST", "/api/v1/authorities", order, &made); err != nil {
				return err
			}
			return t.showAuthority(made)
		}),
	}
	c.Flags().StringVar(&order.Issuer, "below", "root", "authority that certifies it")
	c.Flags().StringVar(&order.Subject, "subject", "", "common name; default: the name")
	c.Flags().IntVar(&order.Years, "years", 0, "how long it is valid; default: the profile's")
	keyKind(c, &order.KeyKind)
	return c
}

func (t *terminal) authorityRevoke() *cobra.Command {
	var order api.RevokeRequest
	c := &cobra.Command{
		Use: "revoke AUTHORITY", Short: "Revoke an authority with everything below it", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			if err := server.Call(ctx, "POST", "/api/v1/authorities/"+url.PathEscape(args[0])+"/revoke", order, nil); err != nil {
				return err
			}
			return t.show(map[string]string{"revoked": args[0]}, func() { t.say("Revoked: %s", args[0]) })
		}),
	}
	c.Flags().StringVar(&order.Reason, "reason", "cessationOfOperation", "why: cACompromise, superseded, cessationOfOperation, …")
	c.Flags().StringVar(&order.Note, "note", "", "a remark for the audit")
	return c
}

// The key of a root never travels over the network: both commands below work on the data directory, with the server
// stopped.

func (t *terminal) authorityExport() *cobra.Command {
	var out, passwordFile, name string
	c := &cobra.Command{
		Use: "export-root-key", Short: "Write the root's private key, encrypted, into a file to keep elsewhere", Args: cobra.NoArgs,
		Long: "Works on the data directory, with the server stopped. The file is PKCS#8, encrypted with a password that is taken from\n--password-file, from CHANCERY_EXPORT_PASSWORD, or asked for.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			password, err := t.secret("password for the exported key", passwordFile, "CHANCERY_EXPORT_PASSWORD")
			if err != nil {
				return err
			}
			return t.offline(cmd.Context(), func(ctx context.Context, s *server.Server) error {
				root, err := s.Authority.Authority(ctx, name)
				if err != nil {
					return err
				}
				text, err := s.Keys.Export(ctx, root.Key, []byte(password))
				if err != nil {
					return err
				}
				if err := replace(out, text, 0o600); err != nil {
					return err
				}
				return t.show(map[string]string{"authority": name, "key": out}, func() {
					t.say("The key of %s is in %s. `chancery authority detach` takes it away from here.", name, out)
				})
			})
		},
	}
	c.Flags().StringVar(&out, "out", "root-key.pem", "file to write")
	c.Flags().StringVar(&passwordFile, "password-file", "", "file with the password")
	c.Flags().StringVar(&name, "authority", server.Root, "the root")
	return c
}

func (t *terminal) authorityDetach() *cobra.Command {
	var confirmed bool
	var name string
	until := conf.Duration(365 * 24 * time.Hour)
	c := &cobra.Command{
		Use: "detach", Short: "Take the root's private key away from here, for good", Args: cobra.NoArgs,
		Long: "Works on the data directory, with the server stopped. Export the key first. A last revocation list is signed; until it\nends, all that the root signed stays valid, and nothing can be added below the root.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !confirmed {
				return usageError{errors.New("the key cannot be had back from here: export it, look at the file, and say --exported")}
			}
			return t.offline(cmd.Context(), func(ctx context.Context, s *server.Server) error {
				end := time.Now().Add(time.Duration(until))
				if err := s.Authority.Detach(ctx, name, end); err != nil {
					return err
				}
				return t.show(map[string]any{"authority": name, "list_until": end.UTC()}, func() {
					t.say("The key of %s is no longer here. Its last revocation list stands until %s.", name, stamp(end))
				})
			})
		},
	}
	c.Flags().BoolVar(&confirmed, "exported", false, "the key was exported and is safe")
	c.Flags().StringVar(&name, "authority", server.Root, "the root")
	durationFlag(c, &until, "list-until", "how long the last revocation list stands from now")
	return c
}

// offline does something on the data directory, as the person at the machine. No server may run on it.
func (t *terminal) offline(ctx context.Context, do func(context.Context, *server.Server) error) error {
	s, err := t.open(ctx, false)
	if err != nil {
		return err
	}
	defer t.close(s)
	return do(server.AsOperator(ctx), s)
}
