package adminapi

import (
	"context"
	"net/http"

	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/who"
	"chancery/internal/domain/account"
	"chancery/internal/edge/rest"
)

func (f face) directory(a *rest.API) {
	rest.Route(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/accounts", Permission: who.AccountManage, Status: http.StatusCreated, Tags: tag, Summary: "Make a person's or a service's account"},
		func(ctx context.Context, in *rest.Body[api.NewAccount]) (*rest.Body[api.Account], error) {
			made, err := f.accounts.Create(ctx, account.Spec{
				Kind: kindOf(in.Body.Kind), Name: in.Body.Name, Display: in.Body.Display, Roles: roles(in.Body.Roles), Authorities: in.Body.Authorities,
			})
			return rest.Reply(wire(made), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/accounts", Permission: who.AccountRead, Tags: tag, Summary: "List accounts"},
		func(ctx context.Context, in *struct {
			rest.Paging
			Kind string `query:"kind" enum:"person,service"`
		}) (*rest.Body[api.Page[api.Account]], error) {
			after, err := in.After()
			if err != nil {
				return nil, err
			}
			page, err := f.accounts.List(ctx, kindOf(in.Kind), after, in.Limit)
			return rest.Reply(rest.PageOf(page.Items, page.Next, wire), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/accounts/{id}", Permission: who.AccountRead, Tags: tag, Summary: "Show an account", Description: "By identifier or by name."},
		func(ctx context.Context, in *named) (*rest.Body[api.Account], error) {
			found, err := f.find(ctx, in.ID)
			return rest.Reply(wire(found), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodPatch, Path: "/api/v1/accounts/{id}", Permission: who.AccountManage, Tags: tag, Summary: "Change an account",
		Description: "What is left out stays. What hangs on a role that is gone, or on a disabled account, ends at once."},
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body api.AccountChange
		}) (*rest.Body[api.Account], error) {
			changed, err := f.accounts.Change(ctx, in.ID, change(in.Body))
			return rest.Reply(wire(changed), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodDelete, Path: "/api/v1/accounts/{id}", Permission: who.AccountManage, Status: http.StatusNoContent, Tags: tag, Summary: "Remove an account with its tokens and bound keys"},
		func(ctx context.Context, in *named) (*struct{}, error) { return nil, f.accounts.Delete(ctx, in.ID) })
}

func (f face) find(ctx context.Context, idOrName string) (account.Account, error) {
	if id.Is(id.Person, idOrName) || id.Is(id.Service, idOrName) {
		return f.accounts.Find(ctx, idOrName)
	}
	return f.accounts.FindByName(ctx, idOrName)
}

func kindOf(text string) who.Kind {
	switch text {
	case "person":
		return who.Person
	case "service":
		return who.Service
	}
	return who.Nobody
}

func roles(names []string) []account.Role {
	out := make([]account.Role, len(names))
	for i, name := range names {
		out[i] = account.Role(name)
	}
	return out
}

func change(in api.AccountChange) account.Change {
	out := account.Change{Display: in.Display, Authorities: in.Authorities, Enabled: in.Enabled}
	if in.Roles != nil {
		r := roles(*in.Roles)
		out.Roles = &r
	}
	return out
}

func wire(a account.Account) api.Account {
	out := api.Account{ID: a.ID, Kind: a.Kind().String(), Name: a.Name, Display: a.Display, Roles: []string{}, Authorities: a.Authorities, Enabled: a.Enabled, CreatedAt: a.Created}
	for _, r := range a.Roles {
		out.Roles = append(out.Roles, string(r))
	}
	return out
}

// self gives account, or the caller's own where it is empty.
func self(ctx context.Context, account string) (string, error) {
	caller := who.From(ctx)
	if account != "" {
		return account, nil
	}
	if caller.Kind != who.Person && caller.Kind != who.Service {
		return "", fault.New(fault.Invalid, "account_missing", "%s has no account of its own; name one", caller.Kind)
	}
	return caller.ID, nil
}
