package pkix

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/url"
	"testing"

	"chancery/internal/base/key"
	"chancery/internal/domain/ca/pkix/pkixtest"
)

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
		}, pkixtest.Key(t, kind))
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
		pkixtest.WantFault(t, "csr_signature", readError(broken))
		pkixtest.WantFault(t, "csr_malformed", readError(append(append([]byte(nil), der...), 0)))
		pkixtest.WantFault(t, "csr_malformed", readError(der[:len(der)-1]))
	}
	pkixtest.WantFault(t, "csr_too_large", readError(make([]byte, csrMax+1)))
}

func readError(der []byte) error {
	_, err := ReadRequest(der)
	return err
}

func FuzzReadRequest(f *testing.F) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"a.example.org"}}, pkixtest.Key(f, key.P256))
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
