package load

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"chancery/api"
	"chancery/internal/load/drive"
	"chancery/internal/load/hinder"
	"chancery/internal/load/observe"
)

// The scenarios of Issue.
const (
	Regular      = "regular"       // ordinary certificates for machines
	Agent        = "agent"         // agent certificates, each for a delegation authorization of its own
	Renew        = "renew"         // agent certificates renewed over mTLS, under standing approval
	RenewRegular = "renew-regular" // ordinary certificates renewed over mTLS by their own key
	OCSP         = "ocsp"          // the status of certificates
	CRL          = "crl"           // the agents' CRL, while certificates are revoked
	Verify       = "verify"        // agent certificates verified offline, by the client
)

// Scenarios lists the scenarios of Issue.
func Scenarios() []string {
	return []string{Regular, Agent, Renew, RenewRegular, OCSP, CRL, Verify}
}

// An IssueConfig says what to ask for, of whom, and for how long.
type IssueConfig struct {
	Program    Program
	Preset     *Preset // whose criteria judge the report; nil: none do
	Scenario   string  // one of Scenarios; default Agent
	Phases     []Phase // one after the other; default: 20 s of a closed loop after 3 s of warm-up
	Population Population
	Remote     *Remote  // a server that runs; nil: an own one on fresh data, ended afterwards
	StoreURL   string   // database server for the own server, which makes a database there and drops it; empty: SQLite
	Settings   []string // more settings of the own server, name=value
	Cores      int      // the own server may use; 0: all
	Memory     int64    // bytes that the own server may use; 0: all
	Dir        string   // where the own server's data lie; empty: the system's directory for temporary files
	Log        Log
	Progress   func(Progress)

	changed string                  // in the preset
	shown   func(*x509.Certificate) // is shown a certificate that was verified
}

// A Progress is where a run is: the second that has just gone by.
type Progress struct {
	Phase Phase
	At    int // seconds since the phase began, its warm-up included
	drive.Second
}

func (c IssueConfig) withDefaults() IssueConfig {
	c.Scenario, c.Population = cmp.Or(c.Scenario, Agent), c.Population.withDefaults()
	if c.StoreURL == "sqlite:" {
		c.StoreURL = ""
	}
	if len(c.Phases) == 0 {
		c.Phases = []Phase{{Warmup: 3 * time.Second}}
	}
	c.Phases = slices.Clone(c.Phases)
	for i := range c.Phases {
		c.Phases[i] = c.Phases[i].withDefaults(c.Population)
	}
	return c
}

// Check refuses what makes no sense, before anything is started. Issue does so, too.
func (c IssueConfig) Check() error {
	c = c.withDefaults()

	if !slices.Contains(Scenarios(), c.Scenario) {
		return fmt.Errorf("scenario %q: want one of %s", c.Scenario, strings.Join(Scenarios(), ", "))
	}
	for i, p := range c.Phases {
		if err := p.check(); err != nil {
			return err
		}
		if p.Share > 0 && (i == 0 || c.Phases[0].Mode != Closed) {
			return fmt.Errorf("a share of the capacity needs a first phase that measures it in a closed loop")
		}
	}
	switch {
	case c.Cores < 0 || c.Memory < 0:
		return errors.New("a server has no negative number of cores or bytes")
	case c.Cores > runtime.NumCPU():
		return fmt.Errorf("%d cores are more than the %d that this machine lets the bench use", c.Cores, runtime.NumCPU())
	case c.Memory > 0 && c.Memory < memoryMin:
		return fmt.Errorf("no server starts in %d bytes of memory; %d MB are the least", c.Memory, memoryMin>>20)
	}
	return cmp.Or(c.checkStore(), c.checkRemote(), c.Population.check())
}

// memoryMin is less than a server needs to start and serve anybody.
const memoryMin = 64 << 20

// checkStore refuses a store that is neither a database server nor SQLite in a directory of the bench's own.
func (c IssueConfig) checkStore() error {
	if c.StoreURL == "" {
		return nil
	}
	if _, err := hinder.Target(c.StoreURL); err != nil {
		return fmt.Errorf("where to make a database: %w", err)
	}
	return c.suits()
}

// suits refuses a slow disk where the server's own syncs store nothing: a database server syncs elsewhere.
func (c IssueConfig) suits() error {
	slow := slices.ContainsFunc(c.Phases, func(p Phase) bool { return p.Slow > 0 })
	if database := databaseOf(c.StoreURL); slow && database != "sqlite" {
		return fmt.Errorf("a slow disk means nothing on %s: the database server syncs, and the bench slows the own server's syncs alone; leave the database out for SQLite, or let it stand still (--stall, --preset stall)", database)
	}
	return nil
}

