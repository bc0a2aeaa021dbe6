package load

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

func TestPeerTokenIsSignedAndNamesTheHost(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{key: key, keyID: "k1", provisioner: "load", fingerprint: "ab"}
	token, err := p.token("127.0.0.1:9443", "host.example.org")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q has %d parts, want 3", token, len(parts))
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(signature) != 64 || !ecdsa.Verify(&key.PublicKey, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Errorf("the signature %x does not hold (%v)", signature, err)
	}
	var claims struct {
		Aud, Iss, Sub, Sha string
		Sans               []string
	}
	body, _ := base64.RawURLEncoding.DecodeString(parts[1])
	if err := json.Unmarshal(body, &claims, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	if claims.Aud != "https://127.0.0.1:9443/1.0/sign" || claims.Iss != "load" || claims.Sub != "host.example.org" || claims.Sha != "ab" || len(claims.Sans) != 1 {
		t.Errorf("claims %+v are not what step-ca asks for", claims)
	}
}

func TestPeerAnswerWithoutACertificateIsNone(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{}", `{"crt":"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"}`} {
		if got, err := readPeer([]byte(body)); err == nil {
			t.Errorf("%q was taken for %+v", body, got)
		}
	}
}
