package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"chancery/internal/load/drive"
	"chancery/internal/load/observe"
)

// The ways in which clients come.
const (
	Closed = "closed" // each connection sends its next request when it has its answer
	Paced  = "paced"  // the same after a pause of exponential length, Interval on average
	Open   = "open"   // independent arrivals, Rate a second on average, whether the server keeps up or not
	Steady = "steady" // each agent once each Interval, whether the server keeps up or not
	Once   = "once"   // all agents at the same moment, each until it is served; For is as long as that may take
)

// A Phase is a part of a run: who comes, how, and how long.
type Phase struct {
	Name        string        `json:"name,omitempty"`
	Mode        string        `json:"mode"`
	Connections int           `json:"connections"`      // at once; in a closed loop, the clients
	Rate        float64       `json:"rate,omitempty"`   // arrivals a second, of Open
	Share       float64       `json:"share,omitempty"`  // in place of Rate: that of what the run's first phase came to
	Agents      int           `json:"agents,omitempty"` // of Steady and Once; default: the population's
	Interval    time.Duration `json:"-"`                // of Steady and Paced
	For         time.Duration `json:"-"`                // counted
	Warmup      time.Duration `json:"-"`                // before it, not counted
	Fresh       bool          `json:"new_connections,omitempty"`
	Resume      bool          `json:"resume,omitempty"` // new connections resume their TLS sessions
	Obey        bool          `json:"obey,omitempty"`   // who is refused for want of capacity comes again after Retry-After; else that is its answer
	Slow        time.Duration `json:"-"`
	Stall       time.Duration `json:"-"`                 // the database, or the disk below SQLite, stands still for so long, from a third of the phase on
	Changes     float64       `json:"changes,omitempty"` // tokens and people changed a second meanwhile
	Reader      bool          `json:"reader,omitempty"`  // a backup reads one snapshot meanwhile, again and again
	Leave       bool          `json:"leave,omitempty"`   // of Open: who waits for a connection when it ends goes away
	Main        bool          `json:"-"`                 // the run is about this phase; where none is, about the first
}

// title names a phase, by how clients come where it has no name.
func (p Phase) title() string { return cmp.Or(p.Name, p.Mode) }

// Modes lists the ways in which clients come.
func Modes() []string { return []string{Closed, Paced, Open, Steady, Once} }

func (p Phase) withDefaults(population Population) Phase {
	p.Mode, p.For = cmp.Or(p.Mode, Closed), cmp.Or(p.For, 20*time.Second)
	p.Connections = cmp.Or(p.Connections, 64)
	p.Agents, p.Interval = cmp.Or(p.Agents, population.Agents), cmp.Or(p.Interval, 10*time.Minute)
	if p.Mode == Once { // they come when the phase begins, so that nothing can be before it, and each comes until it is served
		p.Warmup, p.Obey = 0, true
	}
	return p
}

// joins says whether a phase goes on from another one without a break: what that one leaves waiting, it finds.
func (p Phase) joins(before Phase) bool {
	return p.Mode == Open && before.Mode == Open && p.Connections == before.Connections && p.Fresh == before.Fresh && p.Resume == before.Resume && p.Obey == before.Obey
}

// check refuses what makes no sense, before anything is started.
func (p Phase) check() error {
	switch p.Mode {
	case Closed, Paced, Steady, Once:
	case Open:
		if p.Rate <= 0 && p.Share <= 0 {
			return fmt.Errorf("mode %s needs a rate, such as --rate 833", p.Mode)
		}
	default:
		return fmt.Errorf("mode %q: want one of %v", p.Mode, Modes())
	}
	switch {
	case p.Connections < 1 || p.Connections > connectionsMax:
		return fmt.Errorf("connections are 1 to %d", connectionsMax)
	case p.Agents < 1 || p.Agents > populationMax:
		return fmt.Errorf("agents are 1 to %d", populationMax)
	case !rateable(p.Rate) || !rateable(p.Changes):
		return fmt.Errorf("a rate is 0, or %g to %d a second", rateMin, rateMax)
	case !(p.Share >= 0 && p.Share <= shareMax): // not a number is neither
		return fmt.Errorf("a share of the capacity is 0 to %d", shareMax)
	case p.For <= 0 || min(p.Warmup, p.Interval, p.Slow, p.Stall) < 0 || p.longest() > phaseMax:
		return fmt.Errorf("no time is negative or longer than %s", phaseMax)
	case p.Mode == Steady && float64(p.Agents)/p.Interval.Seconds() > rateMax:
		return fmt.Errorf("%d agents, each once in %s, are more than %d requests a second", p.Agents, p.Interval, rateMax)
	case p.Stall > p.For*2/3:
		return fmt.Errorf("a database that stands still for %s, from a third of a phase of %s on, does not come back in it", p.Stall, p.For)
	case p.Resume && !p.Fresh:
		return errors.New("only new connections resume TLS sessions")
	}
	return nil
}

