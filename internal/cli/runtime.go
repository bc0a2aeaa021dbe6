package cli

import (
	"cmp"
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"chancery/internal/base/conf"
)

// collectAt is how much the heap of a bench's clients grows, in per cent of what lives, before garbage is collected.
const collectAt = 400

// useProcessors gives the scheduler two threads more than there are processors: a thread that waits for a disk keeps its
// processor. The environment's GOMAXPROCS wins.
func useProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.NumCPU() + 2)
	}
}

// useMemory trades memory for time, as much as garbage says in per cent of what lives, within a bound: four fifths of
// what the control group allows, unless limit names another. A server's live heap is some tens of megabytes; where
// thousands of connections make it larger, less is traded, until ctx ends. What opening the keyring took is given back
// first. The environment's GOGC and GOMEMLIMIT win.
func useMemory(ctx context.Context, limit conf.Size, garbage int) {
	debug.FreeOSMemory()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
		go tradeLess(ctx, garbage)
	}
	if limit == 0 {
		limit = cmp.Or(groupMemory("/sys/fs/cgroup/memory.max"), groupMemory("/sys/fs/cgroup/memory/memory.limit_in_bytes")) / 5 * 4
	}
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(limit))
	}
}

// tradeLess looks at the live heap once a second, and has garbage collected earlier the larger it is.
func tradeLess(ctx context.Context, garbage int) {
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for now := garbage; ; {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
		metrics.Read(live)
		if next := garbageBeside(live[0].Value.Uint64(), garbage); next != now {
			debug.SetGCPercent(next)
			now = next
		}
	}
}

// garbageMax is how much garbage may lie beside a heap that is not itself larger.
const garbageMax = 256 << 20

// garbageBeside gives the percentage for a live heap, in steps of ten: as much as is wanted beside a small one, beside a
// larger one 256 MB, and beside one of more than that as much as it is itself.
func garbageBeside(live uint64, wanted int) int {
	fits := 100 * garbageMax / max(live, 1)
	return min(wanted, max(100, int(min(fits, uint64(wanted))/10*10)))
}

// noBound is what version 1 of control groups says without one, or more: the largest number, rounded down to a page.
const noBound = math.MaxInt64 >> 20 << 20

// groupMemory reads the memory that a control group allows (memory.max of version 2, memory.limit_in_bytes of version
// 1); 0 where there is no bound.
func groupMemory(file string) conf.Size {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bytes <= 0 || bytes >= noBound { // "max": no bound
		return 0
	}
	return conf.Size(bytes)
}
