package load

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"chancery/internal/load/observe"
	"chancery/internal/load/page"
)

// Page draws the report for people.
func (r Report) Page() page.Page {
	p := page.Page{
		Title: r.title() + " on " + cmp.Or(r.Database, "the server's database"), Lead: []string{}, Verdicts: r.verdicts(), Figures: r.headline(),
		Facts: r.facts(), Charts: r.charts(false), Tables: []page.Table{r.phaseTable()}, Notes: notes(r.Marks, r.Interrupted),
	}
	for _, text := range []string{r.Purpose, r.Expectation} {
		if text != "" {
			p.Lead = append(p.Lead, text)
		}
	}
	if len(r.Errors) > 0 {
		p.Tables = append(p.Tables, r.errorTable())
	}
	if t := r.waitTable(); len(t.Rows) > 0 {
		p.Tables = append(p.Tables, t)
	}
	return p
}

// Compare lays two reports side by side: the second one is drawn dashed.
func Compare(a, b Report) page.Page {
	p := page.Page{
		Title: "A: " + a.identity() + " and B: " + b.identity(), Tables: []page.Table{compared(a, b)}, Charts: paired(a, b),
		Facts: append(prefixed("A: ", a.facts()), prefixed("B: ", b.facts())...),
		Lead:  []string{"In the charts A is solid and B is dashed."},
	}
	for name, of := range map[string]Report{"A": a, "B": b} {
		for _, note := range notes(of.Marks, of.Interrupted) {
			p.Notes = append(p.Notes, name+": "+note)
		}
	}
	slices.Sort(p.Notes)
	return p
}

// identity tells a run apart from another one of the same kind.
func (r Report) identity() string {
	return fmt.Sprintf("%s (%s, %s, %s)", r.title(), cmp.Or(r.Database, "the server's database"), cmp.Or(r.Machine.Revision, "revision unknown"), r.At.Format("2006-01-02 15:04"))
}

func notes(marks []string, interrupted bool) []string {
	if interrupted {
		return append(slices.Clone(marks), "interrupted: what is missing was not measured")
	}
	return marks
}

func (r Report) verdicts() []page.Verdict {
	states := map[string]page.State{Met: page.Met, Missed: page.Missed, Unjudged: page.Unjudged}
	var all []page.Verdict
	for _, c := range r.Criteria {
		all = append(all, page.Verdict{Text: c.Text, Measured: c.Measured, State: states[c.Verdict]})
	}
	return all
}

func (r Report) headline() []page.Fact {
	p, of := r.main(), ""
	if len(r.Phases) > 1 || r.About != "" {
		of = p.title() + ": "
	}
	all := []page.Fact{
		{Name: of + "answers a second", Value: p.rate()}, {Name: of + "p50", Value: p.latency(p.Latency.P50)}, {Name: of + "p99", Value: p.latency(p.Latency.P99)},
	}
	if p.LastSec > 0 {
		all = append(all, page.Fact{Name: of + "the last served after", Value: thousands(p.LastSec) + " s"})
	}
	if r.Answered > 0 {
		lost := r.Lookup.bad() + r.Wrong + r.Doubles
		all = append(all, page.Fact{Name: "certificates answered", Value: thousands(float64(r.Answered))}, page.Fact{Name: "lost, changed or wrong", Value: thousands(float64(lost))})
	}
	return all
}

func milliseconds(v float64) string { return fmt.Sprintf("%.2f ms", v) }

