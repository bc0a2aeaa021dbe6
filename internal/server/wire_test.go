package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/internal/core/store"
)

func TestPhasesOfTheStoreHaveNames(t *testing.T) {
	var got []string
	tell := phases(func(phase string, _ time.Duration) { got = append(got, phase) })
	for _, p := range []store.Phase{store.QueueWait, store.Statement, store.CommitWait, store.Sync, store.PoolWait} {
		tell(p, time.Second)
	}
	if diff := cmp.Diff([]string{"queue", "write", "commit_wait", "sync", "pool_wait"}, got); diff != "" {
		t.Errorf("phases in the metrics (-want +got):\n%s", diff)
	}
}

func TestConnectionsFitIntoOpenFiles(t *testing.T) {
	for _, c := range [][3]int{{16384, 0, 16384}, {16384, 1 << 20, 16384}, {16384, 1024, 896}, {16384, 64, 1}, {10, 1024, 10}} {
		if got := within(c[0], c[1]); got != c[2] {
			t.Errorf("%d connections in %d files: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
