package capability

// A Set is a list of capabilities, any of which may allow an operation, or of constraints, all of which must hold.
type Set []Capability

// Match reports why c alone does not allow op, nil if it does: the name is covered, and op states exactly the
// parameters that c declares, each within its bound. The error is a *Refusal.
func (c Capability) Match(op Operation) error { return Set{c}.Allow(op) }

// Allow reports why no capability of s allows op, nil if one does. Where a name fits and its bounds do not, the refusal
// speaks of the bound. The error is a *Refusal.
func (s Set) Allow(op Operation) error {
	scheme, id, err := op.split()
	if err != nil {
		return err
	}
	asked, err := Capability{Scheme: scheme, ID: id, Parameters: op.Parameters}.bounds()
	if err != nil {
		return err
	}
	nearest := error(nil)
	for _, c := range s {
		if IsConstraint(c) || !c.matchesName(scheme, id) {
			continue
		}
		if nearest = c.matchParameters(asked); nearest == nil {
			return nil
		}
	}
	if nearest != nil {
		return nearest
	}
	return refuse(CodeNotGranted, "%s was not granted", op.Name)
}

func (c Capability) matchParameters(asked Parameters) error {
	if err := c.Validate(); err != nil {
		return err
	}
	granted, err := c.bounds()
	if err != nil {
		return err
	}
	return matchFields("", granted.root.fields, asked.root.fields, value.allows)
}

// Contains reports whether every operation that request allows is allowed by c too.
func (c Capability) Contains(request Capability) bool {
	if c.Validate() != nil || request.Validate() != nil || !c.matchesName(request.Scheme, request.ID) {
		return false
	}
	granted, _ := c.bounds()
	asked, _ := request.bounds()
	return matchFields("", granted.root.fields, asked.root.fields, value.contains) == nil
}

// Covers reports why s does not contain all of request, nil if each of its capabilities lies within one of s. The
// error is a *Refusal that names the first that does not.
func (s Set) Covers(request Set) error {
	for _, r := range request {
		if err := r.Validate(); err != nil {
			return err
		}
		if !s.containsOne(r) {
			return refuse(CodeNotGranted, "%s goes beyond what was granted", clip(r.String()))
		}
	}
	return nil
}

func (s Set) containsOne(request Capability) bool {
	for _, c := range s {
		if c.Contains(request) {
			return true
		}
	}
	return false
}

// Intersect gives capabilities that allow only what both sets allow. It may be narrower than the exact intersection
// where bounds of different shapes meet, never wider. Invalid capabilities count as granting nothing.
func (s Set) Intersect(other Set) Set {
	var both Set
	for _, a := range s {
		for _, b := range other {
			if c, ok := a.meet(b); ok && !both.containsOne(c) {
				both = append(both, c)
			}
		}
	}
	return both
}

// meet gives the capability that allows what a and b both allow, if there is one.
func (c Capability) meet(other Capability) (Capability, bool) {
	if !c.matchesName(other.Scheme, other.ID) {
		if !other.matchesName(c.Scheme, c.ID) {
			return Capability{}, false
		}
		c, other = other, c
	}
	if c.Validate() != nil || other.Validate() != nil {
		return Capability{}, false
	}
	a, _ := c.bounds()
	b, _ := other.bounds()
	fields, ok := meetFields(a.root.fields, b.root.fields)
	if !ok {
		return Capability{}, false
	}
	narrow := Capability{Scheme: other.Scheme, ID: other.ID}
	if len(fields) > 0 {
		narrow.Parameters = []byte(Parameters{value{kind: kindObject, fields: fields}}.String())
	}
	return narrow, true
}
