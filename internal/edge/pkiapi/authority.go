package pkiapi

import (
	"cmp"
	"context"
	"crypto/x509"
	"net/http"
	"time"

	"chancery/api"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/domain/ca"
	"chancery/internal/edge/rest"
)

type byName struct {
	Name string `path:"name" maxLength:"64"`
}

func (f face) authorities(a *rest.API) {
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/authorities", Permission: who.AuthorityRead, Tags: tag, Summary: "List authorities"},
		func(ctx context.Context, _ *struct{}) (*rest.Body[api.Page[api.Authority]], error) {
			all, err := f.ca.Authorities(ctx)
			return rest.Reply(rest.PageOf(all, "", f.authority), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/authorities/{name}", Permission: who.AuthorityRead, Tags: tag, Summary: "Show an authority"},
		func(ctx context.Context, in *byName) (*rest.Body[api.Authority], error) {
			found, err := f.ca.Authority(ctx, in.Name)
			return rest.Reply(f.authority(found), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/authorities", Permission: who.AuthorityManage, Status: http.StatusCreated, Tags: tag, Summary: "Make an issuing authority"},
		func(ctx context.Context, in *rest.Body[api.NewAuthority]) (*rest.Body[api.Authority], error) {
			made, err := f.ca.Create(ctx, ca.Spec{
				Name: in.Body.Name, Parent: cmp.Or(in.Body.Issuer, "root"), Subject: ca.Subject{CommonName: cmp.Or(in.Body.Subject, in.Body.Name)},
				Kind: key.Kind(in.Body.KeyKind), Lifetime: time.Duration(in.Body.Years) * 365 * 24 * time.Hour,
			})
			return rest.Reply(f.authority(made), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/profiles", Permission: who.AuthorityRead, Tags: tag, Summary: "List profiles"},
		func(ctx context.Context, _ *struct{}) (*rest.Body[api.Page[ca.Profile]], error) {
			all, err := f.ca.Profiles(ctx)
			return rest.Reply(rest.NewPage(all, ""), err)
		})
	rest.Route(a, rest.Operation{Method: http.MethodPut, Path: "/api/v1/profiles/{name}", Permission: who.ProfileManage, Tags: tag, Summary: "Save a profile",
		Description: "A sample certificate has to pass the RFC lints before the profile counts."},
		func(ctx context.Context, in *struct {
			Name string `path:"name" maxLength:"64"`
			Body ca.Profile
		}) (*rest.Body[ca.Profile], error) {
			in.Body.Name = in.Name
			return rest.Reply(in.Body, f.ca.SaveProfile(ctx, in.Body))
		})
}

func (f face) authority(a ca.Authority) api.Authority {
	out := api.Authority{Name: a.Name, Issuer: a.Parent, NotBefore: a.NotBefore, NotAfter: a.NotAfter, Status: "good", PEM: rest.CertificatePEM(a.Certificate)}
	if cert, err := x509.ParseCertificate(a.Certificate); err == nil {
		out.Subject = cert.Subject.String()
		kind, _ := key.KindOf(cert.PublicKey)
		out.KeyKind = string(kind)
	}
	if _, revoked := f.ca.Revoked("aut:" + a.Name); revoked {
		out.Status = "revoked"
	} else if time.Now().After(a.NotAfter) {
		out.Status = "expired"
	}
	return out
}
