package cli

import (
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
