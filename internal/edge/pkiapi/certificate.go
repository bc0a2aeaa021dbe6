package pkiapi

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/hex"
	"math"
	"net/http"
	"time"

	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/base/name"
	"chancery/internal/base/who"
	"chancery/internal/domain/ca"
	"chancery/internal/edge/rest"
)

type bySerial struct {
	Serial string `path:"serial" maxLength:"64"`
}

// search is what certificates can be looked for by. Everything that is given has to hold.
type search struct {
	rest.Paging
	Authority string `query:"authority" maxLength:"64"`
	Serial    string `query:"serial" maxLength:"64"`
	Name      string `query:"name" maxLength:"2048" doc:"a subject alternative name, exact"`
	KeyHash   string `query:"key_hash" maxLength:"64" doc:"SHA-256 of the SubjectPublicKeyInfo, hexadecimal"`
	Principal string `query:"principal" maxLength:"64"`
	Agent     string `query:"agent" maxLength:"64"`
}

func (f face) certificates(a *rest.API) {
	rest.Raw(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/certificates", Permission: who.CertificateIssue, Status: http.StatusCreated, Gated: true, Tags: tag, Summary: "Issue a certificate",
		Description: "For a certificate request in JSON with PEM, or in DER with authority and profile in the query."},
		rest.Media{
			In: map[string]any{rest.TypeJSON: api.IssueRequest{}, rest.TypeCSR: nil}, Out: map[string]any{rest.TypeJSON: api.Issued{}, rest.TypeCertificate: nil, rest.TypeChain: nil},
			First: rest.TypeJSON, Query: map[string]string{"authority": "with a request in DER: the authority", "profile": "with a request in DER: the profile"}, Idempotent: true,
		}, f.issue)
	rest.Raw(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/certificates/{serial}/renew", Permission: who.CertificateRenew, Or: who.CertificateIssue, Status: http.StatusCreated, Gated: true, Tags: tag,
		Summary: "Renew a certificate", Description: "By the key that it certifies, on the mTLS listener, or by a caller who may issue. Without a certificate request the key stays the same."},
		rest.Media{In: map[string]any{rest.TypeJSON: api.RenewRequest{}, rest.TypeCSR: nil}, Out: map[string]any{rest.TypeJSON: api.Issued{}, rest.TypeCertificate: nil, rest.TypeChain: nil}, First: rest.TypeJSON}, f.renew)
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/certificates", Permission: who.CertificateRead, Tags: tag, Summary: "Search certificates"}, f.find)
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/certificates/{serial}", Permission: who.CertificateRead, Tags: tag, Summary: "Show a certificate"},
		func(ctx context.Context, in *bySerial) (*rest.Body[api.Certificate], error) {
			found, err := f.one(ctx, in.Serial)
			return rest.Reply(wire(found, true), err)
		})
}

func (f face) issue(r *rest.Request) (*rest.Answer, error) {
	in := api.IssueRequest{Authority: r.URL.Query().Get("authority"), Profile: r.URL.Query().Get("profile")}
	csr := r.Content
	if r.Type == rest.TypeJSON {
		if err := r.Decode(&in); err != nil {
			return nil, err
		}
		csr = []byte(in.Request)
	}
	if err := mayUse(r.Context(), in.Authority); err != nil {
		return nil, err
	}
	order, err := order(in, csr)
	if err != nil {
		return nil, err
	}
	if order.Request, err = request(r); err != nil {
		return nil, err
	}
	issued, err := f.ca.Issue(r.Context(), order)
	return f.certificate(r, in.Authority, issued, err)
}

// request gives the caller's idempotency key together with the caller, so that nobody meets another's.
func request(r *rest.Request) (string, error) {
	key, err := r.IdempotencyKey()
	if err != nil || key == "" {
		return "", err
	}
	return who.From(r.Context()).ID + " " + key, nil
}

func order(in api.IssueRequest, csr []byte) (ca.Order, error) {
	o := ca.Order{Authority: in.Authority, Profile: in.Profile}
	var err error
	if o.CSR, err = key.RequestDER(csr); err != nil {
		return o, err
	}
	if o.Lifetime, err = lifetime(in.LifetimeSec); err != nil {
		return o, err
	}
	for _, text := range in.Names {
		n, err := name.Parse(text)
		if err != nil {
			return o, err
		}
		o.Names = append(o.Names, n)
	}
	return o, nil
}

// lifetime reads a wish in seconds; more than a Duration holds is more than any profile allows.
func lifetime(seconds int) (time.Duration, error) {
	if seconds < 0 {
		return 0, fault.New(fault.Invalid, "lifetime_invalid", "a certificate cannot live for %d seconds", seconds)
	}
	return time.Duration(min(int64(seconds), int64(math.MaxInt64/time.Second))) * time.Second, nil
}

