//go:build !linux || !(amd64 || arm64)

package hinder

import (
	"runtime"
	"time"
)

// NewDisk refuses with hindrance_unsupported: only Linux can do it.
func NewDisk(time.Duration) (*Disk, error) {
	return nil, unsupported("syncs can be delayed on Linux on amd64 and arm64 only, not on %s/%s", runtime.GOOS, runtime.GOARCH)
}
