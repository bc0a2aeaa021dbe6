package pkix

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"
	tag "golang.org/x/crypto/cryptobyte/asn1"

	"chancery/internal/base/fault"
)

// A Reason says why something was revoked: CRLReason of RFC 5280 §5.3.1, by its number there.
type Reason int

// The reasons. Seven is not used by the standard.
const (
	Unspecified          Reason = 0
	KeyCompromise        Reason = 1
	CACompromise         Reason = 2
	AffiliationChanged   Reason = 3
	Superseded           Reason = 4
	CessationOfOperation Reason = 5
	CertificateHold      Reason = 6 // the one reason that can be taken back
	RemoveFromCRL        Reason = 8 // takes a hold back; it never stands in a full CRL
	PrivilegeWithdrawn   Reason = 9
	AACompromise         Reason = 10
)

var reasonNames = []string{
	"unspecified", "keyCompromise", "cACompromise", "affiliationChanged", "superseded", "cessationOfOperation",
	"certificateHold", "", "removeFromCRL", "privilegeWithdrawn", "aACompromise",
}

// String gives the reason's name in RFC 5280.
func (r Reason) String() string {
	if !r.Known() {
		return fmt.Sprintf("reason %d", int(r))
	}
	return reasonNames[r]
}

// Known reports whether the standard has the reason.
func (r Reason) Known() bool { return r >= 0 && int(r) < len(reasonNames) && reasonNames[r] != "" }

// ParseReason reads a reason by its name in RFC 5280; the empty name means Unspecified.
// The fault is Invalid, code reason_unknown.
func ParseReason(text string) (Reason, error) {
	if text == "" {
		return Unspecified, nil
	}
	i := slices.Index(reasonNames, text)
	if i < 0 {
		return 0, fault.New(fault.Invalid, "reason_unknown", "%.40q is not a reason for a revocation", text).
			WithHint("use one of unspecified, keyCompromise, cACompromise, affiliationChanged, superseded, cessationOfOperation, certificateHold, privilegeWithdrawn, aACompromise, or removeFromCRL to end a hold")
	}
	return Reason(i), nil
}

// add writes the reason as ENUMERATED.
func (r Reason) add(b *cryptobyte.Builder) { b.AddASN1Enum(int64(r)) }

// addReasonExtension writes the CRL entry extension; an unspecified reason is left out (RFC 5280 §5.3.1).
func (r Reason) addExtension(b *cryptobyte.Builder) {
	if r == Unspecified {
		return
	}
	b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) { addExtension(b, oidReasonCode, false, r.add) })
}

// A State is where a certificate stands, as OCSP says it (RFC 6960 §2.2).
type State uint8

// The states. Unknown: no such serial was ever issued, or its row was retired after it expired.
const (
	Unknown State = iota
	Good
	Revoked
)

var stateNames = [...]string{"unknown", "good", "revoked"}

// String gives the state in lower case.
func (s State) String() string { return stateNames[min(int(s), len(stateNames)-1)] }

// A Status is what an answer says of a certificate.
type Status struct {
	State  State
	At     time.Time // with Revoked: when
	Reason Reason    // with Revoked: why
}
