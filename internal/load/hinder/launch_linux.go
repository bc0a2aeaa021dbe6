//go:build amd64 || arm64

package hinder

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

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
	if err := o.obey(); err != nil {
		return err
	}
	return fmt.Errorf("execute %s: %w", o.program, syscall.Exec(o.program, o.args, os.Environ()))
}

func (o order) obey() error {
	if o.group != "" {
		if err := os.WriteFile(filepath.Join(o.group, "cgroup.procs"), []byte("0"), 0); err != nil { // 0 is who writes
			return fmt.Errorf("enter the control group: %w", err)
		}
	}
	if len(o.cores) > 0 {
		var set unix.CPUSet
		for _, core := range o.cores {
			set.Set(core)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("keep to the cores %v: %w", o.cores, err)
		}
	}
	if o.syncs >= 0 {
		return sendFilter(o.syncs)
	}
	return nil
}

// allowedCores are the numbers of those that this process may use.
func allowedCores() (cores []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("find the cores: %w", err)
	}
	for core := range 8 * int(unsafe.Sizeof(set)) {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores, nil
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
