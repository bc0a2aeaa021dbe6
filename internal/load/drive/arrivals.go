package drive

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Arrivals is a plan of an open loop: Poisson, Steady or AtOnce.
type Arrivals interface {
	// next gives the next arrival, counted from the start of the run, and its turn; ok is false when nobody comes any more.
	next() (after time.Duration, turn int, ok bool)
	// skip passes over all that would come before a moment and gives how many they are; of Poisson, as many as there are
	// on average. A moment is no earlier than the one before, and the last one no later than the end of the stages.
	skip(until time.Duration) int
}

// Poisson lets requests arrive independently of one another, in each stage at its rate. The seed makes the same arrivals
// again.
func Poisson(stages []Stage, seed uint64) Arrivals {
	return &poisson{stages: stages, random: rand.New(rand.NewPCG(seed, 0))}
}

type poisson struct {
	stages []Stage
	random *rand.Rand
	before time.Duration // that the stages before took
	at     time.Duration
	turn   int
	part   float64 // of an arrival, that was skipped
}

func (p *poisson) next() (time.Duration, int, bool) {
	for len(p.stages) > 0 {
		s := p.stages[0]
		left := p.before + s.For - p.at
		if s.Rate > 0 {
			gap := p.random.ExpFloat64() / s.Rate * float64(time.Second)
			if gap < float64(left) { // a gap may be longer than a Duration holds
				p.at += time.Duration(gap)
				p.turn++
				return p.at, p.turn - 1, true
			}
		}
		p.before += s.For // an exponential gap has no memory: it begins anew at the border
		p.at = p.before
		p.stages = p.stages[1:]
	}
	return 0, 0, false
}

func (p *poisson) skip(until time.Duration) int {
	for len(p.stages) > 0 && p.at < until {
		s := p.stages[0]
		end := min(until, p.before+s.For)
		p.part += max(s.Rate, 0) * (end - p.at).Seconds()
		if p.at = end; end == p.before+s.For {
			p.before = end
			p.stages = p.stages[1:]
		}
	}
	whole := math.Floor(p.part)
	p.part -= whole
	return int(whole)
}

// Steady lets n agents come once each interval, each at a moment of its own, as long as the stages last. Turns are the
// agents' numbers, round by round: agent i has the turns i, i+n, i+2n and so on.
func Steady(n int, interval time.Duration, stages []Stage, seed uint64) Arrivals {
	random := rand.New(rand.NewPCG(seed, 1))
	s := &steady{interval: interval, until: length(stages), phase: make([]time.Duration, n)}
	for i := range s.phase {
		s.phase[i] = time.Duration(random.Int64N(int64(interval)))
	}
	slices.Sort(s.phase)
	return s
}

type steady struct {
	interval, until time.Duration
	phase           []time.Duration
	turn            int
}

func (s *steady) next() (time.Duration, int, bool) {
	at := s.phase[s.turn%len(s.phase)] + time.Duration(s.turn/len(s.phase))*s.interval
	s.turn++
	return at, s.turn - 1, at < s.until
}

func (s *steady) skip(until time.Duration) int {
	early, _ := slices.BinarySearch(s.phase, until%s.interval) // those whose moment in the last round is before it
	before := int(until/s.interval)*len(s.phase) + early
	skipped := max(0, before-s.turn)
	s.turn += skipped
	return skipped
}

// AtOnce lets n agents come at the same moment, when the run begins.
func AtOnce(n int) Arrivals { return &atOnce{n: n} }

type atOnce struct{ n, turn int }

func (a *atOnce) next() (time.Duration, int, bool) {
	a.turn++
	return 0, a.turn - 1, a.turn <= a.n
}

func (a *atOnce) skip(time.Duration) int {
	skipped := max(0, a.n-a.turn)
	a.turn += skipped
	return skipped
}

func length(stages []Stage) (total time.Duration) {
	for _, s := range stages {
		total += s.For
	}
	return total
}
