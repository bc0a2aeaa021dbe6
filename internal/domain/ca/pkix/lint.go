package pkix

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zmap/zcrypto/x509"
	"github.com/zmap/zlint/v3"
	"github.com/zmap/zlint/v3/lint"

	"chancery/internal/base/key"
	"chancery/internal/base/name"
)

// lintSources are the RFC rules of zlint. The rules of browsers and of the CA/Browser Forum refuse private names, which
// are our daily bread.
var lintSources = lint.SourceList{
	lint.RFC3279, lint.RFC5280, lint.RFC5480, lint.RFC5891, lint.RFC6960, lint.RFC6962, lint.RFC8813,
}

// lintCertificate says what the RFC lints find wrong with a certificate in DER: warnings and errors, none means nil.
// It takes milliseconds and so runs when a profile is saved, not when a certificate is issued.
func lintCertificate(der []byte) error {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("parse for lint: %w", err)
	}
	rules, err := lint.GlobalRegistry().Filter(lint.FilterOptions{IncludeSources: lintSources})
	if err != nil {
		return fmt.Errorf("choose lints: %w", err)
	}
	return complaints(zlint.LintCertificateEx(cert, rules))
}

func complaints(results *zlint.ResultSet) error {
	var found []string
	for rule, r := range results.Results {
		if r.Status >= lint.Warn {
			found = append(found, strings.TrimSpace(rule+" "+r.Details))
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return fmt.Errorf("lints: %s", strings.Join(found, "; "))
}

// Lint makes a certificate of the profile with a key that is thrown away, and lets the RFC lints judge it.
func (p *Profile) Lint() error {
	kind := p.sampleKind()
	signer, err := key.Generate(kind)
	if err != nil {
		return err
	}
	sample, err := NewIssuer(Subject{CommonName: "Sample Root"}, signer.Public(), signer)
	if err != nil {
		return err
	}
	t, err := NewTemplate(sample, Links{Certificate: "http://ca.example/a.cer", CRL: "http://ca.example/a.crl", OCSP: "http://ca.example/ocsp"}, *p)
	if err != nil {
		return err
	}
	spki, err := key.SPKI(signer.Public())
	if err != nil {
		return err
	}
	c, err := t.Content(Request{SPKI: spki, Kind: kind, Subject: Subject{CommonName: p.sampleCommonName()}, Names: p.sampleNames()}, nil)
	if err != nil {
		return err
	}
	c.Serial = []byte{1, 2, 3, 4, 5, 6, 7, 8}
	if err := t.Date(c, time.Now(), 0); err != nil {
		return err
	}
	tbs, err := t.patch(c)
	if err != nil {
		return err
	}
	der, err := sample.seal(tbs)
	if err != nil {
		return err
	}
	return lintCertificate(der)
}

// sampleKind is a kind of key that the profile takes and that is quick to make, if there is one.
func (p *Profile) sampleKind() key.Kind {
	for _, k := range []key.Kind{key.P256, key.Ed25519, key.P384} {
		if slices.Contains(p.KeyKinds, k) {
			return k
		}
	}
	return key.RSA2048
}

func (p *Profile) sampleCommonName() string {
	if p.CommonName == CommonNameRequired {
		return "Sample"
	}
	return ""
}

// sampleNames are names that the profile takes: within its constraints where it has some.
func (p *Profile) sampleNames() []name.Name {
	c, err := newConstraints(p.PermittedNames, p.ExcludedNames)
	if err != nil {
		return nil
	}
	candidates := []name.Name{
		{Kind: name.DNS, Text: "sample.example.org"}, {Kind: name.IP, Text: "192.0.2.1"},
		{Kind: name.Email, Text: "sample@example.org"}, {Kind: name.URI, Text: "spiffe://example.org/sample"},
	}
	for _, s := range c.permitted {
		candidates = append(candidates, s.sample())
	}
	var names []name.Name
	for _, n := range candidates {
		if c.check(n) == nil && p.allowsName(n.Kind) && len(names) < p.NamesMax {
			names = append(names, n)
		}
	}
	return names
}

// sample is a name in the subtree.
func (s subtree) sample() name.Name {
	host := s.base
	if strings.HasPrefix(host, ".") {
		host = "sample" + host
	}
	switch {
	case s.kind == name.IP:
		host = s.net.Addr().String()
	case s.kind == name.Email && !strings.Contains(host, "@"):
		host = "sample@" + host
	case s.kind == name.URI:
		host = "spiffe://" + host + "/sample"
	}
	return name.Name{Kind: s.kind, Text: host}
}
