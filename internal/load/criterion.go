package load

import (
	"fmt"
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

// atMost holds a latency in milliseconds against a bound.
func atMost(text string, measured, bound float64) Criterion {
	return criterion(measured <= bound, fmt.Sprintf("%s at most %g ms", text, bound), "%.2f ms", measured)
}

// share holds a rate against a share of another one.
func shareOf(text string, measured, of, wanted float64) Criterion {
	if of == 0 {
		return Criterion{Text: text, Measured: "nothing to hold it against", Verdict: Unjudged}
	}
	return criterion(measured >= wanted*of, fmt.Sprintf("%s at least %.0f %%", text, 100*wanted), "%.0f %% (%s of %s a second)", 100*measured/of, thousands(measured), thousands(of))
}

// noError wants every request of a phase answered, and none refused.
func noError(p PhaseReport) Criterion {
	failed := p.Offered - p.Answered
	return criterion(failed <= 0 && p.Refused == 0 && len(p.Errors) == 0, "no request fails or is refused", "%d of %d not answered, %d refusals, errors: %v", max(failed, 0), p.Offered, p.Refused, listed(p.Errors))
}

// nothingLost is a criterion of every preset.
func (r Report) nothingLost() Criterion {
	u := r.Lookup
	bad := u.Lost + u.Differ + u.Unknown + u.OCSPWrong + r.Wrong + r.Doubles
	return criterion(bad == 0, "nothing that was answered is lost, changed, wrong or there twice", "%d of %d", bad, r.Answered)
}

// resident holds the server's resident memory against a bound, and its growth from the first to the last fifth.
func (r Report) resident(bound int64) []Criterion {
	var all []float64
	highest := int64(0)
	for _, s := range r.Seconds {
		if s.Resident > 0 {
			all = append(all, float64(s.Resident))
			highest = max(highest, s.Resident)
		}
	}
	if len(all) < 10 {
		return []Criterion{{Text: "resident memory", Measured: "too few samples", Verdict: Unjudged}}
	}
	early, late := median(all[:len(all)/5]), median(all[len(all)-len(all)/5:])
	return []Criterion{
		criterion(highest <= bound, fmt.Sprintf("resident memory at most %d MB", bound>>20), "%d MB", highest>>20),
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

// recovery gives how long after a moment of the run p99 stays above a bound; a second without answers counts as above.
// It is recovered from the first of three seconds in a row that are below.
func (r Report) recovery(after float64, boundMillis float64) (took time.Duration, ok bool) {
	calm := 0
	for _, s := range r.Seconds {
		if s.At < after {
			continue
		}
		if s.Answered == 0 || s.P99 > boundMillis {
			calm = 0
			continue
		}
		if calm++; calm == 3 {
			return time.Duration((s.At - 2 - after) * float64(time.Second)), true
		}
	}
	return 0, false
}
