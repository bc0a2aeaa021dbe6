package load

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The verdicts about a criterion.
const (
	Met      = "met"
	Missed   = "missed"
	Unjudged = "unjudged" // the run does not tell
)

// A Criterion is what a run had to reach, and what it reached.
type Criterion struct {
	Text     string `json:"text"`
	Measured string `json:"measured"`
	Verdict  string `json:"verdict"`
}

func criterion(ok bool, text, format string, args ...any) Criterion {
	c := Criterion{Text: text, Measured: fmt.Sprintf(format, args...), Verdict: Missed}
	if ok {
		c.Verdict = Met
	}
	return c
}

// unjudged is a criterion about which a run tells nothing, and why.
func unjudged(text, why string) Criterion {
	return Criterion{Text: text, Measured: why, Verdict: Unjudged}
}

// shortestJudged is the shortest phase whose rate is judged. Shorter ones tell of their first commits.
const shortestJudged = 5 * time.Second

// tooShort says why the rate of a phase is not judged, or nothing.
func (p PhaseReport) tooShort() string {
	switch {
	case p.Lasted > 0:
		return fmt.Sprintf("the phase was cut short after %.1f of %s", p.Lasted, p.For)
	case p.Offered == 0 && p.Answered == 0:
		return "nothing was asked"
	case p.For < shortestJudged:
		return fmt.Sprintf("the phase took %s, and a rate is judged from %s on", p.For, shortestJudged)
	}
	return ""
}

// beyond is how many answers have to lie beyond a percentile before it is judged: fewer are chance.
const beyond = 10

// atMost holds a percentile of a phase's latency in milliseconds against a bound; 100 is the longest.
func (p PhaseReport) atMost(percent int, bound float64) Criterion {
	return p.Latency.atMost(percent, p.Answered, bound)
}

// atMost holds a percentile of so many latencies against a bound. The longest is judged where p99 is.
func (l Latency) atMost(percent, count int, bound float64) Criterion {
	name, measured := fmt.Sprintf("p%d", percent), map[int]float64{50: l.P50, 95: l.P95, 99: l.P99, 100: l.Max}[percent]
	needed := 100 * beyond / (100 - min(percent, 99))
	if percent == 100 {
		name = "the longest"
	}
	text := fmt.Sprintf("%s at most %g ms", name, bound)
	switch {
	case count == 0 || measured == 0: // even a microsecond is more
		return unjudged(text, "nothing was answered")
	case count < needed:
		return unjudged(text, fmt.Sprintf("%.2f ms, of %d answers; it is judged from %s on", measured, count, thousands(float64(needed))))
	}
	return criterion(measured <= bound, text, "%.2f ms", measured)
}

// of says of what a criterion tells.
func (c Criterion) of(what string) Criterion {
	c.Text = what + ": " + c.Text
	return c
}

// atMostMB holds bytes against a bound in MiB.
func atMostMB(text string, bytes float64, bound int) Criterion {
	text = fmt.Sprintf("%s at most %d MB", text, bound)
	if bytes == 0 {
		return unjudged(text, "not seen in this run")
	}
	return criterion(bytes <= float64(bound<<20), text, "%.0f MB", bytes/(1<<20))
}

// atLeast holds the rate of a phase against a bound.
func (p PhaseReport) atLeast(what string, bound float64) Criterion {
	text := fmt.Sprintf("at least %s %s a second", thousands(bound), what)
	if why := p.tooShort(); why != "" {
		return unjudged(text, why)
	}
	return criterion(p.Rate.PerSecond >= bound, text, "%s", thousands(p.Rate.PerSecond))
}

// shareOf holds a rate against a share of another one.
func shareOf(text string, measured, of, wanted float64) Criterion {
	if of == 0 {
		return unjudged(text, "nothing to hold it against")
	}
	return criterion(measured >= wanted*of, fmt.Sprintf("%s at least %.0f %%", text, 100*wanted), "%.0f %% (%s of %s a second)", 100*measured/of, thousands(measured), thousands(of))
}