func (f face) renew(r *rest.Request) (*rest.Answer, error) {
	var in api.RenewRequest
	csr := r.Content
	if r.Type == rest.TypeJSON {
		if err := r.Decode(&in); err != nil {
			return nil, err
		}
		csr = []byte(in.Request)
	}
	serial, err := id.ParseSerial(r.PathValue("serial"))
	if err != nil {
		return nil, err
	}
	before, err := f.ca.Ordinary(r.Context(), serial)
	if err != nil {
		return nil, err
	}
	if err := mayRenew(r, before); err != nil {
		return nil, err
	}
	renewal := ca.Renewal{Of: before}
	if renewal.Lifetime, err = lifetime(in.LifetimeSec); err != nil {
		return nil, err
	}
	if len(csr) > 0 {
		if renewal.CSR, err = key.RequestDER(csr); err != nil {
			return nil, err
		}
	}
	issued, err := f.ca.Renew(r.Context(), renewal)
	return f.certificate(r, before.Authority, issued, err)
}

// mayRenew lets through whoever calls with the key of the certificate, and whoever may issue from its authority.
func mayRenew(r *rest.Request, before ca.Ordinary) error {
	caller := who.From(r.Context())
	if bytes.Equal(caller.KeyHash[:], before.KeyHash) {
		return nil
	}
	if err := caller.Need(who.CertificateIssue); err != nil {
		return err
	}
	return mayUse(r.Context(), before.Authority)
}

// certificate answers in the form that the caller accepts.
func (f face) certificate(r *rest.Request, authority string, issued ca.Issued, err error) (*rest.Answer, error) {
	if err != nil {
		return nil, err
	}
	above, err := f.ca.Authority(r.Context(), authority)
	if err != nil {
		return nil, err
	}
	chain := above.Chain[:max(len(above.Chain)-1, 0)] // without the root
	return r.Certificate(api.Issued{
		Serial: issued.Serial.String(), PEM: rest.CertificatePEM(issued.DER), Chain: rest.CertificatePEM(chain...), NotBefore: issued.NotBefore, NotAfter: issued.NotAfter, Again: issued.Again,
	}, issued.DER), nil
}

func (f face) find(ctx context.Context, in *search) (*rest.Body[api.Page[api.Certificate]], error) {
	q := ca.Query{Authority: in.Authority, Name: in.Name, Principal: in.Principal, Agent: in.Agent, Limit: in.Limit}
	var err error
	if q.Cursor, err = in.After(); err != nil {
		return nil, err
	}
	if in.Serial != "" {
		if q.Serial, err = id.ParseSerial(in.Serial); err != nil {
			return nil, err
		}
	}
	if in.KeyHash != "" { // an empty hash would match nothing
		if q.KeyHash, err = hex.DecodeString(in.KeyHash); err != nil {
			return nil, fault.New(fault.Invalid, "key_hash_invalid", "%.80q is not a SHA-256 in hexadecimal", in.KeyHash)
		}
	}
	page, err := f.ca.Find(ctx, q)
	if err != nil {
		return nil, err
	}
	return rest.Reply(rest.PageOf(page.Certificates, page.Next, func(c ca.Found) api.Certificate { return wire(c, false) }), nil)
}

func (f face) one(ctx context.Context, text string) (ca.Found, error) {
	serial, err := id.ParseSerial(text)
	if err != nil {
		return ca.Found{}, err
	}
	page, err := f.ca.Find(ctx, ca.Query{Serial: serial, Limit: 1})
	if err == nil && len(page.Certificates) == 0 {
		err = fault.New(fault.NotFound, "certificate_unknown", "no certificate with serial %s was issued here", serial)
	}
	if err != nil {
		return ca.Found{}, err
	}
	return page.Certificates[0], nil
}

// wire gives what is known of a certificate, with the certificate itself if it is wanted.
func wire(c ca.Found, whole bool) api.Certificate {
	out := api.Certificate{
		Serial: c.Serial.String(), Authority: c.Authority, Profile: c.Profile, Names: c.Names, KeyHash: hex.EncodeToString(c.KeyHash),
		NotBefore: c.NotBefore, NotAfter: c.NotAfter, Status: c.Status.State.String(), Agent: c.Agent, Delegation: c.Delegation,
	}
	if c.Agent == "" {
		out.Owner = c.Owner
	} else {
		out.Principal = c.Owner
	}
	if c.Status.State == ca.Revoked {
		out.Reason, out.RevokedAt, out.RevokedBy = c.Status.Reason.String(), c.Status.At, c.Status.Target
	} else if time.Now().After(c.NotAfter) {
		out.Status = "expired"
	}
	if cert, err := x509.ParseCertificate(c.DER); err == nil {
		out.Subject = cert.Subject.String()
	}
	if whole {
		out.PEM = rest.CertificatePEM(c.DER)
	}
	return out
}
