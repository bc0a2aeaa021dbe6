package bare

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// A Template is the least that issuing costs: to-be-signed octets that were encoded once, in which serial, times, name
// and key are overwritten in place. Everything that varies has a fixed length: P-256 keys, names of NameLength octets.
type Template struct {
	key *ecdsa.PrivateKey
	tbs []byte
	at  struct{ serial, from, to, name, spki, keyID int }
}

// NameLength is the length of the only names that a Template knows, in octets.
const NameLength = 16

const (
	serialLength = 18
	spkiLength   = 91 // of a P-256 key
	timeLayout   = "060102150405Z"
)

// signatureAlgorithm is ecdsa-with-SHA256 as an AlgorithmIdentifier (RFC 5758 §3.2).
var signatureAlgorithm = []byte{0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02}

// NewTemplate lets crypto/x509 encode one certificate with recognisable fillers and remembers where they lie.
func NewTemplate(key *ecdsa.PrivateKey, issuer *x509.Certificate) (*Template, error) {
	filler := func(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }
	subject, err := newKey()
	if err != nil {
		return nil, err
	}
	serial, keyID, commonName := filler(0x5a, serialLength), filler(0xa5, 20), filler('n', NameLength)
	from, to := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC), time.Date(2007, 8, 9, 10, 11, 12, 0, time.UTC)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial), Subject: pkix.Name{CommonName: string(commonName)}, NotBefore: from, NotAfter: to, SubjectKeyId: keyID,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, DNSNames: []string{"bare.example"},
		OCSPServer: []string{"http://localhost/pki/ocsp"}, IssuingCertificateURL: []string{"http://localhost/pki/machines.cer"}, CRLDistributionPoints: []string{"http://localhost/pki/machines.crl"},
	}, issuer, subject.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	t := &Template{key: key, tbs: cert.RawTBSCertificate}
	for place, content := range map[*int][]byte{
		&t.at.serial: serial, &t.at.from: []byte(from.Format(timeLayout)), &t.at.to: []byte(to.Format(timeLayout)),
		&t.at.name: commonName, &t.at.spki: cert.RawSubjectPublicKeyInfo, &t.at.keyID: keyID,
	} {
		if *place = bytes.Index(t.tbs, content); *place < 0 {
			return nil, fmt.Errorf("the template lacks a place for %x", content)
		}
	}
	return t, nil
}

// A Leaf is a certificate just made.
type Leaf struct {
	Serial, DER         []byte
	NotBefore, NotAfter time.Time
}

// Issue patches the octets and signs them. It is safe for concurrent use.
func (t *Template) Issue(spki []byte, commonName string, lifetime time.Duration) (Leaf, error) {
	if len(spki) != spkiLength || len(commonName) != NameLength {
		return Leaf{}, fmt.Errorf("the bare handler knows P-256 keys and names of %d octets only", NameLength)
	}
	now := time.Now().UTC().Truncate(time.Second)
	l := Leaf{Serial: make([]byte, serialLength), NotBefore: now, NotAfter: now.Add(lifetime - time.Second)}
	rand.Read(l.Serial)
	l.Serial[0] = l.Serial[0]&0x3f | 0x40 // positive and of full length
	keyID := sha256.Sum256(spki)

	tbs := bytes.Clone(t.tbs)
	copy(tbs[t.at.serial:], l.Serial)
	copy(tbs[t.at.from:], l.NotBefore.Format(timeLayout))
	copy(tbs[t.at.to:], l.NotAfter.Format(timeLayout))
	copy(tbs[t.at.name:], commonName)
	copy(tbs[t.at.spki:], spki)
	copy(tbs[t.at.keyID:], keyID[:20])

	digest := sha256.Sum256(tbs)
	signature, err := ecdsa.SignASN1(rand.Reader, t.key, digest[:])
	if err != nil {
		return Leaf{}, err
	}
	b := cryptobyte.NewBuilder(make([]byte, 0, len(tbs)+len(signature)+32))
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddBytes(tbs)
		b.AddBytes(signatureAlgorithm)
		b.AddASN1BitString(signature)
	})
	l.DER, err = b.Bytes()
	return l, err
}
