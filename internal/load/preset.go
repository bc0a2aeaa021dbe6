package load

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
)

// A Preset is a named run that states what it is for, what is expected of it, and what it has to reach.
type Preset struct {
	Name        string
	Purpose     string
	Expectation string

	scenario   string
	phases     []Phase
	population Population
	settings   []string
	cores      int
	memory     int64
	judge      func(Report) []Criterion
}

// Parameters change a preset. What is zero stays.
type Parameters struct {
	Agents      int // people and tokens keep their proportion to them
	Interval    time.Duration
	Duration    time.Duration // of the longest phase; the others keep their proportion, above a floor
	Connections int           // of the phase with the most; the others keep their proportion, above a floor
}

// String says what is changed, or nothing.
func (p Parameters) String() string {
	var all []string
	for _, one := range []struct {
		on   bool
		text string
	}{
		{p.Agents > 0, fmt.Sprintf("%s agents", thousands(float64(p.Agents)))}, {p.Interval > 0, fmt.Sprintf("an interval of %s", p.Interval)},
		{p.Duration > 0, fmt.Sprintf("phases of up to %s", p.Duration)}, {p.Connections > 0, fmt.Sprintf("%d connections", p.Connections)},
	} {
		if one.on {
			all = append(all, one.text)
		}
	}
	return strings.Join(all, ", ")
}

// FindPreset finds a preset by its name.
func FindPreset(name string) (*Preset, error) {
	var names []string
	for _, p := range Presets() {
		if p.Name == name {
			return &p, nil
		}
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("preset %q: want one of %s", name, strings.Join(names, ", "))
}

// Apply fills a configuration with what the preset says. Settings of the configuration come after those of the preset
// and win.
func (p *Preset) Apply(c IssueConfig, with Parameters) IssueConfig {
	c.Preset, c.Scenario = p, p.scenario
	c.Population = with.population(p.population)
	c.Settings = append(append([]string{}, p.settings...), c.Settings...)
	c.Cores, c.Memory = cmp.Or(c.Cores, p.cores), cmp.Or(c.Memory, p.memory)
	longest, most := time.Duration(0), 0
	for _, one := range p.phases {
		longest, most = max(longest, one.For), max(most, one.Connections)
	}
	c.Phases, c.changed = nil, with.String()
	for _, one := range p.phases {
		one.Agents, one.Interval = cmp.Or(with.Agents, one.Agents), cmp.Or(with.Interval, one.Interval)
		one = with.connect(one, most)
		c.Phases = append(c.Phases, with.last(one, longest))
	}
	return c
}

// population scales who takes part to the agents that are asked for. A preset without agents has other clients.
func (p Parameters) population(of Population) Population {
	if p.Agents <= 0 {
		return of
	}
	if of.Agents > 0 {
		of.People, of.Tokens = proportion(of.People, p.Agents, of.Agents), proportion(of.Tokens, p.Agents, of.Agents)
	}
	of.Agents = p.Agents
	return of
}

// fewestScaled is below how many connections scaling brings no phase: fewer do not keep a server busy, so that a capacity
// measured with them is none.
const fewestScaled = 64

// connect scales the connections of a phase; most is how many the greatest phase has. No phase gets fewer than
// fewestScaled, unless it had or that is asked for. A name that tells them goes along.
func (p Parameters) connect(one Phase, most int) Phase {
	if p.Connections <= 0 || one.Connections == 0 {
		return one
	}
	before := thousands(float64(one.Connections))
	one.Connections = max(proportion(one.Connections, p.Connections, most), min(one.Connections, p.Connections, fewestScaled))
	if rest, ok := strings.CutPrefix(one.Name, before); ok {
		one.Name = thousands(float64(one.Connections)) + rest
	}
	return one
}

// last scales the time of a phase, and that for which its database stands still; longest is that of the longest phase.
// No phase gets shorter than shortestJudged, unless it was or that is asked for. Warm-ups stay: they do not depend on it.
func (p Parameters) last(one Phase, longest time.Duration) Phase {
	if p.Duration <= 0 {
		return one
	}
	floor := min(one.For, p.Duration, shortestJudged)
	scaled := max(floor, time.Duration(float64(one.For)*p.Duration.Seconds()/longest.Seconds()))
	one.Stall = time.Duration(float64(one.Stall) * scaled.Seconds() / one.For.Seconds())
	one.For = scaled
	return one
}

// proportion gives n × to / from, one at least.
func proportion(n, to, from int) int {
	return max(1, int(math.Round(float64(n)*float64(to)/float64(from))))
}

// verdicts judges a report. A criterion of a changed preset says so: what it was made for is another run. What ended
// before its time has met nothing.
func (p *Preset) verdicts(r Report) []Criterion {
	all := p.judge(r)
	for i := range all {
		if all[i].Verdict == Met && r.cut() {
			all[i] = unjudged(all[i].Text, "the run ended before its time: "+all[i].Measured)
		}
		if r.changed != "" {
			all[i].Text += " (changed: " + r.changed + ")"
		}
	}
	return append(all, r.nothingLost())
}
