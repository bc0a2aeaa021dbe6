package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chancery/internal/load"
)

// TestBenchRefusesWhatMeansNothing tells wrong command lines from runs that fail, before anything is started.
func TestBenchRefusesWhatMeansNothing(t *testing.T) {
	for _, line := range []string{
		"limits --connections -1",
		"limits --sample -1s",
		"limits more",
		"gate --duration -1s",
		"gate --connections 0x10000000",
		"crash --rounds -1",
		"crash --connections -1",
		"crash --people -1",
		"crash --store sqlite:/var/lib/chancery/chancery.db",
		"peer",
		"peer --peer-root a --provisioner b --provisioner-key c --pairs -1",
		"ab a b nonsense",
		"ab a b verify",
		"ab a b",
		"ab a b agent --warmup -1s",
		"suite --only nonsense",
		"suite --timeout -1s",
		"suite --connections -1",
		"suite --store nonsense",
		"compare a.json",
		"issue --scenario nonsense",
		"issue --mode nonsense",
		"issue --mode open",
		"issue --rate 100",
		"issue --interval 1s",
		"issue --mode steady --interval -1s",
		"issue --mode once --warmup 1s",
		"issue --obey",
		"issue --resume",
		"issue --duration 10s --stall 10s",
		"issue --memory much",
		"issue --store nonsense",
		"issue --slow-disk 5ms --store postgres://127.0.0.1:1/postgres",
		"issue --slow-disk 5ms --store mysql://root@127.0.0.1:1/",
		"issue --preset slow-disk --store postgres://127.0.0.1:1/postgres",
		"issue --agents 0",
		"issue --people 0",
		"issue --tokens 0",
		"issue --connections 0",
		"issue --duration 0s",
		"issue --mode steady --interval 0s",
		"issue --preset t3 --agents 0",
		"issue --preset t3 --interval 0s",
		"crash --rounds 0",
		"crash --longest 0s",
		"limits --sample 0s",
		"suite --agents 0",
		"suite --only=",
		"issue --scenario verify --slow-disk 5ms",
		"issue --scenario verify --stall 1s",
		"issue --scenario verify --reader",
		"issue --scenario verify --changes 5",
		"issue --scenario verify --new-connections",
		"issue --cores 100000",
		"issue --memory 1B",
		"issue --memory 63MB",
		"issue --report=",
		"issue --report /nonexistent/run.html --store postgres://127.0.0.1:1/postgres",
		"issue --preset nonsense",
		"issue --preset t3 --rate 100",
		"issue --preset t3 --memory 512MB",
		"issue --preset t3 --duration -1s",
		"issue --preset t3 --agents -1",
	} {
		var out, complaint bytes.Buffer
		code := Main(t.Context(), append([]string{"bench"}, strings.Fields(line)...), strings.NewReader(""), &out, &complaint)
		if code != exitUsage || out.Len() > 0 || complaint.Len() == 0 {
			t.Errorf("bench %s: exit code %d, %q and %q", line, code, out.String(), complaint.String())
		}
	}
}

// TestBenchCompareKeepsItsReports: the page is not written over what it is made of, whatever the file is called.
func TestBenchCompareKeepsItsReports(t *testing.T) {
	dir := t.TempDir()
	a, page := filepath.Join(dir, "a.json"), filepath.Join(dir, "page.html")
	report := `{"scenario": "agent", "phases": [{"mode": "closed"}]}`
	if err := errors.Join(os.WriteFile(a, []byte(report), 0o600), os.Symlink(a, page)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{a: exitUsage, page: exitUsage, filepath.Join(dir, "new.html"): exitOK} {
		var out, complaint bytes.Buffer
		code := Main(t.Context(), []string{"bench", "compare", a, a, "--report", name}, strings.NewReader(""), &out, &complaint)
		if text, err := os.ReadFile(a); code != want || string(text) != report {
			t.Errorf("--report %s: exit code %d, %s, and the report is %q (%v)", name, code, complaint.String(), text, err)
		}
	}
}

// TestBenchReportsWhatWasInterrupted: before anything was measured, too; and a page that cannot be written hides nothing.
func TestBenchReportsWhatWasInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	dir := t.TempDir()
	var out bytes.Buffer
	one := &terminal{out: &out, json: true}
	r := load.Report{Scenario: load.Agent, Interrupted: true}
	if err := one.reported(ctx, r, nil, filepath.Join(dir, "run.html")); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "run.html"))
	if err != nil || !strings.Contains(string(page), "interrupted") || !strings.Contains(out.String(), `"interrupted": true`) {
		t.Errorf("the page (%v) is %.80s, the JSON %s", err, page, out.String())
	}
	out.Reset()
	r.Phases = []load.PhaseReport{{Answered: 1}}
	if err := one.reported(t.Context(), r, nil, filepath.Join(dir, "missing", "run.html")); err == nil || out.Len() == 0 {
		t.Errorf("a report that cannot be written: %v, and %q is shown", err, out.String())
	}
}
