package load

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// A Demand is who will use an installation.
type Demand struct {
	People   int           `json:"people"`
	Agents   int           `json:"agents"`
	Interval time.Duration `json:"-"` // from one certificate of an agent to the next
	Lifetime time.Duration `json:"-"` // of a certificate
}

func (d Demand) check() error {
	switch {
	case d.People < 0 || d.Agents < 1 || d.People > populationMax || d.Agents > 100_000_000:
		return errors.New("people are 0 to 5,000,000 and agents 1 to 100,000,000")
	case d.Interval < time.Second || d.Lifetime < time.Second || d.Lifetime > 24*time.Hour:
		return errors.New("an interval is a second at least, a lifetime a second to a day")
	case d.Interval > d.Lifetime:
		return fmt.Errorf("an agent that comes every %s needs certificates that live longer than %s", d.Interval, d.Lifetime)
	}
	return nil
}

// What one machine gave, as docs/sizing.md has it: an AMD EPYC of 2.6 GHz with a sync of 0.2 ms.
const (
	quietMicros      = 850.0     // of a core, for an agent certificate with a fresh authorization, at quietRate
	busyMicros       = 570.0     // the same at busyRate, 70 % of what two cores can do: a commit holds more of them
	saturatedMicros  = 420.0     // the same at full load
	quietRate        = 833.0     // a second
	busyRate         = 2500.0    // a second
	handshakeMicros  = 900.0     // of a core, for a full mTLS handshake
	certificateBytes = 1600.0    // of disk, with indexes and audit
	agentBytes       = 1000.0    // of disk, for an agent or a person
	baseMemory       = 250 << 20 // resident, of a server at work
	connectionMemory = 60 << 10  // resident, of an idle TLS connection
	busyShare        = 0.7       // of the processor, up to which latency is flat
	keptAfterExpiry  = 24 * time.Hour
)

// The largest of each that was measured.
const (
	largestStore       = 10_000_000 // certificates, 15.6 GB
	largestRate        = 3600       // certificates a second
	largestAgents      = 500_000
	largestConnections = 5000
)

// A Size is what an installation needs.
type Size struct {
	Demand
	PerSecond   float64 `json:"certificates_per_second"`
	Micros      float64 `json:"cpu_us_per_certificate"` // of one core, at this rate
	Cores       float64 `json:"cores"`                  // at 70 % load, connections kept
	CoresFresh  float64 `json:"cores_new_connections"`  // the same where each renewal is on a connection of its own
	Recommended float64 `json:"cores_recommended"`      // whole ones, for Cores
	Stored      float64 `json:"certificates_stored"`
	DiskPerDay  float64 `json:"disk_bytes_per_day"` // of rows, without the write-ahead log; what expired a day ago goes
	Disk        float64 `json:"disk_bytes"`         // when it does not grow any more
	Memory      float64 `json:"memory_bytes"`
	Connections int     `json:"connections"` // kept open, if all agents keep theirs
	DrainSec    float64 `json:"drain_sec"`   // all agents at once, on the recommended cores
	IntervalSec float64 `json:"interval_sec"`
	LifetimeSec float64 `json:"lifetime_sec"`

	Beyond []string `json:"beyond_measured,omitempty"` // what lies beyond the largest that was measured
}

// microsAt gives what an agent certificate costs at a rate: between the rates that were measured, what lies between their
// costs, and beyond them the nearer one. That of full load leaves no room, so no rate counts with it.
func microsAt(perSecond float64) float64 {
	share := (min(max(perSecond, quietRate), busyRate) - quietRate) / (busyRate - quietRate)
	return quietMicros + share*(busyMicros-quietMicros)
}

