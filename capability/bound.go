package capability

import "slices"

// matchFields compares two objects name by name; both must have the same names, because a parameter that the grant
// does not declare and a bound that the request does not state both mean more than was granted. Path leads to the
// object, for the refusal's text.
func matchFields(path string, granted, asked []field, within func(g, a value, path string) error) error {
	for len(granted) > 0 || len(asked) > 0 {
		order := 0
		switch {
		case len(granted) == 0:
			order = 1
		case len(asked) == 0:
			order = -1
		default:
			order = compareNames(granted[0].name, asked[0].name)
		}
		if order < 0 {
			return refuse(CodeParameterMissing, "the grant limits the parameter %q, which the operation does not state", path+granted[0].name)
		}
		if order > 0 {
			return refuse(CodeParameterUndeclared, "the parameter %q is not part of the grant", clip(path+asked[0].name))
		}
		if err := within(granted[0].value, asked[0].value, path+asked[0].name); err != nil {
			return err
		}
		granted, asked = granted[1:], asked[1:]
	}
	return nil
}

// allows reports why the value of an operation is not within the bound v.
func (v value) allows(asked value, path string) error {
	if v.kind == kindArray && asked.kind != kindArray {
		return v.lists(asked, path)
	}
	return v.within(asked, path, value.allows)
}

// contains reports why the bound asked is wider than the bound v. It differs from allows where asked stands for more
// values than itself: a number in a request is an upper limit, so that no enumeration holds all that it allows.
func (v value) contains(asked value, path string) error {
	if v.kind == kindArray && (asked.kind == kindString || asked.kind == kindBool) {
		return v.lists(asked, path)
	}
	return v.within(asked, path, value.contains)
}

func (v value) lists(asked value, path string) error {
	if slices.ContainsFunc(v.items, asked.equal) {
		return nil
	}
	return refuse(CodeParameterExceeds, "%s is not one of the granted values of %q", clip(string(asked.append(nil))), path)
}

// within compares values of the same kind.
func (v value) within(asked value, path string, nested func(g, a value, path string) error) error {
	if v.kind != asked.kind {
		return refuse(CodeParameterExceeds, "the parameter %q has another type than in the grant", path)
	}
	switch v.kind {
	case kindObject:
		return matchFields(path+".", v.fields, asked.fields, nested)
	case kindArray:
		for _, item := range asked.items {
			if err := v.lists(item, path); err != nil {
				return err
			}
		}
		return nil
	case kindNumber:
		if asked.number.compare(v.number) > 0 {
			return refuse(CodeParameterExceeds, "%s is more than the %s granted for %q", asked.number, v.number, path)
		}
		return nil
	default:
		if !v.equal(asked) {
			return refuse(CodeParameterExceeds, "%s is not the granted value of %q", clip(string(asked.append(nil))), path)
		}
		return nil
	}
}

func (v value) equal(other value) bool {
	return v.kind == other.kind && v.text == other.text && v.truth == other.truth && v.number == other.number &&
		slices.EqualFunc(v.items, other.items, value.equal) &&
		slices.EqualFunc(v.fields, other.fields, func(a, b field) bool { return a.name == b.name && a.value.equal(b.value) })
}

// meet gives the bound that allows what both allow, or false if nothing passes both for certain.
func (v value) meet(other value) (value, bool) {
	switch {
	case v.contains(other, "") == nil:
		return other, true
	case other.contains(v, "") == nil:
		return v, true
	case v.kind == kindArray && other.kind == kindArray:
		var both []value
		for _, item := range v.items {
			if slices.ContainsFunc(other.items, item.equal) {
				both = append(both, item)
			}
		}
		return value{kind: kindArray, items: both}, len(both) > 0
	case v.kind == kindObject && other.kind == kindObject:
		fields, ok := meetFields(v.fields, other.fields)
		return value{kind: kindObject, fields: fields}, ok
	default:
		return value{}, false
	}
}

func meetFields(a, b []field) ([]field, bool) {
	if len(a) != len(b) {
		return nil, false
	}
	fields := make([]field, len(a))
	for i := range a {
		v, ok := a[i].value.meet(b[i].value)
		if !ok || a[i].name != b[i].name {
			return nil, false
		}
		fields[i] = field{a[i].name, v}
	}
	return fields, true
}
