package agentcert

import (
	"encoding/asn1"
	"time"
)

// DER tags of the format (X.690 section 8).
const (
	tagBoolean  = 0x01
	tagInteger  = 0x02
	tagOctets   = 0x04
	tagUTF8     = 0x0c
	tagTime     = 0x18
	tagSequence = 0x30
	tagContext  = 0xa0 // plus the field's number: constructed, context-specific
)

const timeLayout = "20060102150405Z"

// An encoder appends DER to one buffer. It exists beside cryptobyte.Builder because the issuing and verifying paths
// rebuild the signed bytes each time, and the builder allocates for every nested value. The first error sticks.
type encoder struct {
	out []byte
	err error
}

// nest appends a constructed value whose content body appends.
func (e *encoder) nest(tag byte, body func()) {
	start := len(e.out)
	e.out = append(e.out, tag, 0)
	body()
	e.close(start)
}

// close writes the length of the value that began at start, moving its content when the length takes more octets than
// the one that was kept free.
func (e *encoder) close(start int) {
	const longForm = 0x80
	content := start + 2
	n := len(e.out) - content
	if n < longForm {
		e.out[start+1] = byte(n)
		return
	}
	octets := 1
	for v := n >> 8; v > 0; v >>= 8 {
		octets++
	}
	var room [8]byte
	e.out = append(e.out, room[:octets]...)
	copy(e.out[content+octets:], e.out[content:content+n])
	e.out[start+1] = longForm | byte(octets)
	for i := range octets {
		e.out[content+i] = byte(n >> (8 * (octets - 1 - i)))
	}
}

func (e *encoder) bytes(tag byte, content []byte) { primitive(e, tag, content) }

func (e *encoder) text(s string) { primitive(e, tagUTF8, s) }

func primitive[T []byte | string](e *encoder, tag byte, content T) {
	start := len(e.out)
	e.out = append(append(e.out, tag, 0), content...)
	e.close(start)
}

func (e *encoder) int(n int64) {
	octets := 1
	for v := n; v > 127 || v < -128; v >>= 8 {
		octets++
	}
	e.out = append(e.out, tagInteger, byte(octets))
	for i := octets - 1; i >= 0; i-- {
		e.out = append(e.out, byte(n>>(8*i)))
	}
}

func (e *encoder) bool(b bool) {
	octet := byte(0)
	if b {
		octet = 0xff
	}
	e.out = append(e.out, tagBoolean, 1, octet)
}

func (e *encoder) time(t time.Time) {
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		e.fail(invalid("aic", "the year %d cannot be written", t.Year()))
		return
	}
	e.out = append(e.out, tagTime, byte(len(timeLayout)))
	e.out = t.AppendFormat(e.out, timeLayout)
}

func (e *encoder) oid(id asn1.ObjectIdentifier) {
	der, err := asn1.Marshal(id)
	if err != nil {
		e.fail(invalid("aic", "an extension has no proper object identifier").because(err))
		return
	}
	e.out = append(e.out, der...)
}

func (e *encoder) fail(r *Refusal) {
	if e.err == nil {
		e.err = r
	}
}
