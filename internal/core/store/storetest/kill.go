package storetest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chancery/internal/core/store"
)

// childVariable tells a test binary to be the child of survivesKill: the store's address and the first number.
const childVariable = "CHANCERY_STORETEST_CHILD"

// Main is the TestMain of a package that runs Conform: the binary is also the process that the suite kills.
func Main(m *testing.M) {
	if work := os.Getenv(childVariable); work != "" {
		if err := appendUntilKilled(work); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// appendUntilKilled appends rows from many goroutines, changes a counter from another, and prints what was
// acknowledged, one number a line.
func appendUntilKilled(work string) error {
	from, address, _ := strings.Cut(work, " ")
	first, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{URL: address, Accept: []string{"file_system"}})
	if err != nil {
		return err
	}
	var n atomic.Int64
	n.Store(first)
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for {
				i := n.Add(1)
				if got, err := s.Append(ctx, Certificate, Row(i, []byte("der"))); err == nil && got.Outcome == store.Inserted {
					fmt.Println(i)
				}
			}
		})
	}
	group.Go(func() {
		for i := first; ; i++ {
			if err := s.Write(ctx, func(tx *store.Tx) error { return put(tx, "acknowledged", i) }); err == nil {
				fmt.Println(-i)
			}
		}
	})
	group.Wait()
	return nil
}

// survivesKill kills a child that appends, again and again, and looks for every row that it was told of.
func survivesKill(t *testing.T, b bench) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Fatalf("closing: %v", err)
	}
	var acknowledged []int64
	last := int64(0)
	for round := range 4 {
		rows, counter := runChild(t, b.URL, int64(round+1)*10_000_000, 300+200*round)
		acknowledged = append(acknowledged, rows...)
		last = max(last, counter)
	}
	t.Logf("%d rows and counter %d acknowledged", len(acknowledged), last)
	b.Store = OpenAt(t, store.Config{URL: b.URL})
	missing := 0
	err := b.Read(t.Context(), func(tx *store.Tx) error {
		for _, n := range acknowledged {
			var at int64
			found, err := tx.One([]any{&at}, "SELECT not_before FROM sample_certificate WHERE serial = ?", Row(n, nil)[0])
			if err != nil {
				return err
			}
			if !found {
				missing++
			}
		}
		value, _, err := get(tx, "acknowledged")
		if value < last {
			t.Errorf("the counter is %d; %d was acknowledged", value, last)
		}
		return err
	})
	if err != nil || missing > 0 {
		t.Errorf("%d of %d acknowledged rows are missing; %v", missing, len(acknowledged), err)
	}
}

// runChild starts a child, kills it after it has acknowledged some rows, and gives the numbers that it printed.
func runChild(t *testing.T, address string, first int64, rows int) (acknowledged []int64, counter int64) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", childVariable, first, address))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatalf("starting the child: %v", err)
	}
	lines := bufio.NewReader(out)
	for killed := false; ; {
		line, err := lines.ReadString('\n')
		if err != nil { // a line cut short by the kill counts for nothing
			break
		}
		n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		switch {
		case err != nil:
			t.Fatalf("the child said %q", line)
		case n < 0:
			counter = -n
		default:
			acknowledged = append(acknowledged, n)
		}
		if len(acknowledged) >= rows && !killed {
			killed = true
			if err := child.Process.Kill(); err != nil {
				t.Fatalf("killing the child: %v", err)
			}
		}
	}
	if err := child.Wait(); err == nil || child.ProcessState.ExitCode() == 1 {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return acknowledged, counter
}
