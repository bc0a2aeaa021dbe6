package pkix

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/base/name"
	"chancery/internal/domain/ca/pkix/pkixtest"
)

// TestParseBack makes certificates of arbitrary content and compares every field with what crypto/x509 reads.
func TestParseBack(t *testing.T) {
	t.Parallel()
	root := testRoot(t, key.P256)
	rapid.Check(t, func(rt *rapid.T) {
		p := drawProfile(rt)
		if err := p.Validate(); err != nil {
			rt.Fatal(err)
		}
		tpl, err := NewTemplate(root, testLinks, p)
		if err != nil {
			rt.Fatal(err)
		}
		subject := drawSubject(rt)
		names := rapid.SliceOfN(rapid.Custom(drawName), 0, 8).Draw(rt, "names")
		serial := id.Serial(append([]byte{rapid.ByteRange(1, 255).Draw(rt, "first")}, rapid.SliceOfN(rapid.Byte(), 0, 19).Draw(rt, "rest")...))
		if len(serial) == 20 {
			serial[0] &= 0x7f
			serial[0] |= 1
		}
		from := time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(rt, "from"), 0).UTC()
		to := from.Add(time.Duration(rapid.Int64Range(0, 900_000_000).Draw(rt, "seconds")) * time.Second)
		c := &Content{Serial: serial, NotBefore: from, NotAfter: to, SPKI: pkixtest.SPKI(t, rapid.SampledFrom([]key.Kind{key.P256, key.P384, key.Ed25519}).Draw(rt, "key"))}
		if c.Subject, err = subject.encode(); err != nil {
			rt.Fatal(err)
		}
		if c.Names, err = encodeNames(names); err != nil {
			rt.Fatal(err)
		}
		der, err := tpl.Issue(c)
		if err != nil {
			rt.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			rt.Fatal(err)
		}
		compareSubject(rt, cert, subject)
		compareNames(rt, cert, names)
		compareProfile(rt, cert, p)
		switch {
		case !bytes.Equal(id.SerialOf(cert.SerialNumber), serial):
			rt.Errorf("serial %x, want %x", cert.SerialNumber, serial)
		case !cert.NotBefore.Equal(from) || !cert.NotAfter.Equal(to):
			rt.Errorf("validity %s to %s, want %s to %s", cert.NotBefore, cert.NotAfter, from, to)
		case !bytes.Equal(cert.RawSubjectPublicKeyInfo, c.SPKI) || !bytes.Equal(cert.RawIssuer, root.Cert.RawSubject):
			rt.Error("key or issuer differ")
		case !bytes.Equal(cert.AuthorityKeyId, root.Cert.SubjectKeyId) || len(cert.SubjectKeyId) != 20:
			rt.Error("key identifiers differ")
		case cert.CheckSignatureFrom(root.Cert) != nil:
			rt.Error("the signature does not verify")
		}
	})
}

func drawProfile(rt *rapid.T) Profile {
	pick := func(label string, from []string, least int) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), least, len(from), rapid.ID[string]).Draw(rt, label)
	}
	return Profile{
		Name:         "drawn",
		KeyUsages:    pick("usages", []string{"digitalSignature", "contentCommitment", "keyEncipherment", "dataEncipherment", "keyAgreement"}, 1),
		ExtKeyUsages: pick("extended", []string{"serverAuth", "clientAuth", "codeSigning", "emailProtection", "timeStamping", "OCSPSigning", "1.3.6.1.4.1.99999.7"}, 0),
		Policies:     pick("policies", []string{"2.23.140.1.2.1", "1.3.6.1.4.1.99999.1"}, 0),
		NoCheck:      rapid.Bool().Draw(rt, "nocheck"),
		KeyKinds:     key.Kinds(), CommonName: CommonNameRequired, LifetimeSec: 60, LifetimeMaxSec: 600,
	}
}

