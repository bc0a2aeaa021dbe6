package pkix

import (
	"bytes"
	"crypto"
	"crypto/sha1" // names issuers in CertID and the responder; nothing relies on its strength (RFC 6960 §4.1.1)
	"encoding/asn1"
	"encoding/base64"
	"net/url"
	"strings"
	"time"

	"golang.org/x/crypto/cryptobyte"
	tag "golang.org/x/crypto/cryptobyte/asn1"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
)

// Bounds of an OCSP request.
const (
	ocspRequestMax = 4 << 10 // octets
	ocspCertsMax   = 16      // certificates asked about at once
	ocspNonceMax   = 128     // octets (RFC 9654 §2.1)
)

// The answers without a signature (RFC 6960 §4.2.1): OCSPResponse with responseStatus alone.
var (
	OCSPMalformed    = []byte{0x30, 3, 0x0a, 1, 1}
	OCSPTryLater     = []byte{0x30, 3, 0x0a, 1, 3}
	OCSPUnauthorized = []byte{0x30, 3, 0x0a, 1, 6}
)

// A Question is what a client asks: about which certificates, and with which nonce.
type Question struct {
	Certs []CertID
	Nonce []byte // the extension's value, an OCTET STRING in DER, to be sent back as it is; nil = none
}

// A CertID names a certificate by hashes of its issuer and its serial (RFC 6960 §4.1.1).
type CertID struct {
	Raw     []byte // DER, for the answer
	hash    crypto.Hash
	name    []byte
	key     []byte
	Serial  id.Serial
	foreign bool // of no issuer that we could know: an unknown hash
}

var certIDHashes = []struct {
	oid  asn1.ObjectIdentifier
	hash crypto.Hash
}{
	{asn1.ObjectIdentifier{1, 3, 14, 3, 2, 26}, crypto.SHA1},
	{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}, crypto.SHA256},
	{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 2}, crypto.SHA384},
	{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 3}, crypto.SHA512},
}

// DecodeOCSPPath gives the request in DER that a client put into the path of a GET: base64, then URL-encoded
// (RFC 6960 appendix A.1). The URL-safe alphabet and missing padding are accepted. The fault is Invalid, code
// ocsp_malformed.
func DecodeOCSPPath(path string) ([]byte, error) {
	malformed := fault.New(fault.Invalid, "ocsp_malformed", "the path does not hold an OCSP request in base64")
	if len(path) > 3*ocspRequestMax {
		return nil, malformed
	}
	text, err := url.PathUnescape(path)
	if err != nil {
		return nil, malformed.Because(err)
	}
	text = strings.NewReplacer("-", "+", "_", "/", " ", "+").Replace(strings.TrimRight(text, "="))
	der, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, malformed.Because(err)
	}
	return der, nil
}

// ParseOCSP reads an OCSPRequest (RFC 6960 §4.1.1). A signature of the request is not looked at: answers are for all.
func ParseOCSP(der []byte) (Question, bool) {
	var r Question
	input, outer, tbs := cryptobyte.String(der), cryptobyte.String(nil), cryptobyte.String(nil)
	ok := len(der) <= ocspRequestMax &&
		input.ReadASN1(&outer, tag.SEQUENCE) && input.Empty() &&
		outer.ReadASN1(&tbs, tag.SEQUENCE) && outer.SkipOptionalASN1(explicit(0)) && outer.Empty() &&
		skipVersion(&tbs) && tbs.SkipOptionalASN1(explicit(1)) &&
		r.readCerts(&tbs) && r.readExtensions(&tbs) && tbs.Empty()
	return r, ok
}

// skipVersion reads version [0] EXPLICIT DEFAULT v1; there is no other.
func skipVersion(s *cryptobyte.String) bool {
	var version cryptobyte.String
	var present bool
	var number int
	if !s.ReadOptionalASN1(&version, &present, explicit(0)) {
		return false
	}
	return !present || version.ReadASN1Integer(&number) && version.Empty() && number == 0
}

func (r *Question) readCerts(s *cryptobyte.String) bool {
	var list cryptobyte.String
	if !s.ReadASN1(&list, tag.SEQUENCE) {
		return false
	}
	for !list.Empty() && len(r.Certs) < ocspCertsMax {
		var one cryptobyte.String
		var c CertID
		if !list.ReadASN1(&one, tag.SEQUENCE) || !c.read(&one) || !one.SkipOptionalASN1(explicit(0)) || !one.Empty() {
			return false
		}
		r.Certs = append(r.Certs, c)
	}
	return list.Empty() && len(r.Certs) > 0
}