// SizeOf computes what an installation needs for a demand, from what was measured on one machine. It is arithmetic, no
// promise: a factor of two lies between machines.
func SizeOf(d Demand) (Size, error) {
	if err := d.check(); err != nil {
		return Size{}, err
	}
	s := Size{Demand: d, PerSecond: float64(d.Agents) / d.Interval.Seconds(), IntervalSec: d.Interval.Seconds(), LifetimeSec: d.Lifetime.Seconds()}
	s.Micros = microsAt(s.PerSecond)
	s.Cores = s.PerSecond * s.Micros / 1e6 / busyShare
	s.CoresFresh = s.PerSecond * (s.Micros + handshakeMicros) / 1e6 / busyShare
	s.Recommended = math.Ceil(s.Cores)
	s.Stored = s.PerSecond * (d.Lifetime + keptAfterExpiry).Seconds()
	s.DiskPerDay = s.PerSecond * 86400 * certificateBytes
	s.Disk = s.Stored*certificateBytes + float64(d.Agents+d.People)*agentBytes
	s.Connections = d.Agents
	s.Memory = baseMemory + float64(s.held())*connectionMemory
	s.DrainSec = float64(d.Agents) * saturatedMicros / 1e6 / s.Recommended
	s.Beyond = s.beyond()
	return s, nil
}

// beyond says what of a size was never measured, so that it is drawn out of smaller figures.
func (s Size) beyond() (all []string) {
	for _, one := range []struct {
		what          string
		here, largest float64
	}{
		{"certificates stored", s.Stored, largestStore}, {"certificates a second", s.PerSecond, largestRate},
		{"agents", float64(s.Agents), largestAgents}, {"connections at once", float64(s.held()), largestConnections},
	} {
		if one.here > one.largest {
			all = append(all, fmt.Sprintf("%s %s: the most that was measured is %s", thousands(one.here), one.what, thousands(one.largest)))
		}
	}
	return all
}

// held is how many connections one server holds at its default limit.
func (s Size) held() int { return min(s.Connections, 16384) }

// Write writes the size for people.
func (s Size) Write(w io.Writer) {
	fmt.Fprintf(w, "%s people and %s agents, each with a certificate of %s every %s\n\n", thousands(float64(s.People)), thousands(float64(s.Agents)), s.Lifetime, s.Interval)
	for _, line := range [][3]string{
		{"certificates", thousands(s.PerSecond) + " a second", fmt.Sprintf("%s stored at a time: each for its life and a day", thousands(s.Stored))},
		{"processor", cores(s.Recommended), fmt.Sprintf("of the kind measured, busy to %.0f %%: %.0f µs a certificate at this rate, on kept connections", 100*s.Cores*busyShare/s.Recommended, s.Micros)},
		{"", cores(math.Ceil(s.CoresFresh)), "where each renewal comes on a new mTLS connection"},
		{"memory", bytesOf(s.Memory), fmt.Sprintf("with %s connections open", thousands(float64(s.held())))},
		{"disk", bytesOf(s.Disk), fmt.Sprintf("at most; %s of rows a day, and the write-ahead log writes each changed page once more", bytesOf(s.DiskPerDay))},
		{"connections", thousands(float64(s.Connections)), "if every agent keeps its own; limit.connections is 16,384 a server"},
		{"all at once", fmt.Sprintf("%.0f s", s.DrainSec), "until every agent is served by these cores, if all come at the same moment"},
	} {
		fmt.Fprintf(w, "%-14s%-18s%s\n", line[0], line[1], line[2])
	}
	fmt.Fprintf(w, "\ndatabase      %s\n", s.database())
	for _, one := range s.Beyond {
		fmt.Fprintf(w, "not measured  %s\n", one)
	}
	fmt.Fprintln(w, "\nComputed from what was measured on one machine (docs/sizing.md). What is not\nmeasured is drawn out of smaller figures. A factor of two lies between machines:\n`chancery bench issue --preset capacity` says what yours gives.")
}

// cores counts whole cores.
func cores(n float64) string {
	if n == 1 {
		return "1 core"
	}
	return thousands(n) + " cores"
}

// database says on what such an installation runs.
func (s Size) database() string {
	switch {
	case s.Cores > 16:
		return "PostgreSQL, and several servers beside one another"
	case s.Cores > 4 || s.Disk > 500e9:
		return "PostgreSQL; SQLite has one writer and one disk"
	case s.Stored > largestStore:
		return "SQLite gives this rate; whether it does with so much stored was not measured, nor with PostgreSQL"
	}
	return "SQLite is enough; PostgreSQL for a second server beside the first"
}

// bytesOf writes a size in the unit that suits it.
func bytesOf(n float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}} {
		if n >= unit.size {
			return fmt.Sprintf("%.1f %s", n/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.0f kB", n/1e3)
}
