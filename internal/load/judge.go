package load

import (
	"cmp"
	"fmt"
	"time"

	"chancery/internal/load/drive"
)

// steadily judges a load far below capacity (833 a second).
func steadily(r Report) []Criterion {
	p := r.first()
	return []Criterion{p.atMost(50, 2), p.atMost(95, 4.5), p.atMost(99, 5), p.atMost(100, 20), noError(p)}
}

// moderate judges the phase at 70 % of capacity.
func moderate(r Report, phase int) []Criterion {
	if len(r.Phases) <= phase {
		return nil
	}
	p := r.Phases[phase]
	return []Criterion{p.atMost(50, 2.7).of(p.Name), p.atMost(95, 22).of(p.Name), noError(p)}
}

func busy(p PhaseReport, cores float64) Criterion {
	text := fmt.Sprintf("the server uses at most %.0f %% of one core", 100*cores)
	if p.Server == nil || p.Server.CPUSeconds == 0 {
		return unjudged(text, "the server's CPU time is not known")
	}
	if why := p.tooShort(); why != "" {
		return unjudged(text, why)
	}
	return criterion(p.Server.Cores <= cores, text, "%.0f %%", 100*p.Server.Cores)
}

// calmBound is when a service counts as before: twice the quiet p99, and not less than the clock can tell.
func calmBound(quiet PhaseReport) float64 { return max(2*quiet.Latency.P99, 10) }

// calmAfter judges how soon after a phase the latencies are as in the phase named quiet.
func (r Report) calmAfter(phase, quiet int) Criterion {
	const text = "back to the normal p99 within 2 s"
	if why := r.unpressed(phase, quiet); why != "" {
		return unjudged(text, why)
	}
	p := r.Phases[phase]
	return r.calm(text, p.From+p.For.Seconds(), r.Phases[quiet], 2*time.Second)
}

// refusing judges whether the server refuses in a phase what it cannot do.
func (r Report) refusing(phase, quiet int) Criterion {
	const text = "what is too much is refused"
	if why := r.unpressed(phase, quiet); why != "" {
		return unjudged(text, why)
	}
	p := r.Phases[phase]
	return criterion(p.Refused > 0, text, "%s of %s refused", thousands(float64(p.Refused)), thousands(float64(p.Offered)))
}

// queuedAtClient says whether what was too much for the server never reached it: nobody was refused, requests waited
// longer for a connection than for their answer, or got none, and the server was as quick as in a quiet phase.
func (p PhaseReport) queuedAtClient(quiet PhaseReport) bool {
	waited := p.Latency.P50 > 2*p.Service.P50 || p.Errors[drive.Unserved] > 0
	return p.Refused == 0 && waited && p.Service.P99 <= calmBound(quiet)
}

// unpressed says why a phase tells nothing of a server that has too much to do, or nothing.
func (r Report) unpressed(phase, quiet int) string {
	if len(r.Phases) <= phase {
		return "not run"
	}
	p := r.Phases[phase]
	if !p.queuedAtClient(r.Phases[quiet]) {
		return ""
	}
	return fmt.Sprintf("the server was never pressed: it refused nobody, and the requests waited for the %d connections of the client", p.Connections)
}

// calm judges whether the latencies are those of a quiet phase so soon after a moment of the run.
func (r Report) calm(text string, after float64, quiet PhaseReport, within time.Duration) Criterion {
	if quiet.Answered == 0 {
		return unjudged(text, "nobody knows what is normal: nothing was answered before")
	}
	if c := quiet.atMost(99, 0); c.Verdict == Unjudged {
		return unjudged(text, "nobody knows what is normal: p99 before was "+c.Measured)
	}
	took, ok := r.recovery(after, calmBound(quiet))
	if ended := r.ended(); !ok && ended < after+(within+calmFor*time.Second).Seconds() {
		return unjudged(text, fmt.Sprintf("the run ended %.0f s after it", ended-after))
	}
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
		flood.atLeast("of those admitted are served", 900),
	}
	refusals := Latency{}
	if flood.Refusal != nil {
		refusals = *flood.Refusal
	}
	return append(all, refusals.atMost(99, flood.Refused, 20).of("refusals"), r.calmAfter(1, 0))
}

