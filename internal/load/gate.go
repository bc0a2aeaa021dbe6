package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"chancery/internal/load/bare"
	"chancery/internal/load/observe"
)

// A GateConfig says how long each phase takes, and by how many.
type GateConfig struct {
	Program Program
	Loop           // each phase
	Dir     string // where data lie; empty: the system's directory for temporary files
	Log     Log
}

// A Floor is a share of the bare handler that issuing has to reach.
type Floor struct {
	Figure   string    `json:"figure"`
	Scenario string    `json:"scenario"`
	Against  string    `json:"against"`
	Wanted   float64   `json:"wanted"`
	Rate     float64   `json:"rate"`      // of the server; median of both phases' samples
	Bare     float64   `json:"bare_rate"` // of the bare handler, likewise
	Share    float64   `json:"share"`
	Drift    float64   `json:"drift"`     // of the bare handler between its two phases
	CPUShare float64   `json:"cpu_share"` // the same share by CPU time, clients included; it holds where the machine is disturbed
	Verdict  string    `json:"verdict"`   // pass, missed or excluded
	Samples  []float64 `json:"samples"`
	BareEach []float64 `json:"bare_samples"`
	Reports  []Report  `json:"reports"`
}

// driftMax is how far the baseline may move before a comparison means nothing.
const driftMax = 0.10

// A GateReport is the floors of one run.
type GateReport struct {
	Floors      []Floor         `json:"floors"`
	Machine     observe.Machine `json:"machine"`
	Marks       []string        `json:"marks,omitempty"`
	Interrupted bool            `json:"interrupted,omitempty"`
}

// Gate holds both scenarios of issuing against the bare handler, each in the order bare, server, server, bare.
func Gate(ctx context.Context, c GateConfig) (GateReport, error) {
	if err := c.Check(); err != nil {
		return GateReport{}, err
	}
	c.Loop = c.withDefaults()
	r := GateReport{Machine: observe.Look()}
	var err error
	for _, f := range []struct {
		Floor
		path string
	}{
		{Floor{Figure: "C1", Scenario: Regular, Against: "bare handler, bearer token", Wanted: 0.70}, bare.Bearer},
		{Floor{Figure: "C2", Scenario: Agent, Against: "bare handler, one-time token", Wanted: 0.70}, bare.OneTime},
	} {
		if err = f.measure(ctx, c, f.path); err != nil || ctx.Err() != nil {
			break
		}
		r.Floors = append(r.Floors, f.Floor)
	}
	r.Machine.Done()
	r.Marks = r.Machine.Marks()
	if r.Interrupted = ctx.Err() != nil; r.Interrupted {
		err = nil
	}
	return r, err
}

func (f *Floor) measure(ctx context.Context, c GateConfig, path string) error {
	before, cheap, err := bareRates(ctx, c, path)
	if err != nil {
		return err
	}
	var dear []float64
	for range 2 {
		r, err := Issue(ctx, IssueConfig{Program: c.Program, Scenario: f.Scenario, Phases: []Phase{c.phase()}, Dir: c.Dir, Log: c.Log})
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		f.Reports = append(f.Reports, r)
		phase := r.first()
		f.Samples = append(f.Samples, phase.Rate.Samples...)
		dear = append(dear, phase.Server.PerRequest+phase.Client.PerRequest)
	}
	after, cheapAfter, err := bareRates(ctx, c, path)
	if err != nil {
		return err
	}
	f.judge(before, after)
	if total := dear[0] + dear[1]; total > 0 {
		f.CPUShare = (cheap + cheapAfter) / total
	}
	return nil
}

func (f *Floor) judge(before, after []float64) {
	f.BareEach = append(append([]float64{}, before...), after...)
	f.Rate, f.Bare = median(f.Samples), median(f.BareEach)
	f.Drift = spread([]float64{median(before), median(after)})
	if f.Bare > 0 {
		f.Share = f.Rate / f.Bare
	}
	switch {
	case f.Drift >= driftMax:
		f.Verdict = "excluded"
	case f.Share >= f.Wanted:
		f.Verdict = "pass"
	default:
		f.Verdict = "missed"
	}
}

// bareRates measures one phase of the bare handler: its samples, and the CPU microseconds of both sides for each answer.
func bareRates(ctx context.Context, c GateConfig, path string) (rates []float64, micros float64, err error) {
	dir, remove, err := scratch(c.Dir, "chancery-bare")
	if err != nil {
		return nil, 0, err
	}
	defer remove()
	b, err := newBench(ctx, LimitConfig{Program: c.Program, Loop: c.Loop, Log: c.Log}, dir)
	if err != nil {
		return nil, 0, err
	}
	defer b.child.stop(ctx)
	c.Log.say("bare handler, %s", strings.TrimPrefix(path, "/"))
	o, micros := b.drive(ctx, path)
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	return o.counted.Rates(), micros, o.sound()
}

// Failed gives the floors that were missed or could not be judged, and what a run lost, or nil.
func (r GateReport) Failed() error {
	var errs []error
	for _, f := range r.Floors {
		if f.Verdict != "pass" {
			errs = append(errs, fmt.Errorf("%s %s: %.1f %% of the %s, %.1f %% are wanted", f.Figure, f.Verdict, 100*f.Share, f.Against, 100*f.Wanted))
		}
		for _, each := range f.Reports {
			errs = append(errs, each.Failed())
		}
	}
	return errors.Join(errs...)
}

// Write writes the floors for people.
func (r GateReport) Write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FIGURE\tSCENARIO\tRATE\tBARE HANDLER\tSHARE\tWANTED\tBY CPU\tDRIFT\tP99\tVERDICT")
	for _, f := range r.Floors {
		p99 := 0.0
		for _, each := range f.Reports {
			p99 = max(p99, each.first().Latency.P99)
		}
		fmt.Fprintf(table, "%s\t%s\t%s/s\t%s/s\t%.1f %%\t%.1f %%\t%.1f %%\t%.1f %%\t%.1f ms\t%s\n", f.Figure, f.Scenario, thousands(f.Rate), thousands(f.Bare), 100*f.Share, 100*f.Wanted, 100*f.CPUShare, 100*f.Drift, p99, f.Verdict)
	}
	_ = table.Flush()
	fmt.Fprintln(w)
	for _, f := range r.Floors {
		fmt.Fprintf(w, "%-10s%s\n%-10sbare handler: %s\n", f.Figure, joined(f.Samples), "", joined(f.BareEach))
	}
	r.Machine.Write(w)
	writeMarks(w, r.Marks, r.Interrupted)
}
