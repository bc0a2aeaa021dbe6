package ca

import "time"

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

// A Status is a certificate's state, derived from its own revocation and those of all that stands above it: the agent,
// the delegation, the principal with its certificate, and the authorities. The earliest revocation counts.
type Status struct {
	State  State
	At     time.Time // with Revoked: when
	Reason Reason    // with Revoked: why
	Target string    // with Revoked: what was revoked: "crt:"+serial, "agt_…", "dlg_…", "per_…", "svc_…" or "aut:"+name
}
