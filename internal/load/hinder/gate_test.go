package hinder

import (
	"testing"
	"time"
)

// until waits for something to become true, at most half a minute.
func until(t testing.TB, what string, true func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for !true() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited too long for: %s", what)
		}
	}
}
