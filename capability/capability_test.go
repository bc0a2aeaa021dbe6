package capability

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mustParse reads capabilities that a test knows to be valid.
func mustParse(t *testing.T, texts ...string) Set {
	t.Helper()
	set := make(Set, len(texts))
	for i, text := range texts {
		c, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		set[i] = c
	}
	return set
}

func codeOf(err error) string {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Code
	}
	return ""
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want Capability
		code string
	}{
		{"calendar:read", Capability{Scheme: "calendar", ID: "read"}, ""},
		{"calendar:*", Capability{Scheme: "calendar", ID: "*"}, ""},
		{"acme/crm-v1:read:customer:*", Capability{Scheme: "acme/crm-v1", ID: "read:customer:*"}, ""},
		{"http:GET:/api/v1/users", Capability{Scheme: "http", ID: "GET:/api/v1/users"}, ""},
		{`sql:select{"max_rows":10}`, Capability{Scheme: "sql", ID: "select", Parameters: []byte(`{"max_rows":10}`)}, ""},
		{"constraint:op:readonly", Capability{Scheme: "constraint", ID: "op:readonly"}, ""},
		{"constraint:no:such", Capability{}, CodeConstraintUnknown},
		{"", Capability{}, CodeMalformed},
		{"calendar", Capability{}, CodeMalformed},
		{"*", Capability{}, CodeMalformed},
		{"*:read", Capability{}, CodeMalformed},
		{"calendar:", Capability{}, CodeMalformed},
		{":read", Capability{}, CodeMalformed},
		{"calendar:read:", Capability{}, CodeMalformed},
		{"calendar::read", Capability{}, CodeMalformed},
		{"calendar:*:read", Capability{}, CodeMalformed},
		{"calendar:re*", Capability{}, CodeMalformed},
		{"calendar:**", Capability{}, CodeMalformed},
		{"calendar:read me", Capability{}, CodeMalformed},
		{"calendar:réad", Capability{}, CodeMalformed},
		{"calendar:read[1]", Capability{}, CodeParameterMalformed},
		{"calendar:read{}{}", Capability{}, CodeParameterMalformed},
		{"a:" + strings.Repeat("b", MaxID+1), Capability{}, CodeMalformed},
		{strings.Repeat("a", MaxScheme+1) + ":b", Capability{}, CodeMalformed},
		{"a:b{" + strings.Repeat(" ", maxCapabilityText), Capability{}, CodeMalformed},
	}
	for _, tt := range tests {
		got, err := Parse(tt.text)
		if codeOf(err) != tt.code {
			t.Errorf("Parse(%.40q): %v, want code %q", tt.text, err, tt.code)
			continue
		}
		if tt.code == "" && !cmp.Equal(got, tt.want) {
			t.Errorf("Parse(%q): %s", tt.text, cmp.Diff(tt.want, got))
		}
	}
}

func TestValidateRefusesAConstraint(t *testing.T) {
	t.Parallel()
	c := Capability{Scheme: ConstraintWireScheme, ID: "op:readonly"}
	if err := c.Validate(); codeOf(err) != CodeMalformed {
		t.Errorf("a constraint passes as a capability: %v", err)
	}
	if err := c.ValidateConstraint(); err != nil {
		t.Error(err)
	}
}

func TestMatchByName(t *testing.T) {
	t.Parallel()
	tests := []struct {
		grant, name string
		code        string
	}{
		{"calendar:read", "calendar:read", ""},
		{"calendar:*", "calendar:read", ""},
		{"calendar:*", "calendar:read:events", ""},
		{"calendar:read:*", "calendar:read:events", ""},
		{"calendar:read:*", "calendar:read", CodeNotGranted},
		{"calendar:read:*", "calendar:ready", CodeNotGranted},
		{"calendar:read", "calendar:read:events", CodeNotGranted},
		{"calendar:read", "calendar:Read", CodeNotGranted},
		{"calendar:read", "mail:read", CodeNotGranted},
		{"calendar:*", "calendar:*", CodeMalformed},
		{"calendar:*", "calendar:a:*", CodeMalformed},
		{"calendar:*", "calendar", CodeMalformed},
		{"calendar:*", "calendar:", CodeMalformed},
		{"calendar:*", "calendar:a::b", CodeMalformed},
	}
	for _, tt := range tests {
		err := mustParse(t, tt.grant)[0].Match(Operation{Name: tt.name})
		if codeOf(err) != tt.code {
			t.Errorf("%s against %s: %v, want code %q", tt.grant, tt.name, err, tt.code)
		}
	}
}

