package adminapi

import (
	"cmp"
	"context"
	"encoding/hex"
	"net/http"
	"time"

	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/domain/account"
	"chancery/internal/edge/rest"
)

// tokenLifetime is how long a token lives that names no end.
const tokenLifetime = 90 * 24 * time.Hour

func (f face) tokens(a *rest.API) {
	rest.Route(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/tokens", Permission: who.TokenOwn, Or: who.TokenManage, Status: http.StatusCreated, Tags: tag, Summary: "Make an API token", Description: "The answer shows the secret this once."},
		func(ctx context.Context, in *rest.Body[api.NewToken]) (*rest.Body[api.Token], error) {
			owner, err := self(ctx, in.Body.Account)
			if err != nil {
				return nil, err
			}
			made, secret, err := f.accounts.CreateToken(ctx, owner, tokenSpec(in.Body))
			return rest.Reply(wireToken(made, secret), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/tokens", Permission: who.TokenOwn, Or: who.TokenManage, Tags: tag, Summary: "List the tokens of an account"},
		func(ctx context.Context, in *struct {
			rest.Paging
			Account string `query:"account" maxLength:"64" doc:"default: the caller's own"`
		}) (*rest.Body[api.Page[api.Token]], error) {
			after, err := in.After()
			if err != nil {
				return nil, err
			}
			owner, err := self(ctx, in.Account)
			if err != nil {
				return nil, err
			}
			page, err := f.accounts.Tokens(ctx, owner, after, in.Limit)
			return rest.Reply(rest.PageOf(page.Items, page.Next, func(t account.Token) api.Token { return wireToken(t, "") }), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodDelete, Path: "/api/v1/tokens/{id}", Permission: who.TokenOwn, Or: who.TokenManage, Status: http.StatusNoContent, Tags: tag, Summary: "End a token at once"},
		func(ctx context.Context, in *named) (*struct{}, error) {
			return nil, f.accounts.DeleteToken(ctx, in.ID)
		})
}

func tokenSpec(in api.NewToken) account.TokenSpec {
	spec := account.TokenSpec{Label: in.Note, Expires: in.Until}
	if spec.Expires.IsZero() {
		spec.Expires = time.Now().Add(tokenLifetime)
	}
	for _, p := range in.Permissions {
		spec.Permissions = append(spec.Permissions, who.Permission(p))
	}
	return spec
}

func wireToken(t account.Token, secret string) api.Token {
	out := api.Token{ID: t.ID, Account: t.Account, Note: t.Label, Secret: secret, Until: t.Expires, CreatedAt: t.Created}
	for _, p := range t.Permissions {
		out.Permissions = append(out.Permissions, string(p))
	}
	return out
}

func (f face) bindings(a *rest.API) {
	rest.Route(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/bindings", Permission: who.AccountManage, Status: http.StatusNoContent, Tags: tag,
		Summary: "Let the holder of a certified key call as an account"},
		func(ctx context.Context, in *rest.Body[api.Binding]) (*struct{}, error) {
			hash, err := keyHash(in.Body.KeyHash)
			if err != nil {
				return nil, err
			}
			return nil, f.accounts.BindKey(ctx, account.Binding{KeyHash: hash, Account: in.Body.Account, Label: cmp.Or(in.Body.Note, "bound by "+who.From(ctx).Name)})
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/bindings", Permission: who.AccountRead, Tags: tag, Summary: "List the keys that are bound to an account"},
		func(ctx context.Context, in *struct {
			Account string `query:"account" required:"true" maxLength:"64"`
		}) (*rest.Body[api.Page[api.Binding]], error) {
			bound, err := f.accounts.Bindings(ctx, in.Account)
			return rest.Reply(rest.PageOf(bound, "", func(b account.Binding) api.Binding {
				return api.Binding{Account: b.Account, KeyHash: hex.EncodeToString(b.KeyHash[:]), Note: b.Label}
			}), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodDelete, Path: "/api/v1/bindings/{id}", Permission: who.AccountManage, Status: http.StatusNoContent, Tags: tag, Summary: "End a binding at once, by the hash of its key"},
		func(ctx context.Context, in *named) (*struct{}, error) {
			hash, err := keyHash(in.ID)
			if err != nil {
				return nil, err
			}
			return nil, f.accounts.UnbindKey(ctx, hash)
		})
}

func keyHash(text string) (hash [32]byte, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(hash) {
		return hash, fault.New(fault.Invalid, "key_hash_invalid", "%.80q is not a SHA-256 in hexadecimal", text)
	}
	return [32]byte(raw), nil
}
