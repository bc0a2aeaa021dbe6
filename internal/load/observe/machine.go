package observe

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// A Machine is the state of the machine that made a figure. What the system does not tell is left empty.
type Machine struct {
	CPU        string  `json:"cpu"`
	Cores      int     `json:"cores"`
	MHz        float64 `json:"mhz,omitempty"`       // before; mean of all cores
	MHzAfter   float64 `json:"mhz_after,omitempty"` // when the run was done, likewise
	MHzCap     float64 `json:"mhz_cap,omitempty"`   // where the system is set to use less than the processor can: so much
	Governor   string  `json:"governor,omitempty"`  // of all cores; where they differ, all there are
	Boost      string  `json:"boost,omitempty"`     // on or off
	Virtual    string  `json:"virtual,omitempty"`   // yes or no
	System     string  `json:"system"`
	Kernel     string  `json:"kernel,omitempty"` // its build
	Memory     int64   `json:"memory_bytes,omitempty"`
	LoadBefore string  `json:"load_before,omitempty"` // 1, 5 and 15 minutes
	Go         string  `json:"go"`
	Revision   string  `json:"revision"`
	FileSystem string  `json:"file_system,omitempty"` // where the data lie: its type
	Device     string  `json:"device,omitempty"`      // and what it stands on
	SyncMillis float64 `json:"sync_ms,omitempty"`     // one fsync of 4 KiB there, median
	SyncP99    float64 `json:"sync_p99_ms,omitempty"`
	Steal      float64 `json:"steal"`                 // share of all cores' time that the host took meanwhile
	Busy       float64 `json:"busy"`                  // cores busy meanwhile, everything on the machine counted
	OtherCores float64 `json:"other_cores,omitempty"` // of these, by programs that have no part in the run
	Others     []Share `json:"others,omitempty"`      // the largest of them, above 2 % of a core
	Databases  []Share `json:"databases,omitempty"`   // database servers, likewise, whether the run uses them or not

	// Server is the process of the server under test, 0 where it is unknown or a child of this process. OnDatabase says
	// that the run uses a database server: those that run here disturb nobody then. Both are set before Done.
	Server     int  `json:"-"`
	OnDatabase bool `json:"-"`

	host  host
	began moment
}

// Look notes the machine's state before a run; Machine.Done adds what happened meanwhile.
func Look() Machine { return lookAt(this()) }

func lookAt(h host) Machine {
	p := h.power()
	return Machine{
		CPU: h.cpuField("model name"), Cores: runtime.NumCPU(), MHz: h.frequency(), MHzCap: p.limit, Governor: p.governor, Boost: p.boost,
		Virtual: h.virtual(), System: strings.TrimSpace(runtime.GOOS + " " + h.line("proc/sys/kernel/osrelease") + " " + runtime.GOARCH),
		Kernel: h.line("proc/sys/kernel/version"), Memory: h.memory(), LoadBefore: h.loadAverage(), Go: runtime.Version(), Revision: own(),
		host: h, began: h.now(),
	}
}

// Done adds what happened since Look. It does nothing for a machine that nobody looked at.
func (m *Machine) Done() {
	if m.began.at.IsZero() {
		return
	}
	now := m.host.now()
	m.MHzAfter = m.host.frequency()
	m.Steal, m.Busy = now.since(m.began.stat, m.Cores)
	m.rest(now)
}

// MeasureSync measures a sync in the directory where the data will lie, and notes what that directory stands on. It
// takes five seconds at most. Its error is that of writing there.
func (m *Machine) MeasureSync(ctx context.Context, dir string) error {
	m.FileSystem, m.Device = m.host.mount(dir)
	median, p99, err := SyncLatency(ctx, dir, 200, 5*time.Second)
	m.SyncMillis, m.SyncP99 = millis(median), millis(p99)
	return err
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

const (
	stealMax  = 0.02
	othersMax = 0.10 // of a core
)

// Marks says what makes a run doubtful.
func (m Machine) Marks() []string {
	var marks []string
	add := func(doubtful bool, format string, args ...any) {
		if doubtful {
			marks = append(marks, fmt.Sprintf(format, args...))
		}
	}
	one, _ := strconv.ParseFloat(strings.SplitN(m.LoadBefore, " ", 2)[0], 64)
	databases := total(m.Databases)
	add(m.Steal > stealMax, "disturbed: the host took %.0f %% of the time", m.Steal*100)
	add(one > float64(m.Cores)/2, "disturbed: the load before was %s", m.LoadBefore)
	add(m.OtherCores > othersMax, "disturbed: other programs used %.2f cores%s", m.OtherCores, among(m.Others))
	add(!m.OnDatabase && databases > othersMax, "disturbed: database servers used %.2f cores, and the run uses none", databases)
	add(PowerSaving(m.Governor), "slowed: the processor's governor is %s", m.Governor)
	add(m.MHzCap > 0, "slowed: the processor's frequency is capped at %.0f MHz", m.MHzCap)
	add(strings.Contains(m.Revision, "modified"), "the program was built from a modified tree")
	add(!recorded(m.Revision), "the program's revision is not recorded")
	return marks
}

const unknown = "unknown"

// recorded says whether a revision tells what a program was built from. The toolchain calls a tree without a known
// version "(devel)".
func recorded(revision string) bool {
	return revision != "" && revision != unknown && revision != "(devel)"
}

// own is the revision of this program.
func own() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	return Revision(info)
}

// Revision says what a program was built from, as the Go toolchain recorded it: the first 12 digits of the commit and
// whether the tree was modified, or the module's version where no commit is recorded.
func Revision(info *debug.BuildInfo) string {
	found := map[string]string{}
	for _, s := range info.Settings {
		found[s.Key] = s.Value
	}
	if found["vcs.revision"] == "" {
		return cmp.Or(info.Main.Version, unknown)
	}
	text := found["vcs.revision"][:min(12, len(found["vcs.revision"]))]
	if found["vcs.modified"] == "true" {
		text += " (modified)"
	}
	return text
}
