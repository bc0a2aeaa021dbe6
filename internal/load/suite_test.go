package load

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/api"
	"chancery/internal/load/page"
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

// TestComparisonsDrawWhatWasSeen: a run on a database server shows no disk, and a comparison with it no disk of zero size.
func TestComparisonsDrawWhatWasSeen(t *testing.T) {
	a, b := sampleReport(), sampleReport()
	b.Database, b.At = "postgres", b.At.Add(time.Hour)
	for _, chart := range b.charts(true) {
		if chart.Title == "Disk" {
			t.Error("the files beside a database server pass for its disk")
		}
	}
	i := slices.IndexFunc(paired(a, b), func(c page.Chart) bool { return c.Title == "Disk" })
	if i < 0 {
		t.Fatal("the disk of A is not drawn")
	}
	if disk := paired(a, b)[i]; len(disk.Series) != 2 || disk.Note != "Nothing of it was seen in B." {
		t.Errorf("the disk is drawn as %+v", disk)
	}
	if i = slices.IndexFunc(paired(b, a), func(c page.Chart) bool { return c.Title == "Disk" }); i < 0 || paired(b, a)[i].Note != "Nothing of it was seen in A." {
		t.Error("the disk of B alone is not drawn as such")
	}
	want := "A: t0: agent (sqlite, 0123456789ab, 2026-01-02 03:04) and B: t0: agent (postgres, 0123456789ab, 2026-01-02 04:04)"
	if got := Compare(a, b).Title; got != want {
		t.Errorf("the title is %q, want %q", got, want)
	}
	b.Phases[0].Answered = 0
	if row := compared(a, b).Rows[1]; row[3] != none || row[4] != "" {
		t.Errorf("a phase without answers is compared as %v", row)
	}
}

// TestChartsTellWarmupsAndPhases: what is not counted is shaded, and every phase of several is marked.
func TestChartsTellWarmupsAndPhases(t *testing.T) {
	a := Report{Phases: []PhaseReport{
		{Phase: Phase{Name: "capacity", Warmup: 3 * time.Second, For: 15 * time.Second}, From: 3}, {Phase: Phase{Name: "stall", For: 30 * time.Second}, From: 18.5},
	}}
	b := Report{Phases: []PhaseReport{a.Phases[0], {Phase: Phase{Name: "stall"}, From: 19}}}
	plain, shaded := []page.Mark{{At: 3, Label: "capacity"}, {At: 18.5, Label: "stall"}}, []page.Span{{From: 0, To: 3}}
	if got := a.charts(false)[0]; !slices.Equal(got.Marks, plain) || !slices.Equal(got.Shaded, shaded) || got.Shade == "" {
		t.Errorf("the rate has the marks %v and shades %v", got.Marks, got.Shaded)
	}
	if got := paired(a, b)[0]; !slices.Equal(got.Marks, plain) || !slices.Equal(got.Shaded, shaded) {
		t.Errorf("of two alike, the rate has the marks %v and shades %v", got.Marks, got.Shaded)
	}
	b.Phases[1].Name = "other"
	want := []page.Mark{{At: 3, Label: "A: capacity"}, {At: 18.5, Label: "A: stall"}, {At: 3, Label: "B: capacity"}, {At: 19, Label: "B: other"}}
	if got := paired(a, b)[0]; !slices.Equal(got.Marks, want) || len(got.Shaded) > 0 {
		t.Errorf("of two that differ, the rate has the marks %v and shades %v", got.Marks, got.Shaded)
	}
}

// TestSaveLeavesNoHalfFile: what cannot be written whole leaves what was there, and nothing beside it.
func TestSaveLeavesNoHalfFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "run.json")
	if err := writeJSON(file, "whole"); err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(file, func() {}); err == nil {
		t.Error("what is no JSON was written")
	}
	err := save(file, func(w io.Writer) error { _, _ = io.WriteString(w, "half"); return io.ErrShortWrite })
	text, readErr := os.ReadFile(file)
	left, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if err == nil || readErr != nil || string(text) != "\"whole\"\n" || len(left) > 0 {
		t.Errorf("%v leaves %q (%v) and %v", err, text, readErr, left)
	}
	if err := Savable(filepath.Join(dir, "missing", "run.html")); err == nil {
		t.Error("a directory that is not there is said to take a report")
	}
	if err := os.Mkdir(filepath.Join(dir, "taken.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Savable(filepath.Join(dir, "taken.html")); err == nil {
		t.Error("a directory in the report's place is said to take it")
	}
	if err := Savable(file); err != nil {
		t.Error(err)
	}
}

// TestSuiteSaysWhatItCouldNotWrite: a run whose page cannot be written is no reason to end, but the suite has failed.
func TestSuiteSaysWhatItCouldNotWrite(t *testing.T) {
	run := SuiteRun{Preset: "wakeup", Database: "sqlite", State: Done}
	run.saved(woken(), filepath.Join(t.TempDir(), "missing"))
	r := SuiteReport{Runs: []SuiteRun{run}}
	if err := r.Failed(); run.File != "" || err == nil || !strings.Contains(err.Error(), "could not be written") {
		t.Errorf("%+v has failed with %v", run, err)
	}
	if err := (SuiteReport{unsaved: io.ErrShortWrite}).Failed(); err == nil {
		t.Error("a summary that could not be written is no failure")
	}
}

// TestReadReportReadsReportsOnly: nothing behind the report, and no file that makes its reader wait.
func TestReadReportReadsReportsOnly(t *testing.T) {
	dir := t.TempDir()
	for text, ok := range map[string]bool{
		`{"scenario": "agent", "phases": [{"mode": "closed"}]}` + "\n": true, `{"scenario": "agent", "phases": [{"mode": "closed"}]} {}`: false,
		`{"scenario": "agent", "phases": [{"mode": "closed"}]}x`: false, `{}`: false,
	} {
		file := filepath.Join(dir, "report.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadReport(file); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skip("no pipes with names here")
	}
	read := make(chan error, 1)
	go func() { _, err := ReadReport(pipe); read <- err }()
	select {
	case err := <-read:
		if err == nil {
			t.Error("a pipe was read as a report")
		}
	case <-time.After(10 * time.Second):
		t.Error("a pipe holds its reader up")
	}
}
