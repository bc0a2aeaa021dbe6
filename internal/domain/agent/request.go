package agent

import (
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
)

// requestBytesMax bounds a certificate request: an RSA-4096 key, a signature and an agent identity of 16 KB.
const requestBytesMax = 24 << 10

// A request is a certificate request (PKCS#10, RFC 2986) whose proof of possession has been checked.
type request struct {
	spki       []byte
	keyHash    string // hexadecimal
	extensions []extension
}

type extension struct {
	oid   string
	value []byte
}

// readRequest reads a certificate request in DER or PEM and checks its signature.
func readRequest(raw []byte) (request, error) {
	if len(raw) > requestBytesMax {
		return request{}, fault.New(fault.TooLarge, "csr_too_large", "a certificate request has at most %d bytes", requestBytesMax)
	}
	if block, _ := pem.Decode(raw); block != nil {
		raw = block.Bytes
	}
	csr, err := x509.ParseCertificateRequest(raw)
	if err != nil {
		return request{}, fault.New(fault.Invalid, "csr_malformed", "this is not a PKCS#10 certificate request").Because(err)
	}
	if _, err := key.KindOf(csr.PublicKey); err != nil {
		return request{}, err
	}
	if err := provesPossession(csr); err != nil {
		return request{}, fault.New(fault.Invalid, "csr_signature_invalid", "the certificate request is not signed by the key in it").Because(err)
	}
	hash := key.Hash(csr.RawSubjectPublicKeyInfo)
	out := request{spki: csr.RawSubjectPublicKeyInfo, keyHash: hex.EncodeToString(hash[:])}
	for _, e := range csr.Extensions {
		out.extensions = append(out.extensions, extension{e.Id.String(), e.Value})
	}
	return out, nil
}

// provesPossession checks the request's own signature (RFC 2986 §4.2). The standard library accepts SHA-1 there, which
// proves nothing any more.
func provesPossession(csr *x509.CertificateRequest) error {
	switch csr.SignatureAlgorithm {
	case x509.SHA1WithRSA, x509.ECDSAWithSHA1:
		return x509.InsecureAlgorithmError(csr.SignatureAlgorithm)
	}
	return csr.CheckSignature()
}

func (r request) extension(oid string) []byte {
	for _, e := range r.extensions {
		if e.oid == oid {
			return e.value
		}
	}
	return nil
}