// wokenUp judges the drain of all agents at once against the capacity measured before.
func wokenUp(r Report) []Criterion {
	if len(r.Phases) < 2 {
		return nil
	}
	p, capacity := r.Phases[1], r.first().Rate.PerSecond
	drained := unjudged("drained within 1.1 times what the capacity allows", "the capacity is not known: "+cmp.Or(r.first().tooShort(), "nothing was answered"))
	if capacity > 0 && r.first().tooShort() == "" {
		bound := float64(p.Agents) / capacity * 1.1
		text := fmt.Sprintf("drained within %.0f s, 1.1 times what the capacity allows", bound)
		drained = criterion(p.Answered == p.Agents && p.LastSec <= bound, text, "%.0f s", p.LastSec)
		if bound < shortestJudged.Seconds() {
			drained = unjudged(text, fmt.Sprintf("%.1f s; too few agents: with less than %s of work the first handshakes weigh too much", p.LastSec, shortestJudged))
		}
	}
	return []Criterion{
		criterion(p.Agents > 0 && p.Answered == p.Agents, "every agent is served", "%d of %d", p.Answered, p.Agents), drained,
		atMostMB("resident memory", r.highest(func(s Second) float64 { return float64(s.Resident) }), 1024),
	}
}

// fewestForDisk is how many certificates a run needs before their disk use is judged.
const fewestForDisk = 100_000

// growth says what a million certificates cost.
func (r Report) growth() []Criterion {
	const text = "at most 1.8 GB of disk for a million certificates"
	var disk Criterion
	switch {
	case r.Database != "sqlite":
		disk = unjudged(text, "the database server's disk use is not seen")
	case r.Answered < fewestForDisk:
		disk = unjudged(text, fmt.Sprintf("too few certificates: %s; with less than %s the write-ahead log and half-filled pages weigh too much", thousands(float64(r.Answered)), thousands(fewestForDisk)))
	case r.DiskBytes <= 0:
		disk = unjudged(text, "the files did not grow")
	default:
		disk = criterion(r.DiskBytes <= 1800, text, "%.2f GB", float64(r.DiskBytes)/1000)
	}
	return append([]Criterion{disk}, r.resident(250)...)
}

// manyConnections judges the rates with more connections against that with few.
func manyConnections(r Report) []Criterion {
	var all []Criterion
	if len(r.Phases) == 0 {
		return nil
	}
	for i, share := range r.shares(" connections: the rate with "+r.first().Name, 0.9) {
		p := r.Phases[i+1]
		if p.Connections == r.first().Connections {
			share = unjudged(share.Text, "they are as many")
		}
		failure := criterion(len(p.Errors) == 0, p.Name+" connections: no failure", "%v", listed(p.Errors))
		if p.Offered == 0 {
			failure = unjudged(failure.Text, "nothing was asked")
		}
		all = append(all, share, failure)
	}
	return all
}

// slowly judges the rates with a slow disk against that without.
func slowly(r Report) []Criterion { return r.shares(": the rate without", 0.8) }

// shares holds the rates of three phases against that of the first and the last of five, which are alike.
func (r Report) shares(text string, wanted float64) []Criterion {
	if len(r.Phases) < 5 {
		return nil
	}
	usual := (r.Phases[0].Rate.PerSecond + r.Phases[4].Rate.PerSecond) / 2
	var all []Criterion
	for _, p := range r.Phases[1:4] {
		text := p.Name + text
		if why := cmp.Or(r.Phases[0].tooShort(), p.tooShort(), r.Phases[4].tooShort()); why != "" {
			all = append(all, unjudged(text, why))
			continue
		}
		all = append(all, shareOf(text, p.Rate.PerSecond, usual, wanted))
	}
	return all
}

func small(r Report) []Criterion {
	alive := criterion(!r.Killed, "never killed for memory", "killed: %v", r.Killed)
	switch {
	case len(r.Phases) < 2 && r.Killed: // which ended the run
		return []Criterion{alive}
	case len(r.Phases) < 2:
		return nil
	}
	const text = "833 a second are served"
	p := r.Phases[1]
	served := unjudged(text, p.tooShort())
	if p.tooShort() == "" {
		served = criterion(p.Answered >= p.Offered*99/100, text, "%d of %d; alone it does %s a second", p.Answered, p.Offered, thousands(r.first().Rate.PerSecond))
	}
	return []Criterion{alive, served}
}

// unmoved judges a phase against the quiet ones before and after it.
func unmoved(r Report) []Criterion {
	const text = "p99 within a fifth of the quiet one"
	if len(r.Phases) < 4 {
		return nil
	}
	for _, p := range r.Phases[1:] {
		if c := p.atMost(99, 0); c.Verdict == Unjudged {
			return []Criterion{unjudged(text, cmp.Or(p.Name, "a phase")+": "+c.Measured)}
		}
	}
	quiet, moved := max(r.Phases[1].Latency.P99, r.Phases[3].Latency.P99), r.Phases[2].Latency.P99
	return []Criterion{criterion(moved <= quiet*1.2, text, "%.2f ms, quiet %.2f ms", moved, quiet), noError(r.Phases[2])}
}
