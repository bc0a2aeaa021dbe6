//go:build amd64 || arm64

package hinder

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func newDisk(t testing.TB, delay time.Duration) *Disk {
	t.Helper()
	d, err := NewDisk(delay)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// started is a child under the disk that runs; out holds what it has printed when it has ended.
func started(t testing.TB, d *Disk, args ...string) (cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	cmd, launcher := child(t, args...)
	if err := d.Wrap(cmd, launcher); err != nil {
		t.Fatal(err)
	}
	out = &bytes.Buffer{}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func ended(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "file") }

func TestDiskDelaysOneSyncAfterTheOther(t *testing.T) {
	d := newDisk(t, 20*time.Millisecond)
	for range 2 { // a server that is started again
		cmd, out := started(t, d, "sync", file(t), "10", "1")
		ended(t, cmd)
		if took := durations(t, out.Bytes())[0]; took < 200*time.Millisecond {
			t.Errorf("10 syncs took %s", took)
		}
	}
	if d.Syncs() != 20 {
		t.Errorf("%d syncs were delayed", d.Syncs())
	}
}

func TestDiskDelaysEveryKindOfSync(t *testing.T) {
	d := newDisk(t, time.Millisecond)
	cmd, _ := started(t, d, "every", file(t))
	ended(t, cmd)
	if d.Syncs() != 5 {
		t.Errorf("%d syncs were delayed", d.Syncs())
	}
}

func TestDiskTouchesNothingElse(t *testing.T) {
	d := newDisk(t, time.Hour)
	cmd, _ := started(t, d, "other", file(t))
	ended(t, cmd)
	if d.Syncs() != 0 {
		t.Errorf("%d other calls were delayed", d.Syncs())
	}
}

func TestDiskDelaysInParallelAndSetHoldsForThoseThatWait(t *testing.T) {
	d := newDisk(t, time.Hour)
	cmd, _ := started(t, d, "sync", file(t), "1", "8")
	until(t, "all eight wait", func() bool { return d.Syncs() == 8 })
	d.Set(0)
	ended(t, cmd)
}

func TestDiskCloseLetsGo(t *testing.T) {
	d := newDisk(t, time.Hour)
	cmd, _ := started(t, d, "sync", file(t), "100", "4")
	until(t, "four wait", func() bool { return d.Syncs() == 4 })
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	ended(t, cmd) // with the 99 others of each, unharmed
}

func TestDiskStalls(t *testing.T) {
	const length = 200 * time.Millisecond
	d := newDisk(t, 0)
	cmd, out := started(t, d, "sync", file(t), "5000", "1")
	until(t, "it runs", func() bool { return d.Syncs() > 3 })
	d.Stall(t.Context(), length)
	ended(t, cmd)
	if longest := durations(t, out.Bytes())[1]; longest < length/2 { // it may have come a little later
		t.Errorf("no sync took longer than %s", longest)
	}
	if d.Syncs() != 5000 {
		t.Errorf("%d syncs came", d.Syncs())
	}
}

func TestDiskLetsAProcessBeKilled(t *testing.T) {
	d := newDisk(t, time.Hour)
	cmd, _ := started(t, d, "sync", file(t), "1", "2")
	until(t, "both wait", func() bool { return d.Syncs() == 2 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended well")
	}
}

func TestDiskThatEndsLeavesNobodyHanging(t *testing.T) {
	cmd, _ := child(t, "orphan", t.TempDir())
	out, err := cmd.Output() // until the orphan has closed it too
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "function not implemented") {
		t.Errorf("the orphan's sync did not fail: %s", out)
	}
}

func TestDiskDelaysCommits(t *testing.T) {
	d := newDisk(t, 20*time.Millisecond)
	cmd, out := started(t, d, "sqlite", file(t), "5")
	ended(t, cmd)
	if took := durations(t, out.Bytes())[0]; took < 100*time.Millisecond || d.Syncs() < 5 {
		t.Errorf("5 commits took %s with %d syncs", took, d.Syncs())
	}
}

func TestWrapRefuses(t *testing.T) {
	d := newDisk(t, 0)
	cmd, launcher := child(t, "sync")
	if err := d.Wrap(cmd, launcher[:1]); err == nil {
		t.Error("a launcher without a word was taken")
	}
	if err := d.Wrap(cmd, []string{"no-such-program", "launch"}); err == nil {
		t.Error("a launcher that is not there was taken")
	}
	if err := d.Wrap(exec.Command("no-such-program"), launcher); err == nil {
		t.Error("a program that is not there was taken")
	}
	if len(cmd.ExtraFiles) != 0 || cmd.Args[1] != "child" {
		t.Errorf("a refusal changed the command to %q", cmd.Args)
	}
}

// BenchmarkSync shows what the hindrance itself costs: syncs of a file in memory, without it and with a delay of 0.
func BenchmarkSync(b *testing.B) {
	run := func(b *testing.B, cmd *exec.Cmd) {
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(durations(b, out)[0].Nanoseconds())/float64(b.N), "ns/sync")
	}
	memory, err := os.MkdirTemp("/dev/shm", "hinder")
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { os.RemoveAll(memory) })
	path := filepath.Join(memory, "file")
	b.Run("plain", func(b *testing.B) {
		cmd, _ := child(b, "sync", path, strconv.Itoa(b.N), "1")
		run(b, cmd)
	})
	b.Run("through", func(b *testing.B) {
		d := newDisk(b, 0)
		cmd, launcher := child(b, "sync", path, strconv.Itoa(b.N), "1")
		if err := d.Wrap(cmd, launcher); err != nil {
			b.Fatal(err)
		}
		run(b, cmd)
	})
}
