package capability

import (
	"net/netip"
	"time"
)

// ConstraintScheme is the scheme under which constraints are written in text.
const ConstraintScheme = "constraint"

// ConstraintWireScheme is the scheme under which constraints are written in certificates.
const ConstraintWireScheme = "varwof/constraint-v1"

// IsConstraint reports whether c stands under one of the schemes of constraints.
func IsConstraint(c Capability) bool {
	switch c.Scheme {
	case ConstraintScheme, ConstraintWireScheme, "constraint-v1":
		return true
	}
	return false
}

// A rule checks a constraint's parameters and applies it to an operation. Validation runs the first half only, with
// the operation nil.
type rule func(p Parameters, op *Operation) (Obligations, error)

// ruleOf is the one table of constraint names with their aliases; nil for an unknown name.
func ruleOf(id string) rule {
	switch id {
	case "network:cidr", "allowed-cidr":
		return network
	case "time:window", "time-window":
		return window
	case "session:max-concurrent", "max-concurrent":
		return maxConcurrent
	case "session:idle-timeout", "idle-timeout":
		return idleTimeout
	case "session:hard-timeout", "hard-timeout":
		return hardTimeout
	case "op:readonly":
		return readOnly
	case "op:audit:required":
		return auditRequired
	case "geo-fence":
		return geoFence
	}
	return nil
}

// ValidateConstraint reports why c is no known constraint with proper parameters. The error is a *Refusal.
func (c Capability) ValidateConstraint() error {
	_, err := c.apply(nil)
	return err
}

// Evaluate applies every constraint of s to op: the obligations that remain, or the *Refusal of the first constraint
// that does not hold, is not known, or lacks the fact that it needs.
func (s Set) Evaluate(op Operation) (Obligations, error) {
	var all Obligations
	if len(s) == 0 {
		return all, nil // the usual case, without moving op to the heap
	}
	for _, c := range s {
		one, err := c.apply(&op)
		if err != nil {
			return Obligations{}, err
		}
		all = all.Merge(one)
	}
	return all, nil
}

func (c Capability) apply(op *Operation) (Obligations, error) {
	if !IsConstraint(c) {
		return Obligations{}, refuse(CodeConstraintUnknown, "%s is not a constraint", clip(c.Name()))
	}
	apply := ruleOf(c.ID)
	if apply == nil {
		return Obligations{}, refuse(CodeConstraintUnknown, "the constraint %q is not known, so it cannot be kept", clip(c.ID))
	}
	var p Parameters
	if c.Parameters != nil {
		var err error
		if p, err = ParseParameters(c.Parameters); err != nil {
			return Obligations{}, err
		}
	}
	return apply(p, op)
}

// network: a list of CIDR prefixes, IPv4 or IPv6, one of which must hold the remote address.
func network(p Parameters, op *Operation) (Obligations, error) {
	texts, ok := p.root.texts()
	if !ok || len(texts) == 0 {
		return Obligations{}, malformed("network:cidr", `a list of networks, as in ["10.0.0.0/8","2001:db8::/32"]`)
	}
	within := false
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return Obligations{}, refuse(CodeConstraintMalformed, "%q is no network", clip(text))
		}
		within = within || op != nil && prefix.Contains(op.Remote.Unmap().WithZone(""))
	}
	switch {
	case op == nil || within:
		return Obligations{}, nil
	case !op.Remote.IsValid():
		return Obligations{}, missing("network:cidr", "the caller's address")
	default:
		return Obligations{}, refuse(CodeNetwork, "the address %s is outside the allowed networks", op.Remote)
	}
}

// window: {"start":"HH:MM","end":"HH:MM","tz":"Area/City"}, half-open, may cross midnight; without tz it is UTC.
func window(p Parameters, op *Operation) (Obligations, error) {
	start, okStart := p.root.clock("start")
	end, okEnd := p.root.clock("end")
	zone, okZone := p.root.zone("tz")
	if !okStart || !okEnd || !okZone || start == end || !p.root.only("start", "end", "tz") {
		return Obligations{}, malformed("time:window", `{"start":"08:00","end":"18:00","tz":"Europe/Berlin"}`)
	}
	if op == nil {
		return Obligations{}, nil
	}
	if op.Time.IsZero() {
		return Obligations{}, missing("time:window", "the time")
	}
	local := op.Time.In(zone)
	now := time.Duration(local.Hour())*time.Hour + time.Duration(local.Minute())*time.Minute
	inside := start <= now && now < end
	if start > end {
		inside = now >= start || now < end
	}
	if !inside {
		return Obligations{}, refuse(CodeTime, "it is %s in %s, outside the allowed hours", local.Format("15:04"), zone)
	}
	return Obligations{}, nil
}

// maxConcurrent: {"max":1..1024}.
func maxConcurrent(p Parameters, _ *Operation) (Obligations, error) {
	n, ok := p.root.whole("max")
	if !ok || n > 1024 {
		return Obligations{}, malformed("session:max-concurrent", `{"max":N} with N from 1 to 1024`)
	}
	return Obligations{MaxConcurrent: n}, nil
}

// idleTimeout: {"seconds":N}.
func idleTimeout(p Parameters, _ *Operation) (Obligations, error) {
	d, err := timeout(p, "session:idle-timeout")
	return Obligations{IdleTimeout: d}, err
}

// hardTimeout: {"seconds":N}.
func hardTimeout(p Parameters, _ *Operation) (Obligations, error) {
	d, err := timeout(p, "session:hard-timeout")
	return Obligations{HardTimeout: d}, err
}

func timeout(p Parameters, name string) (time.Duration, error) {
	const year = 365 * 24 * 60 * 60
	n, ok := p.root.whole("seconds")
	if !ok || n > year {
		return 0, malformed(name, `{"seconds":N} with N from 1 to a year`)
	}
	return time.Duration(n) * time.Second, nil
}

func readOnly(p Parameters, op *Operation) (Obligations, error) {
	if !p.root.only() {
		return Obligations{}, malformed("op:readonly", "no parameters")
	}
	if op != nil && !op.ReadOnly {
		return Obligations{}, refuse(CodeReadOnly, "%s changes something; only reading is allowed", clip(op.Name))
	}
	return Obligations{}, nil
}

func auditRequired(p Parameters, _ *Operation) (Obligations, error) {
	if !p.root.only() {
		return Obligations{}, malformed("op:audit:required", "no parameters")
	}
	return Obligations{Audit: true}, nil
}

// geoFence: {"regions":["EU",…],"resolver":"name"}; with a resolver named, only its finding counts.
func geoFence(p Parameters, op *Operation) (Obligations, error) {
	list, _ := p.root.get("regions")
	regions, ok := list.texts()
	resolver, named := p.root.get("resolver")
	if !ok || len(regions) == 0 || named && resolver.kind != kindString || !p.root.only("regions", "resolver") {
		return Obligations{}, malformed("geo-fence", `{"regions":["EU"],"resolver":"name"}`)
	}
	if op == nil {
		return Obligations{}, nil
	}
	if op.Region == "" || named && op.Resolver != resolver.text {
		return Obligations{}, missing("geo-fence", "the caller's region")
	}
	for _, region := range regions {
		if region == op.Region {
			return Obligations{}, nil
		}
	}
	return Obligations{}, refuse(CodeRegion, "the region %q is outside the allowed ones", clip(op.Region))
}

func malformed(name, shape string) error {
	return refuse(CodeConstraintMalformed, "the constraint %s takes %s", name, shape)
}

func missing(name, fact string) error {
	return refuse(CodeConstraintFact, "the constraint %s needs %s, which this service does not know", name, fact)
}
