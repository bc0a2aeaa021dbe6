package cli

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"chancery/internal/base/conf"
)

// collectAt is how much the heap grows, in per cent of what lives, before garbage is collected. A server's live heap is
// some tens of megabytes, so this is cheap, and worth an eighth of the work for each certificate.
const collectAt = 400

// useProcessors gives the scheduler two threads more than there are processors: a thread that waits for a disk keeps its
// processor. The environment's GOMAXPROCS wins.
func useProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.NumCPU() + 2)
	}
}

// useMemory trades memory for time, within a bound: four fifths of what the control group allows, unless limit names
// another. What opening the keyring took is given back first. The environment's GOGC and GOMEMLIMIT win.
func useMemory(limit conf.Size) {
	debug.FreeOSMemory()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if limit == 0 {
		limit = groupMemory("/sys/fs/cgroup/memory.max") / 5 * 4
	}
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(limit))
	}
}

// groupMemory reads the memory that a control group allows (cgroup v2, memory.max); 0 where there is no bound.
func groupMemory(file string) conf.Size {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bytes <= 0 || bytes == math.MaxInt64 { // "max": no bound
		return 0
	}
	return conf.Size(bytes)
}
