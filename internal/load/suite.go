package load

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"chancery/internal/load/observe"
	"chancery/internal/load/page"
)

// A SuiteConfig says which presets run, on which databases, and where their reports go.
type SuiteConfig struct {
	Program  Program
	Only     []string      // presets; empty: all
	Stores   []string      // store URLs of database servers; an empty one is SQLite; none: SQLite alone
	With     Parameters    // change every preset
	Timeout  time.Duration // of one preset on one database; default 30 min
	Out      string        // folder in which a folder with the date is made; default: the working directory
	Settings []string      // more settings of the servers
	Dir      string        // where the servers' data lie; empty: the system's directory for temporary files
	Log      Log
	Progress func(Progress)
}

// Check refuses what makes no sense, before anything is started. Suite does so, too.
func (c SuiteConfig) Check() error {
	if c.Timeout < 0 || c.With.Agents < 0 || min(c.With.Interval, c.With.Duration) < 0 || c.With.Connections < 0 {
		return errors.New("nothing that changes presets is negative")
	}
	presets, err := c.presets()
	for _, store := range append([]string{""}, c.Stores...) {
		for _, p := range presets {
			if one := p.Apply(IssueConfig{StoreURL: store}, c.With); one.suits() == nil {
				err = cmp.Or(err, one.Check())
			}
		}
	}
	return err
}

// The ways in which a run of a suite ends.
const (
	Done     = "done"
	TimedOut = "timed out"
	Broken   = "failed" // it could not be run, or something was lost or wrong
	Skipped  = "interrupted"
	Unsuited = "does not apply" // to this database
)

// A SuiteRun is one preset on one database.
type SuiteRun struct {
	Preset   string      `json:"preset"`
	Database string      `json:"database"`
	State    string      `json:"state"`
	Why      string      `json:"why,omitempty"`
	TookSec  float64     `json:"took_sec"`
	File     string      `json:"file,omitempty"`       // the report's name in the folder, without .json and .html
	Phase    string      `json:"phase,omitempty"`      // that the run is about
	Rate     float64     `json:"per_second,omitempty"` // of that phase, like the next two; none where nothing was answered
	P50      float64     `json:"p50_ms,omitempty"`
	P99      float64     `json:"p99_ms,omitempty"`
	Criteria []Criterion `json:"criteria,omitempty"`
	Purpose  string      `json:"purpose"`
	Marks    []string    `json:"marks,omitempty"` // what makes this run doubtful

	Unsaved string `json:"unsaved,omitempty"` // why its report could not be written

	durability []page.Fact // of its database
}

// A SuiteReport is what a suite came to. Its folder holds the report of every run, as JSON and as a page.
type SuiteReport struct {
	Folder      string          `json:"folder"`
	At          time.Time       `json:"at"`
	Changed     string          `json:"changed,omitempty"` // in every preset
	Runs        []SuiteRun      `json:"runs"`
	Machine     observe.Machine `json:"machine"`
	Interrupted bool            `json:"interrupted,omitempty"`

	unsaved error // why the summary could not be written
}

// Suite runs presets one after the other, each on every database and each on fresh data. One that fails or takes too
// long is marked, and the rest run. After every run its report and the summary are written; where that fails the rest
// runs all the same, and Failed says so.
func Suite(ctx context.Context, c SuiteConfig) (SuiteReport, error) {
	c.Timeout = cmp.Or(c.Timeout, 30*time.Minute)
	presets, err := c.presets()
	if err = cmp.Or(err, c.Check()); err != nil {
		return SuiteReport{}, err
	}
	now := time.Now()
	r := SuiteReport{Machine: observe.Look(), At: now.UTC().Truncate(time.Second), Changed: c.With.String(), Folder: filepath.Join(c.Out, "bench-"+now.Format("2006-01-02-150405"))}
	if err := os.MkdirAll(r.Folder, 0o755); err != nil {
		return r, err
	}
	if len(c.Stores) == 0 {
		c.Stores = []string{""}
	}
	names := storeNames(c.Stores)
	r.Machine.OnDatabase = slices.ContainsFunc(c.Stores, func(store string) bool { return databaseOf(store) != "sqlite" })
	for _, p := range presets {
		for i, store := range c.Stores {
			c.Log.say("== %s on %s: %s", p.Name, names[i], p.Purpose)
			run := c.run(ctx, r.Folder, p, store, names[i])
			r.Runs = append(r.Runs, run)
			c.Log.say("== %s on %s: %s %s%s", p.Name, run.Database, run.State, run.Why, run.Unsaved)
			_ = r.write() // the last one counts
		}
	}
	r.Machine.Done()
	r.Interrupted = ctx.Err() != nil
	r.unsaved = r.write()
	return r, nil
}

