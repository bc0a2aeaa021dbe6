package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chancery/api"
	"chancery/client"
	"chancery/internal/base/conf"
	"chancery/internal/base/fault"
	"chancery/internal/domain/ca"
)

func (t *terminal) profile() *cobra.Command {
	c := group("profile", "Profiles: what the kinds of certificates look like")
	c.AddCommand(t.profileList(), t.profileShow(), t.profileSave())
	return c
}

func profiles(ctx context.Context, server *client.Client) (page api.Page[ca.Profile], err error) {
	return page, server.Call(ctx, "GET", "/api/v1/profiles", nil, &page)
}

func (t *terminal) profileList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List profiles", Args: cobra.NoArgs,
		RunE: t.remote(func(ctx context.Context, server *client.Client, _ []string) error {
			page, err := profiles(ctx, server)
			if err != nil {
				return err
			}
			return browse(t, page, []string{"profile", "valid", "at most", "for"}, func(p ca.Profile) []string {
				return []string{p.Name, inDays(p.LifetimeSec), inDays(p.LifetimeMaxSec), p.Description}
			})
		}),
	}
}

func inDays(seconds int64) string {
	return conf.Duration(time.Duration(seconds) * time.Second).String()
}

func (t *terminal) profileShow() *cobra.Command {
	return &cobra.Command{
		Use: "show PROFILE", Short: "Show a profile, as `chancery profile save` takes it with --json", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			page, err := profiles(ctx, server)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(page.Items, func(p ca.Profile) bool { return p.Name == args[0] })
			if i < 0 {
				return fault.New(fault.NotFound, "profile_unknown", "there is no profile named %.40q", args[0]).WithHint("`chancery profile list` shows them")
			}
			return t.showProfile(page.Items[i])
		}),
	}
}

func (t *terminal) showProfile(p ca.Profile) error {
	kinds := make([]string, len(p.KeyKinds))
	for i, k := range p.KeyKinds {
		kinds[i] = string(k)
	}
	return t.show(p, func() {
		t.card("Profile", p.Name, "For", p.Description, "Key usage", strings.Join(p.KeyUsages, " "),
			"Extended key usage", strings.Join(p.ExtKeyUsages, " "), "Policies", strings.Join(p.Policies, " "),
			"Keys", strings.Join(kinds, " "), "Names", fmt.Sprintf("%d to %d: %s", p.NamesMin, p.NamesMax, strings.Join(p.NameKinds, " ")),
			"Permitted names", strings.Join(p.PermittedNames, " "), "Excluded names", strings.Join(p.ExcludedNames, " "),
			"Common name", p.CommonName, "Valid", inDays(p.LifetimeSec), "At most", inDays(p.LifetimeMaxSec))
	})
}

func (t *terminal) profileSave() *cobra.Command {
	return &cobra.Command{
		Use: "save FILE", Short: "Save a profile from a JSON file", Args: cobra.ExactArgs(1),
		Long: "Saves a profile, new or in place of one of the same name. `chancery profile show NAME --json` gives one to begin with. A\nsample certificate has to pass the RFC lints first.",
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			profile, err := readProfile(args[0])
			if err != nil {
				return err
			}
			var saved ca.Profile
			if err := server.Call(ctx, "PUT", "/api/v1/profiles/"+url.PathEscape(profile.Name), profile, &saved); err != nil {
				return err
			}
			return t.showProfile(saved)
		}),
	}
}

// readProfile reads a profile from JSON; what it means, the server checks.
func readProfile(path string) (p ca.Profile, err error) {
	f, err := os.Open(path)
	if err != nil {
		return p, fmt.Errorf("read the profile: %w", err)
	}
	defer f.Close()
	decoder := json.NewDecoder(f)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		return p, fault.New(fault.Invalid, "profile_malformed", "%s is not a profile in JSON: %v", path, err).
			WithHint("`chancery profile show tls-server --json` gives one to begin with")
	}
	return p, nil
}
