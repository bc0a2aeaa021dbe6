package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"chancery/internal/base/conf"
	"chancery/internal/load"
)

// An issueBench is what the flags of `bench issue` say.
type issueBench struct {
	load.IssueConfig
	phase  load.Phase
	memory conf.Size
	preset string
	report string
}

func (t *terminal) benchIssue() *cobra.Command {
	b := &issueBench{}
	b.Log = t.progress
	cmd := &cobra.Command{
		Use: "issue", Short: "Load a server, check every answer, and look all certificates up afterwards", Args: cobra.NoArgs,
		Long: issueHelp(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := b.understand(cmd, t.set); err != nil {
				return usageError{err}
			}
			if cmd.Flags().Changed("data") || t.server != "" {
				if b.Remote, err = t.benchRemote(); err != nil {
					return err
				}
				b.Settings = nil // they only said where it is
			}
			if err := b.Check(); err != nil {
				return usageError{err}
			}
			if b.report != "" {
				if err := load.Savable(b.report); err != nil {
					return usageError{err}
				}
			}
			r, err := load.Issue(cmd.Context(), t.shownLive(b.IssueConfig))
			return t.reported(cmd.Context(), r, err, b.report)
		},
	}
	flags := t.settings(cmd).Flags()
	flags.StringVar(&b.preset, "preset", "", "a run with a name, which says what it is for and what it has to reach")
	flags.StringVar(&b.Scenario, "scenario", load.Agent, strings.Join(load.Scenarios(), ", "))
	flags.StringVar(&b.phase.Mode, "mode", load.Closed, strings.Join(load.Modes(), ", "))
	flags.Float64Var(&b.phase.Rate, "rate", 0, "arrivals a second, in mode open")
	flags.DurationVar(&b.phase.Interval, "interval", 0, "of each agent, in the modes steady and paced; default 10m")
	flags.IntVar(&b.phase.Connections, "connections", 64, "at once; in a closed loop, the clients")
	flags.DurationVar(&b.phase.For, "duration", 20*time.Second, "counted time; in mode once, the longest that anybody waits")
	flags.DurationVar(&b.phase.Warmup, "warmup", 3*time.Second, "time before it that is not counted; mode once has none")
	flags.BoolVar(&b.phase.Fresh, "new-connections", false, "a connection of its own for each request")
	flags.BoolVar(&b.phase.Resume, "resume", false, "new connections resume their TLS sessions")
	flags.BoolVar(&b.phase.Obey, "obey", false, "who is refused in mode open or steady comes again after Retry-After")
	flags.DurationVar(&b.phase.Slow, "slow-disk", 0, "time added to each sync of the own server, on SQLite")
	flags.DurationVar(&b.phase.Stall, "stall", 0, "time for which the own server's database stands still, from a third of the duration on")
	flags.Float64Var(&b.phase.Changes, "changes", 0, "tokens and people changed a second meanwhile")
	flags.BoolVar(&b.phase.Reader, "reader", false, "read backups meanwhile")
	flags.IntVar(&b.Cores, "cores", 0, "processors that the own server may use; 0: all")
	flags.TextVar(&b.memory, "memory", conf.Size(0), "`size` of the memory that the own server may use, such as 512MB; 0B: all")
	flags.StringVar(&b.StoreURL, "store", "", "database server for the own server, in the form of store.url: a database is made there and dropped; default: SQLite")
	flags.StringVar(&b.Dir, "dir", "", "where an own server keeps its data; default: the directory for temporary files")
	flags.StringVar(&b.report, "report", "", "file for the report as a page, such as run.html; the JSON goes beside it")
	population(cmd, &b.Population)
	return cmd
}

func issueHelp() string {
	var text strings.Builder
	text.WriteString("In mode closed each connection sends its next request when it has its answer. In the modes open, steady and once requests\nstart when they are due, and latency counts from there, so that a stall is not hidden. With --scenario agent every request\ncarries a delegation authorization that a person's key has just signed for it. The run fails when anything is lost or\nwrong. With --data or --server the server runs already; its admin socket, or a token that may do as much, prepares the\nrun, and the accounts and agents that it made stay.\n\nPresets:\n")
	for _, p := range load.Presets() {
		fmt.Fprintf(&text, "  %-16s %s\n", p.Name, p.Purpose)
	}
	text.WriteString("--agents, --interval, --duration and --connections change a preset: people and tokens go with the agents, and phases\nkeep their proportion to the longest and to the one with the most connections. None gets shorter than 5s or has\nfewer than 64 connections unless it did or that is asked for.")
	return text.String()
}

