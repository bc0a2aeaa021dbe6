package hinder

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A group is a control group with a bound on memory; see cgroups(7). It is found and driven through files alone.
type group struct {
	dir   string
	files memoryFiles
}

// memoryFiles are the names that a version of control groups has for the same things.
type memoryFiles struct{ limit, swap, peak, events string }

var (
	version1 = memoryFiles{limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes", peak: "memory.max_usage_in_bytes", events: "memory.oom_control"}
	version2 = memoryFiles{limit: "memory.max", swap: "memory.swap.max", peak: "memory.peak", events: "memory.events"}
)

// newGroup makes a group inside the one of the process that proc describes, so that it keeps the bounds it has.
func newGroup(proc string, memory int64) (*group, error) {
	parent, files, err := memoryParent(proc)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "chancery-bench-")
	if err != nil {
		return nil, unsupported("memory cannot be bounded: no control group can be made in %s: %v", parent, reason(err))
	}
	g := &group{dir: dir, files: files}
	if err := g.bound(memory); err != nil {
		_ = g.remove()
		return nil, unsupported("memory cannot be bounded: %v", err)
	}
	return g, nil
}

func reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// bound limits memory, and swap so that the bound cannot be passed there. A kernel without swap has no file for it.
func (g *group) bound(memory int64) error {
	swap := int64(0)
	if g.files == version1 {
		swap = memory // there it is the sum of both
	}
	if err := g.write(g.files.limit, memory); err != nil {
		return err
	}
	if err := g.write(g.files.swap, swap); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (g *group) write(name string, value int64) error {
	f, err := os.OpenFile(filepath.Join(g.dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.FormatInt(value, 10))
	return errors.Join(err, f.Close())
}

// kills counts the processes that were killed because the group was full.
func (g *group) kills() (int64, error) {
	events, err := os.ReadFile(filepath.Join(g.dir, g.files.events))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(events)) {
		if text, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s does not count kills", g.files.events)
}

func (g *group) peak() int64 {
	text, err := os.ReadFile(filepath.Join(g.dir, g.files.peak))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n
}

// remove removes the group. A process that was just killed and waited for may be in it for a moment.
func (g *group) remove() error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Second); ; <-tick.C {
		err := syscall.Rmdir(g.dir)
		switch {
		case err == nil || errors.Is(err, fs.ErrNotExist):
			return nil
		case !errors.Is(err, syscall.EBUSY) || time.Now().After(end):
			return fmt.Errorf("remove the control group %s: %w", g.dir, err)
		}
	}
}

// memoryParent finds the group that a group with a bound can be made in: that of the process with version 1, and with
// version 2, where a group of processes has no groups in it, most often the one around it.
func memoryParent(proc string) (dir string, files memoryFiles, err error) {
	if dir, err := mounted(proc, "cgroup", "memory"); err == nil {
		return dir, version1, nil
	}
	dir, err = mounted(proc, "cgroup2", "")
	if err != nil {
		return "", files, unsupported("memory cannot be bounded: no control groups are mounted").Because(err)
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		passed, err := os.ReadFile(filepath.Join(d, "cgroup.subtree_control"))
		if err == nil && slices.Contains(strings.Fields(string(passed)), "memory") {
			return d, version2, nil
		}
	}
	return "", files, unsupported("memory cannot be bounded: neither %s nor the group around it has memory in cgroup.subtree_control", dir)
}

// mounted gives the directory of a process's group in the hierarchy of a controller; that of cgroup2 has no name.
func mounted(proc, kind, controller string) (string, error) {
	group, err := groupOf(proc, controller)
	if err != nil {
		return "", err
	}
	table, err := os.ReadFile(filepath.Join(proc, "mountinfo"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(table)) {
		before, after, _ := strings.Cut(strings.TrimSpace(line), " - ") // proc_pid_mountinfo(5)
		mount, system := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(system) < 3 || system[0] != kind {
			continue
		}
		if kind == "cgroup" && !slices.Contains(strings.Split(system[2], ","), controller) {
			continue
		}
		inside, err := filepath.Rel(mount[3], group) // a container may see a part of the hierarchy only
		if err != nil || !filepath.IsLocal(inside) {
			continue
		}
		return filepath.Join(mount[4], inside), nil
	}
	return "", fmt.Errorf("no %s %s is mounted", kind, controller)
}

// groupOf reads a process's group, as a path in its hierarchy: lines of number:controllers:path.
func groupOf(proc, controller string) (string, error) {
	table, err := os.ReadFile(filepath.Join(proc, "cgroup"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(table)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && slices.Contains(strings.Split(parts[1], ","), controller) {
			return parts[2], nil
		}
	}
	return "", fmt.Errorf("the process is in no group of %q", controller)
}