func (r Report) facts() []page.Group {
	run := page.Group{Title: "Run", Facts: []page.Fact{
		{Name: "at", Value: r.At.Format("2006-01-02 15:04:05 MST")}, {Name: "scenario", Value: r.Scenario}, {Name: "protocol", Value: r.Protocol}, {Name: "population", Value: r.Population.String()},
		{Name: "settings", Value: r.settings()},
	}}
	for _, p := range r.Phases {
		run.Facts = append(run.Facts, page.Fact{Name: cmp.Or(p.Name, "phase"), Value: fmt.Sprintf("%s for %s", p.Phase, span(p.For))})
	}
	n := func(v int) string { return thousands(float64(v)) }
	lost := page.Group{Title: "What became of the answers", Facts: []page.Fact{
		{Name: "answered", Value: thousands(float64(r.Answered)) + ", each parsed and compared with what was asked for"}, {Name: "verified in full", Value: thousands(float64(r.Verified))},
		{Name: "wrong", Value: thousands(float64(r.Wrong))}, {Name: "serials given twice", Value: thousands(float64(r.Doubles))},
		{Name: "looked up afterwards", Value: fmt.Sprintf("%s: lost %s, changed %s, no longer valid %s, not known %s", n(r.Lookup.LookedUp), n(r.Lookup.Lost), n(r.Lookup.Differ), n(r.Lookup.Invalid), n(r.Lookup.Unknown))},
		{Name: "asked in OCSP", Value: fmt.Sprintf("%s: wrong %s", n(r.Lookup.OCSPAsked), n(r.Lookup.OCSPWrong))},
	}}
	database := page.Group{Title: "Database", Facts: []page.Fact{{Name: "kind", Value: cmp.Or(r.Database, "the server's own")}}}
	database.Facts = append(database.Facts, r.durability()...)
	if r.DiskBytes > 0 {
		database.Facts = append(database.Facts, page.Fact{Name: "disk a certificate", Value: thousands(float64(r.DiskBytes)) + " bytes"})
	}
	for _, f := range r.Figures {
		lost.Facts = append(lost.Facts, page.Fact{Name: f.Name, Value: f.Value})
	}
	return []page.Group{run, lost, database, {Title: "Machine", Facts: machineFacts(r.Machine)}}
}

// durability says what the server and its database tell of how safe a commit is.
func (r Report) durability() []page.Fact {
	var all []page.Fact
	for _, s := range r.Durability {
		all = append(all, page.Fact{Name: s.Name, Value: s.Value})
	}
	for _, s := range r.DatabaseSet {
		all = append(all, page.Fact(s))
	}
	return all
}

func machineFacts(m observe.Machine) []page.Fact {
	var all []page.Fact
	var text strings.Builder
	m.Write(&text)
	for line := range strings.Lines(text.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, page.Fact{Name: name, Value: strings.TrimSpace(value)})
	}
	return all
}

func (r Report) settings() string {
	if r.Database == "" {
		return "those that the server has" // it runs elsewhere
	}
	return cmp.Or(strings.Join(r.Settings, ", "), "those of a fresh installation")
}

// phaseTable has a line for each phase. Service times stand in it where some phase's requests can wait before they are
// sent; elsewhere they are the latencies.
func (r Report) phaseTable() page.Table {
	t := page.Table{Title: "Phases", Head: []string{"phase", "connections", "offered", "answered", "a second", "p50", "p95", "p99", "p99.9", "longest"},
		Note: "Latencies are milliseconds from the moment at which a request was to start, or in a closed loop was first sent, to a right answer. What failed or was refused has none. The rate is of answers by when they came."}
	waits := slices.ContainsFunc(r.Phases, PhaseReport.waits)
	if waits {
		t.Head = append(t.Head, "service p50", "service p99")
		t.Note += " Service times count from sending, dialling included: where the latency is far above, requests waited for one of the clients' connections to be free, or until they were to come again."
	}
	t.Head = append(t.Head, "refused", "errors", "server, cores")
	for _, p := range r.Phases {
		t.Rows = append(t.Rows, p.row(waits))
	}
	return t
}