// understand makes a configuration of the flags.
func (b *issueBench) understand(cmd *cobra.Command, settings []string) error {
	b.Settings, b.Memory = settings, int64(b.memory)
	if cmd.Flags().Changed("report") && b.report == "" {
		return errors.New("--report needs the name of a file")
	}
	if b.preset == "" {
		b.Phases = []load.Phase{b.phase}
		return b.unused(cmd)
	}
	p, err := load.FindPreset(b.preset)
	if err != nil {
		return err
	}
	changed := cmd.Flags().Changed
	for _, name := range []string{"scenario", "mode", "rate", "warmup", "new-connections", "resume", "obey", "slow-disk", "stall", "changes", "reader", "cores", "memory", "people", "tokens"} {
		if changed(name) {
			return fmt.Errorf("--%s: the preset says it already; --agents, --interval, --duration and --connections change a preset", name)
		}
	}
	if b.phase.For <= 0 || b.phase.Interval < 0 {
		return errors.New("no time is negative")
	}
	with := load.Parameters{Interval: b.phase.Interval}
	if changed("agents") {
		with.Agents = b.Population.Agents
	}
	if changed("duration") {
		with.Duration = b.phase.For
	}
	if changed("connections") {
		with.Connections = b.phase.Connections
	}
	b.IssueConfig = p.Apply(b.IssueConfig, with)
	return nil
}

// unused refuses flags that mean nothing with the others.
func (b *issueBench) unused(cmd *cobra.Command) error {
	mode := b.phase.Mode
	for _, f := range []struct {
		name  string
		modes []string
	}{
		{"rate", []string{load.Open}}, {"interval", []string{load.Steady, load.Paced}}, {"obey", []string{load.Open, load.Steady}},
		{"warmup", []string{load.Closed, load.Paced, load.Open, load.Steady}},
	} {
		if cmd.Flags().Changed(f.name) && !slices.Contains(f.modes, mode) {
			return fmt.Errorf("--%s means nothing in mode %s, only in %s", f.name, mode, strings.Join(f.modes, ", "))
		}
	}
	for _, name := range []string{"new-connections", "resume", "obey", "slow-disk", "stall", "changes", "reader"} {
		if b.Scenario == load.Verify && cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s means nothing in scenario %s, which asks no server", name, load.Verify)
		}
	}
	return nil
}

func population(cmd *cobra.Command, p *load.Population) {
	flags := cmd.Flags()
	flags.IntVar(&p.People, "people", 16, "people, or service accounts, who ask")
	flags.IntVar(&p.Agents, "agents", 64, "agents")
	flags.IntVar(&p.Tokens, "tokens", 64, "API tokens of all people together")
}

// reported shows a report and writes it into a file, if one is named, whatever became of the run: what was measured
// before it broke is worth reading. One that was interrupted before it measured anything says so.
func (t *terminal) reported(ctx context.Context, r load.Report, err error, file string) error {
	var unsaved error
	if file != "" && (len(r.Phases) > 0 || r.Interrupted) {
		unsaved = r.Save(file)
	}
	if err != nil && len(r.Phases) > 0 {
		return errors.Join(err, unsaved, t.show(r, func() { r.Write(t.out) }))
	}
	if err = t.found(ctx, r, err); unsaved != nil && errors.Is(err, context.Canceled) {
		return unsaved // that the run was interrupted is known to who did it
	}
	return errors.Join(err, unsaved)
}

// shownLive lets a run show each second on one line of a terminal.
func (t *terminal) shownLive(c load.IssueConfig) load.IssueConfig {
	out, isFile := t.err.(*os.File)
	if !isFile || !term.IsTerminal(int(out.Fd())) || t.json {
		return c
	}
	c.Progress = func(p load.Progress) {
		fmt.Fprintf(out, "\r\033[K%-14s %4d s  %6d answered  p50 %.1f ms  p99 %.1f ms  %d refused  %d failed ", cmp.Or(p.Phase.Name, p.Phase.Mode), p.At, p.Answered, p.P50, p.P99, p.Refused, p.Failed)
	}
	log := c.Log
	c.Log = func(format string, args ...any) {
		fmt.Fprint(out, "\r\033[K")
		log(format, args...)
	}
	return c
}

// benchRemote is a server that runs already: the one of --server, or the one of the data directory.
func (t *terminal) benchRemote() (*load.Remote, error) {
	admin, err := t.connect()
	if err != nil || t.server != "" {
		return &load.Remote{URL: t.server, Admin: admin}, err
	}
	c, _, err := t.effective()
	if err != nil {
		return nil, err
	}
	remote := &load.Remote{Admin: admin}
	for _, l := range []struct {
		name, configured string
		to               *string
	}{{"https", c.Listen.HTTPS, &remote.URL}, {"mtls", c.Listen.MTLS, &remote.MTLS}, {"public", c.Listen.Public, &remote.Public}, {"private", c.Listen.Private, &remote.Metrics}} {
		if l.configured == "" {
			continue
		}
		host, port, err := net.SplitHostPort(l.configured)
		if err != nil {
			return nil, fmt.Errorf("listen.%s: %w", l.name, err)
		}
		*l.to = net.JoinHostPort(cmp.Or(host, "localhost"), port)
	}
	remote.URL = "https://" + remote.URL
	if remote.Metrics != "" {
		remote.Metrics = "http://" + remote.Metrics + "/metrics"
	}
	return remote, nil
}
