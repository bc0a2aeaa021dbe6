package id

import (
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"sync"
	"time"

	"chancery/internal/base/fault"
)

// serialBytes is 48 bits of milliseconds, then 96 random bits: well under the 20 octets of RFC 5280 §4.1.2.2.
const serialBytes = 18

// A Serial is a certificate's serial number as big-endian octets: positive and at most 20 octets (RFC 5280 §4.1.2.2).
// The text form is lower-case hexadecimal.
type Serial []byte

// String gives the serial in lower-case hexadecimal, as the API and the CLI show it.
func (s Serial) String() string { return hex.EncodeToString(s) }

// Big gives the serial as crypto/x509 wants it.
func (s Serial) Big() *big.Int { return new(big.Int).SetBytes(s) }

// ParseSerial reads the text form; colons between octets, as openssl prints them, are accepted.
// The fault is Invalid, code serial_invalid.
func ParseSerial(text string) (Serial, error) {
	clean := make([]byte, 0, len(text))
	for i := 0; i < len(text) && i < 64; i++ {
		if text[i] != ':' {
			clean = append(clean, text[i])
		}
	}
	raw, err := hex.DecodeString(string(clean))
	if err != nil || len(raw) == 0 || len(raw) > 20 || len(text) > 64 {
		return nil, fault.New(fault.Invalid, "serial_invalid", "%.64q is not a certificate serial: 1 to 20 octets in hexadecimal", text)
	}
	return Serial(raw), nil
}

// SerialOf gives the canonical form of a number read from a certificate.
func SerialOf(n *big.Int) Serial { return Serial(n.Bytes()) }

// Serials makes serials whose first 48 bits never go back, whatever the clock does, and whose other 96 bits are
// random. The zero value is ready; all methods are safe for concurrent use. Nothing relies on the order of serials
// within a millisecond or between instances.
type Serials struct {
	mu   sync.Mutex
	last int64 // milliseconds
}

// Next makes a serial: prefix = max(last prefix, now in milliseconds).
func (s *Serials) Next(now time.Time) Serial {
	out := make(Serial, serialBytes)
	rand.Read(out[6:]) // never fails (crypto/rand since Go 1.24)
	ms := s.advance(now.UnixMilli())
	for i := 5; i >= 0; i-- {
		out[i] = byte(ms)
		ms >>= 8
	}
	return out
}

func (s *Serials) advance(ms int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, ms)
	return s.last
}

// Resume continues after a serial that the store holds, so that a clock set back between two starts does not show.
// Serials of another length, made elsewhere, are ignored.
func (s *Serials) Resume(stored Serial) {
	if len(stored) != serialBytes {
		return
	}
	var ms int64
	for _, b := range stored[:6] {
		ms = ms<<8 | int64(b)
	}
	s.advance(ms)
}
