package key

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"chancery/internal/base/fault"
)

// An independent vector: a SubjectPublicKeyInfo, its SHA-256 and its RFC 7638 thumbprint.
const (
	vectorSPKI  = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE44H9QvDhhiXgJ9P1JuZ6TQUHDTi0OHLvQxsM0J1QzTwi1PYliVWFEGIJJZasyRMPBeBHbb9i4W7ZngTyneoW4A=="
	vectorHash  = "AzI5g3OUET8jssmYEYgla0j6so9XAqNe9YxTubyiXAE"
	vectorThumb = "jbWrguRSzKb1CPWiICHxQxwxqDE0viEcVOc22laSXn0"
)

func TestVector(t *testing.T) {
	spki, err := base64.StdEncoding.DecodeString(vectorSPKI)
	if err != nil {
		t.Fatal(err)
	}
	hash := Hash(spki)
	if got := base64.RawURLEncoding.EncodeToString(hash[:]); got != vectorHash {
		t.Errorf("Hash = %s, want %s", got, vectorHash)
	}
	public, err := ParsePublic(spki)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Thumbprint(public); err != nil || got != vectorThumb {
		t.Errorf("Thumbprint = %s, %v, want %s", got, err, vectorThumb)
	}
}

func TestEveryKindRoundTrips(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			private, err := Generate(kind)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := KindOf(private.Public()); err != nil || got != kind {
				t.Errorf("KindOf = %s, %v, want %s", got, err, kind)
			}
			text, err := EncodePrivate(private)
			if err != nil {
				t.Fatal(err)
			}
			back, err := ParsePrivate(text)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := SPKI(private.Public())
			if got, err := SPKI(back.Public()); err != nil || string(got) != string(want) {
				t.Errorf("the key that was read back is another one (%v)", err)
			}
		})
	}
}

func TestWeakKeysAreRefused(t *testing.T) {
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := KindOf(small.Public()); fault.CodeOf(err) != "key_refused" {
		t.Errorf("P-224: %v, want key_refused", err)
	}
}

func TestRefusalsHoldNothingOfTheKey(t *testing.T) {
	secret := "c2VjcmV0LXNlY3JldC1zZWNyZXQ="
	_, err := ParsePrivate([]byte("-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----\n"))
	if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), secret) {
		t.Errorf("ParsePrivate(garbage) = %v, want a refusal without the content", err)
	}
}

func FuzzParsePublic(f *testing.F) {
	spki, _ := base64.StdEncoding.DecodeString(vectorSPKI)
	f.Add(spki)
	f.Fuzz(func(t *testing.T, der []byte) {
		public, err := ParsePublic(der)
		if err != nil {
			return
		}
		if _, err := Thumbprint(public); err != nil {
			t.Errorf("an accepted key has no thumbprint: %v", err)
		}
	})
}
