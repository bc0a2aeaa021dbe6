package hinder

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// A Small is a small machine for the processes that it starts and those that they start: few cores, and a bound on
// memory that all of them share. Linux kills one that passes the bound. What the kernel caches of files counts as memory
// too, but is given up before anything is killed. Linux only. Safe for concurrent use.
type Small struct {
	cores string // their numbers with commas; empty: all
	group *group // nil: memory is not bounded
}

// NewSmall makes a machine of so many cores, the last of those that this process may use, and so many bytes of memory; 0
// does not bound. A bound on memory is a control group below the one of this process, which needs root or a delegated
// group; without it NewSmall refuses with hindrance_unsupported and says what is missing. The caller closes it.
func NewSmall(cores int, memory int64) (*Small, error) {
	if cores < 0 || memory < 0 {
		return nil, errors.New("a small machine has no negative size")
	}
	s := &Small{}
	if cores > 0 {
		allowed, err := allowedCores()
		if err != nil {
			return nil, err
		}
		if cores > len(allowed) {
			return nil, unsupported("%d cores were wanted, and this process may use %d", cores, len(allowed))
		}
		s.cores = strings.Trim(strings.Join(strings.Fields(fmt.Sprint(allowed[len(allowed)-cores:])), ","), "[]")
	}
	if memory > 0 {
		var err error
		if s.group, err = newGroup("/proc/self", memory); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Wrap has cmd start through a launcher, the words that bring this program to Launch, on the small machine. Call it
// before Start. A Disk may wrap the same command; one launcher does both.
func (s *Small) Wrap(cmd *exec.Cmd, launcher []string) error {
	if s.cores != "" {
		if err := through(cmd, launcher, "-cores="+s.cores); err != nil {
			return err
		}
	}
	if s.group != nil {
		return through(cmd, launcher, "-group="+s.group.dir)
	}
	return nil
}

// Killed says whether any process was killed because of the bound on memory.
func (s *Small) Killed() (bool, error) {
	if s.group == nil {
		return false, nil
	}
	n, err := s.group.kills()
	return n > 0, err
}

// Peak is the most memory in bytes that was in use at once, with cached files; 0 if nobody counts it, without a bound or
// before Linux 5.19 with cgroup v2.
func (s *Small) Peak() int64 {
	if s.group == nil {
		return 0
	}
	return s.group.peak()
}

// Close removes the control group, and fails while a process lives in it. It waits two seconds for one that is ending.
func (s *Small) Close() error {
	if s.group == nil {
		return nil
	}
	return s.group.remove()
}
