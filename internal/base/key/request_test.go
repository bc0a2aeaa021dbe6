package key

import (
	"crypto/rand"
	"crypto/x509"
	"testing"

	"chancery/internal/base/fault"
)

func TestReadRequest(t *testing.T) {
	private, err := Generate(P256)
	if err != nil {
		t.Fatal(err)
	}
	good, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, private)
	if err != nil {
		t.Fatal(err)
	}
	broken := append([]byte(nil), good...)
	broken[len(broken)-1] ^= 1
	for name, c := range map[string]struct {
		der  []byte
		max  int
		code string
	}{
		"good":             {good, len(good), ""},
		"too large":        {good, len(good) - 1, "csr_too_large"},
		"something behind": {append(append([]byte(nil), good...), 0), 4096, "csr_malformed"},
		"cut":              {good[:len(good)-1], 4096, "csr_malformed"},
		"another's":        {broken, 4096, "csr_signature"},
		"nothing":          {nil, 4096, "csr_malformed"},
	} {
		if _, err := ReadRequest(c.der, c.max); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
}

func TestRequestDER(t *testing.T) {
	block := func(kind string) string { return "-----BEGIN " + kind + "-----\nMAA=\n-----END " + kind + "-----\n" }
	for name, c := range map[string]struct {
		text, want, code string
	}{
		"DER":            {"0\x00", "0\x00", ""},
		"PEM":            {block("CERTIFICATE REQUEST"), "0\x00", ""},
		"older label":    {"\n" + block("NEW CERTIFICATE REQUEST") + " \n", "0\x00", ""},
		"a certificate":  {block("CERTIFICATE"), "", "csr_malformed"},
		"two requests":   {block("CERTIFICATE REQUEST") + block("CERTIFICATE REQUEST"), "", "csr_malformed"},
		"text behind it": {block("CERTIFICATE REQUEST") + "and more", "", "csr_malformed"},
	} {
		if got, err := RequestDER([]byte(c.text)); string(got) != c.want || fault.CodeOf(err) != c.code {
			t.Errorf("%s: %q, %v, want %q, %q", name, got, err, c.want, c.code)
		}
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add([]byte{0x30, 0})
	f.Fuzz(func(t *testing.T, der []byte) {
		if csr, err := ReadRequest(der, 4096); err == nil && csr.PublicKey == nil {
			t.Error("a request without a key was accepted")
		}
	})
}
