package agentcert

import (
	"crypto/x509"
	"encoding/asn1"
	"slices"
)

// FromCertificate reads the agent extension of cert and validates it. A certificate without the extension is refused
// with the code "aic_missing". The error is a *Refusal.
func FromCertificate(cert *x509.Certificate) (*AIC, error) {
	value, err := extension(cert, OIDExtension, "aic", "an agent's")
	if err != nil {
		return nil, err
	}
	a, err := ParseAIC(value)
	if err != nil {
		return nil, err
	}
	if err := a.Validate(); err != nil {
		return nil, err
	}
	return a, nil
}

// AuthorizationFromCertificate reads what the principal of cert may delegate and validates it. A certificate without
// the extension is refused with the code "pa_missing". The error is a *Refusal.
func AuthorizationFromCertificate(cert *x509.Certificate) (*PrincipalAuthorization, error) {
	value, err := extension(cert, OIDPrincipalAuthorization, "pa", "a principal's")
	if err != nil {
		return nil, err
	}
	p, err := ParsePrincipalAuthorization(value)
	if err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// extension gives the value of an extension that must be there and not critical.
func extension(cert *x509.Certificate, id asn1.ObjectIdentifier, what, whose string) ([]byte, error) {
	for _, x := range cert.Extensions {
		if !x.Id.Equal(id) {
			continue
		}
		if x.Critical {
			return nil, malformed(what, "the extension's critical mark")
		}
		return x.Value, nil
	}
	return nil, refuse(StepExtension, what+"_missing", "the certificate is not %s: it carries no extension %s", whose, id)
}

func hasExtension(cert *x509.Certificate, id asn1.ObjectIdentifier) bool {
	for _, x := range cert.Extensions {
		if x.Id.Equal(id) {
			return true
		}
	}
	return false
}

// underStandingApproval reports whether cert is marked as one of a key that a server holds.
func underStandingApproval(cert *x509.Certificate) bool {
	return slices.ContainsFunc(cert.PolicyIdentifiers, OIDStandingApproval.Equal)
}
