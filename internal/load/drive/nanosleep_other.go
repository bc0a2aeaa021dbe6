//go:build !linux

package drive

import "time"

func nanosleep(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
