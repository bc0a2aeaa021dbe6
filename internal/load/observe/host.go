package observe

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A host is a machine as its files show it, /proc and /sys on Linux. Where there are none, everything is empty.
type host struct{ fs.FS }

// this is the machine that we run on.
func this() host { return host{os.DirFS("/")} }

func (h host) text(path string) string {
	if h.FS == nil {
		return ""
	}
	text, err := fs.ReadFile(h, path)
	if err != nil {
		return ""
	}
	return string(text)
}

// line gives the first line of a file.
func (h host) line(path string) string {
	line, _, _ := strings.Cut(h.text(path), "\n")
	return strings.TrimSpace(line)
}

func (h host) number(path string) float64 {
	n, err := strconv.ParseFloat(h.line(path), 64)
	if err != nil {
		return 0
	}
	return n
}

// fields gives every value of a field in a file of lines such as "name: value".
func (h host) fields(path, name string) (values []string) {
	for line := range strings.Lines(h.text(path)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			values = append(values, strings.TrimSpace(value))
		}
	}
	return values
}

func (h host) cpuField(name string) string {
	if all := h.fields("proc/cpuinfo", name); len(all) > 0 {
		return all[0]
	}
	return ""
}

func (h host) loadAverage() string {
	fields := strings.Fields(h.line("proc/loadavg"))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// memory gives the bytes of memory that the system has.
func (h host) memory() int64 {
	for _, value := range h.fields("proc/meminfo", "MemTotal") {
		kib, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
		return kib << 10
	}
	return 0
}

// virtual says whether the processor or the system knows of a hypervisor above it: yes, no, or empty where nothing tells.
func (h host) virtual() string {
	flags := strings.Fields(h.cpuField("flags")) // x86 only
	switch {
	case slices.Contains(flags, "hypervisor"), h.line("sys/hypervisor/type") != "":
		return "yes"
	case len(flags) > 0:
		return "no"
	}
	return ""
}

// mount gives the type of the file system that a directory lies in, and its device.
func (h host) mount(dir string) (kind, device string) {
	dir, err := filepath.Abs(dir)
	if real, resolves := filepath.EvalSymlinks(dir); resolves == nil {
		dir = real
	}
	if err != nil {
		return "", ""
	}
	longest := 0
	for line := range strings.Lines(h.text("proc/self/mountinfo")) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 2 {
			continue
		}
		// A later mount on the same place hides the one before. Mounts are written with octal escapes.
		if point := unescaped.Replace(left[4]); within(dir, point) && len(point) >= longest {
			longest, kind, device = len(point), right[0], unescaped.Replace(right[1])
		}
	}
	return kind, device
}

var unescaped = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func within(dir, point string) bool {
	return point == "/" || dir == point || strings.HasPrefix(dir, point+"/")
}
