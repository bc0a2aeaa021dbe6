package cli

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"

	"chancery/client"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"chancery/internal/load"
)

// TestAsProgram is no test: a bench that is told to call program finds the program here.
func TestAsProgram(t *testing.T) {
	if os.Getenv("CHANCERY_TEST_PROGRAM") == "" {
		t.Skip("only for benches that start servers")
	}
	args := os.Args[slices.Index(os.Args, "--")+1:]
	os.Exit(Main(context.Background(), args, os.Stdin, os.Stdout, os.Stderr))
}

func program(t *testing.T) load.Program {
	t.Helper()
	t.Setenv("CHANCERY_TEST_PROGRAM", "1")
	return load.Program{os.Args[0], "-test.run=^TestAsProgram$", "--"}
}

var few = load.Population{People: 2, Agents: 4, Tokens: 4}

func TestBenchIssueLosesNothing(t *testing.T) {
	for _, scenario := range []string{load.Regular, load.Agent} {
		t.Run(scenario, func(t *testing.T) {
			r, err := load.Issue(t.Context(), load.IssueConfig{
				Program: program(t), Scenario: scenario, Phases: []load.Phase{{Connections: 4, For: time.Second, Warmup: 100 * time.Millisecond}}, Population: few, Dir: t.TempDir(), Log: t.Logf,
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Failed(); err != nil {
				t.Error(err)
			}
			if r.Answered == 0 || r.Lookup.LookedUp != r.Answered || r.Lookup.OCSPAsked == 0 || r.Verified == 0 || len(r.Durability) == 0 {
				t.Errorf("answered %d, looked up %d, asked OCSP %d times, verified %d, durability %v", r.Answered, r.Lookup.LookedUp, r.Lookup.OCSPAsked, r.Verified, r.Durability)
			}
		})
	}
}

func TestBenchCrashLosesNothing(t *testing.T) {
	r, err := load.Crash(t.Context(), load.CrashConfig{
		Program: program(t), Rounds: 2, Longest: 500 * time.Millisecond, Clients: 4, Population: few, Dir: t.TempDir(), Log: t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Failed(); err != nil {
		t.Error(err)
	}
	if r.Rounds != 2 || r.NoncesTried == 0 {
		t.Errorf("%d rounds, %d nonces tried", r.Rounds, r.NoncesTried)
	}
}

// TestBenchInterrupted ends a run in its middle: the report tells what there is.
func TestBenchInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	r, err := load.Issue(ctx, load.IssueConfig{
		Program: program(t), Phases: []load.Phase{{Connections: 4, For: time.Hour}}, Population: few, Dir: t.TempDir(),
		Log: func(format string, _ ...any) {
			if strings.HasSuffix(format, " for %s") {
				interrupt()
			}
		},
	})
	if err != nil || !r.Interrupted || r.Failed() != nil {
		t.Errorf("interrupted: %v, error %v, failed %v", r.Interrupted, err, r.Failed())
	}
}

// TestBenchSuite marks what takes too long, runs the rest, and writes a page about each.
func TestBenchSuite(t *testing.T) {
	out := t.TempDir()
	r, err := load.Suite(t.Context(), load.SuiteConfig{
		Program: program(t), Only: []string{"renew", "steps"}, With: load.Parameters{Agents: 4, Duration: time.Second, Connections: 4}, Out: out, Dir: t.TempDir(), Log: t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Failed(); err != nil && !strings.Contains(err.Error(), "not served") { // the machine may be too busy for 4,167 a second
		t.Error(err)
	}
	for _, name := range []string{"index.html", "summary.json", "renew-sqlite.html", "renew-sqlite.json", "steps-sqlite.html", "steps-sqlite.json"} {
		if info, err := os.Stat(filepath.Join(r.Folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	short, err := load.Suite(t.Context(), load.SuiteConfig{Program: program(t), Only: []string{"t3", "renew"}, Timeout: time.Millisecond, Out: out + "/short", Dir: t.TempDir()})
	if err != nil || len(short.Runs) != 2 || short.Runs[0].State != load.TimedOut || short.Runs[1].State != load.TimedOut || short.Failed() == nil {
		t.Errorf("with a millisecond for each: %+v, %v", short.Runs, err)
	}
}

func TestBenchRenewsOverNewConnections(t *testing.T) {
	for _, scenario := range []string{load.Renew, load.RenewRegular, load.OCSP, load.Verify} {
		full := load.Phase{Mode: load.Open, Rate: 50, Connections: 4, For: time.Second, Fresh: true}
		resumed := full
		resumed.Resume = true
		r, err := load.Issue(t.Context(), load.IssueConfig{Program: program(t), Scenario: scenario, Phases: []load.Phase{full, resumed}, Population: few, Dir: t.TempDir(), Log: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Failed(); err != nil {
			t.Errorf("%s: %v", scenario, err)
		}
		for _, p := range r.Phases {
			if strings.HasPrefix(scenario, "renew") && (p.Handshakes < p.Answered || p.Resume != (p.Resumed > 0)) {
				t.Errorf("%s: %d answered over %d handshakes, %d of them resumed", scenario, p.Answered, p.Handshakes, p.Resumed)
			}
		}
	}
}

func TestBenchSaysWhatIsWrongWithTheServer(t *testing.T) {
	garbage := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	defer garbage.Close()
	for what, url := range map[string]string{"a server that is down": "https://127.0.0.1:1", "a server of another authority": garbage.URL, "no address": "nonsense"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		admin, err := client.New(client.Config{URL: url, Token: "chy_x", Roots: x509.NewCertPool()})
		if err == nil {
			_, err = load.Issue(ctx, load.IssueConfig{Remote: &load.Remote{URL: url, Admin: admin}, Population: few})
		}
		if err == nil || ctx.Err() != nil {
			t.Errorf("%s: %v within the deadline (%v)", what, err, ctx.Err())
		}
		cancel()
	}
}
