package observe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// burnVariable lets the test binary stand in for another program that burns a core until it is killed, or for half a
// minute.
const burnVariable = "CHANCERY_TEST_OBSERVE_BURN"

func TestMain(m *testing.M) {
	if os.Getenv(burnVariable) == "" {
		os.Exit(m.Run())
	}
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
	}
}

// burner gives a program that burns a core, under a name of its own.
func burner(t *testing.T, name string) string {
	t.Helper()
	self, err := filepath.Abs(os.Args[0])
	path := filepath.Join(t.TempDir(), name)
	if err := errors.Join(err, os.Symlink(self, path)); err != nil {
		t.Fatal(err)
	}
	t.Setenv(burnVariable, "1")
	return path
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s", what, 20*time.Second)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("left out: this system does not tell")
	}
}

// TestOtherPrograms runs a program that nobody here started: its parent has gone before.
func TestOtherPrograms(t *testing.T) {
	onLinux(t)
	m := Look()
	const name = "other-program"
	cmd := exec.Command("sh", "-c", `"$0" >/dev/null 2>&1 & echo $!`, burner(t, name))
	out, err := cmd.Output()
	pid, bad := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || bad != nil {
		t.Fatal(err, bad)
	}
	t.Cleanup(func() {
		if p, err := os.FindProcess(pid); err == nil {
			p.Kill()
		}
	})
	eventually(t, "it burns", func() bool { return this().processTime(pid) > 0.5 })
	m.Done()
	for _, s := range m.Others {
		if s.Name == name && s.Cores > shareMin && m.OtherCores >= s.Cores {
			if !strings.Contains(strings.Join(m.Marks(), ";"), "other programs used") {
				t.Errorf("no mark says so: %q", m.Marks())
			}
			m.Server = pid
			m.Done()
			if named(m.Others, name) {
				t.Errorf("the server is among the others: %v", m.Others)
			}
			return
		}
	}
	t.Errorf("%s burned half a core second and is not among %v", name, m.Others)
}

func named(shares []Share, name string) bool {
	for _, s := range shares {
		if s.Name == name {
			return true
		}
	}
	return false
}

// TestOwnChildren lets a child of ours burn: it is a part of the run, running or ended.
func TestOwnChildren(t *testing.T) {
	onLinux(t)
	m := Look()
	const name = "own-child"
	cmd := exec.Command(burner(t, name))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it burns", func() bool { return this().processTime(cmd.Process.Pid) > 0.3 })
	if got := this().processes()[cmd.Process.Pid].name; got != name {
		t.Fatalf("the child's name is %q, want %q", got, name)
	}
	m.Done()
	if named(m.Others, name) {
		t.Errorf("%s is among the others: %v", name, m.Others)
	}
	cmd.Process.Kill()
	cmd.Wait()
	own := spent(m.began.processes, this().processes())[os.Getpid()]
	if own < 0.3 {
		t.Errorf("this process and what it started used %v s, want what the ended child used and more", own)
	}
}

func TestProcessLine(t *testing.T) {
	line := "42 (a) (b\x1b c) S 7 1 1 0 -1 4194560 1 2 3 4 100 50 20 30 20 0 1 0 1234 5 6"
	p, ok := files(map[string]string{"proc/42/stat": line}).process(42)
	if want := (process{name: "a) (b? c", parent: 7, started: "1234", own: 1.5, reaped: 0.5}); !ok || p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	for _, bad := range []string{"", "42", "42 (x", "42 )x( S", "42 (x) S 1 2"} {
		if p, ok := files(map[string]string{"proc/42/stat": bad}).process(42); ok {
			t.Errorf("%q gives %+v", bad, p)
		}
	}
}

func TestSpent(t *testing.T) {
	at := func(parent int, started string, own, reaped float64) process {
		return process{parent: parent, started: started, own: own, reaped: reaped}
	}
	before := map[int]process{1: at(0, "0", 10, 5), 2: at(1, "5", 7, 0), 3: at(2, "6", 4, 1), 4: at(1, "7", 3, 0), 5: at(1, "8", 9, 0)}
	after := map[int]process{
		1: at(0, "0", 11, 20), // waited for 2, which had waited for 3: 15 in all, of which 12 are from before
		4: at(1, "7", 3.5, 0),
		5: at(1, "99", 2, 0), // another process with the same number; the first one's 9 seconds were not waited for by 1
		6: at(4, "98", 1, 1), // new
	}
	got := spent(before, after)
	if diff := cmp.Diff(map[int]float64{1: 0, 4: 0.5, 5: 2, 6: 2}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	delete(before, 5)
	if got := spent(before, after)[1]; got != 4 {
		t.Errorf("the one that waited: %v, want its own second and three of the ended", got)
	}
}

func TestLargestShares(t *testing.T) {
	cores := map[string]float64{"idle": 0.019}
	for i := range 12 {
		cores[fmt.Sprint("p", i)] = 1 + float64(i)
	}
	got := largest(cores)
	if len(got) != sharesMax || got[0] != (Share{"p11", 12}) || got[9] != (Share{"p2", 3}) {
		t.Errorf("%v", got)
	}
}
