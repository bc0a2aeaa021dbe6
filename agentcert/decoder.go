package agentcert

import (
	"encoding/asn1"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	der "golang.org/x/crypto/cryptobyte/asn1"
)

// A decoder reads DER strictly: lengths and integers minimal, booleans 00 or ff, nothing left over. The first error
// sticks and empties the input, so that code can read straight on and look once at the end. Values nested in one
// another share the error.
type decoder struct {
	rest  cryptobyte.String
	whole string // a copy of all input, which every text is a part of
	what  string // "aic" or "pa", for the refusal
	err   **Refusal
}

func newDecoder(what string, input []byte, limit int, err **Refusal) decoder {
	d := decoder{what: what, err: err}
	if len(input) > limit {
		d.fail("its size, which is beyond any agent certificate")
		return d
	}
	d.rest, d.whole = input[:len(input):len(input)], string(input)
	return d
}

func (d *decoder) fail(field string) {
	if *d.err == nil {
		*d.err = malformed(d.what, field)
	}
	d.rest = nil
}

func (d *decoder) end(field string) {
	if !d.rest.Empty() {
		d.fail(field + ", which something follows")
	}
}

func (d *decoder) nested(tag der.Tag, field string) decoder {
	inner := decoder{whole: d.whole, what: d.what, err: d.err}
	if !d.rest.ReadASN1(&inner.rest, tag) {
		d.fail(field)
	}
	return inner
}

func (d *decoder) sequence(field string) decoder { return d.nested(der.SEQUENCE, field) }

// explicit opens an optional field with an explicit tag, if it is there.
func (d *decoder) explicit(number uint8, field string) (decoder, bool) {
	tag := der.Tag(number).ContextSpecific().Constructed()
	if !d.rest.PeekASN1Tag(tag) {
		return decoder{}, false
	}
	return d.nested(tag, field), true
}

func (d *decoder) text(field string) string {
	var raw cryptobyte.String
	if !d.rest.ReadASN1(&raw, der.UTF8String) || !utf8.Valid(raw) {
		d.fail(field)
		return ""
	}
	start := len(d.whole) - cap(raw) // raw reaches to the end of the input
	return d.whole[start : start+len(raw)]
}

// octets never gives nil for a value that is there.
func (d *decoder) octets(field string) []byte {
	var raw cryptobyte.String
	if !d.rest.ReadASN1(&raw, der.OCTET_STRING) {
		d.fail(field)
		return nil
	}
	return raw[:len(raw):len(raw)]
}

func (d *decoder) int(field string) int {
	const most = 1<<31 - 1 // far beyond every limit, and safe as a count or in seconds everywhere
	var n int64
	if !d.rest.ReadASN1Int64WithTag(&n, der.INTEGER) || n < 0 || n > most {
		d.fail(field)
		return 0
	}
	return int(n)
}

// intOr reads an integer that may be left out.
func (d *decoder) intOr(fallback int, field string) int {
	if !d.rest.PeekASN1Tag(der.INTEGER) {
		return fallback
	}
	return d.int(field)
}

func (d *decoder) boolOr(fallback bool, field string) bool {
	if !d.rest.PeekASN1Tag(der.BOOLEAN) {
		return fallback
	}
	var b bool
	if !d.rest.ReadASN1Boolean(&b) {
		d.fail(field)
	}
	return b
}

func (d *decoder) time(field string) time.Time {
	var raw cryptobyte.String
	if !d.rest.ReadASN1(&raw, der.GeneralizedTime) || len(raw) != len(timeLayout) {
		d.fail(field)
		return time.Time{}
	}
	t, err := time.Parse(timeLayout, string(raw))
	if err != nil {
		d.fail(field)
	}
	return t
}

func (d *decoder) oid(field string) (id asn1.ObjectIdentifier) {
	if !d.rest.ReadASN1ObjectIdentifier(&id) {
		d.fail(field)
	}
	return id
}

// count tells how many values follow, so that a list is allocated once; it stops at the most that any list may have.
// Malformed input ends the count; reading the list then reports it.
func (d *decoder) count() (n int) {
	for rest := d.rest; !rest.Empty() && n < maxCapabilities; n++ {
		var value cryptobyte.String
		var tag der.Tag
		if !rest.ReadAnyASN1Element(&value, &tag) {
			return n
		}
	}
	return n
}
