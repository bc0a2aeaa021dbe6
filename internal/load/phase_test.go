package load

import (
	"math"
	"testing"
	"time"
)

// TestTimesHaveABound, each of them and their sum, up to the longest that there is.
func TestTimesHaveABound(t *testing.T) {
	const most, endless = phaseMax, time.Duration(math.MaxInt64)
	for what, c := range map[string]struct {
		phase Phase
		ok    bool
	}{
		"a day":                       {Phase{For: most}, true},
		"a day with its warm-up":      {Phase{For: most - time.Hour, Warmup: time.Hour, Interval: most, Slow: most, Stall: most / 2}, true},
		"more than a day together":    {Phase{For: most, Warmup: 1}, false},
		"an endless phase":            {Phase{For: endless}, false},
		"one with a warm-up":          {Phase{For: endless, Warmup: time.Second}, false},
		"an endless warm-up":          {Phase{For: time.Second, Warmup: endless}, false},
		"both":                        {Phase{For: endless, Warmup: endless}, false},
		"an endless interval":         {Phase{For: time.Second, Interval: endless}, false},
		"an endless sync":             {Phase{For: time.Second, Slow: endless}, false},
		"an endless stall":            {Phase{For: time.Second, Stall: endless}, false},
		"an endless stall in as long": {Phase{For: endless/2 + time.Second, Warmup: time.Second, Stall: endless / 3}, false},
	} {
		if err := c.phase.withDefaults(Population{}.withDefaults()).check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
}
