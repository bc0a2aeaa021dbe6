package pkix

import (
	"bytes"
	"time"

	"golang.org/x/crypto/cryptobyte"
	tag "golang.org/x/crypto/cryptobyte/asn1"

	"chancery/internal/base/id"
)

// A Roll is the revoked certificates of one authority as the entries of its CRL, kept encoded: one more revocation
// costs one entry and one signature, not an encoding of all. It is not safe for concurrent use.
type Roll struct {
	entries []byte              // CRLEntry after CRLEntry in DER
	serials map[string]struct{} // what stands in entries
}

// NewRoll gives an empty roll.
func NewRoll() *Roll { return &Roll{serials: map[string]struct{}{}} }

// Add enters a serial unless it stands there.
func (r *Roll) Add(serial id.Serial, at time.Time, reason Reason) error {
	if _, stands := r.serials[string(serial)]; stands {
		return nil
	}
	b := cryptobyte.NewBuilder(r.entries)
	b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) { // RFC 5280 §5.1.2.6
		addSerial(b, serial)
		addTime(b, at.UTC())
		reason.addExtension(b)
	})
	grown, err := b.Bytes()
	if err != nil {
		return err
	}
	r.entries, r.serials[string(serial)] = grown, struct{}{}
	return nil
}

// SignCRL writes and signs a CertificateList over the entries of a roll (RFC 5280 §5.1).
func (i *Issuer) SignCRL(r *Roll, number int64, from, until time.Time) ([]byte, error) {
	b := cryptobyte.NewBuilder(make([]byte, 0, len(r.entries)+len(i.subject)+256))
	b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(1) // version v2
		b.AddBytes(i.algorithm)
		b.AddBytes(i.subject)
		addTime(b, from.UTC())
		addTime(b, until.UTC())
		if len(r.entries) > 0 { // absent rather than empty (RFC 5280 §5.1.2.6)
			b.AddASN1(tag.SEQUENCE, octets(r.entries))
		}
		b.AddASN1(explicit(0), sequence(func(b *cryptobyte.Builder) {
			addAuthorityKeyID(b, i.keyID)
			addExtension(b, oidCRLNumber, false, func(b *cryptobyte.Builder) { b.AddASN1Int64(number) })
		}))
	})
	tbs, err := b.Bytes()
	if err != nil {
		return nil, err
	}
	return i.seal(tbs)
}

// Size is how many octets the entries take: a roll that only grows has changed when its size has.
func (r *Roll) Size() int { return len(r.entries) }

// Equal reports whether two rolls have the same entries in the same order.
func (r *Roll) Equal(other *Roll) bool { return bytes.Equal(r.entries, other.entries) }
