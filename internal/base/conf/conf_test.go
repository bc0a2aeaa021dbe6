package conf

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

type listener struct {
	Address string         `conf:"listen" doc:"address of the listener"`
	Body    Size           `conf:"body_max"`
	Idle    time.Duration  `conf:"idle"`
	Trusted []netip.Prefix `conf:"trusted"`
	Verbose bool           `conf:"verbose"`
	Workers int8           `conf:"workers"`
	Now     func() time.Time
}

type vault struct {
	Passphrase Secret `conf:"passphrase"`
	Store      URL    `conf:"store"`
}

type program struct {
	Server listener `conf:"server"`
	Vault  vault    `conf:"vault"`
	Label  string   `conf:"label"`
}

func defaults() *program {
	return &program{Server: listener{Address: ":8443", Body: 1 << 20, Idle: time.Minute, Workers: 2}}
}

func TestLaterLayersWinAndAreNamed(t *testing.T) {
	t.Parallel()
	p := defaults()
	settings, err := Load(p, Sources{
		Preset: map[string]string{"server.body_max": "2MiB", "server.listen": ":1", "server.idle": "1s", "server.workers": "9"}, PresetOf: "preset small",
		FileName: "chancery.json",
		File: []byte(`{
			// people comment their files, "quoted" or not
			"server": {
				"listen": "https://host//path", // two slashes in a string are no comment
				"idle": "1d12h",
				"trusted": ["10.0.0.0/8", "fd00::/8",],
			},
			"vault": {"store": "postgres://u:hunter2@db/x?password=hunter2"},
		}`),
		Environ: []string{"CHANCERY_SERVER_IDLE=10m", "CHANCERY_SERVER_WORKERS=3", "CHANCERY_VAULT_PASSPHRASE=hunter2",
			"CHANCERY_TEST_POSTGRES=not ours", "HOME=/root"},
		Flags: map[string]string{"server.workers": "4", "server.verbose": "true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][2]string)
	for _, s := range settings {
		got[s.Name] = [2]string{s.Value, s.Origin}
	}
	want := map[string][2]string{
		"label":            {"", "default"},
		"server.listen":    {"https://host//path", "chancery.json:4"},
		"server.body_max":  {"2MiB", "preset small"},
		"server.idle":      {"10m", "environment CHANCERY_SERVER_IDLE"},
		"server.trusted":   {"10.0.0.0/8, fd00::/8", "chancery.json:6"},
		"server.verbose":   {"true", "flag --server.verbose"},
		"server.workers":   {"4", "flag --server.workers"},
		"vault.passphrase": {"[secret]", "environment CHANCERY_VAULT_PASSPHRASE"},
		"vault.store":      {"postgres://u:xxxxx@db/x?password=xxxxx", "chancery.json:8"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if p.Server.Idle != 10*time.Minute || p.Server.Workers != 4 || p.Vault.Passphrase.Reveal() != "hunter2" {
		t.Errorf("the struct does not hold what the settings say: %+v", p.Server)
	}
}

func TestFileIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, want string }{
		{"unknown name", "{\n \"server\": {\"listn\": \"x\"}}", `f:2:19: server.listn is not a setting; did you mean "server.listen"?`},
		{"other case", `{"Server": {}}`, `f:1:9: Server is not a setting; did you mean "server"?`},
		{"dotted name", `{"server.listen": "x"}`, `f:1:16: server.listen is not a setting`},
		{"duplicate", "{\"label\": \"a\",\n\"label\": \"b\"}", `f:2:7: label stands twice; first in f:1:8`},
		{"duplicate by escape", `{"label": "a", "\u006cabel": "b"}`, `label stands twice`},
		{"duplicate section", `{"server": {}, "server": {}}`, `server stands twice`},
		{"null", `{"label": null}`, `f:1:11: label: a string is expected, null stands here`},
		{"bare duration", `{"server": {"idle": 10}}`, `f:1:21: server.idle: a string is expected, a whole number stands here`},
		{"duration without unit", `{"server": {"idle": "10"}}`, `"10" is not a duration`},
		{"size without unit", `{"server": {"body_max": "64"}}`, `"64" is not a size`},
		{"fraction", `{"server": {"workers": 1.5}}`, `a whole number is expected, a fraction stands here`},
		{"too large", `{"server": {"workers": 128}}`, `"128" is not a whole number that fits int8`},
		{"quoted bool", `{"server": {"verbose": "true"}}`, `true or false is expected, a string stands here`},
		{"list element", `{"server": {"trusted": ["10.0.0.0/8", "x"]}}`, `element 2: `},
		{"section as value", `{"server": "x"}`, `server is a section`},
		{"value as section", `{"label": {}}`, `a string is expected, a section stands here`},
		{"no object", `[]`, `the file must be one object`},
		{"empty", "\n", `f:2:1: empty`},
		{"two objects", `{} {}`, `f:1:4: invalid character '{' after top-level value`},
		{"cut", `{"label": "a"`, `the file ends too early`},
		{"missing comma", "{\"label\": \"a\"\n\"server\": {}}", `f:2:1: invalid character`},
		{"lone comma", `{"label": "a",,}`, `f:1:16: invalid character '}'`},
		{"not UTF-8", "{\"label\": \"\xff\"}", `not UTF-8`},
		{"something else", "{" + strings.Repeat(`"x": 1, `, 60) + "}", `too many mistakes`},
		{"too big", strings.Repeat(" ", fileBytesMax+1), `larger than 1MiB`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(defaults(), Sources{FileName: "f", File: []byte(test.file)})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Load(defaults(), Sources{
		FileName: "f",
		File:     []byte(`{"labl": "x", "server": {"idle": "soon"}}`),
		Environ:  []string{"CHANCERY_SERVER_LISTN=x"},
		Flags:    map[string]string{"server.bodymax": "1MiB", "vault.passphrase": "hunter2"},
	})
	got := strings.Split(fmt.Sprint(err), "\n")
	want := []string{
		`f:1:7: labl is not a setting; did you mean "label"?`,
		`f:1:34: server.idle: "soon" is not a duration; write it with a unit: 500ms, 30s, 10m, 8h, 90d`,
		`environment CHANCERY_SERVER_LISTN: no setting has this variable; did you mean "CHANCERY_SERVER_LISTEN"?`,
		`flag --server.bodymax: no such setting; did you mean "server.body_max"?`,
		`flag --vault.passphrase: a secret on the command line is seen by everyone on this machine; use the environment variable CHANCERY_VAULT_PASSPHRASE`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	var one *Error
	if !errors.As(err, &one) || one.Origin != "f:1:7" {
		t.Errorf("the first error is %+v, want one with an origin", one)
	}
}

func TestShapesThatNoProgramMayHave(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		into any
		want string
	}{
		{"no pointer", program{}, "pointer to a struct"},
		{"shared variable", &struct {
			A string `conf:"a_b"`
			S struct {
				B string `conf:"b"`
			} `conf:"a"`
		}{}, "share the variable CHANCERY_A_B"},
		{"upper case", &struct {
			A string `conf:"A"`
		}{}, "lower-case name"},
		{"unknown type", &struct {
			A map[string]string `conf:"a"`
		}{}, "cannot be configured"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Load(test.into, Sources{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestSecretsNeverPrint(t *testing.T) {
	t.Parallel()
	v := vault{Passphrase: NewSecret("hunter2"), Store: "mysql://u:hunter2@db/x"}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", v.Passphrase, "url", v.Store, "all", v)
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	printed := []string{log.String(), string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		printed = append(printed, fmt.Sprintf(verb, v), fmt.Sprintf(verb, v.Passphrase), fmt.Sprintf(verb, &v.Store))
	}
	for _, text := range printed {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "68756e74657232") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	durations := map[string]time.Duration{
		"500ms": 500 * time.Millisecond, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "90d": 90 * 24 * time.Hour,
		"1d12h": 36 * time.Hour, "0s": 0, "1h0m5s": time.Hour + 5*time.Second,
	}
	for text, want := range durations {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want || d.String() != text {
			t.Errorf("duration %s: got %v (%v), want %v", text, d, err, want)
		}
	}
	sizes := map[string]Size{"0B": 0, "512B": 512, "64MiB": 64 << 20, "10MB": 10e6, "3TiB": 3 << 40}
	for text, want := range sizes {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want || s.String() != text {
			t.Errorf("size %s: got %v (%v), want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "0", "10", "d", "1d5", "-5m", "1d-5h", "+5m", "1.5d", "99999d", "1 h", "3000000h"} {
		if err := new(Duration).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("duration %q was taken", text)
		}
	}
	for _, text := range []string{"", "64", "1.5GiB", "-1B", "MiB", "9000000TiB", "64mib"} {
		if err := new(Size).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("size %q was taken", text)
		}
	}
}

// FuzzLoad holds what must be true of every file: no panic, a place in every error, and a value that prints in a form
// that is read back as the same value.
func FuzzLoad(f *testing.F) {
	f.Add(`{"server": {"listen": ":1", "idle": "1d2h", "trusted": ["10.0.0.0/8",], "body_max": "3KB"}} // x`)
	f.Add(`{"label": "\ud800", "server": {"workers": -0}}`)
	f.Add(`{"a": [[[[[`)
	f.Fuzz(func(t *testing.T, file string) {
		p := defaults()
		settings, err := Load(p, Sources{FileName: "f", File: []byte(file)})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f") {
				t.Errorf("an error without its place: %v", err)
			}
			return
		}
		again := defaults()
		var environ []string
		for _, s := range settings {
			if strings.HasPrefix(s.Name, "server.") {
				environ = append(environ, EnvironmentName(s.Name)+"="+s.Value)
			}
		}
		if _, err := Load(again, Sources{Environ: environ}); err != nil {
			t.Errorf("what was printed is not read back: %v", err)
		}
		if diff := cmp.Diff(p.Server, again.Server, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
			cmp.Comparer(func(a, b func() time.Time) bool { return true }), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("printed and read back (-first +again):\n%s", diff)
		}
	})
}
