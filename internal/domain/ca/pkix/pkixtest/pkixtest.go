// Package pkixtest holds what tests of certificates share: keys that are made once, questions to OCSP, and openssl as
// a foreign judge, which is needed rather than optional.
package pkixtest

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/cryptobyte"
	tag "golang.org/x/crypto/cryptobyte/asn1"
	"golang.org/x/crypto/ocsp"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/key"
)

// keys are made once in a test binary: making RSA keys is slow.
var keys sync.Map

// Key gives the test binary's key of a kind.
func Key(t testing.TB, kind key.Kind) crypto.Signer {
	t.Helper()
	if known, ok := keys.Load(kind); ok {
		return known.(crypto.Signer)
	}
	made, err := key.Generate(kind)
	if err != nil {
		t.Fatal(err)
	}
	known, _ := keys.LoadOrStore(kind, made)
	return known.(crypto.Signer)
}

// SPKI gives the public part of Key.
func SPKI(t testing.TB, kind key.Kind) []byte {
	t.Helper()
	spki, err := key.SPKI(Key(t, kind).Public())
	if err != nil {
		t.Fatal(err)
	}
	return spki
}

// Parse reads a certificate as crypto/x509 does.
func Parse(t testing.TB, der []byte) *x509.Certificate {
	t.Helper()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// WantFault compares the code of a fault.
func WantFault(t testing.TB, code string, err error) {
	t.Helper()
	if got := fault.CodeOf(err); got != code {
		t.Errorf("got fault %q (%v), want %q", got, err, code)
	}
}

// OpenSSL runs openssl and gives what it says; a refusal fails the test.
func OpenSSL(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("openssl", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// PEM writes DER to a file of its own, such as a CERTIFICATE or an X509 CRL.
func PEM(t testing.TB, kind string, der []byte) string {
	t.Helper()
	return file(t, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func file(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Question writes an OCSP question about a serial with x/crypto/ocsp, and puts a nonce of the given length into it,
// or none with -1.
func Question(t testing.TB, issuer *x509.Certificate, serial id.Serial, hash crypto.Hash, nonce int) []byte {
	t.Helper()
	leaf := *issuer
	leaf.SerialNumber = serial.Big()
	der, err := ocsp.CreateRequest(&leaf, issuer, &ocsp.RequestOptions{Hash: hash})
	if err != nil {
		t.Fatal(err)
	}
	if nonce < 0 {
		return der
	}
	return withNonce(t, der, bytes.Repeat([]byte{7}, nonce))
}

// withNonce adds requestExtensions to a request that has none (RFC 6960 §4.1.1, RFC 9654 §2.1).
func withNonce(t testing.TB, der, nonce []byte) []byte {
	t.Helper()
	input, outer, tbs := cryptobyte.String(der), cryptobyte.String(nil), cryptobyte.String(nil)
	if !input.ReadASN1(&outer, tag.SEQUENCE) || !outer.ReadASN1(&tbs, tag.SEQUENCE) {
		t.Fatal("x/crypto/ocsp wrote something else")
	}
	sequence := func(fn cryptobyte.BuilderContinuation) cryptobyte.BuilderContinuation {
		return func(b *cryptobyte.Builder) { b.AddASN1(tag.SEQUENCE, fn) }
	}
	extension := sequence(func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 2})
		b.AddASN1(tag.OCTET_STRING, func(b *cryptobyte.Builder) { b.AddASN1OctetString(nonce) })
	})
	var b cryptobyte.Builder
	b.AddASN1(tag.SEQUENCE, sequence(func(b *cryptobyte.Builder) {
		b.AddBytes(tbs)
		b.AddASN1(tag.Tag(2).ContextSpecific().Constructed(), sequence(extension))
	}))
	out, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// AskOpenSSL lets `openssl ocsp` judge an answer against its question, nonce included.
func AskOpenSSL(t testing.TB, issuer *x509.Certificate, question, answer []byte) string {
	t.Helper()
	ca := PEM(t, "CERTIFICATE", issuer.Raw)
	return OpenSSL(t, "ocsp", "-reqin", file(t, question), "-respin", file(t, answer), "-issuer", ca, "-CAfile", ca, "-text", "-no_check_time")
}
