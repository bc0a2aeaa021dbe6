package load

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"

	"chancery/internal/load/bare"
)

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// A subject is a key of a client with its certificate request, both made before the clock starts.
type subject struct {
	key        *ecdsa.PrivateKey
	spki       []byte
	commonName string
	csr        string // PEM
}

// newSubject makes a key and a request for a name of bare.NameLength octets.
func newSubject(number int) (subject, error) {
	s := subject{commonName: fmt.Sprintf("bench-%0*d", bare.NameLength-len("bench-"), number)}
	var err error
	if s.key, err = newKey(); err != nil {
		return s, err
	}
	if s.spki, err = x509.MarshalPKIXPublicKey(s.key.Public()); err != nil {
		return s, err
	}
	s.csr, err = request(s.key, s.commonName)
	return s, err
}

// request makes a certificate request in PEM.
func request(key *ecdsa.PrivateKey, commonName string) (string, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName}}, key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}
