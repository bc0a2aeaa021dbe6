package key

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
)

// Thumbprint gives the JWK thumbprint of a public key: the SHA-256 of its required members in their fixed order
// (RFC 7638 §3, for Ed25519 RFC 8037 §2), in base64url without padding.
func Thumbprint(public crypto.PublicKey) (string, error) {
	canonical, err := canonicalJWK(public)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(canonical))
	return encode(sum[:]), nil
}

func canonicalJWK(public crypto.PublicKey) (string, error) {
	if _, err := KindOf(public); err != nil {
		return "", err
	}
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		point, err := p.Bytes() // 04 ‖ x ‖ y
		if err != nil {
			return "", fmt.Errorf("encode point: %w", err)
		}
		half := len(point) / 2
		return fmt.Sprintf(`{"crv":%q,"kty":"EC","x":%q,"y":%q}`, p.Params().Name, encode(point[1:1+half]), encode(point[1+half:])), nil
	case ed25519.PublicKey:
		return fmt.Sprintf(`{"crv":"Ed25519","kty":"OKP","x":%q}`, encode(p)), nil
	case *rsa.PublicKey:
		return fmt.Sprintf(`{"e":%q,"kty":"RSA","n":%q}`, encode(big.NewInt(int64(p.E)).Bytes()), encode(p.N.Bytes())), nil
	}
	return "", fmt.Errorf("no JWK form for %T", public)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
