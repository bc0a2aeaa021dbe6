package load

import (
	"fmt"
	"time"
)

// steadily judges a load far below capacity (833 a second).
func steadily(r Report) []Criterion {
	p := r.first()
	return []Criterion{atMost("p50", p.Latency.P50, 2), atMost("p95", p.Latency.P95, 4.5), atMost("p99", p.Latency.P99, 5), atMost("the longest", p.Latency.Max, 20), noError(p)}
}

// moderate judges the phase at 70 % of capacity.
func moderate(r Report, phase int) []Criterion {
	if len(r.Phases) <= phase {
		return nil
	}
	p := r.Phases[phase]
	return []Criterion{atMost(p.Name+": p50", p.Latency.P50, 2.7), atMost(p.Name+": p95", p.Latency.P95, 22), noError(p)}
}

func busy(p PhaseReport, cores float64) Criterion {
	text := fmt.Sprintf("the server uses at most %.0f %% of one core", 100*cores)
	if p.Server == nil || p.Server.CPUSeconds == 0 {
		return unjudged(text, "the server's CPU time is not known")
	}
	return criterion(p.Server.Cores <= cores, text, "%.0f %%", 100*p.Server.Cores)
}

// calmBound is when a service counts as before: twice the quiet p99, and not less than the clock can tell.
func calmBound(quiet PhaseReport) float64 { return max(2*quiet.Latency.P99, 10) }

// calmAfter judges how soon after a phase the latencies are as in the phase named quiet.
func (r Report) calmAfter(phase, quiet int) Criterion {
	const text = "back to the normal p99 within 2 s"
	if len(r.Phases) <= phase {
		return unjudged(text, "not run")
	}
	p := r.Phases[phase]
	return r.calm(text, p.From+p.For.Seconds(), r.Phases[quiet], 2*time.Second)
}

// calm judges whether the latencies are those of a quiet phase so soon after a moment of the run.
func (r Report) calm(text string, after float64, quiet PhaseReport, within time.Duration) Criterion {
	if quiet.Answered == 0 {
		return unjudged(text, "nobody knows what is normal: nothing was answered before")
	}
	took, ok := r.recovery(after, calmBound(quiet))
	if !ok {
		return criterion(false, text, "not in this run")
	}
	return criterion(took <= within, text, "after %.1f s", took.Seconds())
}

// calmAfterStall judges how soon after the database moves again the latencies are as before.
func (r Report) calmAfterStall(phase int) Criterion {
	const text = "back to the normal p99 within 5 s of the database's return"
	if len(r.Phases) <= phase {
		return unjudged(text, "not run")
	}
	p := r.Phases[phase]
	return r.calm(text, p.From+(p.For/3+p.Stall).Seconds(), r.Phases[phase-1], 5*time.Second)
}

// admitted judges a flood against a fixed admission.
func admitted(r Report) []Criterion {
	if len(r.Phases) < 3 {
		return nil
	}
	flood := r.Phases[1]
	all := []Criterion{
		criterion(flood.Offered > 0 && flood.Answered+flood.Refused >= flood.Offered && len(flood.Errors) == 0, "every request of the flood is answered or refused", "%d offered, %d answered, %d refused, errors: %v", flood.Offered, flood.Answered, flood.Refused, listed(flood.Errors)),
		criterion(flood.Rate.PerSecond >= 900, "what was admitted is served", "%s a second", thousands(flood.Rate.PerSecond)),
	}
	refusals := Latency{}
	if flood.Refusal != nil {
		refusals = *flood.Refusal
	}
	return append(all, atMost("refusals: p99", refusals.P99, 20), r.calmAfter(1, 0))
}

// wokenUp judges the drain of all agents at once against the capacity measured before.
func wokenUp(r Report) []Criterion {
	if len(r.Phases) < 2 {
		return nil
	}
	p, capacity := r.Phases[1], r.first().Rate.PerSecond
	drained := unjudged("drained within 1.1 times what the capacity allows", "the capacity is not known")
	if capacity > 0 {
		bound := float64(p.Agents) / capacity * 1.1
		drained = criterion(p.Answered == p.Agents && p.LastSec <= bound, fmt.Sprintf("drained within %.0f s, 1.1 times what the capacity allows", bound), "%.0f s", p.LastSec)
	}
	return []Criterion{
		criterion(p.Agents > 0 && p.Answered == p.Agents, "every agent is served", "%d of %d", p.Answered, p.Agents), drained,
		atMostMB("resident memory", r.highest(func(s Second) float64 { return float64(s.Resident) }), 1024),
	}
}

// growth says what a million certificates cost.
func (r Report) growth() []Criterion {
	const text = "at most 1.8 GB of disk for a million certificates"
	disk := unjudged(text, "the database's disk use is not seen")
	if r.DiskBytes > 0 {
		disk = criterion(r.DiskBytes <= 1800, text, "%.2f GB", float64(r.DiskBytes)/1000)
	}
	return append([]Criterion{disk}, r.resident(250)...)
}

// manyConnections judges the rates with more connections against that with few.
func manyConnections(r Report) []Criterion {
	var all []Criterion
	for i, share := range r.shares("%s connections: the rate with 64", 0.9) {
		p := r.Phases[i+1]
		all = append(all, share, criterion(len(p.Errors) == 0, p.Name+" connections: no failure", "%v", listed(p.Errors)))
	}
	return all
}

// slowly judges the rates with a slow disk against that without.
func slowly(r Report) []Criterion { return r.shares("%s: the rate without", 0.8) }

// shares holds the rates of three phases against that of the first and the last of five, which are alike.
func (r Report) shares(text string, wanted float64) []Criterion {
	if len(r.Phases) < 5 {
		return nil
	}
	usual := (r.Phases[0].Rate.PerSecond + r.Phases[4].Rate.PerSecond) / 2
	var all []Criterion
	for _, p := range r.Phases[1:4] {
		all = append(all, shareOf(fmt.Sprintf(text, p.Name), p.Rate.PerSecond, usual, wanted))
	}
	return all
}

func small(r Report) []Criterion {
	if len(r.Phases) < 2 {
		return nil
	}
	p := r.Phases[1]
	return []Criterion{
		criterion(!r.Killed, "never killed for memory", "killed: %v", r.Killed),
		criterion(p.Offered > 0 && p.Answered >= p.Offered*99/100, "833 a second are served", "%d of %d; alone it does %s a second", p.Answered, p.Offered, thousands(r.first().Rate.PerSecond)),
	}
}

// unmoved judges a phase against the quiet ones before and after it.
func unmoved(r Report) []Criterion {
	const text = "p99 within a fifth of the quiet one"
	if len(r.Phases) < 4 {
		return nil
	}
	quiet, moved := max(r.Phases[1].Latency.P99, r.Phases[3].Latency.P99), r.Phases[2].Latency.P99
	if quiet == 0 || moved == 0 {
		return []Criterion{unjudged(text, "nothing was answered")}
	}
	return []Criterion{criterion(moved <= quiet*1.2, text, "%.2f ms, quiet %.2f ms", moved, quiet), noError(r.Phases[2])}
}
