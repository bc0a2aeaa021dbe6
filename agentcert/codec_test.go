package agentcert

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/capability"
)

func codeOf(err error) string {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Code
	}
	return ""
}

// sample is a valid AIC with every field in use.
func sample() *AIC {
	a := query()
	a.Version = 2
	a.Capabilities = []capability.Capability{{Scheme: "calendar", ID: "read:*", Parameters: []byte(`{"days":7}`)}, {Scheme: "db", ID: "SELECT:*"}}
	a.Extensions = []Extension{{ID: OIDMarketAccess, Value: []byte{1}}}
	return a
}

func encoded(t *testing.T, a *AIC) []byte {
	t.Helper()
	der, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*AIC){
		"as it is":           func(*AIC) {},
		"hash not written":   func(a *AIC) { a.Principal.HashAlgorithm = 0 },
		"SHA3-512":           func(a *AIC) { a.Principal.HashAlgorithm = crypto.SHA3_512; a.Principal.KeyHash = octets(0, 63) },
		"no parameters":      func(a *AIC) { a.Capabilities[0].Parameters = nil },
		"empty parameters":   func(a *AIC) { a.Capabilities[0].Parameters = []byte{} },
		"no constraints":     func(a *AIC) { a.Constraints = nil },
		"no extensions":      func(a *AIC) { a.Extensions = nil },
		"representative":     func(a *AIC) { a.Mode = Representative },
		"long":               func(a *AIC) { a.Authorization.Reason.Description = strings.Repeat("x", 512) },
		"length of 127":      func(a *AIC) { a.AgentID = strings.Repeat("x", 127) },
		"length of 128":      func(a *AIC) { a.AgentID = strings.Repeat("x", 128) },
		"lifetime of a day":  func(a *AIC) { a.Authorization.Lifetime = MaxLifetime },
		"critical extension": func(a *AIC) { a.Extensions[0].Critical = true },
	} {
		want := sample()
		change(want)
		got, err := ParseAIC(encoded(t, want))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	for _, s := range signatureAlgorithms {
		want := sample()
		want.Authorization.Algorithm = s.algorithm
		got, err := ParseAIC(encoded(t, want))
		if err != nil || got.Authorization.Algorithm != s.algorithm {
			t.Errorf("%s: %v", s.algorithm, err)
		}
	}
}

func TestEncodeRefusesUnknownAlgorithms(t *testing.T) {
	t.Parallel()
	a := sample()
	a.Principal.HashAlgorithm = crypto.SHA1
	if _, err := a.Encode(); codeOf(err) != "aic_invalid" {
		t.Errorf("SHA-1: %v", err)
	}
	a = sample()
	a.Authorization.Algorithm = x509.SHA1WithRSA
	if _, err := a.Encode(); codeOf(err) != "aic_invalid" {
		t.Errorf("RSA with SHA-1: %v", err)
	}
}

