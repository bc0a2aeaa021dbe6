//go:build amd64 || arm64

package hinder

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Launch is the launcher's side of Disk.Wrap and Small.Wrap: it does to itself what args say, as those two wrote them,
// and becomes the program that follows there. It returns only when it cannot.
func Launch(args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // all of this is a thread's own, and a program inherits it from the thread that executes it
	if o.syncs >= 0 {
		if err := sendFilter(o.syncs); err != nil {
			return err
		}
	}
	return fmt.Errorf("execute %s: %w", o.program, syscall.Exec(o.program, o.args, os.Environ()))
}

// sendFilter installs the filter and sends its listener over a socket, which the program does not get to see.
func sendFilter(socket int) error {
	unix.CloseOnExec(socket)
	listener, err := interceptSyncs()
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(listener) }()
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("send the filter of syncs: %w", err)
	}
	return nil
}
