package agentcert

import (
	"crypto"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"crypto/x509"
)

// Hash algorithms of key hashes, as the content of an AlgorithmIdentifier without parameters (RFC 5754 section 2,
// RFC 8702 section 2).
var hashes = [...]struct {
	hash       crypto.Hash
	identifier string
}{
	{crypto.SHA256, "\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01"},
	{crypto.SHA384, "\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x02"},
	{crypto.SHA512, "\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x03"},
	{crypto.SHA3_256, "\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x08"},
	{crypto.SHA3_384, "\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x09"},
	{crypto.SHA3_512, "\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x0a"},
}

func hashOf(identifier []byte) crypto.Hash {
	for _, h := range hashes {
		if string(identifier) == h.identifier {
			return h.hash
		}
	}
	return 0
}

func hashIdentifier(hash crypto.Hash) (string, bool) {
	for _, h := range hashes {
		if h.hash == hash {
			return h.identifier, true
		}
	}
	return "", false
}

// digest appends the digest of data to dst, SHA-256 if the algorithm is 0.
func digest(dst []byte, hash crypto.Hash, data []byte) []byte {
	switch hash {
	case 0, crypto.SHA256:
		sum := sha256.Sum256(data)
		return append(dst, sum[:]...)
	case crypto.SHA384:
		sum := sha512.Sum384(data)
		return append(dst, sum[:]...)
	case crypto.SHA512:
		sum := sha512.Sum512(data)
		return append(dst, sum[:]...)
	case crypto.SHA3_256:
		sum := sha3.Sum256(data)
		return append(dst, sum[:]...)
	case crypto.SHA3_384:
		sum := sha3.Sum384(data)
		return append(dst, sum[:]...)
	case crypto.SHA3_512:
		sum := sha3.Sum512(data)
		return append(dst, sum[:]...)
	}
	return dst
}

// Signature algorithms as whole AlgorithmIdentifiers (RFC 5758, RFC 4055, RFC 8410). The first form of an algorithm is
// written; RSA without NULL parameters is read too, because some encoders leave them out.
var signatureAlgorithms = [...]struct {
	algorithm x509.SignatureAlgorithm
	der       string
}{
	{x509.ECDSAWithSHA256, "\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02"},
	{x509.ECDSAWithSHA384, "\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x03"},
	{x509.ECDSAWithSHA512, "\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x04"},
	{x509.PureEd25519, "\x30\x05\x06\x03\x2b\x65\x70"},
	{x509.SHA256WithRSA, "\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b\x05\x00"},
	{x509.SHA384WithRSA, "\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c\x05\x00"},
	{x509.SHA512WithRSA, "\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d\x05\x00"},
	{x509.SHA256WithRSA, "\x30\x0b\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b"},
	{x509.SHA384WithRSA, "\x30\x0b\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c"},
	{x509.SHA512WithRSA, "\x30\x0b\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d"},
	{x509.SHA256WithRSAPSS, "\x30\x41\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a\x30\x34" +
		"\xa0\x0f\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00" +
		"\xa1\x1c\x30\x1a\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x08\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00" +
		"\xa2\x03\x02\x01\x20"},
}

func signatureAlgorithmOf(der []byte) x509.SignatureAlgorithm {
	for _, s := range signatureAlgorithms {
		if string(der) == s.der {
			return s.algorithm
		}
	}
	return x509.UnknownSignatureAlgorithm
}

func signatureIdentifier(algorithm x509.SignatureAlgorithm) (string, bool) {
	for _, s := range signatureAlgorithms {
		if s.algorithm == algorithm {
			return s.der, true
		}
	}
	return "", false
}
