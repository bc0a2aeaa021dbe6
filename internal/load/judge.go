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
	if p.Server == nil {
		return Criterion{Text: text, Measured: "the server's process is not known", Verdict: Unjudged}
	}
	return criterion(p.Server.Cores <= cores, text, "%.0f %%", 100*p.Server.Cores)
}

// calmBound is when a service counts as before: twice the quiet p99, and not less than the clock can tell.
func calmBound(quiet PhaseReport) float64 { return max(2*quiet.Latency.P99, 10) }

// calmAfter judges how soon after a phase the latencies are as in the phase named quiet.
func (r Report) calmAfter(phase, quiet int) Criterion {
	const text = "back to the normal p99 within 2 s"
	if len(r.Phases) <= phase {
		return Criterion{Text: text, Measured: "not run", Verdict: Unjudged}
	}
	took, ok := r.recovery(r.Phases[phase].From+r.Phases[phase].For.Seconds(), calmBound(r.Phases[quiet]))
	return criterion(ok && took <= 2*time.Second, text, "%s (%v)", took.Round(time.Second), recovered(ok))
}

func recovered(ok bool) string {
	if ok {
		return "recovered"
	}
	return "not recovered in this run"
}

// calmAfterStall judges how soon after the database moves again the latencies are as before.
func (r Report) calmAfterStall(phase int) Criterion {
	const text = "back to the normal p99 within 5 s of the database's return"
	if len(r.Phases) <= phase {
		return Criterion{Text: text, Measured: "not run", Verdict: Unjudged}
	}
	p := r.Phases[phase]
	took, ok := r.recovery(p.From+(p.For/3+p.Stall).Seconds(), calmBound(r.Phases[phase-1]))
	return criterion(ok && took <= 5*time.Second, text, "%s (%v)", took.Round(time.Second), recovered(ok))
}

// admitted judges a flood against a fixed admission.
func admitted(r Report) []Criterion {
	if len(r.Phases) < 3 {
		return nil
	}
	flood := r.Phases[1]
	all := []Criterion{
		criterion(flood.Answered+flood.Refused >= flood.Offered && len(flood.Errors) == 0, "every request of the flood is answered or refused", "%d offered, %d answered, %d refused, errors: %v", flood.Offered, flood.Answered, flood.Refused, listed(flood.Errors)),
		criterion(flood.Rate.PerSecond >= 900, "what was admitted is served", "%s a second", thousands(flood.Rate.PerSecond)),
	}
	if flood.Refusal != nil {
		all = append(all, atMost("refusals: p99", flood.Refusal.P99, 20))
	}
	return append(all, r.calmAfter(1, 0))
}

// wokenUp judges the drain of all agents at once against the capacity measured before.
func wokenUp(r Report) []Criterion {
	if len(r.Phases) < 2 {
		return nil
	}
	p := r.Phases[1]
	bound := float64(p.Agents) / r.first().Rate.PerSecond * 1.1
	most := r.highest(func(s Second) float64 { return float64(s.Resident) })
	return []Criterion{
		criterion(p.Answered == p.Agents, "every agent is served", "%d of %d", p.Answered, p.Agents),
		criterion(p.LastSec > 0 && p.LastSec <= bound, fmt.Sprintf("drained within %.0f s, 1.1 times what the capacity allows", bound), "%.0f s", p.LastSec),
		criterion(most <= 1<<30, "the server takes at most 1 GB", "%.0f MB", most/(1<<20)),
	}
}

// growth says what a million certificates cost.
func (r Report) growth() []Criterion {
	return append([]Criterion{criterion(r.DiskBytes <= 1800, "at most 1.8 GB of disk for a million certificates", "%.2f GB", float64(r.DiskBytes)/1000)}, r.resident(250<<20)...)
}

// manyConnections judges the rates with more connections against that with few, and says what a connection costs.
func manyConnections(r Report) []Criterion {
	if len(r.Phases) < 5 {
		return nil
	}
	few := (r.Phases[0].Rate.PerSecond + r.Phases[4].Rate.PerSecond) / 2
	var all []Criterion
	for _, p := range r.Phases[1:4] {
		all = append(all, shareOf(p.Name+" connections: the rate with 64", p.Rate.PerSecond, few, 0.9), criterion(len(p.Errors) == 0, p.Name+" connections: no failure", "%v", listed(p.Errors)))
	}
	return all
}

// slowly judges the rates with a slow disk against that without.
func slowly(r Report) []Criterion {
	if len(r.Phases) < 5 {
		return nil
	}
	quick := (r.Phases[0].Rate.PerSecond + r.Phases[4].Rate.PerSecond) / 2
	var all []Criterion
	for _, p := range r.Phases[1:4] {
		all = append(all, shareOf(p.Name+": the rate without", p.Rate.PerSecond, quick, 0.8))
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
		criterion(p.Answered >= p.Offered*99/100, "833 a second are served", "%d of %d; alone it does %s a second", p.Answered, p.Offered, thousands(r.first().Rate.PerSecond)),
	}
}
