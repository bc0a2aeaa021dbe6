package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/api"
	"chancery/internal/load/drive"
	"chancery/internal/load/observe"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func sampleMachine() observe.Machine {
	return observe.Machine{CPU: "Test CPU", Cores: 2, MHz: 2600, Governor: "performance", System: "linux 6 amd64", LoadBefore: "0.10 0.20 0.30", Go: "go1.26", Revision: "0123456789ab", SyncMillis: 0.25, Steal: 0.03, Busy: 1.9}
}

func sampleReport() Report {
	phase := PhaseReport{
		Phase: Phase{Mode: Closed, Connections: 64, For: 20 * time.Second, Warmup: 3 * time.Second}, Offered: 90003, Answered: 90000,
		Rate: rateOf([]float64{4400, 4500, 4600, 4550, 4450}), Latency: Latency{Mean: 14, P50: 13, P90: 19, P95: 21, P99: 27, P999: 40, Max: 55.5},
		Service: Latency{Mean: 13, P50: 12, P90: 18, P95: 20, P99: 25, P999: 38, Max: 50},
		Refused: 3, Errors: map[string]int{"no answer: timeout": 1}, Refusal: &Latency{Mean: 1, P50: 1, P90: 1, P95: 1, P99: 2, P999: 2, Max: 2},
		Curve:  []Quantile{{Share: 0, Millis: 2, Count: 1}, {Share: 0.5, Millis: 13, Count: 45000}, {Share: 0.99, Millis: 27, Count: 89100}, {Share: 1, Millis: 55.5, Count: 90000}},
		Server: &observe.Usage{CPUSeconds: 20, Cores: 1, PerRequest: 222, RSS: 100 << 20, PeakRSS: 120 << 20}, Client: observe.Usage{CPUSeconds: 15, Cores: 0.75, PerRequest: 167},
	}
	phase.Times = phase.times()
	r := Report{
		Preset: "t0", Purpose: "To see what a report looks like.", Expectation: "It says everything.", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Criteria: []Criterion{phase.atMost(99, 30), shareOf("half", 40, 100, 0.5)},
		Scenario: Agent, Protocol: "HTTP/1.1 over TLS, kept alive", Database: "sqlite", Durability: []api.HealthSetting{{Name: "synchronous", Value: "full", Safe: true}},
		Population: Population{People: 16, Agents: 64, Tokens: 64}, Phases: []PhaseReport{phase},
		Seconds: []Second{
			{At: 0, Second: drive.Second{Offered: 4501, Answered: 4500, P50: 13, P90: 19, P99: 27, Max: 40}, Sample: observe.Sample{Server: 1, Client: 0.75, Busy: 1.9, Resident: 100 << 20, Disk: 7 << 20, Batch: 31, Waits: map[string]int{"IO:WALSync": 1}}},
			{At: 1, Second: drive.Second{Offered: 4402, Answered: 4400, Refused: 3, Failed: 1, P50: 13, P90: 19, P99: 28, Max: 55.5}, Sample: observe.Sample{Server: 1, Client: 0.75, Busy: 1.9, Resident: 101 << 20, Disk: 14 << 20, Batch: 33, Waits: map[string]int{"Client:ClientRead": 3}}},
		},
		Refused: 3, Errors: map[string]int{"no answer: timeout": 1, "403 da_stale": 2}, Answered: 101234, Verified: 1013, Machine: sampleMachine(),
		Lookup: Lookup{LookedUp: 101234, Lost: 1, OCSPAsked: 1013, FirstWrong: "no certificate 01ab"}, DiskBytes: 1500, Figures: []Figure{{Name: "figure", Value: "one more"}},
	}
	r.Marks = r.Machine.Marks()
	return r
}

func sampleGate() GateReport {
	f := Floor{Figure: "C2", Scenario: Agent, Against: "bare handler, one-time token", Wanted: 0.7, Samples: []float64{4400, 4500, 4600}, Reports: []Report{sampleReport()}}
	f.judge([]float64{6200, 6300}, []float64{6100, 6250})
	return GateReport{Floors: []Floor{f}, Machine: sampleMachine()}
}

