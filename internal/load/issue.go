package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"chancery/api"
	"chancery/internal/load/observe"
)

// The scenarios of Issue.
const (
	Regular = "regular" // ordinary certificates for machines
	Agent   = "agent"   // agent certificates, each for a delegation authorization of its own
)

// An IssueConfig says what to ask for, of whom, and for how long.
type IssueConfig struct {
	Program    Program
	Scenario   string // Regular or Agent
	Clients    int    // default 64
	Population Population
	Duration   time.Duration // counted; default 20 s
	Warmup     time.Duration // before it, not counted; default 3 s
	Remote     *Remote       // a server that runs; nil: an own one on fresh data, ended afterwards
	StoreURL   string        // database server for the own server, which makes a database there and drops it; empty: SQLite
	Settings   []string      // more settings of the own server, name=value
	Dir        string        // where the own server's data lie; empty: the system's directory for temporary files
	Log        Log           // nil: silent
}

func (c IssueConfig) withDefaults() IssueConfig {
	c.Scenario, c.Clients, c.Population = cmp.Or(c.Scenario, Agent), cmp.Or(c.Clients, 64), c.Population.withDefaults()
	c.Duration, c.Warmup = cmp.Or(c.Duration, 20*time.Second), cmp.Or(c.Warmup, 3*time.Second)
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	return c
}

// A Report is one run against a server: what was asked, what came back, and what is left of it.
type Report struct {
	Scenario    string              `json:"scenario"`
	Protocol    string              `json:"protocol"`
	Database    string              `json:"database,omitempty"`
	Durability  []api.HealthSetting `json:"durability,omitempty"`
	Settings    []string            `json:"settings,omitempty"` // other than the defaults of a fresh install
	Clients     int                 `json:"clients"`
	Population  Population          `json:"population"`
	WarmupSec   float64             `json:"warmup_sec"`
	DurationSec float64             `json:"duration_sec"`
	Requests    int                 `json:"requests"` // answered with a certificate, in the counted time
	Rate        Rate                `json:"rate"`
	Latency     Latency             `json:"latency"`
	Refused     int                 `json:"refused"` // asked to come again, obeyed
	Errors      map[string]int      `json:"errors,omitempty"`
	Answered    int                 `json:"answered"` // certificates, warm-up included; all parsed and compared
	Verified    int                 `json:"verified"` // of these, in full
	Wrong       int                 `json:"wrong"`
	Doubles     int                 `json:"serials_twice"`
	FirstWrong  string              `json:"first_wrong,omitempty"`
	Lookup      Lookup              `json:"lookup"`
	Server      *observe.Usage      `json:"server,omitempty"`
	Client      observe.Usage       `json:"client"`
	DiskBytes   int64               `json:"disk_bytes_per_certificate,omitempty"`
	Machine     observe.Machine     `json:"machine"`
	Marks       []string            `json:"marks,omitempty"`
	Interrupted bool                `json:"interrupted,omitempty"`
}

// Issue runs one scenario in a closed loop and looks up what was answered. The report is worth reading whatever the
// error says; Failed tells whether it shows a fault. When ctx ends, the run ends within a second, and what was answered
// until then is reported but not looked up.
func Issue(ctx context.Context, c IssueConfig) (Report, error) {
	c = c.withDefaults()
	r := Report{
		Scenario: c.Scenario, Protocol: "HTTP/1.1 over TLS, kept alive", Clients: c.Clients, Population: c.Population, Settings: c.Settings,
		WarmupSec: c.Warmup.Seconds(), DurationSec: c.Duration.Seconds(), Machine: observe.Look(),
	}
	err := r.run(ctx, c)
	if r.Interrupted = ctx.Err() != nil; r.Interrupted {
		err = nil
	}
	r.mark()
	return r, err
}

