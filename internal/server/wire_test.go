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
