package load

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/internal/load/drive"
	"chancery/internal/load/observe"
)

func TestPresetsCanRun(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Presets() {
		if seen[p.Name] || p.Name == "" || p.Purpose == "" || p.Expectation == "" || p.judge == nil {
			t.Errorf("preset %q is there twice, or says too little", p.Name)
		}
		seen[p.Name] = true
		c := p.Apply(IssueConfig{Settings: []string{"log.level=debug"}}, Parameters{})
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if last := c.Settings[len(c.Settings)-1]; last != "log.level=debug" {
			t.Errorf("%s: the operator's setting comes before the preset's, so that it would lose", p.Name)
		}
		for _, phases := range [][]PhaseReport{nil, {{}}, make([]PhaseReport, len(p.phases))} {
			r := Report{Phases: phases}
			for _, verdict := range append(p.judge(r), r.nothingLost()) {
				if verdict.Text == "" || verdict.Verdict == "" || verdict.Verdict == Met && !strings.HasPrefix(verdict.Text, "never killed") {
					t.Errorf("%s judges %d empty phases with %+v", p.Name, len(phases), verdict)
				}
			}
			r.Page()
		}
	}
	for _, name := range []string{"t1", "t2", "t3", "t4", "t5", "day", "wakeup"} {
		if _, err := FindPreset(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := FindPreset("t9"); err == nil || !strings.Contains(err.Error(), "wakeup") {
		t.Errorf("an unknown preset: %v", err)
	}
}

func TestParametersChangeAPreset(t *testing.T) {
	p, err := FindPreset("capacity")
	if err != nil {
		t.Fatal(err)
	}
	c := p.Apply(IssueConfig{}, Parameters{Agents: 7, Duration: 3 * time.Second, Connections: 9, Interval: time.Minute})
	if c.Population.Agents != 7 || c.Phases[0].For != 3*time.Second || c.Phases[1].For != 3*time.Second || c.Phases[4].Connections != 9 || c.Phases[0].Connections != 9 || c.Phases[1].Interval != time.Minute {
		t.Errorf("changed to %+v, %+v", c.Population, c.Phases)
	}
	if again, _ := FindPreset("capacity"); again.phases[0].For != 20*time.Second {
		t.Error("the preset itself was changed")
	}
}

// TestScalingKeepsProportions: what differs on purpose goes on differing, and nothing gets too short to be judged.
func TestScalingKeepsProportions(t *testing.T) {
	for _, one := range []struct {
		preset string
		with   Parameters
		want   Population
		phases []Phase
	}{
		{"wakeup", Parameters{Agents: 2000, Duration: 6 * time.Second}, Population{People: 20, Agents: 2000, Tokens: 20}, []Phase{{Name: "capacity", For: 5 * time.Second, Connections: 64}, {Name: "wake-up", For: 6 * time.Second, Connections: 1000}}},
		{"day", Parameters{Agents: 4}, Population{People: 1, Agents: 4, Tokens: 1}, []Phase{{For: 10 * time.Minute, Connections: 256}}},
		{"renew", Parameters{Connections: 8, Duration: time.Second}, handful(16), []Phase{{For: time.Second, Connections: 8}}},
		{"connections", Parameters{Connections: 1000}, company(), []Phase{
			{Name: "64", For: 20 * time.Second, Connections: 64}, {Name: "100", For: 20 * time.Second, Connections: 100}, {Name: "500", For: 20 * time.Second, Connections: 500},
			{Name: "1,000", For: 20 * time.Second, Connections: 1000}, {Name: "64 again", For: 20 * time.Second, Connections: 64},
		}},
		{"wakeup", Parameters{Connections: 500}, Population{People: 5000, Agents: 500_000, Tokens: 5000}, []Phase{{Name: "capacity", For: 15 * time.Second, Connections: 64}, {Name: "wake-up", For: 30 * time.Minute, Connections: 500}}},
		{"wakeup", Parameters{Connections: 8}, Population{People: 5000, Agents: 500_000, Tokens: 5000}, []Phase{{Name: "capacity", For: 15 * time.Second, Connections: 8}, {Name: "wake-up", For: 30 * time.Minute, Connections: 8}}},
		{"stall", Parameters{Duration: 6 * time.Second}, company(), []Phase{
			{Name: "capacity", For: 5 * time.Second, Connections: 64}, {Name: "before", For: 5 * time.Second, Connections: 2048}, {Name: "stall", For: 6 * time.Second, Stall: 2 * time.Second, Connections: 2048}, {Name: "after", For: 5 * time.Second, Connections: 2048},
		}},
	} {
		p, err := FindPreset(one.preset)
		if err != nil {
			t.Fatal(err)
		}
		c := p.Apply(IssueConfig{}, one.with)
		var got []Phase
		for _, p := range c.Phases {
			got = append(got, Phase{Name: p.Name, For: p.For, Stall: p.Stall, Connections: p.Connections})
		}
		if diff := cmp.Diff(one.phases, got) + cmp.Diff(one.want, c.Population); diff != "" {
			t.Errorf("%s with %s (-want +got):\n%s", one.preset, one.with, diff)
		}
	}
}

// TestWhatIsTooLittleIsNotJudged: few answers and short phases tell nothing, however good they look.
func TestWhatIsTooLittleIsNotJudged(t *testing.T) {
	good := Latency{P50: 1, P95: 1, P99: 1, Max: 1}
	of := func(answered int, lasts time.Duration) PhaseReport {
		return PhaseReport{Phase: Phase{Mode: Closed, For: lasts}, Offered: answered, Answered: answered, Latency: good, Rate: Rate{PerSecond: 1e6}}
	}
	woken := Report{Phases: []PhaseReport{of(88, 50*time.Millisecond), {Phase: Phase{Agents: 9}, Answered: 9}}}
	burst := Report{Phases: []PhaseReport{of(5000, time.Minute), {Errors: map[string]int{drive.Unserved: 1}}}}
	refused := Report{Phases: []PhaseReport{of(5000, time.Minute), {Refused: 1}}}
	few, many := Report{Database: "sqlite", DiskBytes: 1600, Answered: 24}, Report{Database: "sqlite", DiskBytes: 1600, Answered: 100_000}
	for what, one := range map[string]struct {
		got  Criterion
		want string
		why  string
	}{
		"p50 of 19":                     {of(19, time.Minute).atMost(50, 2), Unjudged, "judged from 20 on"},
		"p50 of 20":                     {of(20, time.Minute).atMost(50, 2), Met, ""},
		"p95 of 199":                    {of(199, time.Minute).atMost(95, 2), Unjudged, "judged from 200 on"},
		"p95 of 200":                    {of(200, time.Minute).atMost(95, 2), Met, ""},
		"p99 of 999":                    {of(999, time.Minute).atMost(99, 2), Unjudged, "of 999 answers"},
		"p99 of 1,000":                  {of(1000, time.Minute).atMost(99, 2), Met, ""},
		"the longest of 24":             {of(24, time.Minute).atMost(100, 2), Unjudged, "judged from 1,000 on"},
		"p99 of 24 refusals":            {good.atMost(99, 24, 2), Unjudged, "of 24 answers"},
		"a rate of a second":            {of(5000, time.Second).atLeast("answers", 1), Unjudged, "judged from 5s on"},
		"a rate of five":                {of(5000, 5*time.Second).atLeast("answers", 1), Met, ""},
		"a drain, by a tiny capacity":   {wokenUp(woken)[1], Unjudged, "the phase took 50ms"},
		"a drain of too few":            {wokenUp(Report{Phases: []PhaseReport{of(5000, time.Minute), woken.Phases[1]}})[1], Unjudged, "too few agents"},
		"64 connections against 64":     {manyConnections(Report{Phases: slices.Repeat([]PhaseReport{of(5000, time.Minute)}, 5)})[0], Unjudged, "as many"},
		"disk on SQLite":                {few.growth()[0], Unjudged, "too few certificates: 24"},
		"disk on SQLite, of enough":     {many.growth()[0], Met, ""},
		"disk of a database server":     {Report{Database: "postgres"}.growth()[0], Unjudged, "not seen"},
		"after a queue in the client":   {burst.calmAfter(1, 0), Unjudged, "refused nobody"},
		"after refusals, in no time":    {refused.calmAfter(1, 0), Unjudged, "the run ended"},
		"refusals of a queue elsewhere": {burst.refusing(1, 0), Unjudged, "refused nobody"},
		"refusals of a server":          {refused.refusing(1, 0), Met, ""},
		"a server that queues itself":   {Report{Phases: []PhaseReport{of(5000, time.Minute), {Latency: Latency{P50: 9000}, Service: Latency{P50: 3000, P99: 3000}}}}.refusing(1, 0), Missed, ""},
		"a phase that was cut short":    {PhaseReport{Phase: Phase{For: time.Minute}, Answered: 9, Lasted: 3}.atLeast("answers", 0), Unjudged, "cut short"},
		"certificates not looked up":    {Report{Answered: 9}.nothingLost(), Unjudged, "not looked up"},
		"the rates of short phases":     {Report{Phases: slices.Repeat([]PhaseReport{of(5000, time.Second)}, 5)}.shares("", 0.8)[0], Unjudged, "judged from 5s on"},
		"p99 against one of ten before": {unmoved(Report{Phases: slices.Repeat([]PhaseReport{of(10, time.Minute)}, 4)})[0], Unjudged, "of 10 answers"},
	} {
		if one.got.Verdict != one.want || !strings.Contains(one.got.Measured, one.why) {
			t.Errorf("%s: %+v, want %s because %q", what, one.got, one.want, one.why)
		}
	}
}

// TestAChangedPresetSaysSoInItsVerdicts: a verdict is read without the page around it.
func TestAChangedPresetSaysSoInItsVerdicts(t *testing.T) {
	p, err := FindPreset("renew")
	if err != nil {
		t.Fatal(err)
	}
	if c := p.verdicts(Report{changed: "9 connections"})[0]; !strings.HasSuffix(c.Text, "(changed: 9 connections)") {
		t.Errorf("%+v", c)
	}
	if c := p.verdicts(Report{})[0]; strings.Contains(c.Text, "changed") {
		t.Errorf("nothing was changed: %+v", c)
	}
}

func TestPhasesThatMakeNoSense(t *testing.T) {
	for what, c := range map[string]IssueConfig{
		"a scenario nobody knows":       {Scenario: "x"},
		"a mode nobody knows":           {Phases: []Phase{{Mode: "x"}}},
		"arrivals without a rate":       {Phases: []Phase{{Mode: Open}}},
		"too many connections":          {Phases: []Phase{{Connections: 1 << 30}}},
		"a negative rate":               {Phases: []Phase{{Mode: Open, Rate: -1}}},
		"a share of nothing":            {Phases: []Phase{{Mode: Open, Share: 0.5}}},
		"a rate of nothing":             {Phases: []Phase{{Mode: Open, Rate: 1e-12}}},
		"a rate that is no number":      {Phases: []Phase{{Mode: Open, Rate: math.NaN()}}},
		"a rate without bound":          {Phases: []Phase{{Mode: Open, Rate: math.Inf(1)}}},
		"a share that is no number":     {Phases: []Phase{{}, {Mode: Open, Share: math.NaN()}}},
		"a share without bound":         {Phases: []Phase{{}, {Mode: Open, Share: math.Inf(1)}}},
		"a change in three centuries":   {Phases: []Phase{{Changes: 1e-10}}},
		"changes that are no number":    {Phases: []Phase{{Changes: math.NaN()}}},
		"agents that come all the time": {Phases: []Phase{{Mode: Steady, Interval: 1}}},
		"a slow disk of another server": {Remote: &Remote{}, Phases: []Phase{{Slow: time.Second}}},
		"a negative population":         {Population: Population{People: -1}},
		"a negative interval":           {Phases: []Phase{{Mode: Steady, Interval: -1}}},
		"a negative warm-up":            {Phases: []Phase{{Warmup: -1}}},
		"a week":                        {Phases: []Phase{{For: 7 * 24 * time.Hour}}},
		"a stall that outlasts the run": {Phases: []Phase{{For: time.Minute, Stall: 41 * time.Second}}},
		"sessions of kept connections":  {Phases: []Phase{{Resume: true}}},
		"SQLite elsewhere":              {StoreURL: "sqlite:/var/lib/chancery/chancery.db"},
		"cores of another server":       {Remote: &Remote{}, Cores: 1},
		"OCSP of nowhere":               {Remote: &Remote{MTLS: "127.0.0.1:1"}, Scenario: OCSP},
		"renewals nowhere":              {Remote: &Remote{Public: "127.0.0.1:1"}, Scenario: Renew},
		"settings of another server":    {Remote: &Remote{}, Preset: &Preset{settings: []string{"limit.rate=1000"}}},
	} {
		if err := c.Check(); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}

func TestOpenPhasesAreOneRun(t *testing.T) {
	phases := []Phase{
		{Mode: Closed}, {Mode: Open, Connections: 8}, {Mode: Open, Connections: 8}, {Mode: Open, Connections: 9}, {Mode: Steady}, {Mode: Steady},
		{Mode: Open, Fresh: true}, {Mode: Open, Fresh: true, Resume: true}, {Mode: Open, Fresh: true, Resume: true, Obey: true},
	}
	var lengths []int
	for _, g := range groups(phases) {
		lengths = append(lengths, len(g))
	}
	if len(lengths) != 8 || lengths[1] != 2 {
		t.Errorf("groups of %v", lengths)
	}
}

// TestRecovery looks for the moment from which a service is as before.
func TestRecovery(t *testing.T) {
	r := Report{Phases: []PhaseReport{{Phase: Phase{For: 10 * time.Second}}}}
	for i, p99 := range []float64{5, 5, 500, 900, 5, 700, 6, 5, 5, 5, 5, 5} { // the last two are after the end
		r.Seconds = append(r.Seconds, Second{At: float64(i), Second: drive.Second{Answered: 10, P99: p99}})
	}
	if took, ok := r.recovery(4, 10); !ok || took != 2*time.Second {
		t.Errorf("recovered after %s (%v), want 2 s: one calm second is none", took, ok)
	}
	if _, ok := r.recovery(8, 10); ok {
		t.Error("two calm seconds count as recovered")
	}
	r.Seconds[8].Refused = 1
	if _, ok := r.recovery(4, 10); ok {
		t.Error("a service that refuses somebody counts as recovered")
	}
}

// TestSamplesBelongToTheTimeTheyTellOf: a sample is taken when its second is over.
func TestSamplesBelongToTheTimeTheyTellOf(t *testing.T) {
	began := time.Now()
	r := &run{began: began}
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	r.seconds(&drive.Tally{Began: at(5), Seconds: []drive.Second{{Answered: 1}, {Answered: 2}, {Answered: 3, Partial: true}}})
	r.seconds(&drive.Tally{Began: at(2300), Seconds: []drive.Second{{Answered: 4}, {Answered: 5}}})
	var record observe.Record
	for i, ms := range []int{1020, 2020, 3020, 4020} {
		record.Samples = append(record.Samples, observe.Sample{At: at(ms), Server: float64(i + 1)})
	}
	r.watched(record)
	var got []float64
	for _, s := range r.Seconds {
		got = append(got, s.Server)
	}
	if want := []float64{1, 2, 0, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("the server's cores by second are %v, want %v", got, want)
	}
}

func TestProgressNamesThePhase(t *testing.T) {
	group := []Phase{{Name: "one", Warmup: time.Second, For: 2 * time.Second}, {Name: "two", For: 2 * time.Second}}
	for second, want := range map[int]string{1: "one", 3: "one", 4: "two", 5: "two", 6: "two"} {
		if got := progress(group, second, drive.Second{}); got.Phase.Name != want || want == "two" && got.At != second-3 {
			t.Errorf("second %d is second %d of %s, want %s", second, got.At, got.Phase.Name, want)
		}
	}
}

// TestOnceCountsEverybody: all come at once, so none may come in a warm-up, and whoever is refused comes again.
func TestOnceCountsEverybody(t *testing.T) {
	p := Phase{Mode: Once, Warmup: 3 * time.Second}.withDefaults(Population{Agents: 9})
	if stages := p.stages(); len(stages) != 1 || stages[0].Uncounted || !p.Obey || p.Agents != 9 {
		t.Errorf("%+v has the stages %+v", p, stages)
	}
}

func TestDatabasesOfASuiteAreToldApart(t *testing.T) {
	got := storeNames([]string{"", "postgres://a:secret@one/", "mysql://b@two/", "postgres://a:secret@three/"})
	if want := []string{"sqlite", "postgres", "mysql", "postgres-2"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestASuiteLeavesOutWhatSuitsNoDatabase: a suite on a database server runs the rest, and starts no server for it.
func TestASuiteLeavesOutWhatSuitsNoDatabase(t *testing.T) {
	c := SuiteConfig{Only: []string{"slow-disk"}, Stores: []string{"postgres://127.0.0.1:1/postgres"}, Out: t.TempDir()}
	r, err := Suite(t.Context(), c)
	if err != nil || len(r.Runs) != 1 || r.Runs[0].State != Unsuited || !strings.Contains(r.Runs[0].Why, "leave the database out") || r.Failed() != nil {
		t.Errorf("%+v, %v", r.Runs, err)
	}
	if err := (IssueConfig{StoreURL: "sqlite:", Phases: []Phase{{Slow: time.Second}}}).Check(); err != nil {
		t.Errorf("a slow disk on SQLite: %v", err)
	}
}

// TestTooMuchIsNoFault: what found no free connection shows in the phase, and fails the run no more than a refusal does.
func TestTooMuchIsNoFault(t *testing.T) {
	r := Report{Errors: map[string]int{drive.Unserved: 7}, Phases: []PhaseReport{{Phase: Phase{Mode: Open, For: time.Minute}, Offered: 17, Answered: 10}}}
	if err := r.Failed(); err != nil {
		t.Error(err)
	}
	if r.mark(); !strings.Contains(strings.Join(r.Marks, "\n"), "7 of 17 requests were not answered") {
		t.Errorf("the marks are silent: %v", r.Marks)
	}
	r.Errors["500"] = 1
	if r.Failed() == nil {
		t.Error("an error passes")
	}
}

// TestAStallExcusesItselfAlone: errors are expected while the database stands still, not before or after it.
func TestAStallExcusesItselfAlone(t *testing.T) {
	stall := PhaseReport{Phase: Phase{Mode: Open, For: time.Minute, Stall: time.Second}, Offered: 9, Answered: 2, Errors: map[string]int{"504 deadline_passed": 7}}
	for what, c := range map[string]struct {
		errors map[string]int
		fails  bool
	}{
		"only in the stall": {map[string]int{"504 deadline_passed": 7}, false},
		"elsewhere, too":    {map[string]int{"504 deadline_passed": 8}, true},
		"of another kind":   {map[string]int{"504 deadline_passed": 7, "403 da_stale": 1}, true},
	} {
		if err := (Report{Errors: c.errors, Phases: []PhaseReport{stall}}).Failed(); (err != nil) != c.fails {
			t.Errorf("%s: %v", what, err)
		}
	}
	stall.Errors = map[string]int{"500 bug": 7}
	if err := (Report{Errors: stall.Errors, Phases: []PhaseReport{stall}}).Failed(); err == nil {
		t.Error("a stall excuses a fault of the server's own")
	}
}

func TestCriteriaCanBeMissed(t *testing.T) {
	steady := PhaseReport{Offered: 1000, Answered: 1000, Latency: Latency{P50: 1, P95: 2, P99: 3, Max: 4}}
	for what, c := range map[string]struct {
		r    Report
		want int
	}{
		"all is well":  {Report{Phases: []PhaseReport{steady}}, 0},
		"slow":         {Report{Phases: []PhaseReport{{Offered: 1000, Answered: 1000, Latency: Latency{P50: 3, P95: 5, P99: 6, Max: 21}}}}, 4},
		"not answered": {Report{Phases: []PhaseReport{{Offered: 1001, Answered: 1000, Latency: steady.Latency}}}, 1},
	} {
		missed := 0
		for _, one := range steadily(c.r) {
			if one.Verdict == Missed {
				missed++
			}
		}
		if missed != c.want {
			t.Errorf("%s: %d criteria missed, want %d", what, missed, c.want)
		}
	}
	for what, u := range map[string]Lookup{"a lost certificate": {LookedUp: 10, Lost: 1}, "one that nobody looked up": {LookedUp: 9}} {
		if got := (Report{Answered: 10, Lookup: u}).nothingLost(); got.Verdict != Missed {
			t.Errorf("%s is judged %+v", what, got)
		}
	}
}

func TestABVerdict(t *testing.T) {
	for _, c := range []struct {
		old, new []float64
		want     string
	}{
		{[]float64{1000, 1000}, []float64{1060, 1060}, "faster"},
		{[]float64{1000, 1000}, []float64{1040, 1040}, "unchanged"},
		{[]float64{1000, 1000}, []float64{940, 940}, "slower"},
		{[]float64{1000, 1120}, []float64{2000, 2000}, "excluded"},
	} {
		r := ABReport{Old: Side{Samples: c.old, Medians: c.old}, New: Side{Samples: c.new, Medians: c.new}}
		if r.judge(); r.Verdict != c.want {
			t.Errorf("%v against %v: %s, want %s", c.new, c.old, r.Verdict, c.want)
		}
	}
	s := Side{Path: "preset_test.go"}
	if err := s.identify(); err == nil {
		t.Error("a text file passes for a program")
	}
}

// TestReportsAreReadAgain saves a report, reads it, and lays it beside another one.
func TestReportsAreReadAgain(t *testing.T) {
	file := t.TempDir() + "/run.html"
	a := sampleReport()
	if err := a.Save(file); err != nil {
		t.Fatal(err)
	}
	b, err := ReadReport(strings.TrimSuffix(file, ".html") + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if b.Phases[0].For != a.Phases[0].For || b.Phases[0].Rate.PerSecond != a.Phases[0].Rate.PerSecond || len(b.Seconds) != len(a.Seconds) || b.Seconds[1].P99 != 28 {
		t.Errorf("read %+v", b.Phases[0])
	}
	var text strings.Builder
	if err := Compare(a, b).Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A: p99", "B: p99", "0.0 %"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the comparison says nothing of %q", want)
		}
	}
	if _, err := ReadReport("preset_test.go"); err == nil {
		t.Error("a text file passes for a report")
	}
}
