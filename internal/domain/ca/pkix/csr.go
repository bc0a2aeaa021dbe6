package pkix

import (
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

// ReadRequest reads a certification request as key.ReadRequest does, and what it asks for. Its names must be
// well-formed. Faults are those of key.ReadRequest, and Invalid name_invalid, names_too_many, subject_invalid. It is safe
// for concurrent use.
func ReadRequest(der []byte) (Request, error) {
	csr, err := key.ReadRequest(der, csrMax)
	if err != nil {
		return Request{}, err
	}
	kind, err := key.KindOf(csr.PublicKey)
	if err != nil {
		return Request{}, err
	}
	subject, err := readSubject(csr)
	if err != nil {
		return Request{}, err
	}
	names, err := readNames(csr)
	return Request{SPKI: csr.RawSubjectPublicKeyInfo, Kind: kind, Subject: subject, Names: names}, err
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
