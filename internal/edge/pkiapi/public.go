package pkiapi

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/domain/ca"
	"chancery/internal/edge/rest"
)

// ocspBytesMax bounds an OCSP request: a handful of certificates and a nonce.
const ocspBytesMax = 4 << 10

func (f face) public(a *rest.API) {
	out := map[string]any{rest.TypeOCSPResponse: nil}
	rest.Raw(a, rest.Operation{Method: http.MethodPost, Path: ca.OCSPPath, Permission: who.Public, Gated: true, MaxBody: ocspBytesMax, Tags: tag, Summary: "Ask for the status of certificates (OCSP, RFC 6960)"},
		rest.Media{In: map[string]any{rest.TypeOCSPRequest: nil}, Out: out, First: rest.TypeOCSPRequest},
		func(r *rest.Request) (*rest.Answer, error) { return f.ocsp(r, r.Content) })
	rest.Raw(a, rest.Operation{Method: http.MethodGet, Path: ca.OCSPPath + "/{request...}", Permission: who.Public, Gated: true, Tags: tag, Summary: "Ask for the status of a certificate by GET (RFC 6960 appendix A)"},
		rest.Media{Out: out},
		func(r *rest.Request) (*rest.Answer, error) {
			question, err := ca.DecodeOCSPPath(strings.TrimPrefix(r.URL.EscapedPath(), ca.OCSPPath+"/"))
			if err != nil {
				question = nil // what is no base64 is no question either, and OCSP has an answer to that
			}
			return f.ocsp(r, question)
		})
	rest.Raw(a, rest.Operation{Method: http.MethodGet, Path: "/pki/{file}", Permission: who.Public, Tags: tag, Summary: "Fetch an authority's certificate or CRL",
		Description: "NAME.cer and NAME.crl are DER, NAME.pem is the certificate in PEM."},
		rest.Media{Out: map[string]any{rest.TypeCertificate: nil, rest.TypeCRL: nil, rest.TypePEM: nil}, First: rest.TypeCertificate}, f.file)
}

func (f face) ocsp(r *rest.Request, question []byte) (*rest.Answer, error) {
	got, err := f.ca.OCSP(r.Context(), question)
	if err != nil {
		return nil, err
	}
	header := cacheable("no-cache")
	if got.Shared {
		header = cacheable(fmt.Sprintf("public, no-transform, must-revalidate, max-age=%d", secondsUntil(got.NextUpdate)))
	}
	return &rest.Answer{Type: rest.TypeOCSPResponse, Body: got.DER, Header: header}, nil
}

func secondsUntil(t time.Time) int { return max(int(time.Until(t)/time.Second), 0) }

// file serves what stands in certificates as the addresses of issuers and CRLs.
func (f face) file(r *rest.Request) (*rest.Answer, error) {
	name, kind, _ := strings.Cut(r.PathValue("file"), ".")
	if kind == "crl" {
		list, err := f.ca.CRL(r.Context(), name)
		return &rest.Answer{Type: rest.TypeCRL, Body: list.DER, Header: cacheable("no-cache")}, err
	}
	authority, err := f.ca.Authority(r.Context(), name)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "cer":
		return &rest.Answer{Type: rest.TypeCertificate, Body: authority.Certificate, Header: cacheable("public, max-age=3600")}, nil
	case "pem":
		return &rest.Answer{Type: rest.TypePEM, Body: []byte(rest.CertificatePEM(authority.Certificate)), Header: cacheable("public, max-age=3600")}, nil
	}
	return nil, fault.New(fault.NotFound, "file_unknown", "there is no %.80q here", r.PathValue("file")).WithHint("ask for NAME.cer, NAME.pem or NAME.crl")
}
