package load

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/api"
)

// woken is a report of a preset that is about its second phase.
func woken() Report {
	p, _ := FindPreset("wakeup")
	r := newReport(p.Apply(IssueConfig{}, Parameters{Agents: 100}).withDefaults())
	r.Machine, r.Database, r.Durability = sampleMachine(), "sqlite", []api.HealthSetting{{Name: "synchronous", Value: "full", Safe: true}}
	r.Phases = []PhaseReport{
		{Phase: p.phases[0], Offered: 9000, Answered: 9000, Rate: Rate{PerSecond: 1111}, Latency: Latency{P50: 1.11, P99: 1.12}},
		{Phase: p.phases[1], Offered: 100, Answered: 100, Rate: Rate{PerSecond: 2222}, Latency: Latency{P50: 2.21, P99: 2.22}, LastSec: 7},
	}
	r.Criteria = []Criterion{{"all", "100", Met}, {"fast", "no", Missed}, {"small", "not seen", Unjudged}, {"soon", "not seen", Unjudged}}
	r.mark()
	return r
}

// TestHeadlinesAreOfTheMainPhase: what measures the capacity first is not what a run is about.
func TestHeadlinesAreOfTheMainPhase(t *testing.T) {
	headline := func(r Report) (all []string) {
		for _, f := range r.headline() {
			all = append(all, f.Name+" "+f.Value)
		}
		return all
	}
	r := woken()
	if diff := cmp.Diff([]string{"wake-up: answers a second 2,222", "wake-up: p50 2.21 ms", "wake-up: p99 2.22 ms", "wake-up: the last served after 7 s"}, headline(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Phases = r.Phases[:1]
	if diff := cmp.Diff([]string{"wake-up: answers a second –", "wake-up: p50 –", "wake-up: p99 –"}, headline(r)); diff != "" {
		t.Errorf("interrupted before it (-want +got):\n%s", diff)
	}
	for _, p := range Presets() {
		for i, phase := range p.phases {
			if i == 0 && phase.Name == "capacity" && !slices.ContainsFunc(p.phases, func(p Phase) bool { return p.Main }) {
				t.Errorf("preset %s shows the phase that measures its capacity", p.Name)
			}
		}
	}
}

func sampleSuite() SuiteReport {
	r := SuiteReport{At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Folder: "bench", Changed: "100 agents", Machine: sampleMachine()}
	run := SuiteRun{Preset: "wakeup", Purpose: "All at once.", Database: "sqlite", State: Done, TookSec: 61, File: "wakeup-sqlite"}
	run.reported(woken())
	skipped := SuiteRun{Preset: "t1", Purpose: "Too many.", Database: "postgres", State: Skipped}
	skipped.reported(Report{})
	r.Runs = []SuiteRun{run, skipped}
	return r
}

// TestSuitesTellWhatARowIs fixes what a reader of the index and of the terminal learns about each run.
func TestSuitesTellWhatARowIs(t *testing.T) {
	r := sampleSuite()
	table := r.table()
	want := [][]string{
		{"wakeup", "sqlite", Done, "wake-up", "2,222", "2.21", "2.22", "1", "1", "2", "61"},
		{"t1", "postgres", Skipped, "–", "–", "–", "–", "–", "–", "–", "–"},
	}
	if diff := cmp.Diff(want, table.Rows); diff != "" {
		t.Errorf("the rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"wakeup-sqlite.html", ""}, table.Links); diff != "" {
		t.Errorf("the links (-want +got):\n%s", diff)
	}
	below := [][]string{{"All at once.", "missed: fast: no", "unjudged: small: not seen", "unjudged: soon: not seen", "note: the preset was changed: 100 agents", "note: short: phases of less than 30 s"}, {"Too many."}}
	if diff := cmp.Diff(below, table.Below); diff != "" {
		t.Errorf("below the rows (-want +got):\n%s", diff)
	}
	var html, text bytes.Buffer
	if err := r.page().Write(&html); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"2026-01-02 03:04:05", "Test CPU", "0123456789ab", "Database sqlite", "synchronous", `<a href="wakeup-sqlite.html">wakeup</a>`, "the presets were changed: 100 agents"} {
		if !strings.Contains(html.String(), part) {
			t.Errorf("the index says nothing of %q", part)
		}
	}
	r.Write(&text)
	for _, part := range []string{"PHASE", "wake-up", "UNJUDGED", "MARKS", "the presets were changed: 100 agents"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the terminal's table says nothing of %q:\n%s", part, text.String())
		}
	}
}
