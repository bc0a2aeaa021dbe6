package load

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"chancery/api"
	"chancery/internal/load/drive"
	"chancery/internal/load/observe"
)

// A Report is one run against a server: what was asked, what came back, and what is left of it.
type Report struct {
	Preset      string              `json:"preset,omitempty"`
	Purpose     string              `json:"purpose,omitempty"`
	Expectation string              `json:"expectation,omitempty"`
	Criteria    []Criterion         `json:"criteria,omitempty"`
	At          time.Time           `json:"at"`
	Scenario    string              `json:"scenario"`
	Protocol    string              `json:"protocol"`
	Database    string              `json:"database,omitempty"`
	Durability  []api.HealthSetting `json:"durability,omitempty"`
	DatabaseSet []observe.Setting   `json:"database_settings,omitempty"` // of a database server, as it tells them itself
	Settings    []string            `json:"settings,omitempty"`          // other than the defaults of a fresh install
	Cores       int                 `json:"server_cores,omitempty"`
	Memory      int64               `json:"server_memory_bytes,omitempty"`
	Population  Population          `json:"population"`
	About       string              `json:"about,omitempty"` // the phase whose figures stand at the top; empty: the first
	Phases      []PhaseReport       `json:"phases"`
	Seconds     []Second            `json:"seconds,omitempty"`
	Refused     int                 `json:"refused"` // for want of capacity
	Errors      map[string]int      `json:"errors,omitempty"`
	Answered    int                 `json:"answered"` // certificates, warm-up included; all parsed and compared
	Verified    int                 `json:"verified"` // of these, in full
	Wrong       int                 `json:"wrong"`
	Doubles     int                 `json:"serials_twice"`
	FirstWrong  string              `json:"first_wrong,omitempty"`
	Lookup      Lookup              `json:"lookup"`
	DiskBytes   int64               `json:"disk_bytes_per_certificate,omitempty"`
	Figures     []Figure            `json:"figures,omitempty"`
	Killed      bool                `json:"killed_for_memory,omitempty"`
	Unread      int                 `json:"metrics_unread,omitempty"`    // seconds in which the server's metrics did not come
	Unlisted    int                 `json:"sessions_unlisted,omitempty"` // seconds in which the database did not tell its sessions
	Machine     observe.Machine     `json:"machine"`
	Marks       []string            `json:"marks,omitempty"`
	Interrupted bool                `json:"interrupted,omitempty"`

	changed string // in the preset
}

// A Figure is something that a run tells beside rates and latencies.
type Figure struct {
	Name  string `json:"name"`
	Value string `json:"value"`

	Number float64 `json:"number,omitempty"` // what a criterion is held to
}

// A Second is one second of a run: what clients saw, and what the machine did.
type Second struct {
	At float64 `json:"at_sec"` // since the run began
	drive.Second
	observe.Sample
}

func newReport(c IssueConfig) Report {
	r := Report{
		At: time.Now().UTC().Truncate(time.Second), Scenario: c.Scenario, Protocol: protocol(c), Settings: c.Settings, Population: c.Population,
		Cores: c.Cores, Memory: c.Memory, changed: c.changed, Errors: map[string]int{}, Machine: observe.Look(),
	}
	if p := c.Preset; p != nil {
		r.Preset, r.Purpose, r.Expectation = p.Name, p.Purpose, p.Expectation
	}
	if i := slices.IndexFunc(c.Phases, func(p Phase) bool { return p.Main }); i >= 0 {
		r.About = c.Phases[i].title()
	}
	return r
}

// protocol says how the clients of a run speak to the server.
func protocol(c IssueConfig) string {
	text := "HTTP/1.1 over TLS 1.3"
	switch c.Scenario {
	case Verify:
		return "no server is asked"
	case OCSP, CRL:
		text = "HTTP/1.1 without TLS"
	case Renew, RenewRegular:
		text = "HTTP/1.1 over mTLS 1.3"
	}
	if c.Phases[0].Fresh {
		return text + ", a new connection for each request"
	}
	return text + ", kept alive"
}