// TestReports fixes what people and programs read.
func TestReports(t *testing.T) {
	one, both := rateOf([]float64{30000, 31000, 32000, 31500, 30500}), Rate{PerSecond: 8400, Samples: []float64{8400}, P99: 17}
	for name, r := range map[string]interface {
		Write(io.Writer)
		Failed() error
	}{
		"issue":  sampleReport(),
		"limits": LimitReport{Machine: sampleMachine(), Clients: 64, Limits: []Limit{{Key: "p256_sign", Work: "ECDSA P-256 signature", OneCore: &one, Both: &one}, {Key: "bare_bearer", Work: "bare handler", Both: &both}}, Interrupted: true},
		"gate":   sampleGate(),
		"crash":  CrashReport{Rounds: 3, Answered: 900, Revoked: 12, RevocationsLost: 1, NoncesTried: 150, Unanswered: 7, Broken: 180, RestartMedian: 250, RestartMax: 300, FirstWrong: "x", Machine: sampleMachine(), Marks: CrashReport{Answered: 900, Revoked: 12, NoncesTried: 150}.untried()},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r.Write(&out)
			if err := r.Failed(); err != nil {
				out.WriteString("failed: " + err.Error() + "\n")
			}
			encoder := json.NewEncoder(&out)
			encoder.SetIndent("", " ")
			if err := encoder.Encode(r); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name, out.String())
		})
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the report changed (-want +got):\n%s", diff)
	}
}

// TestCrashSaysWhatWasNotTried: nothing lost of nothing is no merit.
func TestCrashSaysWhatWasNotTried(t *testing.T) {
	for _, c := range []struct {
		r    CrashReport
		want []string
	}{
		{CrashReport{Answered: 161, Revoked: 1, NoncesTried: 1, TokensDeleted: 1}, nil},
		{CrashReport{Answered: 161, NoncesTried: 1}, []string{"untried: no revocation was answered, so none could be lost", "untried: no deletion of a token was answered, so none could be accepted afterwards"}},
		{CrashReport{Revoked: 1, TokensDeleted: 1}, []string{"untried: no certificate was answered, so none could be lost", "untried: no used evidence was tried again, so none could be accepted"}},
	} {
		if diff := cmp.Diff(c.want, c.r.untried()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.r, diff)
		}
	}
}

