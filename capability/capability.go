// Package capability is the language in which a person says what an agent may do: names with bounds, and conditions on
// top of them.
//
// A capability is a name, `scheme:segment[:segment…]`, and optional bounds on parameters: `calendar:read`,
// `calendar:*`, `sql:select{"max_rows":100}`. The only wildcard is a last segment `*`, which stands for one or more
// segments. A constraint is written the same way under the scheme "constraint" and restricts every operation:
// `constraint:network:cidr["10.0.0.0/8"]`.
//
// Whatever is unknown, malformed or not stated refuses. A set can be compared with another (Covers) and narrowed
// (Intersect); nothing here can widen one. The package knows no certificates, no clock and no network: the facts of an
// operation come in with it, and what can only be kept over time goes out as obligations.
package capability

import (
	"fmt"
	"strings"
)

// Limits of a capability in octets; a longer one is malformed.
const (
	MaxScheme         = 128  // octets of the scheme
	MaxID             = 256  // octets of the part after the scheme
	MaxParameters     = 4096 // octets of the parameters as written
	MaxCanonical      = 512  // octets of the parameters in canonical form
	maxDepth          = 32
	maxDigits         = 17
	wildcard          = "*"
	separator         = ":"
	maxCapabilityText = MaxScheme + len(separator) + MaxID + MaxParameters
)

// A Capability names something that may be done. It keeps what stood on the wire, valid or not, so that a signature
// over it can be checked; Validate decides whether it means anything. Values are safe to share once made.
type Capability struct {
	Scheme     string // before the first colon, such as "calendar" or "acme/crm-v1"
	ID         string // the segments after it, such as "read:events" or "*"
	Parameters []byte // JSON bounds on the operation's parameters; nil if there are none
}

// Parse reads the text form: the name, then an optional JSON object (for constraints also an array) of parameters.
// What it returns is valid as a capability or as a constraint; the error is a *Refusal.
func Parse(text string) (Capability, error) {
	if len(text) > maxCapabilityText {
		return Capability{}, refuse(CodeMalformed, "the capability is longer than %d octets", maxCapabilityText)
	}
	name, parameters := text, []byte(nil)
	if at := strings.IndexAny(text, "{["); at >= 0 {
		name, parameters = text[:at], []byte(text[at:])
	}
	scheme, id, found := strings.Cut(name, separator)
	if !found {
		return Capability{}, refuse(CodeMalformed, "%q is no capability: it needs a scheme and a name, as in calendar:read", name)
	}
	c := Capability{Scheme: scheme, ID: id, Parameters: parameters}
	validate := Capability.Validate
	if IsConstraint(c) {
		validate = Capability.ValidateConstraint
	}
	if err := validate(c); err != nil {
		return Capability{}, err
	}
	return c, nil
}

// Name gives the full name without parameters, scheme:id.
func (c Capability) Name() string { return c.Scheme + separator + c.ID }

// String gives the text form that Parse reads; parameters are canonical if they are valid, and as written otherwise.
func (c Capability) String() string {
	if c.Parameters == nil {
		return c.Name()
	}
	if p, err := ParseParameters(c.Parameters); err == nil {
		return c.Name() + p.String()
	}
	return c.Name() + string(c.Parameters)
}

// Validate reports why c cannot be granted: a malformed name, bad parameters, or the scheme of constraints. The error
// is a *Refusal.
func (c Capability) Validate() error {
	if IsConstraint(c) {
		return refuse(CodeMalformed, "%s is a constraint and cannot be granted as a capability", c.Name())
	}
	if err := c.validateName(); err != nil {
		return err
	}
	_, err := c.bounds()
	return err
}

func (c Capability) validateName() error {
	if c.Scheme == "" || len(c.Scheme) > MaxScheme || !allIn(c.Scheme, isSchemeChar) {
		return refuse(CodeMalformed, "%q is no scheme: 1 to %d letters, digits and -._/ are", clip(c.Scheme), MaxScheme)
	}
	if len(c.ID) > MaxID {
		return refuse(CodeMalformed, "the name after %s: is longer than %d octets", c.Scheme, MaxID)
	}
	for rest, more := c.ID, true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, separator)
		if segment == wildcard && !more {
			return nil
		}
		if segment == "" || !allIn(segment, isSegmentChar) {
			return refuse(CodeMalformed, "%q is no segment of a capability; a wildcard may only stand last", clip(segment))
		}
	}
	return nil
}

// bounds gives the parsed parameters of a capability; the zero value stands for none.
func (c Capability) bounds() (Parameters, error) {
	if c.Parameters == nil {
		return Parameters{}, nil
	}
	p, err := ParseParameters(c.Parameters)
	if err != nil {
		return Parameters{}, err
	}
	if p.root.kind != kindObject {
		return Parameters{}, refuse(CodeParameterMalformed, "the parameters of %s are not a JSON object", c.Name())
	}
	return p, nil
}

// matchesName reports whether the name of grant covers a scheme and id, which may themselves end in a wildcard.
func (c Capability) matchesName(scheme, id string) bool {
	if c.Scheme != scheme {
		return false
	}
	if c.ID == id || c.ID == wildcard {
		return id != ""
	}
	prefix, isWild := strings.CutSuffix(c.ID, wildcard)
	return isWild && strings.HasSuffix(prefix, separator) && strings.HasPrefix(id, prefix)
}

func isSchemeChar(b byte) bool {
	return isAlphanumeric(b) || strings.IndexByte("-._/", b) >= 0
}

func isSegmentChar(b byte) bool {
	return isAlphanumeric(b) || strings.IndexByte("-._~/@+=%", b) >= 0
}

func isAlphanumeric(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

func allIn(s string, allowed func(byte) bool) bool {
	for i := range len(s) {
		if !allowed(s[i]) {
			return false
		}
	}
	return true
}

// clip keeps hostile text short enough to show.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%d octets)", strings.ToValidUTF8(s[:most], ""), len(s))
}
