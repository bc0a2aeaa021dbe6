package load

import (
	"context"
	"crypto/tls"
	"fmt"

	"chancery/internal/load/drive"
	"chancery/internal/load/observe"
)

// A heat is one closed loop, with or without a warm-up.
type heat struct {
	Loop
	address  string // host:port
	tls      *tls.Config
	scenario scenario
	pid      int // of the server's process; 0: unknown
}

// An outcome is what a heat came to.
type outcome struct {
	*drive.Tally
	*book
	counted *drive.StageTally
	meter   *observe.Meter // of the counted time
}

// meters are one for each stage of a load.
type meters []*observe.Meter

func newMeters(pid, stages int) meters {
	all := make(meters, stages)
	for i := range all {
		all[i] = observe.NewMeter(pid)
	}
	return all
}

func (m meters) begin(stage int) { m[stage].Begin() }
func (m meters) end(stage int)   { m[stage].End() }

func (h heat) run(ctx context.Context) outcome {
	b := &book{scenario: h.scenario}
	stages := h.phase().stages()
	m := newMeters(h.pid, len(stages))
	t := drive.Load{Address: h.address, TLS: h.tls, Connections: h.Clients, Stages: stages, Next: b.next, Begin: m.begin, End: m.end}.Run(ctx)
	last := len(stages) - 1
	return outcome{Tally: t, book: b, counted: t.Stages[last], meter: m[last]}
}

// requests is how many right answers came in the counted time.
func (o outcome) requests() int { return o.counted.Came() }

func (o outcome) rate() Rate {
	r := rateOf(o.counted.Rates())
	r.P99 = latencyOf(o.counted.Latency).P99
	return r
}

// sound refuses a run in which anything went wrong: its rate means nothing.
func (o outcome) sound() error {
	switch {
	case o.Wrongs > 0:
		return fmt.Errorf("%d answers were wrong, such as: %s", o.Wrongs, o.Wrong[0])
	case len(o.Errors) > 0:
		return fmt.Errorf("%d requests failed, such as: %s", o.Errors[drive.Kinds(o.Errors)[0]], drive.Kinds(o.Errors)[0])
	case o.doubles() > 0:
		return fmt.Errorf("%d serials were given twice", o.doubles())
	}
	return nil
}
