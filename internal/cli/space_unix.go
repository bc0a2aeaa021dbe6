//go:build linux || darwin

package cli

import "golang.org/x/sys/unix"

// freeBytes gives the space that is left for this user where path lies.
func freeBytes(path string) (uint64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
