package cli

import (
	"context"

	"github.com/spf13/cobra"

	"chancery/api"
	"chancery/client"
)

func (t *terminal) setup() *cobra.Command {
	var name, code, out string
	c := &cobra.Command{
		Use: "setup", Short: "Make the first administrator with the one-time setup code", Args: cobra.NoArgs,
		Long: "Makes the first administrator with the code that `chancery init` or `chancery quickstart` printed, and shows an API token,\nthis once. The code is taken from --code-file, from CHANCERY_SETUP_CODE, or asked for.",
		RunE: t.remote(func(ctx context.Context, server *client.Client, _ []string) error {
			secret, err := t.secret("setup code", code, "CHANCERY_SETUP_CODE")
			if err != nil {
				return err
			}
			var made api.Token
			if err := server.Call(ctx, "POST", "/api/v1/setup", api.SetupRequest{Code: secret, Name: name}, &made); err != nil {
				return err
			}
			return t.handOver(made, out)
		}),
	}
	c.Flags().StringVar(&name, "name", "admin", "login name of the administrator")
	c.Flags().StringVar(&code, "code-file", "", "file with the setup code; - for standard input")
	tokenOut(c, &out)
	return c
}

func tokenOut(c *cobra.Command, out *string) {
	c.Flags().StringVar(out, "out", "", "write the token into this file, for this user alone, instead of showing it")
}

// handOver gives a secret token to the person, once.
func (t *terminal) handOver(made api.Token, out string) error {
	if err := putAway(&made.Secret, out); err != nil {
		return err
	}
	return t.show(made, func() {
		t.card("Token", made.ID, "Account", made.Account, "Valid until", stamp(made.Until),
			"Secret", made.Secret, "Secret in", out)
		if made.Secret != "" {
			t.say("It is shown this once. Use it with --token-file or CHANCERY_TOKEN.")
		}
	})
}
