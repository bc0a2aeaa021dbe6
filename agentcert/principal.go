package agentcert

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// KeyHash gives the SHA-256 of a DER SubjectPublicKeyInfo, by which principals and agents' keys are known.
func KeyHash(spki []byte) [32]byte { return sha256.Sum256(spki) }

// String gives realm:identifier:keyHash with the hash in base64url without padding. It is for people and database
// keys; ParsePrincipalUID reads it.
func (p PrincipalUID) String() string {
	return p.Realm + ":" + p.Identifier + ":" + base64.RawURLEncoding.EncodeToString(p.KeyHash)
}

// ParsePrincipalUID reads realm:identifier:keyHash, where the hash is a SHA-256. A colon inside realm or identifier is
// refused. The error is a *Refusal.
func ParsePrincipalUID(text string) (PrincipalUID, error) {
	if len(text) > maxRealm+maxIdentifier+len("::")+base64.RawURLEncoding.EncodedLen(sha256.Size) {
		return PrincipalUID{}, invalid("principal", "the principal is longer than any can be")
	}
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return PrincipalUID{}, invalid("principal", "a principal is written realm:identifier:keyHash, with two colons")
	}
	hash, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil || len(hash) != sha256.Size || strings.ContainsAny(parts[2], "\r\n") {
		return PrincipalUID{}, invalid("principal", "the key hash is not a SHA-256 in base64url without padding")
	}
	p := PrincipalUID{Version: 1, Realm: parts[0], Identifier: parts[1], KeyHash: hash}
	if err := p.validate(); err != nil {
		return PrincipalUID{}, err
	}
	return p, nil
}

// matches reports in constant time whether spki is the key that p names.
func (p *PrincipalUID) matches(spki []byte) bool {
	var room [64]byte
	return subtle.ConstantTimeCompare(digest(room[:0], p.HashAlgorithm, spki), p.KeyHash) == 1
}