// seconds lays what clients saw beside what was seen of the machine.
func (r *run) seconds(t *drive.Tally) {
	for i, s := range t.Seconds {
		r.Seconds = append(r.Seconds, Second{At: t.Began.Sub(r.began).Seconds() + float64(i), Second: s})
	}
}

// watched adds what the machine did to the seconds in which it did it. A sample tells of the time since the one before
// it, so it belongs where the middle of that time lies.
func (r *run) watched(record observe.Record) {
	r.Unread, r.Unlisted = record.Unread, record.Unlisted
	i, before := 0, time.Duration(0)
	for _, seen := range record.Samples {
		at := seen.At.Sub(r.began)
		middle := (before + (at-before)/2).Seconds()
		before = at
		for i < len(r.Seconds) && (r.Seconds[i].Partial || r.Seconds[i].At+1 <= middle) {
			i++
		}
		if i == len(r.Seconds) {
			return
		}
		s := &r.Seconds[i]
		if middle < s.At { // between two groups of phases
			continue
		}
		s.Sample = seen
	}
}

// finish judges a run that went to its end.
func (r *run) finish(c IssueConfig, err error) {
	if r.book != nil {
		r.Answered, r.Verified = len(r.book.answered), r.book.verified
	}
	r.mark()
	if c.Preset != nil && !r.Interrupted && err == nil {
		r.Criteria = c.Preset.verdicts(r.Report)
	}
}

func (r *Report) mark() {
	r.Machine.OnDatabase = r.Database != "sqlite"
	r.Machine.Done()
	r.Marks = r.Machine.Marks()
	if r.changed != "" {
		r.Marks = append(r.Marks, "the preset was changed: "+r.changed)
	}
	if slices.ContainsFunc(r.Phases, func(p PhaseReport) bool { return p.For < 30*time.Second }) {
		r.Marks = append(r.Marks, "short: phases of less than 30 s")
	}
	if r.Unread > 0 {
		r.Marks = append(r.Marks, fmt.Sprintf("not seen: the server's metrics could not be read in %s s", thousands(float64(r.Unread))))
	}
	if r.Unlisted > 0 {
		r.Marks = append(r.Marks, fmt.Sprintf("not seen: the database's sessions could not be read in %s s", thousands(float64(r.Unlisted))))
	}
	for _, p := range r.Phases {
		r.Marks = append(r.Marks, p.marks()...)
	}
	for _, s := range r.Durability {
		if !s.Safe {
			r.Marks = append(r.Marks, fmt.Sprintf("not durable: %s is %s", s.Name, s.Value))
		}
	}
}

// marks says what makes a phase doubtful.
func (p PhaseReport) marks() (marks []string) {
	name := p.title()
	if p.Lasted > 0 {
		marks = append(marks, fmt.Sprintf("cut short: %s ended after %.1f of %s", name, p.Lasted, p.For))
	}
	if s := spread(p.Rate.Samples); p.Mode == Closed && s > 0.1 {
		marks = append(marks, fmt.Sprintf("unsteady: the samples of %s lie %.0f %% apart", name, s*100))
	}
	if without := p.Offered - p.Answered; p.Mode != Closed && p.Mode != Paced && without > 0 {
		marks = append(marks, fmt.Sprintf("%s: %s of %s requests were not answered and have no part in the latency", name, thousands(float64(without)), thousands(float64(p.Offered))))
	}
	if (p.Mode == Closed || p.Mode == Paced) && p.Refused > 0 {
		marks = append(marks, fmt.Sprintf("%s: %s of %s requests were refused and have no part in the latency", name, thousands(float64(p.Refused)), thousands(float64(p.Offered))))
	}
	if !p.Fresh && p.Handshakes > p.Connections {
		marks = append(marks, fmt.Sprintf("%s: connections were not kept, there were %s handshakes", name, thousands(float64(p.Handshakes))))
	}
	return marks
}

// silent says whether no answer came while a phase was counted. In an open loop answers can come to the requests of the
// phase before, for which all of its own wait.
func (p PhaseReport) silent() bool {
	return p.Answered == 0 && !slices.ContainsFunc(p.Rate.Samples, func(rate float64) bool { return rate > 0 })
}

