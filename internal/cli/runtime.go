package cli

import (
	"cmp"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

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
// what the control group allows, unless limit names another. A server's live heap is some tens of megabytes. What opening the keyring took is given back first. The environment's GOGC and GOMEMLIMIT win.
func useMemory(limit conf.Size, garbage int) {
	debug.FreeOSMemory()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	if limit == 0 {
		limit = cmp.Or(groupMemory("/sys/fs/cgroup/memory.max"), groupMemory("/sys/fs/cgroup/memory/memory.limit_in_bytes")) / 5 * 4
	}
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(limit))
	}
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
