package name

import (
	"strings"
	"testing"

	"chancery/internal/base/fault"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"Example.ORG.", "dns:example.org"},
		{"*.example.org", "dns:*.example.org"},
		{"localhost", "dns:localhost"},
		{"192.0.2.1", "ip:192.0.2.1"},
		{"::ffff:192.0.2.1", "ip:192.0.2.1"},
		{"2001:DB8::1", "ip:2001:db8::1"},
		{"Alice@Example.org", "email:Alice@example.org"},
		{"spiffe://corp.example/agent/a1", "uri:spiffe://corp.example/agent/a1"},
		{"uri:urn:example:a", "uri:urn:example:a"},
		{"dns:a", "dns:a"},
	} {
		got, err := Parse(c.in)
		if err != nil || got.String() != c.want {
			t.Errorf("Parse(%q) = %v, %v, want %s", c.in, got, err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, in := range []string{
		"", ".", "a..b", "-a.example", "a-.example", "a b", "ex_ample.org", "*", "*.org", "a.*.org", "1.2.3", "dns:1.2.3.4",
		"ip:example.org", "fe80::1%eth0", "@example.org", "a@", ".a@example.org", "a@*.example.org", "a b@example.org",
		"uri:relative", "uri:https://exa mple", "\x00", strings.Repeat("a", 64) + ".org", strings.Repeat("a.", 127) + "org",
	} {
		if got, err := Parse(in); fault.CodeOf(err) != "name_invalid" {
			t.Errorf("Parse(%q) = %v, %v, want name_invalid", in, got, err)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		has, asked string
		want       bool
	}{
		{"example.org", "example.org", true},
		{"*.example.org", "a.example.org", true},
		{"*.example.org", "a.b.example.org", false},
		{"*.example.org", "example.org", false},
		{"*.example.org", "a@x.example.org", false},
		{"192.0.2.1", "192.0.2.2", false},
	} {
		has, _ := Parse(c.has)
		asked, _ := Parse(c.asked)
		if got := has.Covers(asked); got != c.want {
			t.Errorf("%v covers %v: %v, want %v", has, asked, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"example.org", "a@b.c", "192.0.2.1", "spiffe://x/y", "*.a.b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(n.String())
		if err != nil || again != n {
			t.Fatalf("%q gives %v, which reads back as %v, %v", s, n, again, err)
		}
	})
}
