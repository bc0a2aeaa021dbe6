package pkix

import (
	"fmt"
	"testing"

	"chancery/internal/base/key"
	"chancery/internal/base/name"
	"chancery/internal/domain/ca/pkix/pkixtest"
)

func TestNameConstraintsInAuthority(t *testing.T) {
	t.Parallel()
	p := profileNamed(t, "issuing")
	p.PermittedNames = []string{"dns:example.org", "ip:10.0.0.0/8", "ip:2001:db8::/32", "email:example.org", "uri:.example.org"}
	p.ExcludedNames = []string{"dns:secret.example.org", "ip:10.9.0.0/16"}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	root := testRoot(t, key.P256)
	tpl, err := NewTemplate(root, testLinks, p)
	if err != nil {
		t.Fatal(err)
	}
	der, err := tpl.Issue(testContent(t, p, key.P384))
	if err != nil {
		t.Fatal(err)
	}
	if err := lintCertificate(der); err != nil {
		t.Error(err)
	}
	cert := pkixtest.Parse(t, der)
	if got := fmt.Sprint(cert.PermittedDNSDomains, cert.PermittedIPRanges, cert.PermittedEmailAddresses, cert.PermittedURIDomains, cert.ExcludedDNSDomains, cert.ExcludedIPRanges); got !=
		"[example.org] [10.0.0.0/8 2001:db8::/32] [example.org] [.example.org] [secret.example.org] [10.9.0.0/16]" {
		t.Errorf("constraints read back as %s", got)
	}
	authority, err := IssuerOf(cert, nil, root)
	if err != nil {
		t.Fatal(err)
	}
	further, err := IssuerOf(root.Cert, nil, authority) // whatever lies below stays within
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := NewTemplate(further, testLinks, profileNamed(t, "tls-client"))
	if err != nil {
		t.Fatal(err)
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
		_, err = leaf.Content(Request{SPKI: pkixtest.SPKI(t, key.P256), Kind: key.P256, Subject: Subject{CommonName: "x"}, Names: []name.Name{n}}, nil)
		if got := err == nil; got != want {
			t.Errorf("%s two authorities below: got %v, want %v", text, got, want)
		}
	}
}
