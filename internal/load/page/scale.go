package page

import (
	"math"
	"slices"
	"strings"
)

// scale maps values from lo to hi onto pixels between from and to.
type scale struct {
	lo, hi   float64
	from, to float64
	log      bool
}

// at is the pixel of a value, or NaN when the scale cannot show it.
func (s scale) at(v float64) float64 {
	if !s.shows(v) {
		return math.NaN()
	}
	share := (v - s.lo) / (s.hi - s.lo)
	if s.log {
		share = math.Log(v/s.lo) / math.Log(s.hi/s.lo)
	}
	return s.from + share*(s.to-s.from)
}

// shows refuses what is not finite, what is absurdly large, and what has no logarithm.
func (s scale) shows(v float64) bool {
	return math.Abs(v) <= largest && (!s.log || v >= 1/largest)
}

// largest is the greatest value that is drawn; beyond it differences would overflow.
const largest = 1e100

// extent is the range of the values that a scale can show. Without any, ok is false.
type extent struct {
	lo, hi float64
	ok     bool
}

func (e *extent) include(v float64) {
	if !e.ok {
		e.lo, e.hi, e.ok = v, v, true
	}
	e.lo, e.hi = min(e.lo, v), max(e.hi, v)
}

// tick is a labelled place on an axis.
type tick struct {
	at    float64
	label string
}

// valueAxis spans from zero to a round number beyond the values, because an axis that does not start at zero
// exaggerates; a logarithmic one spans whole steps of 1, 2, 5.
func valueAxis(e extent, log bool) (scale, []tick) {
	if log {
		s := scale{lo: roundLog(e.lo, false), hi: roundLog(e.hi, true), log: true}
		if s.lo == s.hi {
			s.lo, s.hi = roundLog(s.lo*0.9, false), roundLog(s.hi*1.1, true)
		}
		return s, logTicks(s.lo, s.hi)
	}
	lo, hi := min(0, e.lo), max(0, e.hi)
	if hi-lo < 1/largest {
		hi = 1
	}
	step := roundStep((hi - lo) / 5)
	lo, hi = step*math.Floor(lo/step+1e-9), step*math.Ceil(hi/step-1e-9)
	return scale{lo: lo, hi: hi}, linearTicks(lo, hi, step)
}

// placeAxis is the X axis: as wide as the data, but from zero when they begin close to it.
func placeAxis(e extent, c Chart) (scale, []tick) {
	if c.LogX {
		s, ticks := valueAxis(e, true)
		if holdsPercentiles(c.X) {
			ticks = percentileTicks(s.lo, s.hi)
		}
		return s, ticks
	}
	if e.lo > 0 && e.lo < e.hi/5 {
		e.lo = 0
	}
	if e.hi-e.lo <= max(1/largest, 1e-9*math.Abs(e.lo), 1e-9*math.Abs(e.hi)) {
		pad := max(1, math.Abs(e.hi)/10)
		e.lo, e.hi = e.lo-pad, e.hi+pad
	}
	if holdsSeconds(c.X) {
		return scale{lo: e.lo, hi: e.hi}, timeTicks(e.lo, e.hi)
	}
	return scale{lo: e.lo, hi: e.hi}, linearTicks(e.lo, e.hi, roundStep((e.hi-e.lo)/6))
}

func holdsSeconds(label string) bool { return unitOf(label) == "s" || unitOf(label) == "seconds" }

func holdsPercentiles(label string) bool {
	label = strings.ToLower(label)
	return unitOf(label) == "%" || strings.Contains(label, "percentile") || strings.Contains(label, "quantile")
}

// unitOf is the last word of a label.
func unitOf(label string) string {
	words := strings.FieldsFunc(label, func(r rune) bool { return strings.ContainsRune(" ,()[]", r) })
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// roundStep is the smallest of 1, 2, 5 times a power of ten that is not below v.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, digit := range []float64{1, 2, 5} {
		if digit*power >= v*(1-1e-9) {
			return digit * power
		}
	}
	return 10 * power
}

// roundLog rounds outward to 1, 2, 5 times a power of ten.
func roundLog(v float64, up bool) float64 {
	above := roundStep(v)
	if up || above <= v*(1+1e-9) {
		return above
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	if v >= 5*power {
		return 5 * power
	}
	if v >= 2*power {
		return 2 * power
	}
	return power
}

// linearTicks are the multiples of step from lo to hi.
func linearTicks(lo, hi, step float64) []tick {
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	first := math.Ceil(lo/step - 1e-9)
	var ticks []tick
	for i := range 12 {
		at := (first + float64(i)) * step
		if at > hi+step*1e-9 {
			break
		}
		ticks = append(ticks, tick{at, tickLabel(at, step, decimals)})
	}
	return ticks
}

func tickLabel(at, step float64, decimals int) string {
	switch {
	case at == 0:
		return "0"
	case math.Abs(at) >= 1e15 || decimals > 6:
		return number(at)
	case step >= 1e9:
		return decimal(at/1e9, 0) + " G"
	case step >= 1e6:
		return decimal(at/1e6, 0) + " M"
	}
	return decimal(at, decimals)
}

// logTicks are decades; over few decades 2 and 5 as well, over many not each decade.
func logTicks(lo, hi float64) []tick {
	decades := math.Log10(hi / lo)
	digits, stride := []float64{1}, max(1, int(math.Ceil(decades/8)))
	if decades < 3.2 {
		digits = []float64{1, 2, 5}
	}
	var ticks []tick
	first, last := int(math.Floor(math.Log10(lo)+1e-9)), int(math.Floor(math.Log10(hi)+1e-9))
	for power := first; power <= last; power += stride {
		for _, digit := range digits {
			if at := digit * math.Pow(10, float64(power)); at >= lo*(1-1e-9) && at <= hi*(1+1e-9) {
				ticks = append(ticks, tick{at, number(at)})
			}
		}
	}
	return ticks
}

func percentileTicks(lo, hi float64) []tick {
	places := []float64{2}
	if hi <= 1000 {
		places = append(places, 1, 4, 20)
	}
	for at := 10.0; at <= hi*(1+1e-9) && len(places) < 12; at *= 10 {
		places = append(places, at)
	}
	slices.Sort(places)
	var ticks []tick
	for _, at := range places {
		if at >= lo*(1-1e-9) && at <= hi*(1+1e-9) {
			ticks = append(ticks, tick{at, percentile(at)})
		}
	}
	return ticks
}

// timeTicks are the seconds, minutes or hours that a clock has marks for.
func timeTicks(lo, hi float64) []tick {
	step := 0.0
	for _, candidate := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400} {
		if candidate >= (hi-lo)/7 {
			step = candidate
			break
		}
	}
	if step <= 1 {
		step = roundStep((hi - lo) / 6)
	}
	ticks := linearTicks(lo, hi, step)
	for i := range ticks {
		ticks[i].label = duration(ticks[i].at)
	}
	return ticks
}