// TestGateShowsByHowMuchItIsMissed: 69.6 % are less than 70 %, and are not shown as 70 %.
func TestGateShowsByHowMuchItIsMissed(t *testing.T) {
	f := Floor{Figure: "C1", Wanted: 0.7, Samples: []float64{696}}
	f.judge([]float64{1000}, []float64{1000})
	r := GateReport{Floors: []Floor{f}}
	var out bytes.Buffer
	r.Write(&out)
	for _, text := range []string{out.String(), r.Failed().Error()} {
		if !strings.Contains(text, "69.6 %") || !strings.Contains(text, "70.0 %") || !strings.Contains(text, "missed") {
			t.Errorf("a share of 0.696 of which 0.7 are wanted: %s", text)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		rate, before, after float64
		want                string
	}{
		{700, 1000, 1000, "pass"},
		{699, 1000, 1000, "missed"},
		{900, 1000, 1120, "excluded"},
	} {
		f := Floor{Wanted: 0.70, Samples: []float64{c.rate}}
		f.judge([]float64{c.before}, []float64{c.after})
		if f.Verdict != c.want {
			t.Errorf("%v of %v then %v: %s, want %s", c.rate, c.before, c.after, f.Verdict, c.want)
		}
	}
}

// TestCurvesAddUp adds the curves of two runs up, as a reader of two JSON files does, and finds the p99 of both.
func TestCurvesAddUp(t *testing.T) {
	one, other, both := drive.NewHistogram(), drive.NewHistogram(), drive.NewHistogram()
	for i := range 10_000 {
		quick, slow := time.Duration(100+i%997)*time.Microsecond, time.Duration(5000+7*i)*time.Microsecond
		drive.Record(one, quick)
		drive.Record(both, quick)
		if i%40 == 0 {
			drive.Record(other, slow)
			drive.Record(both, slow)
		}
	}
	curves := [][]Quantile{curveOf(one), curveOf(other)}
	atMost := func(millis float64) (least int64) { // as many took no longer than this, and perhaps some more
		for _, curve := range curves {
			counted := int64(0)
			for _, q := range curve {
				if q.Millis <= millis {
					counted = q.Count
				}
			}
			least += counted
		}
		return least
	}
	if got := atMost(100_000); got != 10_250 {
		t.Fatalf("the curves count %d, want all 10,250", got)
	}
	p99, found := latencyOf(both).P99, 0.0
	for _, q := range curves[1] {
		if atMost(q.Millis) >= 10_148 && found == 0 { // 99 % of all
			found = q.Millis
		}
	}
	if found < p99 || found > 1.1*p99 {
		t.Errorf("p99 of both is %.2f ms by their curves, want %.2f", found, p99)
	}
}

// TestWhatWasNotSeenIsMarked: a chart with gaps says so.
func TestWhatWasNotSeenIsMarked(t *testing.T) {
	r := run{Report: Report{Database: "postgres", Machine: observe.Machine{Revision: "abc"}, Phases: []PhaseReport{{Phase: Phase{Mode: Closed, For: time.Minute}}}}}
	r.watched(observe.Record{Unread: 3, Unlisted: 1200})
	r.mark()
	want := []string{"not seen: the server's metrics could not be read in 3 s", "not seen: the database's sessions could not be read in 1,200 s"}
	if diff := cmp.Diff(want, r.Marks); diff != "" {
		t.Errorf("the marks (-want +got):\n%s", diff)
	}
}

// TestServiceTellsWhoMadeThemWait: a queue of the clients shows as latency without service time.
func TestServiceTellsWhoMadeThemWait(t *testing.T) {
	closed := PhaseReport{Phase: Phase{Name: "capacity", Mode: Closed, Connections: 64}, Offered: 9, Answered: 9, Rate: Rate{PerSecond: 4000}, Latency: Latency{P50: 5, P99: 6}, Service: Latency{P50: 5, P99: 6}}
	open := PhaseReport{Phase: Phase{Name: "flood", Mode: Open, Connections: 8192, Rate: 5000}, Offered: 9, Answered: 9, Rate: Rate{PerSecond: 4000}, Latency: Latency{P50: 50, P99: 60}, Service: Latency{P50: 7, P99: 8}}
	without, with := Report{Phases: []PhaseReport{closed}}.phaseTable(), Report{Phases: []PhaseReport{closed, open}}.phaseTable()
	if slices.Contains(without.Head, "service p50") || len(without.Head) != len(without.Rows[0]) {
		t.Errorf("a closed loop has the columns %v", without.Head)
	}
	want := [][]string{
		{"capacity", "64", "9", "9", "4,000", "5.00", "0.00", "6.00", "0.00", "0.00", "–", "–", "0", "0", "–"},
		{"flood", "8,192", "9", "9", "4,000", "50.00", "0.00", "60.00", "0.00", "0.00", "7.00", "8.00", "0", "0", "–"},
	}
	if diff := cmp.Diff(want, with.Rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPhasesSayHowClientsCome: over how many connections, too, and in times that people can read.
func TestPhasesSayHowClientsCome(t *testing.T) {
	for want, p := range map[string]Phase{
		"closed loop, 2,500 connections, 6.67ms added to each sync":                                        {Mode: Closed, Connections: 2500, Slow: 6_666_666},
		"open loop, 833 a second over 256 connections, the database standing still for 2.67s":              {Mode: Open, Connections: 256, Rate: 833, Stall: 2_666_666_666},
		"5,000 agents, each once in 10m, over 256 connections":                                             {Mode: Steady, Connections: 256, Agents: 5000, Interval: 10 * time.Minute},
		"500,000 agents at once, over 1,000 connections":                                                   {Mode: Once, Connections: 1000, Agents: 500_000},
		"2,500 clients that pause 1h on average after each answer, 100 tokens and people changed a second": {Mode: Paced, Connections: 2500, Interval: time.Hour, Changes: 100},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNoErrorsReadAsNone: where there is no error, a criterion says so in words.
func TestNoErrorsReadAsNone(t *testing.T) {
	got := noError(PhaseReport{Offered: 1, Answered: 1}).Measured
	if !strings.HasSuffix(got, "errors: none") {
		t.Errorf("measured %q", got)
	}
	if got = noError(PhaseReport{Offered: 3000, Errors: map[string]int{"a": 2000, "b": 1}}).Measured; !strings.HasSuffix(got, "errors: 2,000 × a, 1 × b") {
		t.Errorf("measured %q", got)
	}
}

// TestSilentPhasesFail: in every phase that was counted something was answered, or the run says what was not.
func TestSilentPhasesFail(t *testing.T) {
	busy, silent := PhaseReport{Phase: Phase{Name: "busy"}, Offered: 2, Answered: 2}, PhaseReport{Phase: Phase{Name: "silent"}, Offered: 9, Refused: 9}
	queued := PhaseReport{Phase: Phase{Name: "queued", Mode: Open}, Offered: 9, Rate: rateOf([]float64{0, 0, 0, 2, 2})} // answers to those before
	for _, c := range []struct {
		r    Report
		want string // that the error says; empty: there is none
	}{
		{Report{Phases: []PhaseReport{busy, busy}}, ""},
		{Report{Phases: []PhaseReport{busy, queued}}, ""},
		{Report{Phases: []PhaseReport{busy, silent}}, "silent (9 offered, 9 refused)"},
		{Report{Phases: []PhaseReport{silent, busy}}, "silent (9 offered, 9 refused)"},
		{Report{}, "no phase"},
		{Report{Phases: []PhaseReport{busy, silent}, Interrupted: true}, ""},
	} {
		if err := c.r.Failed(); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: failed with %v, want %q", c.r.Phases, err, c.want)
		}
	}
}

// TestRefusalsAreMarked where a report tells no other way how few requests were answered.
func TestRefusalsAreMarked(t *testing.T) {
	for _, mode := range []string{Closed, Paced} {
		p := PhaseReport{Phase: Phase{Mode: mode}, Offered: 5000, Answered: 3, Refused: 4997}
		if diff := cmp.Diff([]string{mode + ": 4,997 of 5,000 requests were refused and have no part in the latency"}, p.marks()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestAServerKilledEarlyIsJudged: that its death ended the run leaves the verdict on it.
func TestAServerKilledEarlyIsJudged(t *testing.T) {
	if got := small(Report{Killed: true}); len(got) != 1 || got[0].Verdict != Missed {
		t.Errorf("judged as %+v", got)
	}
	p, err := FindPreset("small")
	if err != nil {
		t.Fatal(err)
	}
	phase := PhaseReport{Phase: Phase{Mode: Closed, For: time.Minute}, Offered: 5000, Answered: 5000}
	short := phase
	short.Lasted = 10
	for _, c := range p.verdicts(Report{Killed: true, Phases: []PhaseReport{phase, short}, Answered: 10_000}) {
		if c.Verdict == Met {
			t.Errorf("a server that was killed after ten seconds met %q", c.Text)
		}
	}
}

// TestWhatEndsEarlyMeetsNothing: a phase that lasted a sixth of its time shows no more than that.
func TestWhatEndsEarlyMeetsNothing(t *testing.T) {
	p, err := FindPreset("t3")
	if err != nil {
		t.Fatal(err)
	}
	phase := PhaseReport{Phase: Phase{Mode: Steady, For: time.Minute}, Offered: 5000, Answered: 5000, Latency: Latency{P50: 1, P95: 1, P99: 1, Max: 1}, Lasted: 10}
	r := Report{Phases: []PhaseReport{phase}, Answered: 5000, Lookup: Lookup{LookedUp: 5000}}
	all := p.verdicts(r)
	for _, c := range all[:len(all)-1] { // nothing was lost all the same
		if c.Verdict != Unjudged {
			t.Errorf("%q is %s", c.Text, c.Verdict)
		}
	}
	if r.mark(); !strings.Contains(strings.Join(r.Marks, "\n"), "cut short") {
		t.Errorf("the marks are silent: %v", r.Marks)
	}
	whole := &run{Report: r}
	whole.finish(IssueConfig{Preset: p}, errors.New("the server ended"))
	if whole.Criteria != nil {
		t.Errorf("a run that failed was judged: %+v", whole.Criteria)
	}
}

// TestCrashCountsWhatNobodyRevoked: a certificate that is stored as revoked and that nobody revoked is lost.
func TestCrashCountsWhatNobodyRevoked(t *testing.T) {
	r := &CrashReport{Rounds: 1, Answered: 1}
	r.note(Lookup{LookedUp: 1, Invalid: 1, FirstWrong: "certificate 01 is stored as revoked"})
	if err := r.Failed(); err == nil || r.Lost != 1 {
		t.Errorf("%d lost, %v", r.Lost, err)
	}
	r.Late = 1
	if err := r.Failed(); err == nil || !strings.Contains(err.Error(), "in order") || !strings.Contains(err.Error(), "1 of 1 certificates lost") {
		t.Errorf("a late end hides what was lost: %v", err)
	}
}