// checkRemote refuses what only a server can have that the bench starts, and what a server that runs does not show.
func (c IssueConfig) checkRemote() error {
	if c.Remote == nil {
		return nil
	}
	for _, p := range c.Phases {
		if p.Slow > 0 || p.Stall > 0 {
			return errors.New("only a server that the bench starts can have a slow disk or a database that stands still")
		}
	}
	switch {
	case c.Cores > 0 || c.Memory > 0 || c.StoreURL != "" || c.Dir != "":
		return errors.New("only a server that the bench starts can have another database, directory, or bounds on cores and memory")
	case c.Preset != nil && len(c.Preset.settings) > 0:
		return fmt.Errorf("preset %s needs a server that the bench starts, with %s", c.Preset.Name, strings.Join(c.Preset.settings, " "))
	case c.Remote.MTLS == "" && (c.Scenario == Renew || c.Scenario == RenewRegular):
		return fmt.Errorf("scenario %s needs a server whose mTLS listener is known: name its data directory", c.Scenario)
	case c.Remote.Public == "" && (c.Scenario == OCSP || c.Scenario == CRL):
		return fmt.Errorf("scenario %s needs a server whose public listener is known: name its data directory", c.Scenario)
	}
	return nil
}

// Issue runs one scenario and looks up what was answered. The report is worth reading whatever the error says; Failed
// tells whether it shows a fault. When ctx ends, the run ends within a second, and what was answered until then is
// reported but not looked up.
func Issue(ctx context.Context, c IssueConfig) (Report, error) {
	c = c.withDefaults()
	if err := c.Check(); err != nil {
		return Report{}, err
	}
	r := &run{config: c, Report: newReport(c)}
	err := r.run(ctx)
	if r.Interrupted = ctx.Err() != nil; r.Interrupted {
		err = nil
	}
	r.finish(c, err)
	return r.Report, err
}

// A run is a report in the making.
type run struct {
	Report
	config IssueConfig
	server *server // the own one; nil: it runs elsewhere
	target *target
	book   *book
	began  time.Time

	mu sync.Mutex // guards Figures while phases run
}

// figure adds a figure. It is safe for concurrent use.
func (r *run) figure(f Figure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Figures = append(r.Figures, f)
}

func (r *run) run(ctx context.Context) error {
	if r.config.Remote != nil {
		return r.against(ctx, *r.config.Remote)
	}
	dir, remove, err := scratch(r.config.Dir, "chancery-bench")
	if err != nil {
		return err
	}
	defer remove()
	if err := r.Machine.MeasureSync(ctx, dir); err != nil {
		return err
	}
	r.Database = databaseOf(r.config.StoreURL)
	r.config.Log.say("starting a server on fresh data (%s)", r.Database)
	if r.server, err = newServer(ctx, r.config.Program, dir, r.config.StoreURL, r.config.Settings); err != nil {
		return err
	}
	defer r.server.remove(ctx)
	if err := r.server.hinder(ctx, r.config); err != nil {
		return err
	}
	if _, err := r.server.start(ctx); err != nil {
		return err
	}
	remote, err := r.server.remote()
	if err != nil {
		return err
	}
	return r.against(ctx, remote)
}

// databaseOf names the database of a store address, without what is secret in it.
func databaseOf(storeURL string) string {
	scheme, _, _ := strings.Cut(cmp.Or(storeURL, "sqlite:"), ":")
	return scheme
}

func (s *server) remote() (Remote, error) {
	admin, err := s.admin()
	return Remote{URL: "https://" + s.address, MTLS: s.mtls, Public: s.public, Metrics: "http://" + s.private + "/metrics", Admin: admin, PID: s.cmd.Process.Pid}, err
}