func (r *Report) run(ctx context.Context, c IssueConfig) error {
	if c.Remote != nil {
		return r.against(ctx, c, *c.Remote, "")
	}
	dir, remove, err := scratch(c.Dir, "chancery-bench")
	if err != nil {
		return err
	}
	defer remove()
	if err := r.Machine.MeasureSync(dir); err != nil {
		return err
	}
	r.Database = databaseOf(c.StoreURL)
	c.Log("starting a server on fresh data (%s)", r.Database)
	s, err := newServer(ctx, c.Program, dir, c.StoreURL, c.Settings)
	if err != nil {
		return err
	}
	defer s.remove(ctx)
	if _, err := s.start(ctx); err != nil {
		return err
	}
	remote, err := s.remote()
	if err != nil {
		return err
	}
	return r.against(ctx, c, remote, s.data)
}

// databaseOf names the database of a store address, without what is secret in it.
func databaseOf(storeURL string) string {
	scheme, _, _ := strings.Cut(cmp.Or(storeURL, "sqlite:"), ":")
	return scheme
}

func (s *server) remote() (Remote, error) {
	admin, err := s.admin()
	return Remote{URL: "https://" + s.address, Admin: admin, PID: s.cmd.Process.Pid}, err
}

func (r *Report) against(ctx context.Context, c IssueConfig, remote Remote, data string) error {
	r.Machine.Server = remote.PID
	c.Log("making %d accounts, %d agents, %d tokens, and keys", c.Population.People, c.Population.Agents, c.Population.Tokens)
	t, err := newTarget(ctx, remote)
	if err != nil {
		return err
	}
	if err := t.admitReader(ctx); err != nil {
		return err
	}
	s, issuer, err := t.scenario(ctx, c)
	if err != nil {
		return err
	}
	c.Log("%s, %d clients: %s of warm-up, then %s", c.Scenario, c.Clients, c.Warmup, c.Duration)
	diskBefore := observe.DiskBytes(data)
	m := observe.NewMeter(t.pid)
	l := &loop{address: t.address, tls: t.tls, clients: c.Clients, warmup: c.Warmup, duration: c.Duration, scenario: s, begin: m.Begin, end: m.End}
	counted := l.run(ctx)
	r.count(counted, m)
	if data != "" && c.StoreURL == "" && r.Answered > 0 {
		r.DiskBytes = (observe.DiskBytes(data) - diskBefore) / int64(r.Answered)
	}
	if ctx.Err() != nil {
		return nil
	}
	c.Log("looking %d certificates up", r.Answered)
	r.Lookup = t.lookUp(ctx, counted.answered, issuer, sampleEvery)
	return r.ask(ctx, t)
}

func (t *target) scenario(ctx context.Context, c IssueConfig) (s scenario, issuer string, err error) {
	switch c.Scenario {
	case Regular:
		s, err = t.regular(ctx, c.Population, c.Clients)
		return s, "machines", err
	case Agent:
		s, err = t.agents(ctx, c.Population, c.Clients)
		return s, "agents", err
	}
	return s, "", fmt.Errorf("scenario %q: want %s or %s", c.Scenario, Regular, Agent)
}

// ask asks the server how durable its database is.
func (r *Report) ask(ctx context.Context, t *target) error {
	var h api.Health
	if err := t.admin.Call(ctx, http.MethodGet, "/api/v1/health", nil, &h); err != nil {
		return fmt.Errorf("ask for the database's durability: %w", err)
	}
	r.Durability = h.Settings
	return nil
}

func (r *Report) count(t *tally, m *observe.Meter) {
	r.Requests = int(t.latency.TotalCount())
	r.Rate, r.Latency = rateOf(t.rates()), latencyOf(t.latency)
	if t.window.until.After(m.To) && !m.From.IsZero() { // interrupted: one sample of what there is
		r.Rate = rateOf([]float64{float64(r.Requests) / m.To.Sub(m.From).Seconds()})
	}
	r.Refused, r.Errors = t.refused, t.errors
	r.Answered, r.Verified, r.Wrong, r.Doubles = len(t.answered), t.verified, t.wrongs, t.doubles()
	if len(t.wrong) > 0 {
		r.FirstWrong = t.wrong[0]
	}
	r.Server, r.Client = m.Usage(r.Requests)
}

