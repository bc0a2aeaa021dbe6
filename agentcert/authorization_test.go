package agentcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"testing"
)

func newECDSA(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newRSA(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func spkiOf(t testing.TB, key crypto.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// unsigned is a valid AIC that waits for Sign.
func unsigned() *AIC {
	a := sample()
	d := &a.Authorization
	d.Nonce, d.Algorithm, d.Signature = nil, 0, nil
	return a
}

func TestSignAndVerify(t *testing.T) {
	t.Parallel()
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	spki := []byte("the agent's key")
	for _, tt := range []struct {
		key  crypto.Signer
		want x509.SignatureAlgorithm
	}{
		{newECDSA(t, elliptic.P256()), x509.ECDSAWithSHA256},
		{newECDSA(t, elliptic.P384()), x509.ECDSAWithSHA384},
		{newECDSA(t, elliptic.P521()), x509.ECDSAWithSHA512},
		{newRSA(t, 2048), x509.SHA256WithRSA},
		{edwards, x509.PureEd25519},
	} {
		a := unsigned()
		if err := Sign(a, spki, tt.key, nil); err != nil {
			t.Errorf("%s: %v", tt.want, err)
			continue
		}
		if a.Authorization.Algorithm != tt.want || len(a.Authorization.Nonce) != NonceSize {
			t.Errorf("signed with %s and a nonce of %d octets, want %s", a.Authorization.Algorithm, len(a.Authorization.Nonce), tt.want)
		}
		if err := VerifyAuthorization(a, spki, tt.key.Public()); err != nil {
			t.Errorf("%s: %v", tt.want, err)
		}
		if err := VerifyAuthorization(a, []byte("another key"), tt.key.Public()); codeOf(err) != "da_signature_invalid" {
			t.Errorf("%s, used for another agent key: %v", tt.want, err)
		}
	}
}

func TestSignRefusesWeakKeys(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]crypto.Signer{"P-224": newECDSA(t, elliptic.P224()), "RSA of 1024 bits": newRSA(t, 1024)} {
		a := unsigned()
		if err := Sign(a, nil, key, nil); codeOf(err) != "da_key_unsupported" {
			t.Errorf("%s: %v", name, err)
		}
		a.Authorization.Algorithm = x509.SHA256WithRSA
		if err := VerifyAuthorization(a, nil, key.Public()); codeOf(err) != "da_algorithm_refused" {
			t.Errorf("%s: %v", name, err)
		}
	}
	a := unsigned()
	a.Version = 1
	if err := Sign(a, nil, newECDSA(t, elliptic.P256()), nil); codeOf(err) != "da_version_unsupported" {
		t.Errorf("version 1: %v", err)
	}
}

func TestVerifyAuthorizationWithPSS(t *testing.T) {
	t.Parallel()
	key, a := newRSA(t, 2048), sample()
	tbs, err := a.SignedBytes(nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(tbs)
	a.Authorization.Algorithm = x509.SHA256WithRSAPSS
	a.Authorization.Signature, err = rsa.SignPSS(rand.Reader, key, crypto.SHA256, sum[:], &rsa.PSSOptions{SaltLength: 32})
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyAuthorization(a, nil, key.Public()); err != nil {
		t.Error(err)
	}
}

// Every signed field, once changed, breaks the signature.
func TestSignatureCoversEverything(t *testing.T) {
	t.Parallel()
	key := newECDSA(t, elliptic.P256())
	for name, change := range map[string]func(*AIC){
		"agent":       func(a *AIC) { a.AgentID += "x" },
		"realm":       func(a *AIC) { a.Principal.Realm += "x" },
		"identifier":  func(a *AIC) { a.Principal.Identifier += "x" },
		"hash form":   func(a *AIC) { a.Principal.HashAlgorithm = 0 },
		"capability":  func(a *AIC) { a.Capabilities[1].ID = "*" },
		"parameters":  func(a *AIC) { a.Capabilities[0].Parameters = []byte(`{"days":8}`) },
		"mode":        func(a *AIC) { a.Mode = Representative },
		"constraint":  func(a *AIC) { a.Constraints = nil },
		"reason":      func(a *AIC) { a.Authorization.Reason.Code += "X" },
		"description": func(a *AIC) { a.Authorization.Reason.Description += "x" },
		"lifetime":    func(a *AIC) { a.Authorization.Lifetime *= 2 },
		"timestamp":   func(a *AIC) { a.Authorization.Timestamp = a.Authorization.Timestamp.Add(1e9) },
		"nonce":       func(a *AIC) { a.Authorization.Nonce[0] ^= 1 },
		"signature":   func(a *AIC) { a.Authorization.Signature[8] ^= 1 },
	} {
		a := unsigned()
		if err := Sign(a, nil, key, nil); err != nil {
			t.Fatal(err)
		}
		change(a)
		if err := VerifyAuthorization(a, nil, key.Public()); codeOf(err) != "da_signature_invalid" {
			t.Errorf("%s changed: %v", name, err)
		}
	}
}

func TestVerifyAuthorizationRefuses(t *testing.T) {
	t.Parallel()
	key := newECDSA(t, elliptic.P256())
	a := unsigned()
	if err := Sign(a, nil, key, nil); err != nil {
		t.Fatal(err)
	}
	if err := VerifyAuthorization(a, nil, newRSA(t, 2048).Public()); codeOf(err) != "da_algorithm_refused" {
		t.Errorf("ECDSA under an RSA key: %v", err)
	}
	if err := VerifyAuthorization(a, nil, nil); codeOf(err) != "da_algorithm_refused" {
		t.Errorf("no key: %v", err)
	}
	a.Authorization.Algorithm = x509.PureEd25519
	if err := VerifyAuthorization(a, nil, key.Public()); codeOf(err) != "da_algorithm_refused" {
		t.Errorf("Ed25519 under an ECDSA key: %v", err)
	}
	a.Version = 1
	if err := VerifyAuthorization(a, nil, key.Public()); codeOf(err) != "da_version_unsupported" {
		t.Errorf("version 1: %v", err)
	}
}

func BenchmarkSign(b *testing.B) {
	key := newECDSA(b, elliptic.P256())
	spki := spkiOf(b, key.Public())
	for b.Loop() {
		if err := Sign(unsigned(), spki, key, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyAuthorization(b *testing.B) {
	key := newECDSA(b, elliptic.P256())
	spki := spkiOf(b, key.Public())
	a := unsigned()
	if err := Sign(a, spki, key, nil); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := VerifyAuthorization(a, spki, key.Public()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkECDSAVerify(b *testing.B) {
	key := newECDSA(b, elliptic.P256())
	sum := sha256.Sum256(nil)
	signature, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !ecdsa.VerifyASN1(&key.PublicKey, sum[:], signature) {
			b.Fatal("the signature does not verify")
		}
	}
}
