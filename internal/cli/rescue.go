package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"chancery/api"
	"chancery/internal/domain/account"
	"chancery/internal/server"
)

// rescueLifetime is how long a token from a rescue lives: long enough to put things in order.
const rescueLifetime = 24 * time.Hour

func (t *terminal) rescue() *cobra.Command {
	var out string
	c := t.settings(&cobra.Command{
		Use: "rescue NAME", Short: "Let a person in as administrator when nobody else can", Args: cobra.ExactArgs(1),
		Long: "Works on the data directory, with the server stopped, and needs its passphrase. Enables the person's account, makes it an\nadministrator's, and shows an API token that ends in a day. All of it stands in the audit.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.offline(cmd.Context(), func(ctx context.Context, s *server.Server) error {
				made, err := admit(ctx, s.Accounts, args[0])
				if err != nil {
					return err
				}
				return t.handOver(made, out)
			})
		},
	})
	tokenOut(c, &out)
	return c
}

// admit makes an account an enabled administrator's and gives it a token.
func admit(ctx context.Context, accounts *account.Directory, name string) (api.Token, error) {
	found, err := accounts.FindByName(ctx, name)
	if err != nil {
		return api.Token{}, err
	}
	enabled, roles := true, found.Roles
	if !slices.Contains(roles, account.Administrator) {
		roles = append(slices.Clone(roles), account.Administrator)
	}
	if _, err := accounts.Change(ctx, found.ID, account.Change{Enabled: &enabled, Roles: &roles}); err != nil {
		return api.Token{}, err
	}
	made, secret, err := accounts.CreateToken(ctx, found.ID, account.TokenSpec{Label: "rescue", Expires: time.Now().Add(rescueLifetime)})
	return api.Token{ID: made.ID, Account: made.Account, Note: made.Label, Secret: secret, Until: made.Expires, CreatedAt: made.Created}, err
}
