package ca

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/base/name"
)

var testLinks = links{certificate: "http://ca.example.org/a.cer", crl: "http://ca.example.org/a.crl", ocsp: "http://ca.example.org/ocsp"}

// testTime is when test certificates are made.
var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// testKey gives one key of each kind per test binary: making RSA keys is slow.
func testKey(t testing.TB, kind key.Kind) crypto.Signer {
	t.Helper()
	testKeysMu.Lock()
	defer testKeysMu.Unlock()
	if testKeys[kind] == nil {
		signer, err := key.Generate(kind)
		if err != nil {
			t.Fatal(err)
		}
		testKeys[kind] = signer
	}
	return testKeys[kind]
}

var (
	testKeysMu sync.Mutex
	testKeys   = map[key.Kind]crypto.Signer{}
)

func testSPKI(t testing.TB, kind key.Kind) []byte {
	t.Helper()
	spki, err := key.SPKI(testKey(t, kind).Public())
	if err != nil {
		t.Fatal(err)
	}
	return spki
}

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
func testRoot(t testing.TB, kind key.Kind) *issuer {
	t.Helper()
	subject, err := Subject{CommonName: "Test Root " + string(kind), Organization: "Example", Country: "DE"}.encode()
	if err != nil {
		t.Fatal(err)
	}
	self, err := newIssuer(subject, testKey(t, kind).Public(), testKey(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	p := profileNamed(t, "root")
	tpl, err := newTemplate(self, links{}, p)
	if err != nil {
		t.Fatal(err)
	}
	from, to := p.period(testTime, 0)
	der, err := tpl.issue(&content{serial: newSerial(), notBefore: from, notAfter: to, subject: subject, spki: testSPKI(t, kind)})
	if err != nil {
		t.Fatal(err)
	}
	i, err := issuerOf(parsed(t, der), testKey(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func newSerial() id.Serial { return new(id.Serials).Next(testTime) }

func parsed(t testing.TB, der []byte) *x509.Certificate {
	t.Helper()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// testContent is an order of everything that a profile takes.
func testContent(t testing.TB, p Profile, subjectKey key.Kind) *content {
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
	c := &content{serial: newSerial(), spki: testSPKI(t, subjectKey)}
	c.notBefore, c.notAfter = p.period(testTime, 0)
	var err error
	if c.subject, err = subject.encode(); err != nil {
		t.Fatal(err)
	}
	if c.names, err = encodeNames(names); err != nil {
		t.Fatal(err)
	}
	for _, oid := range p.Extensions {
		parsed, err := parseOID(oid)
		if err != nil {
			t.Fatal(err)
		}
		c.extensions = append(c.extensions, pkix.Extension{Id: parsed, Value: []byte{0x30, 3, 2, 1, 1}})
	}
	return c
}

// openssl runs the foreign judge; it is needed, not optional.
func openssl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("openssl", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func pemFile(t *testing.T, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
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
				tpl, err := newTemplate(root, testLinks, p)
				if err != nil {
					t.Fatal(err)
				}
				der, err := tpl.issue(testContent(t, p, subjectKind))
				if err != nil {
					t.Fatal(err)
				}
				if err := parsed(t, der).CheckSignatureFrom(root.cert); err != nil {
					t.Error(err)
				}
				if err := lintCertificate(der); err != nil {
					t.Error(err)
				}
				ca, leaf := pemFile(t, "CERTIFICATE", root.cert.Raw), pemFile(t, "CERTIFICATE", der)
				at := fmt.Sprint(testTime.Unix())
				openssl(t, "verify", "-x509_strict", "-attime", at, "-CAfile", ca, leaf)
			})
		}
	}
}

func TestLintsOfRoots(t *testing.T) {
	t.Parallel()
	for _, kind := range key.Kinds() {
		if err := lintCertificate(testRoot(t, kind).cert.Raw); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestLintsBite shows that the lints can fail: a certificate without names and without a subject.
func TestLintsBite(t *testing.T) {
	t.Parallel()
	p := profileNamed(t, "tls-server")
	tpl, err := newTemplate(testRoot(t, key.P256), testLinks, p)
	if err != nil {
		t.Fatal(err)
	}
	c := testContent(t, p, key.P256)
	c.names = nil
	der, err := tpl.issue(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := lintCertificate(der); err == nil {
		t.Error("a certificate without a subject passes the lints")
	}
}

func TestNameConstraintsInAuthority(t *testing.T) {
	t.Parallel()
	p := profileNamed(t, "issuing")
	p.PermittedNames = []string{"dns:example.org", "ip:10.0.0.0/8", "ip:2001:db8::/32", "email:example.org", "uri:.example.org"}
	p.ExcludedNames = []string{"dns:secret.example.org", "ip:10.9.0.0/16"}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	root := testRoot(t, key.P256)
	tpl, err := newTemplate(root, testLinks, p)
	if err != nil {
		t.Fatal(err)
	}
	der, err := tpl.issue(testContent(t, p, key.P384))
	if err != nil {
		t.Fatal(err)
	}
	if err := lintCertificate(der); err != nil {
		t.Error(err)
	}
	cert := parsed(t, der)
	if got := fmt.Sprint(cert.PermittedDNSDomains, cert.PermittedIPRanges, cert.PermittedEmailAddresses, cert.PermittedURIDomains, cert.ExcludedDNSDomains, cert.ExcludedIPRanges); got !=
		"[example.org] [10.0.0.0/8 2001:db8::/32] [example.org] [.example.org] [secret.example.org] [10.9.0.0/16]" {
		t.Errorf("constraints read back as %s", got)
	}
	below := constraintsOf(cert)
	for text, want := range map[string]bool{
		"dns:a.example.org": true, "dns:example.org": true, "dns:badexample.org": false, "dns:secret.example.org": false,
		"dns:x.secret.example.org": false, "dns:*.example.org": false /* it covers secret.example.org */, "dns:*.a.example.org": true,
		"ip:10.1.2.3": true, "ip:10.9.1.1": false, "ip:192.0.2.1": false, "ip:2001:db8::5": true,
		"email:ada@example.org": true, "email:ada@sub.example.org": false,
		"uri:https://a.example.org/x": true, "uri:https://example.org/x": false, "uri:urn:x:y": false,
	} {
		n, err := name.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := below.check(n) == nil; got != want {
			t.Errorf("%s permitted: got %v, want %v", text, got, want)
		}
	}
}

func TestReadRequest(t *testing.T) {
	t.Parallel()
	uri, err := url.Parse("spiffe://example.org/x")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range key.Kinds() {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: "host", Organization: []string{"Example"}},
			DNSNames: []string{"A.example.org"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)},
			EmailAddresses: []string{"ada@Example.org"}, URIs: []*url.URL{uri},
		}, testKey(t, kind))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadRequest(der)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if want := "[dns:a.example.org ip:192.0.2.1 email:ada@example.org uri:spiffe://example.org/x]"; fmt.Sprint(got.Names) != want {
			t.Errorf("%s: names %v, want %s", kind, got.Names, want)
		}
		if got.Kind != kind || got.Subject.CommonName != "host" || got.Subject.Organization != "Example" {
			t.Errorf("%s: got %+v", kind, got)
		}
		broken := append([]byte(nil), der...)
		broken[len(broken)-1] ^= 1
		wantFault(t, "csr_signature", readError(broken))
		wantFault(t, "csr_malformed", readError(append(append([]byte(nil), der...), 0)))
		wantFault(t, "csr_malformed", readError(der[:len(der)-1]))
	}
	wantFault(t, "csr_too_large", readError(make([]byte, csrMax+1)))
}

func readError(der []byte) error {
	_, err := ReadRequest(der)
	return err
}

func FuzzReadRequest(f *testing.F) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"a.example.org"}}, testKey(f, key.P256))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(der)
	f.Add([]byte{0x30, 0})
	f.Fuzz(func(t *testing.T, der []byte) {
		r, err := ReadRequest(der)
		if err != nil {
			return
		}
		if k, err := key.ParsePublic(r.SPKI); err != nil || k == nil {
			t.Errorf("accepted a key that cannot be read again: %v", err)
		}
		if _, err := encodeNames(r.Names); err != nil {
			t.Errorf("accepted names that cannot be written: %v", err)
		}
	})
}
