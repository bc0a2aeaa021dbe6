package load

import (
	"cmp"
	"fmt"
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
	Agents      int
	Interval    time.Duration
	Duration    time.Duration // of the longest phase; the others keep their proportion
	Connections int
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
	c.Population = p.population
	c.Settings = append(append([]string{}, p.settings...), c.Settings...)
	c.Cores, c.Memory = cmp.Or(c.Cores, p.cores), cmp.Or(c.Memory, p.memory)
	if with.Agents > 0 {
		c.Population.Agents = with.Agents
	}
	longest := time.Duration(0)
	for _, one := range p.phases {
		longest = max(longest, one.For)
	}
	c.Phases, c.changed = nil, with.String()
	for _, one := range p.phases {
		one.Agents, one.Interval = cmp.Or(with.Agents, one.Agents), cmp.Or(with.Interval, one.Interval)
		if with.Connections > 0 && one.Connections != 0 {
			one.Connections = with.Connections
		}
		if with.Duration > 0 {
			scale := with.Duration.Seconds() / longest.Seconds()
			one.For, one.Stall = time.Duration(float64(one.For)*scale), time.Duration(float64(one.Stall)*scale)
		}
		c.Phases = append(c.Phases, one)
	}
	return c
}
