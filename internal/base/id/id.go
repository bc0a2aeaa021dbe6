// Package id makes the names of things: typed identifiers that sort by the time they were made, and certificate
// serials that do the same.
//
// An identifier is a kind, an underscore and twenty Crockford base32 characters: 48 bits of Unix milliseconds, then
// 52 random bits, so that tables and their indexes grow at the end. Uniqueness is the database's to enforce; the
// random part makes a collision a matter of chance that nobody will meet.
package id

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"time"

	"chancery/internal/base/fault"
)

// A Kind is the prefix that says what an identifier names.
type Kind string

// The kinds of identifiers.
const (
	Person     Kind = "per" // a person who answers for agents
	Service    Kind = "svc" // a service account
	Token      Kind = "tok" // an API token (not its secret)
	Agent      Kind = "agt" // an agent
	Delegation Kind = "dlg" // a standing delegation
	Enrolment  Kind = "enr" // a one-time enrolment token (not its secret)
	Key        Kind = "key" // a key of the keyring
	Request    Kind = "req" // one request, in logs and problem reports
)

const (
	alphabet = "0123456789abcdefghjkmnpqrstvwxyz" // Crockford base32, lower case: no i, l, o, u
	length   = 20
)

// New makes an identifier of the given kind at the time now. It is safe for concurrent use.
func New(kind Kind, now time.Time) string {
	var random [8]byte
	rand.Read(random[:]) // never fails (crypto/rand since Go 1.24)
	high := uint64(now.UnixMilli()) & (1<<48 - 1)
	low := binary.BigEndian.Uint64(random[:]) & (1<<52 - 1)
	buf := make([]byte, 0, len(kind)+1+length)
	buf = append(buf, kind...)
	buf = append(buf, '_')
	buf = append(buf, digits(high<<2|low>>50, 10)...)
	return string(append(buf, digits(low&(1<<50-1), 10)...))
}

// digits writes the n lowest base32 digits of v, the highest first.
func digits(v uint64, n int) []byte {
	out := make([]byte, n)
	for i := n - 1; i >= 0; i-- {
		out[i] = alphabet[v&31]
		v >>= 5
	}
	return out
}

// Is reports whether s has the form of an identifier of the given kind. It says nothing of whether such a thing exists.
func Is(kind Kind, s string) bool {
	rest, ok := strings.CutPrefix(s, string(kind)+"_")
	return ok && len(rest) == length && strings.Trim(rest, alphabet) == ""
}

// Parse checks that s has the form of an identifier of the given kind. The fault is Invalid, code id_invalid.
func Parse(kind Kind, s string) (string, error) {
	if !Is(kind, s) {
		return "", fault.New(fault.Invalid, "id_invalid", "%.40q is not an identifier of the form %s_ and %d characters", s, kind, length)
	}
	return s, nil
}