func (p PhaseReport) row(service bool) []string {
	failed, cores := 0, none
	for _, n := range p.Errors {
		failed += n
	}
	if p.Server != nil {
		cores = two(p.Server.Cores)
	}
	n := func(v int) string { return thousands(float64(v)) }
	l, ms := p.Latency, p.cell
	row := []string{p.title(), n(p.Connections), n(p.Offered), n(p.Answered), p.rate(), ms(l.P50), ms(l.P95), ms(l.P99), ms(l.P999), ms(l.Max)}
	switch {
	case service && p.waits():
		row = append(row, ms(p.Service.P50), ms(p.Service.P99))
	case service:
		row = append(row, none, none)
	}
	return append(row, n(p.Refused), n(failed), cores)
}

func two(v float64) string { return fmt.Sprintf("%.2f", v) }

func (r Report) errorTable() page.Table {
	t := page.Table{Title: "Errors", Head: []string{"kind", "times"}}
	for _, line := range listed(r.Errors) {
		times, kind, _ := strings.Cut(line, " × ")
		t.Rows = append(t.Rows, []string{kind, times})
	}
	return t
}

// waitTable adds up what the database's sessions were waiting for.
func (r Report) waitTable() page.Table {
	total := map[string]int{}
	for _, s := range r.Seconds {
		for what, n := range s.Waits {
			total[what] += n
		}
	}
	t := page.Table{Title: "What the database's sessions were doing", Head: []string{"waiting for", "sessions"}, Note: "Counted once a second, over the whole run."}
	for _, what := range slices.SortedFunc(maps.Keys(total), func(a, b string) int { return cmp.Or(total[b]-total[a], strings.Compare(a, b)) }) {
		t.Rows = append(t.Rows, []string{what, thousands(float64(total[what]))})
	}
	return t
}

// line draws one value of each second.
func (r Report) line(name string, of func(Second) float64) page.Series {
	s := page.Series{Name: name}
	for _, second := range r.Seconds {
		y := of(second)
		if second.Partial {
			y = math.NaN() // its counts are no rates
		}
		s.X, s.Y = append(s.X, second.At), append(s.Y, y)
	}
	return s
}

