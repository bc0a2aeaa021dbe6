package drive

import (
	"syscall"
	"time"
)

// nanosleep sleeps in the kernel, some 60 µs too long at most.
func nanosleep(d time.Duration) {
	if d <= 0 {
		return
	}
	left := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&left, nil) // a signal ends it early, which is soon enough
}
