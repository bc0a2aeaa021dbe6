package load

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSizeCountsWithTheCostOfItsRate: a certificate costs more the less a commit holds.
func TestSizeCountsWithTheCostOfItsRate(t *testing.T) {
	for perSecond, want := range map[float64]float64{1: 850, 833: 850, 1666.5: 710, 2500: 570, 100_000: 570} {
		if got := microsAt(perSecond); got < want-0.01 || got > want+0.01 {
			t.Errorf("%g a second: %g µs each, want %g", perSecond, got, want)
		}
	}
}

// TestSizeSaysWhatWasNotMeasured: what is drawn out of smaller figures is called so.
func TestSizeSaysWhatWasNotMeasured(t *testing.T) {
	for _, c := range []struct {
		agents int
		every  time.Duration
		want   []string
	}{
		{5000, 10 * time.Minute, nil},
		{80_000, 12 * time.Minute, []string{"16,384 connections at once: the most that was measured is 5,000"}},
		{600_000, 2 * time.Minute, []string{
			"439,200,000 certificates stored: the most that was measured is 10,000,000", "5,000 certificates a second: the most that was measured is 3,600",
			"600,000 agents: the most that was measured is 500,000", "16,384 connections at once: the most that was measured is 5,000",
		}},
	} {
		s, err := SizeOf(Demand{Agents: c.agents, Interval: c.every, Lifetime: 24 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, s.Beyond); diff != "" {
			t.Errorf("%d agents (-want +got):\n%s", c.agents, diff)
		}
		if sure := strings.HasPrefix(s.database(), "SQLite is enough"); sure != (s.Stored <= largestStore) {
			t.Errorf("%d agents with %.0f stored: %s", c.agents, s.Stored, s.database())
		}
	}
}

func TestSize(t *testing.T) {
	s, err := SizeOf(Demand{People: 50_000, Agents: 500_000, Interval: 10 * time.Minute, Lifetime: 20 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if s.PerSecond < 833 || s.PerSecond > 834 {
		t.Errorf("%f certificates a second", s.PerSecond)
	}
	if twice, err := SizeOf(Demand{People: 50_000, Agents: 1_000_000, Interval: 10 * time.Minute, Lifetime: 20 * time.Minute}); err != nil || twice.Cores < 1.5*s.Cores || twice.Cores > 1.99*s.Cores || twice.Disk < 1.9*s.Disk {
		t.Errorf("twice the agents: %+v, %v", twice, err)
	}
	if busy := s.Cores * busyShare; busy < 0.7 || busy > 0.72 || s.Recommended != 2 {
		t.Errorf("%f cores busy, %f recommended; 850 µs each at 833 a second are 0.71, and two leave room", busy, s.Recommended)
	}
	var out bytes.Buffer
	s.Write(&out)
	compareGolden(t, "size", out.String())
	for what, d := range map[string]Demand{
		"no agents": {Interval: time.Minute, Lifetime: time.Hour}, "no interval": {Agents: 1, Lifetime: time.Hour}, "an interval beyond the lifetime": {Agents: 1, Interval: time.Hour, Lifetime: time.Minute},
		"a long lifetime": {Agents: 1, Interval: time.Hour, Lifetime: 25 * time.Hour}, "negative people": {Agents: 1, People: -1, Interval: time.Minute, Lifetime: time.Hour},
	} {
		if _, err := SizeOf(d); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}
