package observe

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Machine is the state of the machine that made a figure. What the system does not tell is left empty.
type Machine struct {
	CPU        string  `json:"cpu"`
	Cores      int     `json:"cores"`
	MHz        float64 `json:"mhz,omitempty"`
	Governor   string  `json:"governor,omitempty"`
	System     string  `json:"system"`
	LoadBefore string  `json:"load_before,omitempty"` // 1, 5 and 15 minutes
	Go         string  `json:"go"`
	Revision   string  `json:"revision"`
	SyncMillis float64 `json:"sync_ms,omitempty"` // one fsync of 4 KiB, median
	Steal      float64 `json:"steal"`             // share of all cores' time that the host took meanwhile
	Busy       float64 `json:"busy"`              // cores busy meanwhile, everything on the machine counted

	began stat
}

// Look notes the machine's state before a run; Machine.Done adds what happened meanwhile.
func Look() Machine {
	m := Machine{
		CPU: cpuField("model name"), Cores: runtime.NumCPU(), System: system(), Go: runtime.Version(), Revision: revision(),
		Governor: firstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"), LoadBefore: loadAverage(), began: readStat(),
	}
	m.MHz, _ = strconv.ParseFloat(cpuField("cpu MHz"), 64)
	return m
}

// Done adds what happened since Look.
func (m *Machine) Done() {
	m.Steal, m.Busy = readStat().since(m.began)
}

// MeasureSync measures a sync in the directory where the data will lie.
func (m *Machine) MeasureSync(dir string) error {
	took, err := syncLatency(dir)
	m.SyncMillis = float64(took) / float64(time.Millisecond)
	return err
}

func syncLatency(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer f.Close()
	block := make([]byte, 4096)
	took := make([]time.Duration, 100)
	for i := range took {
		began := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// Marks says what makes a run doubtful.
func (m Machine) Marks() []string {
	var marks []string
	if m.Steal > 0.02 {
		marks = append(marks, fmt.Sprintf("disturbed: the host took %.0f %% of the time", m.Steal*100))
	}
	one, _ := strconv.ParseFloat(strings.SplitN(m.LoadBefore, " ", 2)[0], 64)
	if one > float64(m.Cores)/2 {
		marks = append(marks, "disturbed: the load before was "+m.LoadBefore)
	}
	if strings.Contains(m.Revision, "modified") {
		marks = append(marks, "the program was built from a modified tree")
	}
	return marks
}

// Write writes the state on two lines for people.
func (m Machine) Write(w io.Writer) {
	fmt.Fprintf(w, "machine   %s, %d cores", m.CPU, m.Cores)
	if m.MHz > 0 {
		fmt.Fprintf(w, ", %.0f MHz", m.MHz)
	}
	if m.Governor != "" {
		fmt.Fprintf(w, ", governor %s", m.Governor)
	}
	fmt.Fprintf(w, ", %s; load before %s; steal %.1f %%; %.1f cores busy", m.System, m.LoadBefore, m.Steal*100, m.Busy)
	if m.SyncMillis > 0 {
		fmt.Fprintf(w, "; sync %.2f ms", m.SyncMillis)
	}
	fmt.Fprintf(w, "\nprogram   %s, %s\n", m.Revision, m.Go)
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	found := map[string]string{}
	for _, s := range info.Settings {
		found[s.Key] = s.Value
	}
	if found["vcs.revision"] == "" {
		return info.Main.Version
	}
	text := found["vcs.revision"][:min(12, len(found["vcs.revision"]))]
	if found["vcs.modified"] == "true" {
		text += " (modified)"
	}
	return text
}

func system() string {
	release := firstLine("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(runtime.GOOS + " " + release + " " + runtime.GOARCH)
}

func firstLine(path string) string {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

func loadAverage() string {
	fields := strings.Fields(firstLine("/proc/loadavg"))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

func cpuField(name string) string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// A stat is the first line of /proc/stat, in ticks.
type stat struct{ total, idle, steal float64 }

func readStat() stat {
	var s stat
	for i, field := range strings.Fields(firstLine("/proc/stat")) {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil || i > 8 { // guest time is contained in user time
			continue
		}
		s.total += ticks
		switch i {
		case 4, 5: // idle, iowait
			s.idle += ticks
		case 8:
			s.steal = ticks
		}
	}
	return s
}

func (s stat) since(began stat) (steal, busy float64) {
	total := s.total - began.total
	if total <= 0 {
		return 0, 0
	}
	steal = (s.steal - began.steal) / total
	return steal, float64(runtime.NumCPU()) * (1 - steal - (s.idle-began.idle)/total)
}

// processTime gives the CPU seconds of a process so far; 0 where the system does not tell.
func processTime(pid int) float64 {
	line := firstLine(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(line, ") ") // the name before may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	kernel, _ := strconv.ParseFloat(fields[12], 64)
	return (user + kernel) / ticksPerSecond
}

// ticksPerSecond is USER_HZ, which Linux has fixed at 100 for programs.
const ticksPerSecond = 100

func processMemory(pid int) (now, peak int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "VmRSS:":
			now = kib << 10
		case "VmHWM:":
			peak = kib << 10
		}
	}
	return now, peak
}