func drawSubject(rt *rapid.T) Subject {
	text := rapid.StringMatching(`[A-Za-zäßλ語][A-Za-z 0-9äßλ語]{0,20}[a-z]`)
	return Subject{
		CommonName: text.Draw(rt, "common name"), Organization: text.Draw(rt, "organization"), Unit: text.Draw(rt, "unit"),
		Country: rapid.SampledFrom([]string{"", "DE", "AT"}).Draw(rt, "country"),
	}
}

func drawName(rt *rapid.T) name.Name {
	text := rapid.OneOf(
		rapid.StringMatching(`dns:(\*\.)?[a-z]{1,10}\.[a-z]{1,10}\.org`),
		rapid.StringMatching(`ip:(1?[1-9]{1,2}\.){3}[1-9]`),
		rapid.StringMatching(`ip:2001:db8::[1-9a-f]{1,4}`),
		rapid.StringMatching(`email:[a-z]{1,10}@[a-z]{1,10}\.org`),
		rapid.StringMatching(`uri:spiffe://[a-z]{1,10}/[a-z0-9/]{0,30}`),
	).Draw(rt, "name")
	n, err := name.Parse(text)
	if err != nil {
		rt.Fatal(err)
	}
	return n
}

func compareSubject(rt *rapid.T, cert *x509.Certificate, want Subject) {
	only := func(list []string) string { return fmt.Sprint(list) }
	got := []string{cert.Subject.CommonName, only(cert.Subject.Organization), only(cert.Subject.OrganizationalUnit), only(cert.Subject.Country)}
	country := "[" + want.Country + "]"
	if wanted := []string{want.CommonName, "[" + want.Organization + "]", "[" + want.Unit + "]", country}; !slices.Equal(got, wanted) {
		rt.Errorf("subject %q, want %q", got, wanted)
	}
}

func compareNames(rt *rapid.T, cert *x509.Certificate, want []name.Name) {
	texts := make([][]string, 4)
	for _, n := range want {
		texts[n.Kind] = append(texts[n.Kind], n.Text)
	}
	var addresses, uris []string
	for _, a := range cert.IPAddresses {
		addresses = append(addresses, a.String())
	}
	for _, u := range cert.URIs {
		uris = append(uris, u.String())
	}
	if !slices.Equal(cert.DNSNames, texts[name.DNS]) || !slices.Equal(cert.EmailAddresses, texts[name.Email]) ||
		!slices.Equal(addresses, texts[name.IP]) || !slices.Equal(uris, texts[name.URI]) {
		rt.Errorf("names %v %v %v %v, want %v", cert.DNSNames, cert.EmailAddresses, addresses, uris, want)
	}
}

func compareProfile(rt *rapid.T, cert *x509.Certificate, p Profile) {
	var usage x509.KeyUsage
	for _, u := range p.KeyUsages {
		usage |= keyUsageBits[u]
	}
	if cert.KeyUsage != usage {
		rt.Errorf("key usage %b, want %b", cert.KeyUsage, usage)
	}
	if len(cert.ExtKeyUsage)+len(cert.UnknownExtKeyUsage) != len(p.ExtKeyUsages) || len(cert.Policies) != len(p.Policies) {
		rt.Errorf("extended usages %v %v, policies %v; want %v, %v", cert.ExtKeyUsage, cert.UnknownExtKeyUsage, cert.Policies, p.ExtKeyUsages, p.Policies)
	}
	if cert.IsCA || cert.OCSPServer[0] != testLinks.OCSP || cert.IssuingCertificateURL[0] != testLinks.Certificate || cert.CRLDistributionPoints[0] != testLinks.CRL {
		rt.Error("authority flag or links differ")
	}
}

func TestPeriod(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 999_000_000, time.UTC)
	agent, server := profileNamed(t, "agent"), profileNamed(t, "tls-server")
	for _, c := range []struct {
		p        Profile
		wish     time.Duration
		from, to time.Duration // from the second of now
	}{
		{agent, 0, 0, 599 * time.Second},
		{agent, time.Minute, 0, 59 * time.Second},
		{agent, 1000 * time.Hour, 0, 24*time.Hour - time.Second},
		{agent, time.Millisecond, 0, 0},
		{server, time.Hour, -time.Minute, time.Hour - time.Second},
	} {
		from, to := c.p.period(now, c.wish)
		second := now.Truncate(time.Second)
		if from.Sub(second) != c.from || to.Sub(second) != c.to {
			t.Errorf("%s for %s: %s to %s, want %s to %s", c.p.Name, c.wish, from.Sub(second), to.Sub(second), c.from, c.to)
		}
	}
}