// waits says whether a request can be due before it is sent, so that its latency and its service time differ.
func (p PhaseReport) waits() bool { return p.Mode != Closed && p.Mode != Paced || p.Refused > 0 }

// first is the first phase, or an empty one where there is none.
func (r *Report) first() PhaseReport {
	if len(r.Phases) == 0 {
		return PhaseReport{}
	}
	return r.Phases[0]
}

// main is the phase that the run is about. One that did not begin, or in which nothing was answered, has no figures.
func (r *Report) main() PhaseReport {
	if r.About == "" {
		return r.first()
	}
	if i := slices.IndexFunc(r.Phases, func(p PhaseReport) bool { return p.title() == r.About }); i >= 0 {
		return r.Phases[i]
	}
	return PhaseReport{Phase: Phase{Name: r.About}}
}

// rate and latency give a figure of a phase, or a dash where there was nothing to measure it by: a zero would be read as
// one that was measured.
func (p PhaseReport) rate() string {
	if p.Offered == 0 {
		return none
	}
	return thousands(p.Rate.PerSecond)
}

func (p PhaseReport) latency(millis float64) string {
	if p.Answered == 0 {
		return none
	}
	return milliseconds(millis)
}

// none stands where a figure is not known.
const none = "–"

// Failed gives what is lost or wrong in the report, or nil. That a criterion was missed is no fault of the run.
func (r Report) Failed() error {
	var errs []error
	if r.Wrong > 0 {
		errs = append(errs, fmt.Errorf("%d answers were wrong, such as: %s", r.Wrong, r.FirstWrong))
	}
	if r.Doubles > 0 {
		errs = append(errs, fmt.Errorf("%d serials were given twice", r.Doubles))
	}
	if failed := r.faults(); len(failed) > 0 {
		errs = append(errs, fmt.Errorf("requests failed: %s", listed(failed)))
	}
	if r.Killed {
		errs = append(errs, errors.New("the server was killed for want of memory"))
	}
	return errors.Join(append(errs, r.silent(), r.Lookup.failed())...)
}

// silent gives the phases in which nothing was answered, or nil. One that was interrupted may have been too short.
func (r Report) silent() error {
	if r.Interrupted {
		return nil
	}
	var silent []string
	for _, p := range r.Phases {
		if p.silent() {
			silent = append(silent, fmt.Sprintf("%s (%s offered, %s refused)", p.title(), thousands(float64(p.Offered)), thousands(float64(p.Refused))))
		}
	}
	switch {
	case len(r.Phases) == 0:
		return errors.New("nothing was answered in the counted time: no phase was run")
	case len(silent) > 0:
		return fmt.Errorf("nothing was answered in the counted time of %s", strings.Join(silent, ", "))
	}
	return nil
}

// cut says whether the run ended before its time.
func (r Report) cut() bool {
	return r.Killed || slices.ContainsFunc(r.Phases, func(p PhaseReport) bool { return p.Lasted > 0 })
}

// faults are the errors without those that were asked for: of requests that never found a free connection, and in phases
// that ask for more than can be served, of those that got no answer or one that does not know. The phases tell how much.
func (r Report) faults() map[string]int {
	faults := maps.Clone(r.Errors)
	delete(faults, drive.Unserved)
	for _, p := range r.Phases {
		if p.Stall == 0 && p.Share <= 1 {
			continue
		}
		for kind, n := range p.Errors {
			if strings.HasPrefix(kind, "no answer") || strings.HasPrefix(kind, "503") || strings.HasPrefix(kind, "504") {
				faults[kind] -= n
			}
		}
	}
	maps.DeleteFunc(faults, func(_ string, n int) bool { return n <= 0 })
	return faults
}

// A listing is of texts that people read with commas between them.
type listing []string

// String gives the list on one line.
func (l listing) String() string { return cmp.Or(strings.Join(l, ", "), "none") }

func listed(errors map[string]int) listing {
	var all listing
	for _, k := range drive.Kinds(errors) {
		all = append(all, thousands(float64(errors[k]))+" × "+k)
	}
	return all
}