// longest is the longest time that a phase has: no sum of two that are too long, which may be more than a Duration holds.
func (p Phase) longest() time.Duration {
	return max(p.For, p.Warmup, p.Interval, p.Slow, p.Stall, min(p.For, phaseMax)+min(p.Warmup, phaseMax))
}

const (
	connectionsMax = 20_000
	rateMin        = 1e-3 // once in a quarter of an hour or so
	rateMax        = 1_000_000
	shareMax       = 100
	phaseMax       = 24 * time.Hour
)

// rateable says whether a rate is none at all or one that a run can keep; not a number is neither.
func rateable(rate float64) bool { return rate == 0 || rate >= rateMin && rate <= rateMax }

// String says on one line how clients come.
func (p Phase) String() string {
	var text string
	connections := thousands(float64(p.Connections))
	switch p.Mode {
	case Closed:
		text = fmt.Sprintf("closed loop, %s connections", connections)
	case Paced:
		text = fmt.Sprintf("%s clients that pause %s on average after each answer", connections, span(p.Interval))
	case Open:
		text = fmt.Sprintf("open loop, %s a second over %s connections", thousands(p.Rate), connections)
	case Steady:
		text = fmt.Sprintf("%s agents, each once in %s, over %s connections", thousands(float64(p.Agents)), span(p.Interval), connections)
	case Once:
		text = fmt.Sprintf("%s agents at once, over %s connections", thousands(float64(p.Agents)), connections)
	}
	for _, extra := range []struct {
		on   bool
		text string
	}{
		{p.Fresh && !p.Resume, ", each request on a new connection"},
		{p.Fresh && p.Resume, ", each request on a new connection that resumes its TLS session"},
		{p.Slow > 0, fmt.Sprintf(", %s added to each sync", span(p.Slow))},
		{p.Stall > 0, fmt.Sprintf(", the database standing still for %s", span(p.Stall))},
		{p.Changes > 0, fmt.Sprintf(", %s tokens and people changed a second", thousands(p.Changes))},
		{p.Reader, ", a backup reading meanwhile"},
		{p.Leave, ", and at its end all leave who wait for a connection"},
	} {
		if extra.on {
			text += extra.text
		}
	}
	return text
}

