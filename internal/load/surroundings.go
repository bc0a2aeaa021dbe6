package load

import (
	"context"
	"os/exec"
	"slices"
	"time"

	"chancery/internal/load/hinder"
)

// surroundings are what a run makes bad around its server. The zero value leaves everything as it is.
type surroundings struct {
	disk  *hinder.Disk  // delays syncs; nil: nobody does
	proxy *hinder.Proxy // stands between the server and its database server; nil: nothing does
	small *hinder.Small // bounds cores and memory; nil: nobody does
}

// newSurroundings prepares what the phases of a run want. The store URL that it gives is the one for the server.
func newSurroundings(ctx context.Context, c IssueConfig, storeURL string) (s surroundings, url string, err error) {
	stalls := slices.ContainsFunc(c.Phases, func(p Phase) bool { return p.Stall > 0 })
	slow := slices.ContainsFunc(c.Phases, func(p Phase) bool { return p.Slow > 0 })
	url = storeURL
	if slow || (stalls && databaseOf(storeURL) == "sqlite") {
		if s.disk, err = hinder.NewDisk(0); err != nil {
			return s, url, err
		}
	}
	if stalls && s.disk == nil {
		if s.proxy, url, err = between(ctx, storeURL); err != nil {
			return s, url, err
		}
	}
	if c.Cores > 0 || c.Memory > 0 {
		s.small, err = hinder.NewSmall(c.Cores, c.Memory)
	}
	return s, url, err
}

// between puts a proxy before a database server.
func between(ctx context.Context, storeURL string) (*hinder.Proxy, string, error) {
	target, err := hinder.Target(storeURL)
	if err != nil {
		return nil, "", err
	}
	p, err := hinder.NewProxy(ctx, target)
	if err != nil {
		return nil, "", err
	}
	url, err := p.URL(storeURL)
	return p, url, err
}

// wrap lets a process start in these surroundings.
func (s *surroundings) wrap(cmd *exec.Cmd, p Program) error {
	launcher, err := p.command("bench", "launch")
	if err != nil {
		return err
	}
	if s.disk != nil {
		if err := s.disk.Wrap(cmd, launcher.Args); err != nil {
			return err
		}
	}
	if s.small != nil {
		return s.small.Wrap(cmd, launcher.Args)
	}
	return nil
}

// slow adds a delay to each sync of the server from now on.
func (s *surroundings) slow(delay time.Duration) {
	if s.disk != nil {
		s.disk.Set(delay)
	}
}

// stall lets the server's database stand still for so long, and returns when it moves again.
func (s *surroundings) stall(ctx context.Context, length time.Duration) {
	if s.disk != nil {
		s.disk.Stall(ctx, length)
	}
	if s.proxy != nil {
		s.proxy.Stall(ctx, length)
	}
}

// killed says whether the server was killed for want of memory.
func (s *surroundings) killed() (bool, error) {
	if s.small == nil {
		return false, nil
	}
	return s.small.Killed()
}

// close ends them; the server has ended before.
func (s *surroundings) close() {
	if s.disk != nil {
		_ = s.disk.Close()
	}
	if s.proxy != nil {
		_ = s.proxy.Close()
	}
	if s.small != nil {
		_ = s.small.Close()
	}
}
