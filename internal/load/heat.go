package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"chancery/internal/load/drive"
)

// A heat is one closed loop, with or without a warm-up.
type heat struct {
	address          string // host:port
	tls              *tls.Config
	clients          int
	warmup, duration time.Duration
	scenario         scenario
	begin, end       func() // called when the counted time begins and ends; nil: nothing to do
}

// An outcome is what a heat came to.
type outcome struct {
	*drive.Tally
	*book
	counted *drive.StageTally
}

func (h heat) run(ctx context.Context) outcome {
	b := &book{scenario: h.scenario}
	stages := []drive.Stage{{For: h.duration}}
	if h.warmup > 0 {
		stages = []drive.Stage{{For: h.warmup, Uncounted: true}, {For: h.duration}}
	}
	t := drive.Load{Address: h.address, TLS: h.tls, Connections: h.clients, Stages: stages, Next: b.next, Begin: h.begin, End: h.end}.Run(ctx)
	return outcome{Tally: t, book: b, counted: t.Stages[len(t.Stages)-1]}
}

// requests is how many right answers came in the counted time.
func (o outcome) requests() int { return int(o.counted.Latency.TotalCount()) }

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
