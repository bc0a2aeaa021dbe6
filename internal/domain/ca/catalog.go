package ca

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/base/name"
	"chancery/internal/core/store"
)

// SaveProfile stores a profile, new or in place of one of the same name, after a sample certificate of it has passed
// the RFC lints. It is durable on return, in force here at once and on other instances within a second; certificates
// that were issued before keep what they have. A built-in profile can be narrowed, but goes on to serve its purpose.
//
// Faults: Invalid profile_invalid, profile_lint; Denied profile_built_in.
func (h *Hierarchy) SaveProfile(ctx context.Context, p Profile) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := p.servesItsName(); err != nil {
		return err
	}
	if err := p.lint(); err != nil {
		return fault.New(fault.Invalid, "profile_lint", "a certificate of profile %s would break the rules: %v", p.Name, err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode profile %s: %w", p.Name, err)
	}
	return h.db.Write(ctx, func(tx *store.Tx) error {
		fresh, err := tx.InsertNew("INSERT INTO profile (name, body, changed_at) VALUES (?, ?, ?)", p.Name, string(body), tx.Now())
		if err == nil && !fresh {
			_, err = tx.Exec("UPDATE profile SET body = ?, changed_at = ? WHERE name = ?", string(body), tx.Now(), p.Name)
		}
		if err != nil {
			return err
		}
		if err := tx.Audit(line(tx, "profile.save", p.Name, string(body))); err != nil {
			return err
		}
		return tx.Publish(store.Change{Topic: topicProfile, Key: p.Name})
	})
}

// servesItsName keeps a replaced built-in profile what the rest of the program relies on.
func (p *Profile) servesItsName() error {
	for _, built := range BuiltIn() {
		if built.Name != p.Name {
			continue
		}
		if built.Authority != p.Authority || !slices.Equal(built.Extensions, p.Extensions) || !slices.Equal(built.ExtKeyUsages, p.ExtKeyUsages) ||
			built.CommonName != p.CommonName || p.Name == agentProfile && p.BackdateSec != 0 {
			return fault.New(fault.Denied, "profile_built_in", "the built-in profile %s keeps its purpose, extensions and subject", p.Name).
				WithHint("change its lifetimes, keys, names or policies, or save a profile of another name")
		}
	}
	return nil
}

// lint makes a certificate of the profile with a key that is thrown away, and lets the RFC lints judge it.
func (p *Profile) lint() error {
	signer, err := key.Generate(p.sampleKind())
	if err != nil {
		return err
	}
	root := Subject{CommonName: "Sample Root"}
	issuerName, err := root.encode()
	if err != nil {
		return err
	}
	sample, err := newIssuer(issuerName, signer.Public(), signer)
	if err != nil {
		return err
	}
	t, err := newTemplate(sample, links{certificate: "http://ca.example/a.cer", crl: "http://ca.example/a.crl", ocsp: "http://ca.example/ocsp"}, *p)
	if err != nil {
		return err
	}
	spki, err := key.SPKI(signer.Public())
	if err != nil {
		return err
	}
	c, err := t.content(Request{SPKI: spki, Subject: Subject{CommonName: p.sampleCommonName()}, Names: p.sampleNames()}, nil)
	if err != nil {
		return err
	}
	now := time.Now()
	c.serial = []byte{1, 2, 3, 4, 5, 6, 7, 8}
	c.notBefore, c.notAfter = p.period(now, 0)
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
