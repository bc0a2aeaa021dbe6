package pkix

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/base/name"
)

// csrMax bounds a certification request: an RSA-4096 key and 100 names fit well.
const csrMax = 16 << 10

// A Request is what a certification request says and proves: its sender holds the private key of SPKI.
type Request struct {
	SPKI    []byte   // SubjectPublicKeyInfo in DER
	Kind    key.Kind // of the key
	Subject Subject  // as asked for; the authority decides what it grants
	Names   []name.Name
}

// ReadRequest reads a PKCS #10 certification request in DER (RFC 2986), strictly: nothing may follow it, its key must
// be of a kind that is accepted, its names must be well-formed, and its signature must verify, which proves
// possession of the key. Faults are Invalid (csr_malformed, csr_signature, key_refused, name_invalid,
// subject_invalid) or TooLarge (csr_too_large). It is safe for concurrent use.
func ReadRequest(der []byte) (Request, error) {
	if len(der) > csrMax {
		return Request{}, fault.New(fault.TooLarge, "csr_too_large", "the certification request has %d octets; %d are allowed", len(der), csrMax)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return Request{}, fault.New(fault.Invalid, "csr_malformed", "this is not a PKCS #10 certification request in DER").Because(err)
	}
	kind, err := checkKey(csr)
	if err != nil {
		return Request{}, err
	}
	if err := provesPossession(csr); err != nil {
		return Request{}, err
	}
	subject, err := readSubject(csr)
	if err != nil {
		return Request{}, err
	}
	names, err := readNames(csr)
	return Request{SPKI: csr.RawSubjectPublicKeyInfo, Kind: kind, Subject: subject, Names: names}, err
}

// checkKey takes the kinds of keys that are accepted, in their one DER form: the octets go into certificates as they
// are, and a key that can be written in two ways has two hashes.
func checkKey(csr *x509.CertificateRequest) (key.Kind, error) {
	kind, err := key.KindOf(csr.PublicKey)
	if err != nil {
		return "", err
	}
	canonical, err := key.SPKI(csr.PublicKey)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(canonical, csr.RawSubjectPublicKeyInfo) {
		return "", fault.New(fault.Invalid, "csr_malformed", "the public key in the request is not in its DER form")
	}
	return kind, nil
}

// provesPossession verifies the request's own signature (RFC 2986 §4.2). SHA-1 proves nothing any more.
func provesPossession(csr *x509.CertificateRequest) error {
	refused := fault.New(fault.Invalid, "csr_signature", "the request's signature does not verify with the key in it").
		WithHint("sign the request with the private key that belongs to it, with SHA-256 or stronger")
	switch csr.SignatureAlgorithm {
	case x509.SHA1WithRSA, x509.ECDSAWithSHA1, x509.UnknownSignatureAlgorithm:
		return refused
	}
	if err := csr.CheckSignature(); err != nil {
		return refused.Because(err)
	}
	return nil
}

func readSubject(csr *x509.CertificateRequest) (Subject, error) {
	s := SubjectOf(csr.Subject)
	return s, s.check()
}

// SubjectOf gives the part of a name that Chancery writes; of what is there twice, the first.
func SubjectOf(n pkix.Name) Subject {
	first := func(list []string) string {
		if len(list) == 0 {
			return ""
		}
		return list[0]
	}
	return Subject{
		CommonName: n.CommonName, Organization: first(n.Organization), Unit: first(n.OrganizationalUnit), Country: first(n.Country),
	}
}

func readNames(csr *x509.CertificateRequest) ([]name.Name, error) {
	count := len(csr.DNSNames) + len(csr.IPAddresses) + len(csr.EmailAddresses) + len(csr.URIs)
	if count > namesCeiling {
		return nil, fault.New(fault.Invalid, "names_too_many", "the request asks for %d names; %d are allowed", count, namesCeiling)
	}
	texts := make([][]string, 4)
	texts[name.DNS], texts[name.Email] = csr.DNSNames, csr.EmailAddresses
	for _, address := range csr.IPAddresses {
		texts[name.IP] = append(texts[name.IP], address.String())
	}
	for _, uri := range csr.URIs {
		texts[name.URI] = append(texts[name.URI], uri.String())
	}
	var names []name.Name
	for kind, list := range texts {
		for _, text := range list {
			n, err := name.Of(name.Kind(kind), text)
			if err != nil {
				return nil, err
			}
			names = append(names, n)
		}
	}
	return names, nil
}

// BareRequest is a request for a key whose possession the caller has seen proved.
func BareRequest(spki []byte) (Request, error) {
	public, err := key.ParsePublic(spki)
	if err != nil {
		return Request{}, err
	}
	kind, err := key.KindOf(public)
	return Request{SPKI: spki, Kind: kind}, err
}