func TestMatchByParameters(t *testing.T) {
	t.Parallel()
	tests := []struct {
		grant, asked, code string
	}{
		{``, ``, ""},
		{`{}`, ``, ""},
		{``, `{}`, ""},
		{`{"n":10}`, `{"n":10}`, ""},
		{`{"n":10}`, `{"n":10.0}`, ""},
		{`{"n":10}`, `{"n":-3}`, ""},
		{`{"n":10}`, `{"n":10.1}`, CodeParameterExceeds},
		{`{"n":-2}`, `{"n":-1}`, CodeParameterExceeds},
		{`{"n":12345678901234567}`, `{"n":12345678901234568}`, CodeParameterExceeds},
		{`{"n":10}`, ``, CodeParameterMissing},
		{``, `{"n":10}`, CodeParameterUndeclared},
		{`{"n":10}`, `{"m":1,"n":10}`, CodeParameterUndeclared},
		{`{"n":10}`, `{"n":"10"}`, CodeParameterExceeds},
		{`{"db":"crm"}`, `{"db":"crm"}`, ""},
		{`{"db":"crm"}`, `{"db":"hr"}`, CodeParameterExceeds},
		{`{"w":true}`, `{"w":false}`, CodeParameterExceeds},
		{`{"t":["a","b"]}`, `{"t":"a"}`, ""},
		{`{"t":["a","b"]}`, `{"t":["b"]}`, ""},
		{`{"t":["a","b"]}`, `{"t":["b","c"]}`, CodeParameterExceeds},
		{`{"t":[1,2]}`, `{"t":1}`, ""},
		{`{"t":[2]}`, `{"t":1}`, CodeParameterExceeds},
		{`{"o":{"n":5}}`, `{"o":{"n":4}}`, ""},
		{`{"o":{"n":5}}`, `{"o":{"n":6}}`, CodeParameterExceeds},
		{`{"o":{"n":5}}`, `{"o":{"n":5,"x":1}}`, CodeParameterUndeclared},
		{`{"n":1}`, `{"n":null}`, CodeParameterMalformed},
		{`{"n":1}`, `{"n":1,"n":0}`, CodeParameterMalformed},
		{`{"n":1}`, `{"n":1e0}`, CodeParameterMalformed},
		{`{"n":1}`, `[1]`, CodeParameterMalformed},
	}
	for _, tt := range tests {
		op := Operation{Name: "sql:select"}
		if tt.asked != "" {
			op.Parameters = []byte(tt.asked)
		}
		err := mustParse(t, "sql:select"+tt.grant)[0].Match(op)
		if codeOf(err) != tt.code {
			t.Errorf("%s against %s: %v, want code %q", tt.grant, tt.asked, err, tt.code)
		}
	}
}

func TestAllowSkipsWhatIsInvalid(t *testing.T) {
	t.Parallel()
	set := Set{{Scheme: "sql", ID: "select", Parameters: []byte{1, 2}}}
	if err := set.Allow(Operation{Name: "sql:select"}); codeOf(err) != CodeParameterMalformed {
		t.Errorf("a grant with broken parameters: %v", err)
	}
	set = append(set, Capability{Scheme: "sql", ID: "*"})
	if err := set.Allow(Operation{Name: "sql:select"}); err != nil {
		t.Errorf("a good grant after a broken one: %v", err)
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		grant, request string
		want           bool
	}{
		{"a:*", "a:b", true},
		{"a:*", "a:b:*", true},
		{"a:*", "a:*", true},
		{"a:b:*", "a:*", false},
		{"a:b:*", "a:b", false},
		{"a:b", "a:*", false},
		{`a:b{"n":5}`, `a:b{"n":3}`, true},
		{`a:b{"n":5}`, `a:b{"n":6}`, false},
		{`a:b{"n":5}`, `a:b`, false},
		{`a:b`, `a:b{"n":5}`, false},
		{`a:b{"n":[5,10]}`, `a:b{"n":5}`, false}, // the request's 5 is an upper limit: it would allow 3
		{`a:b{"n":[5,10]}`, `a:b{"n":[5]}`, true},
		{`a:b{"s":["x","y"]}`, `a:b{"s":"x"}`, true},
		{`a:b{"o":[{"n":5}]}`, `a:b{"o":{"n":5}}`, false},
	}
	for _, tt := range tests {
		err := mustParse(t, tt.grant).Covers(mustParse(t, tt.request))
		if (err == nil) != tt.want {
			t.Errorf("%s covers %s: %v, want %v", tt.grant, tt.request, err, tt.want)
		}
	}
}

func TestIntersect(t *testing.T) {
	t.Parallel()
	tests := []struct{ a, b, want string }{
		{"a:*", "a:b", "a:b"},
		{"a:b", "a:*", "a:b"},
		{"a:b", "a:c", ""},
		{`a:*{"n":5}`, `a:b{"n":7}`, `a:b{"n":5}`},
		{`a:b{"s":["x","y"]}`, `a:b{"s":["y","z"]}`, `a:b{"s":["y"]}`},
		{`a:b{"s":["x"]}`, `a:b{"s":["z"]}`, ""},
		{`a:b{"n":[5]}`, `a:b{"n":7}`, ""},
		{`a:b{"o":{"n":5,"m":1}}`, `a:b{"o":{"m":3,"n":2}}`, `a:b{"o":{"m":1,"n":2}}`},
	}
	for _, tt := range tests {
		got := ""
		for _, c := range mustParse(t, tt.a).Intersect(mustParse(t, tt.b)) {
			got += c.String()
		}
		if got != tt.want {
			t.Errorf("%s ∩ %s = %s, want %s", tt.a, tt.b, got, tt.want)
		}
	}
}