func TestProfilesRefused(t *testing.T) {
	t.Parallel()
	for _, p := range BuiltIn() {
		if err := p.Validate(); err != nil {
			t.Errorf("built-in %s: %v", p.Name, err)
		}
	}
	for what, change := range map[string]func(*Profile){
		"name":                func(p *Profile) { p.Name = "Up" },
		"usage":               func(p *Profile) { p.KeyUsages = []string{"everything"} },
		"no usage":            func(p *Profile) { p.KeyUsages = nil },
		"any purpose":         func(p *Profile) { p.ExtKeyUsages = []string{"2.5.29.37.0"} },
		"leaf that certifies": func(p *Profile) { p.KeyUsages = []string{"keyCertSign"} },
		"policy":              func(p *Profile) { p.Policies = []string{"1.2.x"} },
		"bad arc":             func(p *Profile) { p.Policies = []string{"9.9.9"} },
		"own extension":       func(p *Profile) { p.Extensions = []string{"2.5.29.19"} },
		"key":                 func(p *Profile) { p.KeyKinds = []key.Kind{"dsa"} },
		"no subject":          func(p *Profile) { p.CommonName, p.NamesMin = CommonNameOptional, 0 },
		"lifetime":            func(p *Profile) { p.LifetimeSec = p.LifetimeMaxSec + 1 },
		"backdate":            func(p *Profile) { p.BackdateSec = 7200 },
		"constraint":          func(p *Profile) { p.PermittedNames = []string{"dns:*.example.org"} },
		"range":               func(p *Profile) { p.PermittedNames = []string{"ip:10.0.0.1"} },
	} {
		p := profileNamed(t, "tls-server")
		change(&p)
		if err := p.Validate(); fault.CodeOf(err) != "profile_invalid" {
			t.Errorf("%s: got %v", what, err)
		}
	}
	_, err := ParseProfile([]byte(`{"name":"x","surprise":1}`))
	pkixtest.WantFault(t, "profile_malformed", err)
}

// FuzzParseProfile: whatever is accepted can be written, read again, and made certificates from.
func FuzzParseProfile(f *testing.F) {
	for _, p := range BuiltIn() {
		text, err := json.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	root := testRoot(f, key.P256)
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseProfile(text)
		if err != nil {
			return
		}
		if _, err := NewTemplate(root, testLinks, p); err != nil {
			t.Errorf("accepted, and no use: %v", err)
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseProfile(again); err != nil {
			t.Errorf("accepted once only: %v", err)
		}
	})
}

// BenchmarkIssueBytes is the cryptographic cost of one agent certificate, beside the same through crypto/x509.
func BenchmarkIssueBytes(b *testing.B) {
	root := testRoot(b, key.P256)
	p := profileNamed(b, "agent")
	tpl, err := NewTemplate(root, testLinks, p)
	if err != nil {
		b.Fatal(err)
	}
	c := testContent(b, p, key.P256)
	c.Extensions[0].Value = bytes.Repeat([]byte{0}, 400)
	b.Run("patched", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tpl.Issue(c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("crypto-x509", func(b *testing.B) {
		b.ReportAllocs()
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(1 << 60), NotBefore: c.NotBefore, NotAfter: c.NotAfter, Subject: pkix.Name{CommonName: "Ada"},
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
			OCSPServer: []string{testLinks.OCSP}, IssuingCertificateURL: []string{testLinks.Certificate}, CRLDistributionPoints: []string{testLinks.CRL},
			IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}, ExtraExtensions: c.Extensions,
		}
		for b.Loop() {
			if _, err := x509.CreateCertificate(rand.Reader, leaf, root.Cert, pkixtest.Key(b, key.P256).Public(), pkixtest.Key(b, key.P256)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