// noError wants every request of a phase answered, and none refused.
func noError(p PhaseReport) Criterion {
	const text = "no request fails or is refused"
	failed := p.Offered - p.Answered
	if p.Offered == 0 {
		return unjudged(text, "nothing was asked")
	}
	return criterion(failed <= 0 && p.Refused == 0 && len(p.Errors) == 0, text, "%s of %s not answered, %s refusals, errors: %v", thousands(float64(max(failed, 0))), thousands(float64(p.Offered)), thousands(float64(p.Refused)), listed(p.Errors))
}

// nothingLost is a criterion of every preset.
func (r Report) nothingLost() Criterion {
	const text = "nothing that was answered is lost, changed, revoked, wrong or there twice"
	u, all := r.Lookup, r.Answered
	bad := u.bad() + r.Wrong + r.Doubles
	if bad == 0 && r.Answered > 0 && u.LookedUp == 0 {
		return unjudged(text, "not looked up")
	}
	bad += max(0, r.Answered-u.LookedUp)
	if all == 0 { // a run for something else than certificates
		for _, p := range r.Phases {
			all += p.Answered
		}
	}
	if all+bad == 0 {
		return unjudged(text, "nothing was answered")
	}
	return criterion(bad == 0, text, "%s of %s", thousands(float64(bad)), thousands(float64(all)))
}

// resident holds the server's resident memory against a bound, and its growth from the first to the last fifth.
func (r Report) resident(boundMB int) []Criterion {
	var all []float64
	for _, s := range r.Seconds {
		if s.Resident > 0 {
			all = append(all, float64(s.Resident))
		}
	}
	if len(all) < 10 {
		return []Criterion{unjudged("resident memory", "too few samples")}
	}
	early, late := median(all[:len(all)/5]), median(all[len(all)-len(all)/5:])
	return []Criterion{
		atMostMB("resident memory", slices.Max(all), boundMB),
		criterion(late <= early*1.2+16<<20, "resident memory is flat", "%.0f MB in the first fifth, %.0f MB in the last", early/(1<<20), late/(1<<20)),
	}
}

// highest gives the largest value of a run's seconds.
func (r Report) highest(of func(Second) float64) float64 {
	most := 0.0
	for _, s := range r.Seconds {
		most = max(most, of(s))
	}
	return most
}

// ended gives when the last phase was over. Answers that came later, to what was under way, are no part of the run.
func (r Report) ended() float64 {
	if len(r.Phases) == 0 {
		return 0
	}
	last := r.Phases[len(r.Phases)-1]
	return last.From + cmp.Or(last.Lasted, last.For.Seconds())
}

// calmFor is how many seconds in a row have to be calm before a service counts as recovered.
const calmFor = 3

// recovery gives how long after a moment of the run p99 stays above a bound; a second without answers counts as above,
// and one in which somebody is refused or fails. It is recovered from the first of three seconds in a row that are below.
func (r Report) recovery(after float64, boundMillis float64) (took time.Duration, ok bool) {
	calm := 0
	for _, s := range r.Seconds {
		if s.At < after || s.Partial || s.At >= r.ended() {
			continue
		}
		if s.Answered == 0 || s.P99 > boundMillis || s.Refused+s.Failed > 0 {
			calm = 0
			continue
		}
		if calm++; calm == calmFor {
			return time.Duration((s.At - calmFor + 1 - after) * float64(time.Second)), true
		}
	}
	return 0, false
}

// worth holds a figure of the run against a bound.
func (r Report) worth(name string, bound float64) Criterion {
	text := fmt.Sprintf("at most %g %s", bound, name)
	if why := r.first().tooShort(); why != "" {
		return unjudged(text, why)
	}
	for _, f := range r.Figures {
		if f.Name == name && f.Number > 0 {
			return criterion(f.Number <= bound, text, "%s", f.Value)
		}
	}
	return unjudged(text, "not measured")
}
