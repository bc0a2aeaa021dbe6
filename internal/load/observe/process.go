package observe

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
)

// A process is what the system tells of one: its name, its parent, and its CPU seconds so far.
type process struct {
	name    string
	parent  int
	kernel  bool   // a thread of the kernel: it works for others
	started string // tells processes with the same number apart
	own     float64
	reaped  float64 // of its children that have ended, theirs included
}

const (
	ticksPerSecond = 100 // USER_HZ, which Linux has fixed at 100 for programs
	kernelThread   = 0x00200000
	processesMax   = 10000
)

// process reads one process; see proc_pid_stat(5). ok is false where there is none.
func (h host) process(pid int) (p process, ok bool) {
	line := h.line(fmt.Sprintf("proc/%d/stat", pid))
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')') // a name may hold both
	if open < 0 || end < open {
		return p, false
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 20 {
		return p, false
	}
	seconds := func(i int) float64 {
		ticks, _ := strconv.ParseFloat(fields[i], 64)
		return ticks / ticksPerSecond
	}
	flags, _ := strconv.ParseUint(fields[6], 10, 64)
	p = process{name: printable(line[open+1 : end]), kernel: flags&kernelThread != 0, started: fields[19]}
	p.parent, _ = strconv.Atoi(fields[1])
	p.own, p.reaped = seconds(11)+seconds(12), seconds(13)+seconds(14)
	return p, true
}

// printable keeps a name, which anybody may give to a process, from doing something to a terminal.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, name)
}

// processes reads all there are, up to a bound.
func (h host) processes() map[int]process {
	all := map[int]process{}
	if h.FS == nil {
		return all
	}
	entries, err := fs.ReadDir(h, "proc")
	if err != nil {
		return all
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || len(all) >= processesMax {
			continue
		}
		if p, ok := h.process(pid); ok && !p.kernel {
			all[pid] = p
		}
	}
	return all
}

// processTime gives the CPU seconds of a process so far; 0 where the system does not tell.
func (h host) processTime(pid int) float64 {
	if pid == 0 {
		return 0
	}
	p, _ := h.process(pid)
	return p.own
}

// processMemory gives the resident bytes of a process, now and at most.
func (h host) processMemory(pid int) (now, peak int64) {
	if pid == 0 {
		return 0, 0
	}
	path := fmt.Sprintf("proc/%d/status", pid)
	for name, to := range map[string]*int64{"VmRSS": &now, "VmHWM": &peak} {
		for _, value := range h.fields(path, name) {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
			*to = kib << 10
		}
	}
	return now, peak
}
