//go:build unix

package server

import "syscall"

// openFiles gives how many files the process may have open; Go has raised the soft bound to the hard one at the start.
// 0 means that the system does not tell.
func openFiles() int {
	var bound syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &bound); err != nil {
		return 0
	}
	const most = 1 << 30 // what counts as no bound
	return int(min(bound.Cur, most))
}