func (c *CertID) read(s *cryptobyte.String) bool {
	var element, body, algorithm, serial cryptobyte.String
	var oid asn1.ObjectIdentifier
	if !s.ReadASN1Element(&element, tag.SEQUENCE) {
		return false
	}
	c.Raw = element
	ok := element.ReadASN1(&body, tag.SEQUENCE) &&
		body.ReadASN1(&algorithm, tag.SEQUENCE) && algorithm.ReadASN1ObjectIdentifier(&oid) &&
		algorithm.SkipOptionalASN1(tag.NULL) && algorithm.Empty() &&
		body.ReadASN1((*cryptobyte.String)(&c.name), tag.OCTET_STRING) &&
		body.ReadASN1((*cryptobyte.String)(&c.key), tag.OCTET_STRING) &&
		body.ReadASN1(&serial, tag.INTEGER) && body.Empty() &&
		len(serial) > 0 && len(serial) <= 21 && len(c.name) <= 64 && len(c.key) <= 64
	if !ok {
		return false
	}
	c.Serial = id.Serial(bytes.TrimLeft(serial, "\x00"))
	c.foreign = len(c.Serial) == 0 || serial[0] >= 0x80
	for _, h := range certIDHashes {
		if h.oid.Equal(oid) {
			c.hash = h.hash
		}
	}
	c.foreign = c.foreign || c.hash == 0
	return true
}

// readExtensions takes the nonce; any other extension that is critical cannot be obeyed.
func (r *Question) readExtensions(s *cryptobyte.String) bool {
	var wrapped, list cryptobyte.String
	var present bool
	if !s.ReadOptionalASN1(&wrapped, &present, explicit(2)) || !present {
		return !present
	}
	if !wrapped.ReadASN1(&list, tag.SEQUENCE) || !wrapped.Empty() {
		return false
	}
	for !list.Empty() {
		var one, value cryptobyte.String
		var oid asn1.ObjectIdentifier
		critical := false
		if !list.ReadASN1(&one, tag.SEQUENCE) || !one.ReadASN1ObjectIdentifier(&oid) ||
			one.PeekASN1Tag(tag.BOOLEAN) && !one.ReadASN1Boolean(&critical) ||
			!one.ReadASN1(&value, tag.OCTET_STRING) || !one.Empty() {
			return false
		}
		switch {
		case oid.Equal(oidOCSPNonce):
			if r.Nonce != nil || !isNonce(value) {
				return false
			}
			r.Nonce = value
		case critical:
			return false
		}
	}
	return true
}

// isNonce holds the size of RFC 9654 §2.1: outside of 1 to 128 octets the request is malformed.
func isNonce(value cryptobyte.String) bool {
	var nonce cryptobyte.String
	return value.ReadASN1(&nonce, tag.OCTET_STRING) && value.Empty() && len(nonce) >= 1 && len(nonce) <= ocspNonceMax
}

// IsNamedBy reports whether a certID speaks of this issuer's certificates.
func (i *Issuer) IsNamedBy(c *CertID) bool {
	if c.foreign {
		return false
	}
	digest := func(b []byte) []byte {
		h := c.hash.New()
		h.Write(b)
		return h.Sum(nil)
	}
	return bytes.Equal(digest(i.keyBits), c.key) && bytes.Equal(digest(i.subject), c.name)
}

// A Verdict is one SingleResponse: what an answer says of one certificate.
type Verdict struct {
	Cert   []byte // CertID in DER
	Status Status
	From   time.Time // thisUpdate
	Until  time.Time // nextUpdate
}

// AnswerOCSP writes and signs an OCSPResponse (RFC 6960 §4.2.1). The issuing key itself signs, so no certificate goes
// along; the responder is named by its key.
func (i *Issuer) AnswerOCSP(verdicts []Verdict, nonce []byte, now time.Time) ([]byte, error) {
	responder := sha1.Sum(i.keyBits)
	var data cryptobyte.Builder
	data.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) { // ResponseData
		b.AddASN1(explicit(2), func(b *cryptobyte.Builder) { b.AddASN1OctetString(responder[:]) })
		b.AddASN1GeneralizedTime(now.UTC())
		b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
			for _, v := range verdicts {
				b.AddASN1(tag.SEQUENCE, v.add)
			}
		})
		if nonce != nil {
			b.AddASN1(explicit(1), sequence(func(b *cryptobyte.Builder) { addExtension(b, oidOCSPNonce, false, octets(nonce)) }))
		}
	})
	tbs, err := data.Bytes()
	if err != nil {
		return nil, err
	}
	basic, err := i.seal(tbs)
	if err != nil {
		return nil, err
	}
	out := cryptobyte.NewBuilder(make([]byte, 0, len(basic)+32))
	out.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Enum(0) // successful
		b.AddASN1(explicit(0), sequence(func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(oidOCSPBasic)
			b.AddASN1OctetString(basic)
		}))
	})
	return out.Bytes()
}

func (v Verdict) add(b *cryptobyte.Builder) {
	b.AddBytes(v.Cert)
	switch v.Status.State {
	case Good:
		b.AddASN1(tag.Tag(0).ContextSpecific(), octets(nil))
	case Revoked:
		b.AddASN1(explicit(1), func(b *cryptobyte.Builder) {
			b.AddASN1GeneralizedTime(v.Status.At.UTC())
			if v.Status.Reason != Unspecified {
				b.AddASN1(explicit(0), v.Status.Reason.add)
			}
		})
	default:
		b.AddASN1(tag.Tag(2).ContextSpecific(), octets(nil))
	}
	b.AddASN1GeneralizedTime(v.From.UTC())
	b.AddASN1(explicit(0), func(b *cryptobyte.Builder) { b.AddASN1GeneralizedTime(v.Until.UTC()) })
}