func (r *run) against(ctx context.Context, remote Remote) (err error) {
	r.Machine.Server = remote.PID
	if r.target, err = newTarget(ctx, remote); err != nil {
		return err
	}
	if err := r.target.admitReader(ctx); err != nil {
		return err
	}
	r.config.Log.say("making %s", r.config.Population)
	s, err := r.scenario(ctx)
	if err != nil {
		return err
	}
	r.book = &book{scenario: s, shown: r.config.shown}
	if err := r.drive(ctx, remote); err != nil {
		return err
	}
	r.Doubles = r.book.doubles()
	if r.server != nil {
		if r.Killed, err = r.server.around.killed(); err != nil {
			return fmt.Errorf("learn whether the server was killed for want of memory: %w", err)
		}
	}
	if r.Killed || ctx.Err() != nil {
		return nil
	}
	if err := r.server.gone(); err != nil {
		return err
	}
	if s.issuer != "" {
		r.config.Log.say("looking %s certificates up", thousands(float64(len(r.book.answered))))
		r.Lookup = r.target.lookUp(ctx, r.book.answered, s.issuer, sampleEvery)
	}
	return r.ask(ctx, r.target)
}

// scenario prepares what clients ask for.
func (r *run) scenario(ctx context.Context) (scenario, error) {
	t, p := r.target, r.config.Population
	switch r.config.Scenario {
	case Regular:
		return t.regular(ctx, p)
	case Renew:
		return t.renewals(ctx, p)
	case RenewRegular:
		return t.regularRenewals(ctx, p)
	case OCSP:
		return t.statuses(ctx, p)
	case CRL:
		return t.lists(ctx, p)
	case Verify:
		return t.verifying(ctx, p)
	}
	return t.agents(ctx, p)
}

// drive runs all phases, watched, as long as the server runs.
func (r *run) drive(ctx context.Context, remote Remote) error {
	ctx, stop := r.server.while(ctx)
	defer stop()
	data, database, grown := "", "", int64(0)
	if r.server != nil {
		data, database = r.server.data, r.server.storeURL
		grown = -observe.DiskBytes(data)
	}
	r.began = time.Now()
	watch, err := observe.Begin(ctx, observe.Config{Server: remote.PID, Data: data, Metrics: remote.Metrics, Database: database})
	if err != nil {
		return err
	}
	defer watch.End()
	for _, group := range groups(r.config.Phases) {
		if ctx.Err() != nil {
			break
		}
		for i := range group {
			group[i].Rate = cmp.Or(group[i].Rate, group[i].Share*r.capacity())
			if group[i].Share > 0 && group[i].Rate == 0 {
				return errors.New("the first phase answered nothing, so there is no capacity to take a share of")
			}
			r.config.Log.say("%s: %s for %s", r.config.Scenario, group[i], span(group[i].For))
		}
		if begin := r.book.scenario.begin; begin != nil {
			begin(group[0])
		}
		done := r.meanwhile(ctx, group)
		r.Phases = append(r.Phases, r.phases(ctx, group)...)
		if tells := r.book.scenario.tells; tells != nil && len(r.Phases) == 1 {
			r.figure(tells(r.Phases[0]))
		}
		done()
	}
	r.watched(watch.End())
	if data != "" && r.config.StoreURL == "" && len(r.book.answered) > 0 {
		r.DiskBytes = (grown + observe.DiskBytes(data)) / int64(len(r.book.answered))
	}
	return nil
}

// capacity is what the first phase came to, a closed loop.
func (r *run) capacity() float64 {
	if len(r.Phases) == 0 {
		return 0
	}
	return r.Phases[0].Rate.PerSecond
}

// groups joins phases of open loops that follow one another: what one leaves waiting, the next one finds.
func groups(phases []Phase) [][]Phase {
	var all [][]Phase
	for i, p := range phases {
		if last := len(all) - 1; i > 0 && p.joins(phases[i-1]) {
			all[last] = append(all[last], p)
			continue
		}
		all = append(all, []Phase{p})
	}
	return all
}

// keep adds up what a part of the run counted.
func (r *run) keep(t *drive.Tally) {
	for kind, n := range t.Errors {
		r.Errors[kind] += n
	}
	r.Refused += t.Refused
	r.Wrong += t.Wrongs
	if r.FirstWrong == "" && len(t.Wrong) > 0 {
		r.FirstWrong = t.Wrong[0]
	}
	r.seconds(t)
}

// ask asks the server how durable its database is.
func (r *run) ask(ctx context.Context, t *target) error {
	var h api.Health
	if err := t.admin.Call(ctx, http.MethodGet, "/api/v1/health", nil, &h); err != nil {
		return fmt.Errorf("ask for the database's durability: %w", err)
	}
	r.Durability = h.Settings
	if r.server == nil {
		return nil
	}
	var err error
	r.DatabaseSet, err = observe.Durability(ctx, r.server.storeURL)
	return err
}
