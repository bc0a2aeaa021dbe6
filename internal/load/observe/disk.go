package observe

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// filesMax bounds a walk through a data directory; there are a dozen files in one.
const filesMax = 10000

// DiskBytes adds up the sizes of the files in a directory and below; what cannot be read counts as nothing.
func DiskBytes(dir string) int64 {
	all, _ := diskUse(dir)
	return all
}

// diskUse gives the bytes of all files in a directory and below, and of these the write-ahead logs.
func diskUse(dir string) (all, log int64) {
	seen := 0
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if seen++; seen > filesMax {
			return filepath.SkipAll
		}
		if err != nil || entry.IsDir() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			all += info.Size()
			if strings.HasSuffix(path, "-wal") {
				log += info.Size()
			}
		}
		return nil
	})
	return all, log
}

// SyncLatency writes 4 KiB and syncs them, so many times one after the other in a file of its own in dir, which it
// removes, and gives median and 99th percentile. When the time is over or ctx ends it stops with what it has, one sync at
// least.
func SyncLatency(ctx context.Context, dir string, times int, within time.Duration) (median, p99 time.Duration, err error) {
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return 0, 0, fmt.Errorf("measure a sync: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer f.Close()
	block := make([]byte, 4096)
	var took []time.Duration
	for began := time.Now(); len(took) == 0 || len(took) < times && time.Since(began) < within && ctx.Err() == nil; {
		at := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, 0, fmt.Errorf("measure a sync: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, 0, fmt.Errorf("measure a sync: %w", err)
		}
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], nil
}
