package load

import (
	"bytes"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	s, err := SizeOf(Demand{People: 50_000, Agents: 500_000, Interval: 10 * time.Minute, Lifetime: 20 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if s.PerSecond < 833 || s.PerSecond > 834 {
		t.Errorf("%f certificates a second", s.PerSecond)
	}
	if twice, err := SizeOf(Demand{People: 50_000, Agents: 1_000_000, Interval: 10 * time.Minute, Lifetime: 20 * time.Minute}); err != nil || twice.Cores < 1.99*s.Cores || twice.Cores > 2.01*s.Cores || twice.Disk < 1.9*s.Disk {
		t.Errorf("twice the agents: %+v, %v", twice, err)
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
