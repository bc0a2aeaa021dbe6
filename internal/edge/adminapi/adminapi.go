// Package adminapi is the HTTP face of the installation itself: accounts, tokens, bound keys, the first administrator,
// the audit, backups and health.
//
// It translates between the bodies of package api and the rooms below, and decides nothing.
package adminapi

import (
	"context"
	"net/http"
	"time"

	"chancery/api"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
	"chancery/internal/domain/account"
	"chancery/internal/edge/rest"
)

// Register declares the routes of administration. refusals gives the recent ones, the newest first.
func Register(a *rest.API, accounts *account.Directory, db *store.Store, version string, refusals func() []api.Refusal) {
	f := face{accounts, db, version, refusals}
	f.setup(a)
	f.directory(a)
	f.tokens(a)
	f.bindings(a)
	f.audit(a)
	f.state(a)
}

type face struct {
	accounts *account.Directory
	db       *store.Store
	version  string
	refusals func() []api.Refusal
}

type named struct {
	ID string `path:"id" maxLength:"64"`
}

var tag = []string{"administration"}

func (f face) setup(a *rest.API) {
	rest.Route(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/setup", Permission: who.Public, Gated: true, Status: http.StatusCreated, Tags: tag, Summary: "Make the first administrator with the one-time setup code",
		Description: "The answer holds an API token, shown this once."},
		func(ctx context.Context, in *rest.Body[api.SetupRequest]) (*rest.Body[api.Token], error) {
			_, token, secret, err := f.accounts.SetUp(ctx, in.Body.Code, account.Spec{Name: in.Body.Name}, account.TokenSpec{Label: "setup", Expires: time.Now().Add(tokenLifetime)})
			return rest.Reply(wireToken(token, secret), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/whoami", Permission: who.Public, Tags: tag, Summary: "Say who the caller is taken for"},
		func(ctx context.Context, _ *struct{}) (*rest.Body[api.Caller], error) {
			caller := who.From(ctx)
			out := api.Caller{Kind: caller.Kind.String(), ID: caller.ID, Name: caller.Name, Permissions: []string{}, Authorities: caller.Authorities}
			if caller.AllAuthorities {
				out.Authorities = []string{"*"}
			}
			for _, p := range caller.Permissions {
				out.Permissions = append(out.Permissions, string(p))
			}
			return rest.Reply(out, nil)
		})
}
