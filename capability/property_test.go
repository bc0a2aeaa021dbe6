package capability

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Small alphabets make names and bounds meet often enough for the properties to bite.

func drawName(t *rapid.T, wild bool) string {
	segments := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3).Draw(t, "segments")
	if wild && rapid.Bool().Draw(t, "wild") {
		segments[len(segments)-1] = wildcard
	}
	return rapid.SampledFrom([]string{"x", "y"}).Draw(t, "scheme") + ":" + strings.Join(segments, ":")
}

func drawBound(t *rapid.T, depth int) string {
	scalars := []string{"1", "2", "3.5", "-1", `"u"`, `"v"`, "true", "false"}
	switch shape := rapid.IntRange(0, 9).Draw(t, "shape"); {
	case shape < 5 || depth == 0:
		return rapid.SampledFrom(scalars).Draw(t, "scalar")
	case shape < 8:
		return "[" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(scalars, `{"m":1}`, `["u"]`)), 0, 3).Draw(t, "items"), ",") + "]"
	default:
		return drawParameters(t, depth-1)
	}
}

func drawParameters(t *rapid.T, depth int) string {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"m", "n"}), 0, 2, rapid.ID[string]).Draw(t, "names")
	fields := make([]string, len(names))
	for i, name := range names {
		fields[i] = `"` + name + `":` + drawBound(t, depth)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

func drawCapability(t *rapid.T) Capability {
	c, err := Parse(drawName(t, true) + drawParameters(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func drawSet(t *rapid.T) Set {
	return Set(rapid.SliceOfN(rapid.Custom(drawCapability), 0, 4).Draw(t, "set"))
}

func drawOperation(t *rapid.T) Operation {
	return Operation{Name: drawName(t, false), Parameters: []byte(drawParameters(t, 2))}
}

// What lies within a grant allows nothing that the grant does not allow.
func TestCoveredSetAllowsNoMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		grant, request, op := drawSet(t), drawSet(t), drawOperation(t)
		if grant.Covers(request) == nil && request.Allow(op) == nil && grant.Allow(op) != nil {
			t.Fatalf("%v covers %v, but only the latter allows %s%s", grant, request, op.Name, op.Parameters)
		}
	})
}

// An intersection lies within both sets, and allows nothing that either refuses.
func TestIntersectNeverWidens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, op := drawSet(t), drawSet(t), drawOperation(t)
		both := a.Intersect(b)
		if err := a.Covers(both); err != nil {
			t.Fatalf("%v ∩ %v = %v leaves the first: %v", a, b, both, err)
		}
		if err := b.Covers(both); err != nil {
			t.Fatalf("%v ∩ %v = %v leaves the second: %v", a, b, both, err)
		}
		if both.Allow(op) == nil && (a.Allow(op) != nil || b.Allow(op) != nil) {
			t.Fatalf("%v ∩ %v = %v allows %s%s", a, b, both, op.Name, op.Parameters)
		}
	})
}

// Containment is reflexive and transitive.
func TestContainsIsAnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawCapability(t), drawCapability(t), drawCapability(t)
		if !a.Contains(a) {
			t.Fatalf("%v does not contain itself", a)
		}
		if a.Contains(b) && b.Contains(c) && !a.Contains(c) {
			t.Fatalf("%v ⊇ %v ⊇ %v, but not the first the last", a, b, c)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"calendar:read", "a/b-v1:c:*", `sql:select{"n":1}`, `constraint:network:cidr["10.0.0.0/8"]`, "a::b", "*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(c.String())
		if err != nil || again.String() != c.String() {
			t.Fatalf("%q does not survive a round trip: %q, %v", text, again, err)
		}
		if !IsConstraint(c) && !c.Contains(again) {
			t.Fatalf("%q does not contain itself", text)
		}
	})
}
