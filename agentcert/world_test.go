package agentcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"chancery/capability"
)

// noon is when the stories of these tests happen.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// An authority is a root and one issuing certificate below it, valid for a day around noon.
type authority struct {
	root, issuing *x509.Certificate
	key           *ecdsa.PrivateKey
	serial        atomic.Int64
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := new(authority)
	rootKey := newECDSA(t, elliptic.P384())
	a.root = certify(t, caTemplate(1, name+" Root"), nil, rootKey.Public(), rootKey)
	a.key = newECDSA(t, elliptic.P256())
	a.issuing = certify(t, caTemplate(2, name+" Issuing"), a.root, a.key.Public(), rootKey)
	return a
}

func caTemplate(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: noon.Add(-12 * time.Hour), NotAfter: noon.Add(12 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
}

// certify signs a template; without a parent it signs itself.
func certify(t testing.TB, template, parent *x509.Certificate, key crypto.PublicKey, signer crypto.Signer) *x509.Certificate {
	t.Helper()
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// issue signs a leaf certificate for client authentication.
func (a *authority) issue(t testing.TB, template *x509.Certificate, key crypto.PublicKey) *x509.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(100 + a.serial.Add(1))
	template.BasicConstraintsValid = true
	return certify(t, template, a.issuing, key, a.key)
}

// A person has a key and a certificate that says what may be delegated.
type person struct {
	key  crypto.Signer
	cert *x509.Certificate
}

func grants(t testing.TB, texts ...string) []capability.Capability {
	t.Helper()
	var list []capability.Capability
	for _, text := range texts {
		c, err := capability.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

func (a *authority) person(t testing.TB, pa *PrincipalAuthorization, change ...func(*x509.Certificate)) *person {
	t.Helper()
	p := &person{key: newECDSA(t, elliptic.P256())}
	p.cert = a.certifyPerson(t, p.key, pa, change...)
	return p
}

func (a *authority) certifyPerson(t testing.TB, key crypto.Signer, pa *PrincipalAuthorization, change ...func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	value, err := pa.Encode()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Alice"},
		NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(8 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		ExtraExtensions: []pkix.Extension{{Id: OIDPrincipalAuthorization, Value: value}},
	}
	for _, c := range change {
		c(template)
	}
	return a.issue(t, template, key.Public())
}

func (p *person) uid() PrincipalUID {
	hash := sha256.Sum256(p.cert.RawSubjectPublicKeyInfo)
	return PrincipalUID{Version: 1, Realm: "example.org", Identifier: "alice", KeyHash: hash[:], HashAlgorithm: crypto.SHA256}
}

// A story is one agent certificate in the making. Tests change it before or after the principal signs.
type story struct {
	aic      *AIC
	template *x509.Certificate
	key      *ecdsa.PrivateKey
	signer   crypto.Signer
	after    func(*AIC) // runs once the authorization is signed
}

func newStory(t testing.TB, p *person, capabilities ...string) *story {
	t.Helper()
	return &story{
		aic: &AIC{
			Version: 2, AgentID: "scheduler", Principal: p.uid(), Capabilities: grants(t, capabilities...),
			Authorization: DelegationAuthorization{
				Reason: Reason{Code: "CALENDAR", Description: "plan my week"}, Lifetime: 10 * time.Minute, Timestamp: noon,
			},
		},
		template: &x509.Certificate{
			Subject:   pkix.Name{CommonName: "scheduler"},
			NotBefore: noon, NotAfter: noon.Add(10*time.Minute - time.Second),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		},
		key:    newECDSA(t, elliptic.P256()),
		signer: p.key,
	}
}

// issue signs the authorization and then the certificate.
func (s *story) issue(t testing.TB, a *authority) *x509.Certificate {
	t.Helper()
	if s.aic.Version == 2 {
		if err := Sign(s.aic, spkiOf(t, s.key.Public()), s.signer, nil); err != nil {
			t.Fatal(err)
		}
	}
	if s.after != nil {
		s.after(s.aic)
	}
	value, err := s.aic.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s.template.ExtraExtensions = append(s.template.ExtraExtensions, pkix.Extension{Id: OIDExtension, Value: value})
	return a.issue(t, s.template, s.key.Public())
}

// atNoon is a policy whose clock stands a minute after noon.
func atNoon(p Policy) Policy {
	if p.Now == nil {
		p.Now = func() time.Time { return noon.Add(time.Minute) }
	}
	return p
}

func (a *authority) verifier(p Policy) *Verifier {
	return NewVerifier([]*x509.Certificate{a.root}, atNoon(p))
}

// calendarOwner may delegate everything about the calendar.
func calendarOwner(t testing.TB) *PrincipalAuthorization {
	t.Helper()
	return &PrincipalAuthorization{Version: 1, Grants: grants(t, "calendar:*")}
}

func foreignExtension(critical bool) pkix.Extension {
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Critical: critical, Value: []byte{5, 0}}
}
