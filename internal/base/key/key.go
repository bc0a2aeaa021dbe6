// Package key holds the kinds of asymmetric keys that Chancery works with, and their written forms: PKCS#8 and
// SubjectPublicKeyInfo in DER and PEM, hashes and thumbprints. It stores nothing and remembers nothing.
package key

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"chancery/internal/base/fault"
)

// A Kind is an algorithm with its size, by the name that people write.
type Kind string

// The kinds of keys. P256 is the default everywhere but for roots.
const (
	P256    Kind = "p256"
	P384    Kind = "p384"
	Ed25519 Kind = "ed25519"
	RSA2048 Kind = "rsa2048"
	RSA3072 Kind = "rsa3072"
	RSA4096 Kind = "rsa4096"
)

// Kinds lists all kinds, the default first.
func Kinds() []Kind { return []Kind{P256, P384, Ed25519, RSA2048, RSA3072, RSA4096} }

// ParseKind reads a kind by name. The fault is Invalid, code key_kind_unknown.
func ParseKind(s string) (Kind, error) {
	for _, k := range Kinds() {
		if string(k) == s {
			return k, nil
		}
	}
	return "", fault.New(fault.Invalid, "key_kind_unknown", "%.32q is not a kind of key", s).WithHint("the kinds are %v", Kinds())
}

// Generate makes a private key. RSA takes from a tenth of a second to seconds.
func Generate(k Kind) (crypto.Signer, error) {
	switch k {
	case P256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case P384:
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case Ed25519:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	case RSA2048:
		return rsa.GenerateKey(rand.Reader, 2048)
	case RSA3072:
		return rsa.GenerateKey(rand.Reader, 3072)
	case RSA4096:
		return rsa.GenerateKey(rand.Reader, 4096)
	}
	_, err := ParseKind(string(k))
	return nil, err
}

// KindOf gives the kind of a public key. RSA keys of 2048 to 4096 bits count as the largest kind that they reach.
// Any other key is refused: Invalid, code key_refused.
func KindOf(public crypto.PublicKey) (Kind, error) {
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		switch p.Curve {
		case elliptic.P256():
			return P256, nil
		case elliptic.P384():
			return P384, nil
		}
	case ed25519.PublicKey:
		return Ed25519, nil
	case *rsa.PublicKey:
		if k, ok := rsaKind(p); ok {
			return k, nil
		}
	}
	return "", fault.New(fault.Invalid, "key_refused", "a key of this kind or size is not accepted").
		WithHint("use P-256, P-384, Ed25519, or RSA with 2048 to 4096 bits and exponent 65537")
}

func rsaKind(p *rsa.PublicKey) (Kind, bool) {
	switch n := p.N.BitLen(); {
	case p.E != 65537, n < 2048, n > 4096:
		return "", false
	case n < 3072:
		return RSA2048, true
	case n < 4096:
		return RSA3072, true
	default:
		return RSA4096, true
	}
}

// Hash gives the SHA-256 of a SubjectPublicKeyInfo in DER, by which keys are known throughout.
func Hash(spki []byte) [32]byte { return sha256.Sum256(spki) }

// SPKI gives the SubjectPublicKeyInfo of a public key in DER (RFC 5280 §4.1.2.7).
func SPKI(public crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w", err)
	}
	return der, nil
}

// ParsePublic reads a SubjectPublicKeyInfo in DER and refuses kinds that are not accepted.
func ParsePublic(spki []byte) (crypto.PublicKey, error) {
	public, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		return nil, fault.New(fault.Invalid, "key_malformed", "this is not a public key in SubjectPublicKeyInfo form").Because(err)
	}
	if _, err := KindOf(public); err != nil {
		return nil, err
	}
	return public, nil
}

// EncodePrivate writes a private key as PKCS#8 in PEM (RFC 5958). The caller keeps the result secret.
func EncodePrivate(private crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// ParsePrivate reads a private key in PEM: PKCS#8, or the older EC and RSA forms. Faults are Invalid and never hold
// a part of the key.
func ParsePrivate(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fault.New(fault.Invalid, "key_malformed", "no PEM block was found where a private key was expected")
	}
	private, err := parsePrivateDER(block)
	if err != nil {
		return nil, fault.New(fault.Invalid, "key_malformed", "the %q block does not hold a private key that can be read", block.Type)
	}
	if _, err := KindOf(private.Public()); err != nil {
		return nil, err
	}
	return private, nil
}

func parsePrivateDER(block *pem.Block) (crypto.Signer, error) {
	switch block.Type {
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := any.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%T does not sign", any)
	}
	return signer, nil
}
