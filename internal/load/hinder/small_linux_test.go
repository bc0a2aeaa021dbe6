//go:build amd64 || arm64

package hinder

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"chancery/internal/base/fault"
)

// newSmall makes a small machine, or leaves the test out where this system does not allow it.
func newSmall(t *testing.T, cores int, memory int64) *Small {
	t.Helper()
	s, err := NewSmall(cores, memory)
	if fault.CodeOf(err) == "hindrance_unsupported" {
		t.Skipf("left out: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func small(t *testing.T, s *Small, args ...string) (*exec.Cmd, []string) {
	t.Helper()
	cmd, launcher := child(t, args...)
	if err := s.Wrap(cmd, launcher); err != nil {
		t.Fatal(err)
	}
	return cmd, launcher
}

func TestSmallBoundsMemory(t *testing.T) {
	s := newSmall(t, 0, 128*mebibyte)
	for _, c := range []struct {
		eats   string
		killed bool
	}{{"16", false}, {"200", true}} {
		cmd, _ := small(t, s, "eat", c.eats)
		err := cmd.Run()
		if (err != nil) != c.killed {
			t.Errorf("a process that eats %s MiB of 128 ended with: %v", c.eats, err)
		}
		if killed, err := s.Killed(); killed != c.killed || err != nil {
			t.Errorf("after %s MiB of 128: killed %v, %v", c.eats, killed, err)
		}
	}
	if peak := s.Peak(); peak < 64*mebibyte || peak > 129*mebibyte { // counted in batches
		t.Errorf("the most was %d bytes", peak)
	}
}

func TestSmallCloseRefusesWhileAProcessLives(t *testing.T) {
	s, d := newSmall(t, 0, 128*mebibyte), newDisk(t, time.Hour)
	cmd, launcher := small(t, s, "sync", file(t), "1", "1")
	if err := d.Wrap(cmd, launcher); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "it waits", func() bool { return d.Syncs() == 1 })
	if err := s.Close(); err == nil {
		t.Error("the group of a process that lives was removed")
	}
	d.Set(0)
	ended(t, cmd)
}

func TestSmallHasFewCores(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("left out: this machine has one core anyway")
	}
	cmd, _ := small(t, newSmall(t, 1, 0), "cores")
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != "1" {
		t.Errorf("the process has %s cores: %v", out, err)
	}
}

func TestSmallAndDiskShareALauncher(t *testing.T) {
	d := newDisk(t, time.Millisecond)
	for _, memory := range []int64{0, 128 * mebibyte} {
		cmd, launcher := small(t, newSmall(t, 1, memory), "every", file(t))
		if err := d.Wrap(cmd, launcher); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(fmt.Sprint(cmd.Args), " launch "); n != 1 {
			t.Errorf("%d launchers: %q", n, cmd.Args)
		}
		before := d.Syncs()
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		if n := d.Syncs() - before; n != 5 {
			t.Errorf("%d syncs were delayed", n)
		}
	}
}

func TestSmallWithoutBoundsDoesNothing(t *testing.T) {
	s := newSmall(t, 0, 0)
	cmd, _ := small(t, s, "cores")
	if killed, err := s.Killed(); cmd.Args[1] != "child" || killed || err != nil || s.Peak() != 0 {
		t.Errorf("%q, killed %v, %v, most %d", cmd.Args, killed, err, s.Peak())
	}
}

func TestNewSmallRefuses(t *testing.T) {
	if _, err := NewSmall(runtime.NumCPU()+1, 0); fault.CodeOf(err) != "hindrance_unsupported" {
		t.Errorf("more cores than there are: %v", err)
	}
	if _, err := NewSmall(-1, 0); err == nil || errors.As(err, new(*fault.Error)) {
		t.Errorf("less than nothing: %v", err)
	}
}