// DEFAULT values that are left out read as if they were written.
func TestParseAcceptsOmittedDefaults(t *testing.T) {
	t.Parallel()
	want := query()
	e := &encoder{}
	e.nest(tagSequence, func() {
		e.text(want.AgentID)
		e.nest(tagSequence, func() {
			e.text(want.Principal.Realm)
			e.text(want.Principal.Identifier)
			e.bytes(tagOctets, want.Principal.KeyHash)
			e.hashAlgorithm(crypto.SHA256)
		})
		e.capabilities(want.Capabilities)
		e.constraints(want.Constraints)
		e.authorization(&want.Authorization)
	})
	got, err := ParseAIC(e.out)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	e = &encoder{}
	e.nest(tagSequence, func() {
		e.capabilities(nil)
		e.nest(tagContext+1, func() { e.nest(tagSequence, func() {}) })
	})
	pa, err := ParsePrincipalAuthorization(e.out)
	wantPA := &PrincipalAuthorization{Version: 1, Grants: []capability.Capability{}, Policy: &DelegationPolicy{Version: 1, MaxAgents: 1}}
	if diff := cmp.Diff(wantPA, pa); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestPrincipalAuthorizationRoundTrip(t *testing.T) {
	t.Parallel()
	want := &PrincipalAuthorization{
		Version:     1,
		Grants:      []capability.Capability{{Scheme: "calendar", ID: "*"}},
		Constraints: tenNet(),
		Policy:      &DelegationPolicy{Version: 1, MaxAgents: 8, AllowedMode: Representative, MaxSessionHours: 12},
		Extensions:  []Extension{{ID: OIDMarketAccess, Value: []byte{1}}},
	}
	der, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParsePrincipalAuthorization(der)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func TestParseRefusesHostileInput(t *testing.T) {
	t.Parallel()
	good := encoded(t, sample())
	replace := func(old, with string) []byte { return bytes.Replace(good, []byte(old), []byte(with), 1) }
	tests := map[string][]byte{
		"nothing":              nil,
		"trailing octet":       append(bytes.Clone(good), 0),
		"oversized":            make([]byte, maxAIC+1),
		"set, not sequence":    append([]byte{0x31}, good[1:]...),
		"printable, not UTF-8": replace("\x0c\x09agent-109", "\x13\x09agent-109"),
		"broken UTF-8":         replace("agent-109", "agent-\xff\xfe9"),
		"padded integer":       nonMinimal(t, good, "\x02\x02\x0e\x10", "\x02\x03\x00\x0e\x10"),
		"negative lifetime":    replace("\x02\x02\x0e\x10", "\x02\x02\x8e\x10"),
		"fraction, same size":  replace("20260818000000Z", "202608180000.0Z"),
		"time with an offset":  replace("20260818000000Z", "202608180000+01"),
		"month 13":             replace("20260818000000Z", "20261318000000Z"),
		"unknown hash":         replace("\x60\x86\x48\x01\x65\x03\x04\x02\x01", "\x60\x86\x48\x01\x65\x03\x04\x02\x04"),
		"unknown signature":    replace("\xce\x3d\x04\x03\x02", "\xce\x3d\x04\x03\x01"),
		"boolean 01":           replace("\x01\x01\x00\x04\x01\x01", "\x01\x01\x01\x04\x01\x01"),
		"indefinite length":    append([]byte{0x30, 0x80}, good[4:]...),
	}
	longLength := append([]byte{0x30, 0x83, 0}, good[2:]...)
	tests["length not minimal"] = longLength
	for n := range good {
		if _, err := ParseAIC(good[:n]); codeOf(err) != "aic_malformed" {
			t.Fatalf("cut to %d octets: %v", n, err)
		}
	}
	for name, der := range tests {
		if bytes.Equal(der, good) {
			t.Errorf("%s: the change did not take", name)
		}
		if _, err := ParseAIC(der); codeOf(err) != "aic_malformed" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// nonMinimal replaces a value by a longer form and mends the lengths of the two sequences around it.
func nonMinimal(t *testing.T, der []byte, old, with string) []byte {
	t.Helper()
	a := sample()
	e := &encoder{}
	e.nest(tagSequence, func() {
		e.int(int64(a.Version))
		e.text(a.AgentID)
		e.principal(&a.Principal)
		e.capabilities(a.Capabilities)
		e.int(int64(a.Mode))
		e.constraints(a.Constraints)
		start := len(e.out)
		e.authorization(&a.Authorization)
		inner := bytes.Replace(e.out[start+3:], []byte(old), []byte(with), 1)
		e.out = e.out[:start]
		e.bytes(tagSequence, inner)
		e.extensions(tagContext+1, a.Extensions)
	})
	if len(e.out) != len(der)+len(with)-len(old) {
		t.Fatal("the changed encoding has the wrong size")
	}
	return e.out
}

func TestParseRefusesWrittenEmptyLists(t *testing.T) {
	t.Parallel()
	e := &encoder{}
	e.nest(tagSequence, func() {
		e.int(1)
		e.capabilities(nil)
		e.nest(tagContext, func() { e.capabilities(nil) })
	})
	if _, err := ParsePrincipalAuthorization(e.out); codeOf(err) != "pa_malformed" {
		t.Errorf("an empty list of constraints: %v", err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	if err := sample().Validate(); err != nil {
		t.Fatal(err)
	}
	many := func(n int) []capability.Capability {
		list := make([]capability.Capability, n)
		for i := range list {
			list[i] = capability.Capability{Scheme: "a", ID: "b"}
		}
		return list
	}
	for name, change := range map[string]func(*AIC){
		"version 0":               func(a *AIC) { a.Version = 0 },
		"version 3":               func(a *AIC) { a.Version = 3 },
		"no agent":                func(a *AIC) { a.AgentID = "" },
		"long agent":              func(a *AIC) { a.AgentID = strings.Repeat("x", 257) },
		"no realm":                func(a *AIC) { a.Principal.Realm = "" },
		"long identifier":         func(a *AIC) { a.Principal.Identifier = strings.Repeat("x", 257) },
		"short key hash":          func(a *AIC) { a.Principal.KeyHash = octets(0, 30) },
		"hash of another size":    func(a *AIC) { a.Principal.HashAlgorithm = crypto.SHA384 },
		"no capabilities":         func(a *AIC) { a.Capabilities = nil },
		"257 capabilities":        func(a *AIC) { a.Capabilities = many(257) },
		"33 constraints":          func(a *AIC) { a.Constraints = many(33) },
		"bare wildcard":           func(a *AIC) { a.Capabilities = []capability.Capability{{Scheme: "*", ID: "*"}} },
		"constraint as a grant":   func(a *AIC) { a.Capabilities = tenNet() },
		"grant as a constraint":   func(a *AIC) { a.Constraints = many(1) },
		"mode 2":                  func(a *AIC) { a.Mode = 2 },
		"no reason":               func(a *AIC) { a.Authorization.Reason.Code = "" },
		"long reason":             func(a *AIC) { a.Authorization.Reason.Description = strings.Repeat("x", 513) },
		"no lifetime":             func(a *AIC) { a.Authorization.Lifetime = 0 },
		"lifetime over a day":     func(a *AIC) { a.Authorization.Lifetime = MaxLifetime + time.Second },
		"short nonce":             func(a *AIC) { a.Authorization.Nonce = octets(1, 31) },
		"no signature":            func(a *AIC) { a.Authorization.Signature = nil },
		"33 extensions":           func(a *AIC) { a.Extensions = make([]Extension, 33) },
		"parameters are no JSON":  func(a *AIC) { a.Capabilities[0].Parameters = []byte{1, 2} },
		"parameters twice a name": func(a *AIC) { a.Capabilities[0].Parameters = []byte(`{"a":1,"a":2}`) },
	} {
		a := sample()
		change(a)
		if code := codeOf(a.Validate()); code != "aic_invalid" && code != "principal_invalid" {
			t.Errorf("%s: code %q", name, code)
		}
	}
	a := sample()
	a.Extensions = []Extension{{ID: asn1.ObjectIdentifier{1, 2, 3}, Critical: true}}
	if err := a.Validate(); codeOf(err) != "aic_extension_unknown" {
		t.Errorf("an unknown critical extension: %v", err)
	}
	a.Extensions[0].Critical = false
	if err := a.Validate(); err != nil {
		t.Errorf("an unknown extension that is not critical: %v", err)
	}
}

func TestPrincipalText(t *testing.T) {
	t.Parallel()
	p := PrincipalUID{Version: 1, Realm: "corp.com", Identifier: "zhangsan", KeyHash: octets(0, 31)}
	got, err := ParsePrincipalUID(p.String())
	if diff := cmp.Diff(p, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	hash := p.String()[len("corp.com:zhangsan:"):]
	for _, text := range []string{
		"", "a:b", "a:b:c", "a:b:" + hash + "=", "a:b:" + hash + "\n", "a:b:c:" + hash, ":b:" + hash, "a::" + hash,
		"a:b:" + hash[:42], strings.Repeat("a", 129) + ":b:" + hash, "a:b:" + strings.Repeat("A", 1000),
		"a:b:" + hash[:42] + "9", // set bits after the last octet
	} {
		if _, err := ParsePrincipalUID(text); codeOf(err) != "principal_invalid" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestFromCertificate(t *testing.T) {
	t.Parallel()
	with := func(critical bool, value []byte) *x509.Certificate {
		return &x509.Certificate{Extensions: []pkix.Extension{{Id: OIDExtension, Critical: critical, Value: value}}}
	}
	good := encoded(t, sample())
	noMeaning := encoded(t, query()) // its parameters are no JSON
	for _, tt := range []struct {
		name string
		cert *x509.Certificate
		code string
	}{
		{"good", with(false, good), ""},
		{"no extension", &x509.Certificate{}, "aic_missing"},
		{"critical", with(true, good), "aic_malformed"},
		{"malformed", with(false, good[1:]), "aic_malformed"},
		{"beyond the limits", with(false, noMeaning), "aic_invalid"},
	} {
		a, err := FromCertificate(tt.cert)
		if codeOf(err) != tt.code || (a == nil) != (err != nil) {
			t.Errorf("%s: %v, %v, want code %q", tt.name, a, err, tt.code)
		}
	}
}

func FuzzParseAIC(f *testing.F) {
	for _, a := range []*AIC{query(), sample()} {
		der, err := a.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(der)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		a, err := ParseAIC(input)
		if err != nil {
			return
		}
		_ = a.Validate()
		again, err := ParseAIC(encoded(t, a))
		if diff := cmp.Diff(a, again); err != nil || diff != "" {
			t.Fatalf("%v\n%s", err, diff)
		}
	})
}

func FuzzParsePrincipalAuthorization(f *testing.F) {
	p := &PrincipalAuthorization{Version: 1, Grants: sample().Capabilities, Constraints: tenNet(), Policy: &DelegationPolicy{Version: 1, MaxSessionHours: 3}}
	der, err := p.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(der)
	f.Fuzz(func(t *testing.T, input []byte) {
		p, err := ParsePrincipalAuthorization(input)
		if err != nil {
			return
		}
		_ = p.Validate()
		der, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		// maxSessionHours 0 and its absence mean the same; everything else comes back exactly.
		again, err := ParsePrincipalAuthorization(der)
		if diff := cmp.Diff(p, again); err != nil || diff != "" {
			t.Fatalf("%v\n%s", err, diff)
		}
	})
}

func FuzzParsePrincipalUID(f *testing.F) {
	f.Add("corp.com:zhangsan:AzI5g3OUET8jssmYEYgla0j6so9XAqNe9YxTubyiXAE")
	f.Add("a:b:c")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePrincipalUID(text)
		if err == nil && p.String() != text {
			t.Fatalf("%q reads as %q", text, p)
		}
	})
}