// span writes a duration for people, with two decimals at most of its smallest unit.
func span(d time.Duration) string {
	switch {
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(10 * time.Microsecond)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (p Phase) stages() []drive.Stage {
	counted := drive.Stage{Name: p.Name, Rate: p.Rate, For: p.For, Leave: p.Leave}
	if p.Warmup == 0 {
		return []drive.Stage{counted}
	}
	return []drive.Stage{{Name: "warm-up", Rate: p.Rate, For: p.Warmup, Uncounted: true}, counted}
}

// A PhaseReport is what a phase came to. Latencies are those of right answers, from the moment at which a request was to
// start; in a closed loop that is when it was first sent. What failed has none and stands in Errors.
type PhaseReport struct {
	Phase
	Offered    int            `json:"offered"`  // arrivals; in a closed loop, requests
	Answered   int            `json:"answered"` // of these, rightly
	Rate       Rate           `json:"answers"`  // by when they came, whenever their requests were to start
	Latency    Latency        `json:"latency"`
	Service    Latency        `json:"service"` // from sending, dialling included
	Refused    int            `json:"refused"`
	Refusal    *Latency       `json:"refusal,omitempty"` // of refusals, from sending
	Errors     map[string]int `json:"errors,omitempty"`
	Handshakes int            `json:"handshakes,omitempty"` // for new connections
	Resumed    int            `json:"resumed,omitempty"`    // of these
	Handshake  *Latency       `json:"handshake,omitempty"`
	LastSec    float64        `json:"last_sec,omitempty"` // of Once: when the last was served
	Curve      []Quantile     `json:"curve,omitempty"`    // of Latency
	Server     *observe.Usage `json:"server,omitempty"`
	Client     observe.Usage  `json:"client"`
	From       float64        `json:"from_sec"`             // since the run began
	Lasted     float64        `json:"lasted_sec,omitempty"` // where it was interrupted
	Times      times          `json:"times_sec"`
}

// times are the durations of a phase, in seconds.
type times struct {
	For      float64 `json:"counted"`
	Warmup   float64 `json:"warmup,omitempty"`
	Interval float64 `json:"interval,omitempty"`
	Slow     float64 `json:"slow_disk,omitempty"`
	Stall    float64 `json:"stall,omitempty"`
}

func (p Phase) times() times {
	return times{For: p.For.Seconds(), Warmup: p.Warmup.Seconds(), Interval: p.Interval.Seconds(), Slow: p.Slow.Seconds(), Stall: p.Stall.Seconds()}
}

// timed gives a phase its durations back, after it was read.
func (p *PhaseReport) timed() {
	at := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	p.For, p.Warmup, p.Interval, p.Slow, p.Stall = at(p.Times.For), at(p.Times.Warmup), at(p.Times.Interval), at(p.Times.Slow), at(p.Times.Stall)
}

// A Quantile is one point of a distribution. With the counts of several runs at the same time, the distributions of these
// runs can be added up, and any percentile of them be found between two points.
type Quantile struct {
	Share  float64 `json:"q"`  // of all, at which the point was taken
	Millis float64 `json:"ms"` // so long
	Count  int64   `json:"n"`  // so many took no longer
}

// phases drives phases that follow one another without a gap, all of the same run, and gives what each came to. Those
// that an interruption kept from beginning are left out.
func (r *run) phases(ctx context.Context, group []Phase) []PhaseReport {
	l := r.load(group)
	m := newMeters(r.target.pid, len(l.Stages))
	l.Begin, l.End = m.begin, m.end
	tally := l.Run(ctx)
	r.keep(tally)
	var all []PhaseReport
	for i, s := range tally.Stages {
		if s.Uncounted || s.Lasted == 0 {
			continue
		}
		p := report(group[len(all)], s, tally)
		p.Server, p.Client = m[i].Usage(s.Came())
		p.From = s.From.Sub(r.began).Seconds()
		all = append(all, p)
	}
	return all
}

// load says how the clients of a group of phases come.
func (r *run) load(group []Phase) drive.Load {
	first := group[0]
	l := drive.Load{
		Address: cmp.Or(r.book.scenario.address, r.target.address), TLS: r.target.tls, Connections: first.Connections, Next: r.book.next,
		Fresh: first.Fresh, Obey: first.Obey,
	}
	if show := r.config.Progress; show != nil {
		l.Each = func(second int, s drive.Second) { show(progress(group, second, s)) }
	}
	l.Late = func(left int) {
		if left > 0 {
			r.config.Log.say("the time is over; waiting a few seconds more for answers to %d requests", left)
		}
	}
	if r.book.scenario.plain {
		l.TLS = nil
	}
	for _, p := range group {
		l.Stages = append(l.Stages, p.stages()...)
	}
	switch first.Mode {
	case Paced:
		l.Think = first.Interval
	case Open:
		l.Arrivals = drive.Poisson(l.Stages, seed)
	case Steady:
		l.Arrivals = drive.Steady(first.Agents, first.Interval, l.Stages, seed)
	case Once:
		l.Arrivals = drive.AtOnce(first.Agents)
		l.Patience = time.Second // the phase itself is as long as anybody waits
	}
	return l
}

// progress finds the phase that a second of a group belongs to.
func progress(group []Phase, second int, s drive.Second) Progress {
	for len(group) > 1 && time.Duration(second)*time.Second > group[0].Warmup+group[0].For {
		second -= int((group[0].Warmup + group[0].For) / time.Second)
		group = group[1:]
	}
	return Progress{Phase: group[0], At: second, Second: s}
}

// seed makes the arrivals of every run the same, so that two runs can be compared.
const seed = 20_250_101

func report(p Phase, s *drive.StageTally, t *drive.Tally) PhaseReport {
	r := PhaseReport{
		Phase: p, Offered: s.Offered, Answered: int(s.Latency.TotalCount()), Rate: rateOf(s.Rates()), Latency: latencyOf(s.Latency), Service: latencyOf(s.Service),
		Refused: s.Refused, Errors: s.Errors, Handshakes: s.Handshakes, Resumed: s.Resumed, Times: p.times(),
	}
	if s.Refused > 0 {
		l := latencyOf(s.Refusal)
		r.Refusal = &l
	}
	if s.Lasted < s.For {
		r.Lasted = s.Lasted.Seconds()
	}
	if p.Fresh {
		l := latencyOf(s.Handshake)
		r.Handshake = &l
	}
	if p.Mode == Once && !t.Last.IsZero() {
		r.LastSec = t.Last.Sub(s.From).Seconds()
		r.Rate = rateOf([]float64{float64(r.Answered) / r.LastSec})
	}
	r.Curve = curveOf(s.Latency)
	return r
}

// curveOf gives a distribution at ten points for each halving of what took longer.
func curveOf(h *hdrhistogram.Histogram) []Quantile {
	var all []Quantile
	for _, b := range h.CumulativeDistributionWithTicks(10) {
		all = append(all, Quantile{Share: b.Quantile / 100, Millis: float64(b.ValueAt) / 1000, Count: b.Count})
	}
	return all
}