// seen leaves a gap where nothing was seen.
func seen(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

const overTime = "time, s"

// charts draws the run over time, and its latencies as curves. Of a comparison the charts that cannot be laid over one
// another are left out.
func (r Report) charts(compared bool) []page.Chart {
	all := append(r.loadCharts(), r.serverCharts()...)
	if waits := r.waits(); !compared && len(waits.Series) > 0 {
		all = append(all, waits)
	}
	for i := range all {
		if all[i].X == overTime {
			all[i].Marks, all[i].Shaded, all[i].Shade = r.marksOfPhases(), r.warmups(), "warm-up, not counted"
		}
	}
	return all
}

// loadCharts draw what the clients saw, and what it took.
func (r Report) loadCharts() []page.Chart {
	return []page.Chart{
		{Title: "Rate", X: overTime, Y: "requests a second", Series: []page.Series{
			r.line("answered", func(s Second) float64 { return float64(s.Answered) }), r.line("offered", func(s Second) float64 { return float64(s.Offered) }),
		}},
		{Title: "Latency over time", X: overTime, Y: "ms", LogY: true, Note: "From the moment at which a request was to start, by the second in which its answer came.", Series: []page.Series{
			r.line("p50", func(s Second) float64 { return seen(s.P50) }), r.line("p90", func(s Second) float64 { return seen(s.P90) }),
			r.line("p99", func(s Second) float64 { return seen(s.P99) }), r.line("longest", func(s Second) float64 { return seen(s.Max) }),
		}},
		r.curves(),
		{Title: "Processor", X: overTime, Y: "cores", Series: []page.Series{
			r.line("server", func(s Second) float64 { return seen(s.Server) }), r.line("clients", func(s Second) float64 { return seen(s.Client) }), r.line("whole machine", func(s Second) float64 { return seen(s.Busy) }),
		}},
		{Title: "Memory of the server", X: overTime, Y: "MB", Series: []page.Series{r.line("resident", func(s Second) float64 { return seen(float64(s.Resident) / (1 << 20)) })}},
	}
}

// serverCharts draw what only some runs show. The files of a database server are not seen, and those beside it that are
// tell nothing of its disk.
func (r Report) serverCharts() (all []page.Chart) {
	if r.Refused > 0 || len(r.Errors) > 0 {
		all = append(all, page.Chart{Title: "Refusals and errors", X: overTime, Y: "a second", Series: []page.Series{
			r.line("refused", func(s Second) float64 { return float64(s.Refused) }), r.line("failed", func(s Second) float64 { return float64(s.Failed) }),
		}})
	}
	if r.highest(func(s Second) float64 { return s.Batch }) > 0 {
		all = append(all, page.Chart{Title: "Size of a commit", X: overTime, Y: "writes", Series: []page.Series{r.line("writes a commit", func(s Second) float64 { return seen(s.Batch) })}})
	}
	if r.highest(func(s Second) float64 { return s.Sync }) > 0 {
		all = append(all, page.Chart{Title: "Time of a commit", X: overTime, Y: "ms", LogY: true, Series: []page.Series{r.line("commit, its sync included", func(s Second) float64 { return seen(s.Sync) })}})
	}
	if r.Database == "sqlite" && r.highest(func(s Second) float64 { return float64(s.Disk) }) > 0 {
		all = append(all, page.Chart{Title: "Disk", X: overTime, Y: "MB", Series: []page.Series{
			r.line("data directory", func(s Second) float64 { return seen(float64(s.Disk) / (1 << 20)) }), r.line("write-ahead log", func(s Second) float64 { return seen(float64(s.Log) / (1 << 20)) }),
		}})
	}
	return all
}

// marksOfPhases are where the counted time of each phase begins, where there are several.
func (r Report) marksOfPhases() []page.Mark {
	var all []page.Mark
	for _, p := range r.Phases {
		if len(r.Phases) > 1 {
			all = append(all, page.Mark{At: p.From, Label: p.title()})
		}
	}
	return all
}

func (r Report) warmups() []page.Span {
	var all []page.Span
	for _, p := range r.Phases {
		if p.Warmup > 0 {
			all = append(all, page.Span{From: p.From - p.Warmup.Seconds(), To: p.From})
		}
	}
	return all
}

// curves draws the distribution of each phase's latency: nine of ten at 10, all but one in a thousand at 1,000.
func (r Report) curves() page.Chart {
	c := page.Chart{Title: "Latency by share of the requests", X: "one in so many took longer", Y: "ms", LogX: true, LogY: true}
	for _, p := range r.Phases {
		s := page.Series{Name: p.title()}
		for _, q := range p.Curve {
			if q.Share < 1 && q.Millis > 0 {
				s.X, s.Y = append(s.X, 1/(1-q.Share)), append(s.Y, q.Millis)
			}
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// waitsShown is how many kinds of waiting are drawn; the others are added up.
const waitsShown = 6

func (r Report) waits() page.Chart {
	c := page.Chart{Title: "What the database's sessions were doing", X: overTime, Y: "sessions", Kind: page.Stack}
	table := r.waitTable()
	for _, row := range table.Rows[:min(waitsShown, len(table.Rows))] {
		c.Series = append(c.Series, r.line(row[0], func(s Second) float64 {
			if s.Waits == nil {
				return math.NaN() // nobody told
			}
			return float64(s.Waits[row[0]])
		}))
	}
	return c
}

// paired lays the charts of the same title over one another. One that the other run lacks stands alone and says so.
func paired(a, b Report) []page.Chart {
	ours, theirs := a.charts(true), b.charts(true)
	var all []page.Chart
	for _, chart := range ours {
		both := lettered("A: ", chart, false)
		if i := slices.IndexFunc(theirs, func(other page.Chart) bool { return other.Title == chart.Title }); i >= 0 {
			second := lettered("B: ", theirs[i], true)
			both.Series = append(both.Series, second.Series...)
			both.Marks, both.Shaded = phasesOf(chart, theirs[i])
			theirs = slices.Delete(theirs, i, i+1)
		} else {
			both.Note = strings.TrimSpace(both.Note + " Nothing of it was seen in B.")
		}
		all = append(all, both)
	}
	for _, chart := range theirs {
		alone := lettered("B: ", chart, true)
		alone.Note = strings.TrimSpace(alone.Note + " Nothing of it was seen in A.")
		all = append(all, alone)
	}
	return all
}

// lettered says of each series which report it is of.
func lettered(letter string, c page.Chart, second bool) page.Chart {
	series := slices.Clone(c.Series)
	for i := range series {
		series[i].Name, series[i].Second = letter+series[i].Name, second
	}
	c.Series = series
	return c
}

// phasesOf marks the phases of two reports once where they are the same at about the same times, and else those of each
// one. What is shaded then holds for both of them, or for nobody.
func phasesOf(a, b page.Chart) ([]page.Mark, []page.Span) {
	const near = 2.0 // seconds
	same := slices.EqualFunc(a.Marks, b.Marks, func(one, other page.Mark) bool { return one.Label == other.Label && math.Abs(one.At-other.At) <= near }) &&
		slices.EqualFunc(a.Shaded, b.Shaded, func(one, other page.Span) bool {
			return math.Abs(one.From-other.From) <= near && math.Abs(one.To-other.To) <= near
		})
	if same {
		return a.Marks, a.Shaded
	}
	var all []page.Mark
	for _, m := range a.Marks {
		all = append(all, page.Mark{At: m.At, Label: "A: " + m.Label})
	}
	for _, m := range b.Marks {
		all = append(all, page.Mark{At: m.At, Label: "B: " + m.Label})
	}
	return all, nil
}

func prefixed(prefix string, groups []page.Group) []page.Group {
	for i := range groups {
		groups[i].Title = prefix + groups[i].Title
	}
	return groups
}

// compared sets the phases of two reports side by side, by their order.
func compared(a, b Report) page.Table {
	t := page.Table{Title: "Phases", Head: []string{"phase", "figure", "A", "B", "B against A"}}
	if len(a.Phases) != len(b.Phases) {
		t.Note = fmt.Sprintf("A has %d phases and B %d; those that only one of them has are not compared.", len(a.Phases), len(b.Phases))
	}
	for i := range min(len(a.Phases), len(b.Phases)) {
		one, other := a.Phases[i], b.Phases[i]
		name := one.title()
		if other.title() != name {
			name += ", in B " + other.title()
		}
		t.Rows = append(t.Rows, []string{name, "answers a second", one.rate(), other.rate(), change(one.Rate.PerSecond, other.Rate.PerSecond)})
		for _, f := range []struct {
			name string
			of   func(PhaseReport) float64
		}{
			{"p50, ms", func(p PhaseReport) float64 { return p.Latency.P50 }},
			{"p95, ms", func(p PhaseReport) float64 { return p.Latency.P95 }}, {"p99, ms", func(p PhaseReport) float64 { return p.Latency.P99 }},
			{"longest, ms", func(p PhaseReport) float64 { return p.Latency.Max }}, {"service p99, ms", func(p PhaseReport) float64 { return p.Service.P99 }},
		} {
			row := []string{name, f.name, one.cell(f.of(one)), other.cell(f.of(other)), ""}
			if one.Answered > 0 && other.Answered > 0 {
				row[4] = change(f.of(one), f.of(other))
			}
			t.Rows = append(t.Rows, row)
		}
		t.Rows = append(t.Rows, []string{name, "refused", thousands(float64(one.Refused)), thousands(float64(other.Refused)), change(float64(one.Refused), float64(other.Refused))})
	}
	return t
}

// cell writes a figure of a phase, or a dash where nothing was answered.
func (p PhaseReport) cell(v float64) string {
	if p.Answered == 0 {
		return none
	}
	return two(v)
}

func change(a, b float64) string {
	if a == 0 {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*(b/a-1))
}
