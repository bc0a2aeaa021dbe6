package capability

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseParameters(t *testing.T) {
	t.Parallel()
	tests := []struct {
		raw, canonical string // canonical "" means refused
	}{
		{`{ "b": 1.50, "a": [true, "x"] }`, `{"a":[true,"x"],"b":1.5}`},
		{`{"n":-0.0}`, `{"n":0}`},
		{`{"n":0.00000000000000001}`, ``}, // 18 digits
		{`{"n":0.0000000000000001}`, `{"n":0.0000000000000001}`},
		{`{"n":99999999999999999}`, `{"n":99999999999999999}`},
		{`{"n":100000000000000000}`, ``},
		{`{"n":1E2}`, ``},
		{`"\u20ac\n\u0001\/\""`, `"€\n\u0001/\""`},
		{`{"\ud83d\ude00":1,"\ufb33":2}`, "{\"😀\":1,\"\ufb33\":2}"}, // UTF-16 order, not UTF-8
		{`"\ud800"`, ``},
		{"\"\xff\"", ``},
		{`{"a":1,"\u0061":2}`, ``},
		{`null`, ``},
		{`[null]`, ``},
		{``, ``},
		{`{} {}`, ``},
		{`{"a":01}`, ``},
		{strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)},
		{strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), ``},
		{`"` + strings.Repeat("x", MaxCanonical-2) + `"`, `"` + strings.Repeat("x", MaxCanonical-2) + `"`},
		{`"` + strings.Repeat("x", MaxCanonical-1) + `"`, ``},
		{strings.Repeat(" ", MaxParameters) + "1", ``},
	}
	for _, tt := range tests {
		p, err := ParseParameters([]byte(tt.raw))
		got := ""
		if err == nil {
			got = p.String()
		} else if codeOf(err) != CodeParameterMalformed {
			t.Errorf("%.40q: %v", tt.raw, err)
		}
		if got != tt.canonical {
			t.Errorf("%.40q: got %q (%v), want %q", tt.raw, got, err, tt.canonical)
		}
	}
}

func TestDecimalOrder(t *testing.T) {
	t.Parallel()
	ascending := []string{"-12345678901234567", "-2.5", "-2.4", "-0.1", "0", "0.1", "0.11", "1", "12345678901234566", "12345678901234567"}
	for i, a := range ascending {
		for j, b := range ascending {
			x, _ := parseDecimal(a)
			y, _ := parseDecimal(b)
			if got := x.compare(y); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("compare(%s, %s) = %d", a, b, got)
			}
		}
		if x, _ := parseDecimal(a); x.String() != a {
			t.Errorf("%s is written %s", a, x)
		}
	}
}

func FuzzParameters(f *testing.F) {
	for _, s := range []string{`{"a":[1,"x",{"b":true}]}`, `-0.5`, `"\u20ac"`, `[]`, `{"a":null}`, fmt.Sprintf("%q", "é")} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := ParseParameters(raw)
		if err != nil {
			return
		}
		again, err := ParseParameters([]byte(p.String()))
		if err != nil || again.String() != p.String() {
			t.Fatalf("canonical form %q of %q is not stable: %v", p, raw, err)
		}
		if !p.root.equal(again.root) {
			t.Fatalf("%q changed its meaning in canonical form", raw)
		}
	})
}
