package pkix

import (
	"crypto/x509/pkix"
	"fmt"
	"testing"
	"time"

	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/base/name"
	"chancery/internal/domain/ca/pkix/pkixtest"
)

var testLinks = Links{Certificate: "http://ca.example.org/a.cer", CRL: "http://ca.example.org/a.crl", OCSP: "http://ca.example.org/ocsp"}

// testTime is when test certificates are made.
var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func profileNamed(t testing.TB, wanted string) Profile {
	t.Helper()
	for _, p := range BuiltIn() {
		if p.Name == wanted {
			return p
		}
	}
	t.Fatalf("no built-in profile %s", wanted)
	return Profile{}
}

// testRoot makes a self-signed authority with a key of the given kind.
func testRoot(t testing.TB, kind key.Kind) *Issuer {
	t.Helper()
	subject := Subject{CommonName: "Test Root " + string(kind), Organization: "Example", Country: "DE"}
	self, err := NewIssuer(subject, pkixtest.Key(t, kind).Public(), pkixtest.Key(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := NewTemplate(self, Links{}, profileNamed(t, "root"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := tpl.Content(Request{SPKI: pkixtest.SPKI(t, kind), Kind: kind, Subject: subject}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Serial = newSerial()
	if err := tpl.Date(c, testTime, 0); err != nil {
		t.Fatal(err)
	}
	der, err := tpl.Issue(c)
	if err != nil {
		t.Fatal(err)
	}
	i, err := IssuerOf(pkixtest.Parse(t, der), pkixtest.Key(t, kind), nil)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func newSerial() id.Serial { return new(id.Serials).Next(testTime) }

// testContent is an order of everything that a profile takes.
func testContent(t testing.TB, p Profile, subjectKey key.Kind) *Content {
	t.Helper()
	var subject Subject
	if p.CommonName == CommonNameRequired {
		subject = Subject{CommonName: "Ada Lovelace", Organization: "Example", Unit: "Engines", Country: "GB"}
	}
	var names []name.Name
	for _, n := range []string{"dns:a.example.org", "dns:*.example.org", "ip:192.0.2.1", "ip:2001:db8::1", "email:ada@example.org", "uri:spiffe://example.org/agent/agt_1"} {
		parsed, err := name.Parse(n)
		if err != nil {
			t.Fatal(err)
		}
		if p.allowsName(parsed.Kind) && len(names) < p.NamesMax {
			names = append(names, parsed)
		}
	}
	c := &Content{Serial: newSerial(), SPKI: pkixtest.SPKI(t, subjectKey)}
	c.NotBefore, c.NotAfter = p.period(testTime, 0)
	var err error
	if c.Subject, err = subject.encode(); err != nil {
		t.Fatal(err)
	}
	if c.Names, err = encodeNames(names); err != nil {
		t.Fatal(err)
	}
	for _, oid := range p.Extensions {
		parsed, err := parseOID(oid)
		if err != nil {
			t.Fatal(err)
		}
		c.Extensions = append(c.Extensions, pkix.Extension{Id: parsed, Value: []byte{0x30, 3, 2, 1, 1}})
	}
	return c
}

// TestForeignJudges shows every built-in profile, under every kind of issuer and subject key, to crypto/x509, openssl
// and the RFC lints.
func TestForeignJudges(t *testing.T) {
	t.Parallel()
	for _, issuerKind := range key.Kinds() {
		for _, p := range BuiltIn() {
			subjectKind := key.Kinds()[len(p.Name)%len(key.Kinds())]
			t.Run(fmt.Sprintf("%s/%s/%s", issuerKind, p.Name, subjectKind), func(t *testing.T) {
				root := testRoot(t, issuerKind)
				tpl, err := NewTemplate(root, testLinks, p)
				if err != nil {
					t.Fatal(err)
				}
				der, err := tpl.Issue(testContent(t, p, subjectKind))
				if err != nil {
					t.Fatal(err)
				}
				if err := pkixtest.Parse(t, der).CheckSignatureFrom(root.Cert); err != nil {
					t.Error(err)
				}
				if err := lintCertificate(der); err != nil {
					t.Error(err)
				}
				ca, leaf := pkixtest.PEM(t, "CERTIFICATE", root.Cert.Raw), pkixtest.PEM(t, "CERTIFICATE", der)
				at := fmt.Sprint(testTime.Unix())
				pkixtest.OpenSSL(t, "verify", "-x509_strict", "-attime", at, "-CAfile", ca, leaf)
			})
		}
	}
}

func TestLintsOfRoots(t *testing.T) {
	t.Parallel()
	for _, kind := range key.Kinds() {
		if err := lintCertificate(testRoot(t, kind).Cert.Raw); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestLintsBite shows that the lints can fail: a certificate without names and without a subject.
func TestLintsBite(t *testing.T) {
	t.Parallel()
	p := profileNamed(t, "tls-server")
	tpl, err := NewTemplate(testRoot(t, key.P256), testLinks, p)
	if err != nil {
		t.Fatal(err)
	}
	c := testContent(t, p, key.P256)
	c.Names = nil
	der, err := tpl.Issue(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := lintCertificate(der); err == nil {
		t.Error("a certificate without a subject passes the lints")
	}
}
