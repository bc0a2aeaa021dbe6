package capability

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEvaluate(t *testing.T) {
	t.Parallel()
	// 2026-03-04 is a winter Wednesday: Berlin is one hour ahead of UTC.
	at := func(clock string) time.Time {
		v, err := time.Parse(time.RFC3339, "2026-03-04T"+clock+":00Z")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	from := func(ip string) Operation { return Operation{Name: "a:b", Remote: netip.MustParseAddr(ip)} }
	when := func(clock string) Operation { return Operation{Name: "a:b", Time: at(clock)} }
	const berlin = `time:window{"start":"08:00","end":"18:00","tz":"Europe/Berlin"}`
	const night = `time-window{"start":"22:00","end":"06:00"}`
	tests := []struct {
		constraint string
		op         Operation
		want       Obligations
		code       string
	}{
		{`network:cidr["10.0.0.0/8","2001:db8::/32"]`, from("10.1.2.3"), Obligations{}, ""},
		{`allowed-cidr["10.0.0.0/8"]`, from("::ffff:10.1.2.3"), Obligations{}, ""},
		{`network:cidr["10.0.0.0/8","2001:db8::/32"]`, from("2001:db8::1"), Obligations{}, ""},
		{`network:cidr["10.0.0.0/8"]`, from("192.0.2.1"), Obligations{}, CodeNetwork},
		{`network:cidr["10.0.0.0/8"]`, Operation{}, Obligations{}, CodeConstraintFact},
		{berlin, when("07:00"), Obligations{}, ""},
		{berlin, when("06:59"), Obligations{}, CodeTime},
		{berlin, when("16:59"), Obligations{}, ""},
		{berlin, when("17:00"), Obligations{}, CodeTime},
		{berlin, Operation{}, Obligations{}, CodeConstraintFact},
		{night, when("23:00"), Obligations{}, ""},
		{night, when("05:59"), Obligations{}, ""},
		{night, when("06:00"), Obligations{}, CodeTime},
		{night, when("12:00"), Obligations{}, CodeTime},
		{`op:readonly`, Operation{ReadOnly: true}, Obligations{}, ""},
		{`op:readonly`, Operation{}, Obligations{}, CodeReadOnly},
		{`op:audit:required`, Operation{}, Obligations{Audit: true}, ""},
		{`session:max-concurrent{"max":3}`, Operation{}, Obligations{MaxConcurrent: 3}, ""},
		{`max-concurrent{"max":3}`, Operation{}, Obligations{MaxConcurrent: 3}, ""},
		{`session:idle-timeout{"seconds":90}`, Operation{}, Obligations{IdleTimeout: 90 * time.Second}, ""},
		{`session:hard-timeout{"seconds":3600}`, Operation{}, Obligations{HardTimeout: time.Hour}, ""},
		{`geo-fence{"regions":["EU","CH"]}`, Operation{Region: "CH"}, Obligations{}, ""},
		{`geo-fence{"regions":["EU"]}`, Operation{Region: "US"}, Obligations{}, CodeRegion},
		{`geo-fence{"regions":["EU"]}`, Operation{}, Obligations{}, CodeConstraintFact},
		{`geo-fence{"regions":["EU"],"resolver":"x"}`, Operation{Region: "EU", Resolver: "y"}, Obligations{}, CodeConstraintFact},
	}
	for _, tt := range tests {
		got, err := mustParse(t, "constraint:"+tt.constraint).Evaluate(tt.op)
		if codeOf(err) != tt.code || !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %+v, %v, want %+v, code %q", tt.constraint, got, err, tt.want, tt.code)
		}
	}
}

func TestMalformedConstraints(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`network:cidr`, `network:cidr[]`, `network:cidr["x"]`, `network:cidr[1]`, `network:cidr{"a":1}`,
		`time:window`, `time:window{"start":"8:00","end":"18:00"}`, `time:window{"start":"08:00","end":"08:00"}`,
		`time:window{"start":"08:00","end":"18:00","tz":"Local"}`, `time:window{"start":"08:00","end":"18:00","tz":"../x"}`,
		`time:window{"start":"08:00","end":"18:00","days":1}`,
		`max-concurrent`, `max-concurrent{"max":0}`, `max-concurrent{"max":1025}`, `max-concurrent{"max":1.5}`, `max-concurrent{"max":-1}`,
		`session:idle-timeout{"minutes":1}`, `session:hard-timeout{"seconds":99999999999}`,
		`op:readonly{"x":1}`, `op:audit:required[]`, `geo-fence`, `geo-fence{"regions":[]}`, `geo-fence{"regions":["EU"],"resolver":1}`,
	} {
		if _, err := Parse("constraint:" + text); codeOf(err) != CodeConstraintMalformed {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestUnknownConstraintRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []Capability{
		{Scheme: ConstraintWireScheme, ID: "moon:phase"},
		{Scheme: "calendar", ID: "op:readonly"},
	} {
		if _, err := (Set{c}).Evaluate(Operation{ReadOnly: true}); codeOf(err) != CodeConstraintUnknown {
			t.Errorf("%s: %v", c.Name(), err)
		}
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	granted := mustParse(t, "calendar:read")
	constraints := mustParse(t, "constraint:op:readonly", `constraint:max-concurrent{"max":5}`, `constraint:max-concurrent{"max":2}`)
	got, err := Decide(granted, constraints, Operation{Name: "calendar:read", ReadOnly: true})
	if err != nil || got.MaxConcurrent != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := Decide(granted, constraints, Operation{Name: "calendar:write", ReadOnly: true}); codeOf(err) != CodeNotGranted {
		t.Errorf("an operation that was not granted: %v", err)
	}
}
