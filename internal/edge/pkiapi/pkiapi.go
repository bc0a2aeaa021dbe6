// Package pkiapi is the HTTP face of the certificate authority: certificates, authorities, profiles and revocations
// for those who may, and for everybody what relying parties need, CRLs, OCSP and the authorities' certificates.
//
// It translates between the bodies of package api and the authority, and holds callers to the authorities that they
// may use. Agent certificates are issued elsewhere; here they are found and revoked like all others.
package pkiapi

import (
	"context"
	"net/http"

	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/domain/ca"
	"chancery/internal/edge/rest"
)

// Register declares the routes of the certificate authority.
func Register(a *rest.API, authority *ca.Hierarchy) {
	f := face{authority}
	f.public(a)
	f.certificates(a)
	f.authorities(a)
	f.revocations(a)
}

type face struct{ ca *ca.Hierarchy }

// mayUse refuses callers that were not given the authority.
func mayUse(ctx context.Context, authority string) error {
	if caller := who.From(ctx); !caller.MayUse(authority) {
		return fault.New(fault.Denied, "authority_not_allowed", "%s %s may not use authority %.64q", caller.Kind, caller.Name, authority).
			WithHint("an administrator can add it to the account's authorities")
	}
	return nil
}

var tag = []string{"certificates"}

// cacheable says how long caches may keep an answer; no-cache makes them ask each time.
func cacheable(value string) http.Header { return http.Header{"Cache-Control": {value}} }
