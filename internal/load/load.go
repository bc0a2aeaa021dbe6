// Package load proves what an authority can do on the machine at hand, and that nothing is lost while it does it.
//
// A figure here is a ratio measured in one run. Limits measures what the machine itself allows, from one signature to
// the bare handler, a server that does only the work of an ordinary certificate. Issue drives a real server from a
// process of its own, over kept-alive HTTPS connections, checks every answer, and afterwards looks every answered
// serial up. Crash kills the server again and again and asks whether anything that was answered is gone. Gate holds the
// second against the first.
//
// Everything is bounded in time, stays on the loopback interface unless a server is named, and ends what it started: on
// Linux its processes end even when it is killed. A run that is interrupted still reports, and says so. The room knows the
// server by its HTTP API alone: no number here comes from inside the process that is measured.
package load

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"chancery/internal/load/drive"
)

// A Log takes one line of progress for people; nil takes none.
type Log func(format string, args ...any)

func (l Log) say(format string, args ...any) {
	if l != nil {
		l(format, args...)
	}
}

// A Loop is a closed loop: clients on kept-alive connections, each of which sends its next request when it has its answer.
type Loop struct {
	Clients  int           // default 64
	Duration time.Duration // counted; default 10 s
	Warmup   time.Duration // before it, not counted; 0: none
}

func (l Loop) withDefaults() Loop {
	l.Clients, l.Duration = cmp.Or(l.Clients, 64), cmp.Or(l.Duration, 10*time.Second)
	return l
}

// Check refuses what makes no sense, before anything is started.
func (l Loop) Check() error { return l.phase().check() }

func (l Loop) phase() Phase {
	l = l.withDefaults()
	return Phase{Connections: l.Clients, For: l.Duration, Warmup: l.Warmup}.withDefaults(Population{}.withDefaults())
}

// samples is how many samples a phase is cut into; the median of them is the figure.
const samples = drive.Samples

func median[T int | float64 | time.Duration](of []T) T {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// spread is the distance between the largest and the smallest sample, as a share of the median.
func spread(of []float64) float64 {
	m := median(of)
	if m == 0 {
		return 0
	}
	return (slices.Max(of) - slices.Min(of)) / m
}

// scratch makes a directory for one run; remove takes it away with all that is in it.
func scratch(parent, name string) (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(parent, name)
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// side does n things on a number of workers and gives the first error. After that, or when ctx ends, it begins nothing
// more.
func side(ctx context.Context, workers, n int, do func(i int) error) error {
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := 0; i < n && going.Err() == nil; i++ {
		group.Go(func() error { return do(i) })
	}
	return cmp.Or(group.Wait(), ctx.Err())
}
