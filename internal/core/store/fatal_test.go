//go:build unix

package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

// fatalVariable tells the test binary to be the child of TestFailedSyncEndsProcess.
const fatalVariable = "CHANCERY_STORE_FATAL_CHILD"

// TestFailedSyncEndsProcess has the disk fail under a child's commit: the child ends before it acknowledges what may
// not be there, and what it had acknowledged is.
func TestFailedSyncEndsProcess(t *testing.T) {
	at := storetest.SQLite(t)
	s := storetest.OpenAt(t, store.Config{URL: at.URL})
	at.Create(t, s)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), fatalVariable+"="+at.URL)
	out, err := child.Output()
	if err == nil || child.ProcessState.ExitCode() != 70 {
		t.Fatalf("the child ended with %v", child.ProcessState)
	}
	s = storetest.OpenAt(t, store.Config{URL: at.URL})
	acknowledged := 0
	for line := range strings.Lines(string(out)) {
		acknowledged++
		if name := strings.TrimSpace(line); !exists(t, s, name) {
			t.Errorf("%q was acknowledged and is missing", name)
		}
	}
	if acknowledged == 0 {
		t.Error("the child acknowledged nothing")
	}
	t.Logf("%d changes acknowledged before the disk failed", acknowledged)
}

// writeUntilFatal writes until files may grow no further, which SQLite takes for a failing disk.
func writeUntilFatal(address string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{URL: address, Accept: []string{"file_system"}})
	if err != nil {
		return err
	}
	signal.Ignore(unix.SIGXFSZ)
	limit := unix.Rlimit{Cur: 300 << 10, Max: 300 << 10}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	out := bufio.NewWriterSize(os.Stdout, 1)
	for i := range 100_000 {
		name := fmt.Sprint(i, strings.Repeat("x", 40))
		if err := s.Write(ctx, count(name)); err != nil {
			return err
		}
		fmt.Fprintln(out, name)
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// asFatalChild runs the child's part, if this process is it.
func asFatalChild() {
	address := os.Getenv(fatalVariable)
	if address == "" {
		return
	}
	if err := writeUntilFatal(address); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}
