package rest

import (
	"encoding/base64"
	"slices"

	"chancery/api"
)

// A Body is what a route takes or answers whose whole content is one JSON body.
type Body[T any] struct{ Body T }

// Reply gives v as a route's answer, unless err says that there is none.
func Reply[T any](v T, err error) (*Body[T], error) {
	if err != nil {
		return nil, err
	}
	return &Body[T]{v}, nil
}

// CertificatePEM writes certificates in PEM, one after the other (RFC 7468 §5). It takes half of encoding/pem's time, of
// which four certificates for each answer make a share worth having.
func CertificatePEM(ders ...[]byte) string {
	const begin, end, line = "-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----\n", 48 // octets in a line of 64 characters
	size := 0
	for _, der := range ders {
		size += len(begin) + len(end) + base64.StdEncoding.EncodedLen(len(der)) + len(der)/line + 1
	}
	out := make([]byte, 0, size)
	for _, der := range ders {
		out = append(out, begin...)
		for part := range slices.Chunk(der, line) {
			out = append(base64.StdEncoding.AppendEncode(out, part), '\n')
		}
		out = append(out, end...)
	}
	return string(out)
}

// Certificate answers with an issued certificate in the form that the caller accepts: as JSON, alone in DER, or with its chain
// in PEM. By default a request in DER is answered in DER, any other in JSON.
func (r *Request) Certificate(issued api.Issued, der []byte) *Answer {
	offered := []string{TypeJSON, TypeCertificate, TypeChain}
	if r.Type == TypeCSR {
		offered = []string{TypeCertificate, TypeJSON, TypeChain}
	}
	switch wanted := r.Wants(offered...); wanted {
	case TypeCertificate:
		return &Answer{Type: wanted, Body: der}
	case TypeChain:
		return &Answer{Type: wanted, Body: []byte(issued.PEM + issued.Chain + issued.Principal)}
	}
	return &Answer{JSON: issued}
}