func (r *Report) mark() {
	r.Machine.OnDatabase = r.Database != "sqlite"
	r.Machine.Done()
	r.Marks = r.Machine.Marks()
	if r.DurationSec < 30 {
		r.Marks = append(r.Marks, "short: less than 30 s")
	}
	if s := spread(r.Rate.Samples); s > 0.1 {
		r.Marks = append(r.Marks, fmt.Sprintf("unsteady: the samples lie %.0f %% apart", s*100))
	}
	for _, s := range r.Durability {
		if !s.Safe {
			r.Marks = append(r.Marks, fmt.Sprintf("not durable: %s is %s", s.Name, s.Value))
		}
	}
}

// Failed gives what is lost or wrong in the report, or nil.
func (r Report) Failed() error {
	var errs []error
	if r.Wrong > 0 {
		errs = append(errs, fmt.Errorf("%d answers were wrong, such as: %s", r.Wrong, r.FirstWrong))
	}
	if r.Doubles > 0 {
		errs = append(errs, fmt.Errorf("%d serials were given twice", r.Doubles))
	}
	if len(r.Errors) > 0 {
		errs = append(errs, fmt.Errorf("requests failed: %s", strings.Join(listed(r.Errors), ", ")))
	}
	if r.Requests == 0 && !r.Interrupted {
		errs = append(errs, errors.New("nothing was answered in the counted time"))
	}
	return errors.Join(append(errs, r.Lookup.failed())...)
}

func listed(errors map[string]int) []string {
	var all []string
	for _, k := range kinds(errors) {
		all = append(all, fmt.Sprintf("%d × %s", errors[k], k))
	}
	return all
}

// Write writes the report for people.
func (r Report) Write(w io.Writer) {
	fmt.Fprintf(w, "%s: %s certificates a second, durable on %s\n\n", r.Scenario, thousands(r.Rate.PerSecond), cmp.Or(r.Database, "the server's database"))
	fmt.Fprintf(w, "clients   %d, %s; %d people, %d agents, %d tokens\n", r.Clients, r.Protocol, r.Population.People, r.Population.Agents, r.Population.Tokens)
	fmt.Fprintf(w, "samples   %s\n", joined(r.Rate.Samples))
	l := r.Latency
	fmt.Fprintf(w, "latency   mean %.2f, p50 %.2f, p90 %.2f, p95 %.2f, p99 %.2f, p99.9 %.2f, max %.2f ms\n", l.Mean, l.P50, l.P90, l.P95, l.P99, l.P999, l.Max)
	fmt.Fprintf(w, "answers   %d, all parsed and compared, %d verified in full; wrong %d, serials twice %d\n", r.Answered, r.Verified, r.Wrong, r.Doubles)
	fmt.Fprintf(w, "refused   %d asked to come again; errors: %s\n", r.Refused, cmp.Or(strings.Join(listed(r.Errors), ", "), "none"))
	u := r.Lookup
	fmt.Fprintf(w, "afterward %d looked up: lost %d, changed %d, not known %d; %d asked in OCSP: wrong %d\n", u.LookedUp, u.Lost, u.Differ, u.Unknown, u.OCSPAsked, u.OCSPWrong)
	if r.Server != nil {
		fmt.Fprintf(w, "server    %s\n", r.Server)
	}
	fmt.Fprintf(w, "client    %s\n", r.Client)
	if r.DiskBytes > 0 {
		fmt.Fprintf(w, "disk      %d bytes a certificate\n", r.DiskBytes)
	}
	r.Machine.Write(w)
	for _, s := range r.Durability {
		fmt.Fprintf(w, "database  %s = %s\n", s.Name, s.Value)
	}
	writeMarks(w, r.Marks, r.Interrupted)
}

func joined(rates []float64) string {
	var all []string
	for _, v := range rates {
		all = append(all, thousands(v))
	}
	return strings.Join(all, ", ") + " a second"
}
