package key

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"

	"chancery/internal/base/fault"
)

// RequestDER gives the DER of a certification request in PEM: one block of its type (RFC 7468 §7), and nothing but space
// behind it. What is no PEM is taken for DER. The fault is Invalid, code csr_malformed.
func RequestDER(text []byte) ([]byte, error) {
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return text, nil
	case block.Type != "CERTIFICATE REQUEST" && block.Type != "NEW CERTIFICATE REQUEST":
		return nil, fault.New(fault.Invalid, "csr_malformed", "a %.40q block stands where a certification request is expected", block.Type)
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, fault.New(fault.Invalid, "csr_malformed", "something follows the certification request")
	}
	return block.Bytes, nil
}

// ReadRequest reads a PKCS #10 certification request in DER (RFC 2986), strictly: it has at most bytesMax octets,
// nothing follows it, its key is of a kind that is accepted and in its one DER form, and its signature verifies, which
// proves possession of the key. What it asks for is not looked at. Faults are Invalid (csr_malformed, csr_signature,
// key_refused) or TooLarge (csr_too_large). It is safe for concurrent use.
func ReadRequest(der []byte, bytesMax int) (*x509.CertificateRequest, error) {
	if len(der) > bytesMax {
		return nil, fault.New(fault.TooLarge, "csr_too_large", "the certification request has %d octets; %d are allowed", len(der), bytesMax)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fault.New(fault.Invalid, "csr_malformed", "this is not a PKCS #10 certification request").Because(err)
	}
	if err := checkForm(csr); err != nil {
		return nil, err
	}
	return csr, provesPossession(csr)
}

// checkForm takes the kinds of keys that are accepted, in their one DER form: the octets go into certificates as they
// are, and a key that can be written in two ways has two hashes.
func checkForm(csr *x509.CertificateRequest) error {
	if _, err := KindOf(csr.PublicKey); err != nil {
		return err
	}
	canonical, err := SPKI(csr.PublicKey)
	if err != nil {
		return err
	}
	if !bytes.Equal(canonical, csr.RawSubjectPublicKeyInfo) {
		return fault.New(fault.Invalid, "csr_malformed", "the public key in the request is not in its DER form")
	}
	return nil
}

// provesPossession verifies the request's own signature (RFC 2986 §4.2). The standard library accepts SHA-1 there, which
// proves nothing any more.
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
