package pkiapi

import (
	"context"
	"net/http"

	"chancery/api"
	"chancery/internal/base/who"
	"chancery/internal/domain/ca"
	"chancery/internal/edge/rest"
)

func (f face) revocations(a *rest.API) {
	rest.Route(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/certificates/{serial}/revoke", Permission: who.CertificateRevoke, Status: http.StatusNoContent, Tags: tag,
		Summary: "Revoke a certificate", Description: "OCSP and CRL say so within a second."},
		func(ctx context.Context, in *struct {
			Serial string `path:"serial" maxLength:"64"`
			Body   api.RevokeRequest
		}) (*struct{}, error) {
			found, err := f.one(ctx, in.Serial)
			if err != nil {
				return nil, err
			}
			if err := mayUse(ctx, found.Authority); err != nil {
				return nil, err
			}
			return nil, f.revoke(ctx, ca.Target{Kind: ca.Certificate, ID: in.Serial}, in.Body)
		})
	rest.Route(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/authorities/{name}/revoke", Permission: who.AuthorityManage, Status: http.StatusNoContent, Tags: tag,
		Summary: "Revoke an authority with everything below it"},
		func(ctx context.Context, in *struct {
			Name string `path:"name" maxLength:"64"`
			Body api.RevokeRequest
		}) (*struct{}, error) {
			return nil, f.revoke(ctx, ca.Target{Kind: ca.AuthorityItself, ID: in.Name}, in.Body)
		})
}

func (f face) revoke(ctx context.Context, target ca.Target, in api.RevokeRequest) error {
	reason, err := ca.ParseReason(in.Reason)
	if err != nil {
		return err
	}
	return f.ca.Revoke(ctx, target, reason, in.Note)
}
