package capability

import (
	"net/netip"
	"strings"
	"time"
)

// An Operation is what somebody is about to do, with the facts that constraints ask for. A fact that is left out counts
// as unknown and refuses wherever a constraint needs it.
type Operation struct {
	Name       string     // what is done, such as "calendar:read:events"; no wildcard
	Parameters []byte     // JSON object of the parameters that it is done with; nil if there are none
	Time       time.Time  // when
	Remote     netip.Addr // from where, IPv4 or IPv6
	ReadOnly   bool       // whether it changes nothing
	Region     string     // where the caller is, as the service's resolver found
	Resolver   string     // which resolver found the region
}

// Obligations are conditions that hold over time and that the enforcing service must keep. The zero value of a field
// means that there is no such condition.
type Obligations struct {
	MaxConcurrent int           // most operations at one time
	IdleTimeout   time.Duration // longest pause between two operations of a session
	HardTimeout   time.Duration // longest session
	Audit         bool          // the operation must be written to an audit log
}

// Merge gives the stricter of both in every field.
func (o Obligations) Merge(other Obligations) Obligations {
	return Obligations{
		MaxConcurrent: stricter(o.MaxConcurrent, other.MaxConcurrent),
		IdleTimeout:   stricter(o.IdleTimeout, other.IdleTimeout),
		HardTimeout:   stricter(o.HardTimeout, other.HardTimeout),
		Audit:         o.Audit || other.Audit,
	}
}

// stricter gives the smaller limit, where zero means no limit.
func stricter[T int | time.Duration](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// split gives scheme and id of an operation's name after checking that it is one concrete name.
func (op Operation) split() (scheme, id string, err error) {
	scheme, id, found := strings.Cut(op.Name, separator)
	if !found {
		return "", "", refuse(CodeMalformed, "%q names no operation", clip(op.Name))
	}
	if id == wildcard || strings.HasSuffix(id, separator+wildcard) {
		return "", "", refuse(CodeMalformed, "an operation is one concrete name; %q has a wildcard", clip(op.Name))
	}
	return scheme, id, Capability{Scheme: scheme, ID: id}.validateName()
}

// Decide answers whether granted and constraints together let op happen: nil and the obligations that the enforcing
// service must keep, or a *Refusal.
func Decide(granted Set, constraints Set, op Operation) (Obligations, error) {
	obligations, err := constraints.Evaluate(op)
	if err != nil {
		return Obligations{}, err
	}
	return obligations, granted.Allow(op)
}