// storeNames tells the databases of a suite apart without their addresses, which hold secrets.
func storeNames(stores []string) []string {
	var all []string
	times := map[string]int{}
	for _, store := range stores {
		name := databaseOf(store)
		if times[name]++; times[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, times[name])
		}
		all = append(all, name)
	}
	return all
}

func (c SuiteConfig) presets() ([]*Preset, error) {
	var all []*Preset
	for _, p := range Presets() {
		if len(c.Only) == 0 {
			all = append(all, &p)
		}
	}
	for _, name := range c.Only {
		p, err := FindPreset(name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// run runs one preset on one database. What goes wrong stands in the run.
func (c SuiteConfig) run(ctx context.Context, folder string, p *Preset, store, name string) SuiteRun {
	run := SuiteRun{Preset: p.Name, Purpose: p.Purpose, Database: name, State: Done}
	if ctx.Err() != nil {
		run.State = Skipped
		return run
	}
	config := p.Apply(IssueConfig{Program: c.Program, StoreURL: store, Settings: c.Settings, Dir: c.Dir, Log: c.Log, Progress: c.Progress}, c.With)
	if err := config.suits(); err != nil {
		run.State, run.Why = Unsuited, err.Error()
		return run
	}
	within, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	began := time.Now()
	report, err := Issue(within, config)
	run.TookSec = time.Since(began).Seconds()
	if err = cmp.Or(err, report.Failed()); err != nil {
		run.State, run.Why = Broken, err.Error()
	}
	switch {
	case ctx.Err() != nil:
		run.State = Skipped
	case within.Err() != nil:
		run.State, run.Why = TimedOut, fmt.Sprintf("not done within %s", span(c.Timeout))
	}
	run.reported(report)
	run.saved(report, folder)
	return run
}

// saved writes the report of a run, if there is one, beside the summary.
func (r *SuiteRun) saved(of Report, folder string) {
	if len(of.Phases) == 0 {
		return
	}
	name := r.Preset + "-" + r.Database
	if err := of.Save(filepath.Join(folder, name+".html")); err != nil {
		r.Unsaved = "its report could not be written: " + err.Error()
		return
	}
	r.File = name
}

// reported takes what a suite shows of a report.
func (r *SuiteRun) reported(of Report) {
	p := of.main()
	r.Phase, r.Rate, r.P50, r.P99 = p.title(), p.Rate.PerSecond, p.Latency.P50, p.Latency.P99
	r.Criteria, r.Marks, r.durability = of.Criteria, of.Marks, of.durability()
}

// Save writes the report twice: as a page into the file, and everything as JSON beside it.
func (r Report) Save(file string) error {
	base := strings.TrimSuffix(file, ".html")
	p := r.Page()
	p.Links = append(p.Links, page.Link{Text: "all of it as JSON", Href: filepath.Base(base) + ".json"})
	return errors.Join(writeJSON(base+".json", r), savePage(base+".html", p))
}

// Savable refuses a file in which Save could not write, before a long run whose report is to go there.
func Savable(file string) error {
	for _, name := range []string{strings.TrimSuffix(file, ".html") + ".html", strings.TrimSuffix(file, ".html") + ".json"} {
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("the report cannot be written into %s: that is no ordinary file", name)
		}
	}
	f, err := beside(file)
	if err != nil {
		return fmt.Errorf("the report cannot be written: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// beside makes a file with a name of its own in the directory of another one.
func beside(file string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
}

// savePage writes a page into a file.
func savePage(file string, p page.Page) error { return save(file, p.Write) }

func writeJSON(file string, v any) error {
	return save(file, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", " ")
		return encoder.Encode(v)
	})
}

// save writes a file beside its place and moves it there when it is whole, so that no half one is ever found.
func save(file string, write func(io.Writer) error) error {
	f, err := beside(file)
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", file, err), os.Remove(f.Name()))
	}
	return nil
}

// ReadReport reads a report that Save wrote as JSON: an ordinary file with nothing else in it.
func ReadReport(file string) (r Report, err error) {
	switch info, err := os.Stat(file); {
	case err != nil:
		return r, err
	case !info.Mode().IsRegular(): // opening a pipe waits for its writer
		return r, fmt.Errorf("%s is no report of a run: it is no ordinary file", file)
	case info.Size() > reportBytesMax:
		return r, fmt.Errorf("%s is no report of a run: it has %d bytes, and %d are the most", file, info.Size(), reportBytesMax)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil { // refuses what stands behind the report, too
		return r, fmt.Errorf("%s is no report of a run: %w", file, err)
	}
	if r.Scenario == "" || len(r.Phases) == 0 {
		return r, fmt.Errorf("%s is no report of a run: it names no scenario and no phase", file)
	}
	for i := range r.Phases {
		r.Phases[i].timed()
	}
	return r, nil
}

const reportBytesMax = 64 << 20

// SaveComparison writes the comparison of two reports as a page.
func SaveComparison(file string, a, b Report) error { return savePage(file, Compare(a, b)) }

func (r SuiteReport) write() error {
	return errors.Join(writeJSON(filepath.Join(r.Folder, "summary.json"), r), savePage(filepath.Join(r.Folder, "index.html"), r.page()))
}

func (r SuiteReport) page() page.Page {
	p := page.Page{
		Title: "What this authority can do on this machine, " + r.At.Format("2006-01-02"),
		Lead:  []string{"Each line is a run on fresh data, and leads to its page, which says what was expected and what had to be reached. Rate and latency are those of the phase that the run is about."},
		Facts: r.facts(), Tables: []page.Table{r.table()}, Notes: notes(r.marks(), r.Interrupted),
	}
	return p
}

// marks are what makes all runs doubtful.
func (r SuiteReport) marks() []string {
	if r.Changed != "" {
		return append(r.Machine.Marks(), "the presets were changed: "+r.Changed)
	}
	return r.Machine.Marks()
}

func (r SuiteReport) table() page.Table {
	t := page.Table{Title: "Runs", Head: []string{"preset", "database", "state", "phase", "a second", "p50, ms", "p99, ms", "met", "missed", "unjudged", "took, s"}}
	common := r.Machine.Marks()
	for _, run := range r.Runs {
		f, link := run.figures(), ""
		if run.File != "" {
			link = run.File + ".html"
		}
		t.Rows = append(t.Rows, []string{run.Preset, run.Database, run.State, f.phase, f.rate, f.p50, f.p99, f.met, f.missed, f.unjudged, f.took})
		t.Links, t.Below = append(t.Links, link), append(t.Below, run.below(common))
	}
	return t
}

// below says what a row has no column for: what the run is for, how it failed, what it did not reach, and what makes it
// doubtful beyond the marks that are common to all runs.
func (r SuiteRun) below(common []string) []string {
	all := []string{r.Purpose}
	if r.Why != "" {
		all = append(all, r.State+": "+r.Why)
	}
	if r.Unsaved != "" {
		all = append(all, r.Unsaved)
	}
	for _, c := range r.Criteria {
		if c.Verdict != Met {
			all = append(all, c.Verdict+": "+c.Text+": "+c.Measured)
		}
	}
	for _, mark := range r.Marks {
		if !slices.Contains(common, mark) {
			all = append(all, "note: "+mark)
		}
	}
	return all
}

// facts tell when and where a suite ran, and how durable each database is.
func (r SuiteReport) facts() []page.Group {
	presets := "unchanged"
	if r.Changed != "" {
		presets = "changed: " + r.Changed
	}
	all := []page.Group{{Title: "Suite", Facts: []page.Fact{
		{Name: "at", Value: r.At.Format("2006-01-02 15:04:05 MST")}, {Name: "program", Value: r.Machine.Revision + ", " + r.Machine.Go}, {Name: "presets", Value: presets},
	}}, {Title: "Machine", Facts: machineFacts(r.Machine)}}
	seen := map[string]bool{}
	for _, run := range r.Runs {
		if !seen[run.Database] && len(run.durability) > 0 {
			seen[run.Database] = true
			all = append(all, page.Group{Title: "Database " + run.Database, Facts: run.durability})
		}
	}
	return all
}

// runFigures are a run's figures as texts, with a dash for what is not known.
type runFigures struct{ phase, rate, p50, p99, met, missed, unjudged, took string }

func (r SuiteRun) figures() runFigures {
	known := func(v float64, text string) string {
		if v == 0 {
			return none
		}
		return text
	}
	count := func(verdict string) string {
		n := 0
		for _, c := range r.Criteria {
			if c.Verdict == verdict {
				n++
			}
		}
		return known(float64(len(r.Criteria)), thousands(float64(n)))
	}
	return runFigures{
		phase: cmp.Or(r.Phase, none), rate: known(r.Rate, thousands(r.Rate)), p50: known(r.P50, two(r.P50)), p99: known(r.P99, two(r.P99)),
		met: count(Met), missed: count(Missed), unjudged: count(Unjudged), took: known(r.TookSec, thousands(r.TookSec)),
	}
}

// Failed gives the runs that could not be run, or lost something, and what could not be written, or nil. A missed criterion is a finding, not a fault.
func (r SuiteReport) Failed() error {
	var errs []error
	for _, run := range r.Runs {
		if run.State == Broken || run.State == TimedOut {
			errs = append(errs, fmt.Errorf("%s on %s: %s: %s", run.Preset, run.Database, run.State, run.Why))
		}
		if run.Unsaved != "" {
			errs = append(errs, fmt.Errorf("%s on %s: %s", run.Preset, run.Database, run.Unsaved))
		}
	}
	if r.unsaved != nil {
		errs = append(errs, fmt.Errorf("the summary could not be written: %w", r.unsaved))
	}
	return errors.Join(errs...)
}

// Write writes the summary for people. The marks of each run stand in its report.
func (r SuiteReport) Write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PRESET\tDATABASE\tSTATE\tPHASE\tRATE /s\tP50 ms\tP99 ms\tMET\tMISSED\tUNJUDGED\tTOOK s\tMARKS")
	for _, run := range r.Runs {
		f := run.figures()
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", run.Preset, run.Database, run.State, f.phase, f.rate, f.p50, f.p99, f.met, f.missed, f.unjudged, f.took, len(run.Marks))
	}
	_ = table.Flush()
	for _, run := range r.Runs {
		for _, c := range run.Criteria {
			if c.Verdict != Met {
				fmt.Fprintf(w, "%-9s %s on %s: %s: %s\n", c.Verdict, run.Preset, run.Database, c.Text, c.Measured)
			}
		}
	}
	fmt.Fprintf(w, "reports   %s\n", filepath.Join(r.Folder, "index.html"))
	writeMarks(w, r.marks(), r.Interrupted)
}
