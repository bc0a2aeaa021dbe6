package agent

import (
	"encoding/hex"

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
	der, err := key.RequestDER(raw)
	if err != nil {
		return request{}, err
	}
	csr, err := key.ReadRequest(der, requestBytesMax)
	if err != nil {
		return request{}, err
	}
	hash := key.Hash(csr.RawSubjectPublicKeyInfo)
	out := request{spki: csr.RawSubjectPublicKeyInfo, keyHash: hex.EncodeToString(hash[:])}
	for _, e := range csr.Extensions {
		out.extensions = append(out.extensions, extension{e.Id.String(), e.Value})
	}
	return out, nil
}

func (r request) extension(oid string) []byte {
	for _, e := range r.extensions {
		if e.oid == oid {
			return e.value
		}
	}
	return nil
}