// Write writes the report for people.
func (r Report) Write(w io.Writer) {
	fmt.Fprintf(w, "%s, durable on %s; %s; %s\n", r.title(), cmp.Or(r.Database, "the server's database"), r.Protocol, r.Population)
	for _, p := range r.Phases {
		p.write(w)
	}
	r.writeFate(w)
	if r.DiskBytes > 0 {
		fmt.Fprintf(w, "disk      %s bytes a certificate\n", thousands(float64(r.DiskBytes)))
	}
	for _, f := range r.Figures {
		fmt.Fprintf(w, "%-9s %s\n", f.Name, f.Value)
	}
	for _, c := range r.Criteria {
		fmt.Fprintf(w, "%-9s %s: %s\n", c.Verdict, c.Text, c.Measured)
	}
	r.Machine.Write(w)
	for _, s := range r.Durability {
		fmt.Fprintf(w, "database  %s = %s\n", s.Name, s.Value)
	}
	for _, s := range r.DatabaseSet {
		fmt.Fprintf(w, "server's  %s = %s\n", s.Name, s.Value)
	}
	writeMarks(w, r.Marks, r.Interrupted)
}

// writeFate writes what became of the requests, and of the certificates where some were asked for.
func (r Report) writeFate(w io.Writer) {
	u, n := r.Lookup, func(v int) string { return thousands(float64(v)) }
	if r.Answered > 0 {
		fmt.Fprintf(w, "\nanswers   %s, all parsed and compared, %s verified in full; wrong %s, serials twice %s\n", n(r.Answered), n(r.Verified), n(r.Wrong), n(r.Doubles))
	} else {
		fmt.Fprintf(w, "\nanswers   all judged; wrong %s\n", n(r.Wrong))
	}
	fmt.Fprintf(w, "refused   %s asked to come again; errors: %s\n", n(r.Refused), listed(r.Errors))
	if r.Answered > 0 {
		fmt.Fprintf(w, "afterward %s looked up: lost %s, changed %s, no longer valid %s, not known %s; %s asked in OCSP: wrong %s\n", n(u.LookedUp), n(u.Lost), n(u.Differ), n(u.Invalid), n(u.Unknown), n(u.OCSPAsked), n(u.OCSPWrong))
	}
}

func (r Report) title() string {
	if r.Preset != "" {
		return r.Preset + ": " + r.Scenario
	}
	return r.Scenario
}

func (p PhaseReport) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %s for %s\n", p.title(), p.Phase, span(p.For))
	fmt.Fprintf(w, "rate      %s a second (%s)\n", thousands(p.Rate.PerSecond), joined(p.Rate.Samples))
	fmt.Fprintf(w, "latency   %s\n", p.Latency)
	if p.waits() {
		fmt.Fprintf(w, "service   %s\n", p.Service)
		fmt.Fprintf(w, "offered   %s, answered %s\n", thousands(float64(p.Offered)), thousands(float64(p.Answered)))
	}
	if p.Refusal != nil {
		fmt.Fprintf(w, "refusals  %s: %s\n", thousands(float64(p.Refused)), p.Refusal)
	}
	if p.Handshake != nil {
		fmt.Fprintf(w, "handshake %s, %s resumed: %s\n", thousands(float64(p.Handshakes)), thousands(float64(p.Resumed)), p.Handshake)
	}
	if p.LastSec > 0 {
		fmt.Fprintf(w, "drained   the last was served after %.1f s\n", p.LastSec)
	}
	if p.Server != nil {
		fmt.Fprintf(w, "server    %s\n", p.Server)
	}
	fmt.Fprintf(w, "client    %s\n", p.Client)
}

// String gives the distribution on one line.
func (l Latency) String() string {
	return fmt.Sprintf("mean %.2f, p50 %.2f, p90 %.2f, p95 %.2f, p99 %.2f, p99.9 %.2f, max %.2f ms", l.Mean, l.P50, l.P90, l.P95, l.P99, l.P999, l.Max)
}

func joined(rates []float64) string {
	var all []string
	for _, v := range rates {
		all = append(all, thousands(v))
	}
	return strings.Join(all, ", ")
}
