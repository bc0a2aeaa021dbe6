//go:build amd64 || arm64

package hinder

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// NewDisk makes a disk on which each sync takes so much longer. It refuses with hindrance_unsupported where the system
// has no seccomp user notification (Linux 5.5). The caller closes it after the last process that it wraps.
func NewDisk(delay time.Duration) (*Disk, error) {
	if err := notificationsAvailable(); err != nil {
		return nil, unsupported("this Linux cannot delay syncs: seccomp has no user notification").Because(err)
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("make a socket for launchers: %w", err)
	}
	d := &Disk{gate: newGate(delay), ours: ours, theirs: theirs}
	go d.admit()
	return d, nil
}

// socketPair is one for messages: each carries one filter, whichever launcher sends it, and a launcher that dies early
// leaves nothing half done.
func socketPair() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "launchers' socket")
	file := os.NewFile(uintptr(pair[0]), "socket to launchers")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// admit takes the filters of launchers until the disk is closed.
func (d *Disk) admit() {
	message, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	for {
		_, n, _, _, err := d.ours.ReadMsgUnix(message, rights)
		if err != nil {
			return
		}
		for _, filter := range filesIn(rights[:n]) {
			go d.serve(filter)
		}
	}
}

func filesIn(rights []byte) []int {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil
	}
	return files
}

// serve answers the syncs behind a filter until all processes under it have ended. Should this program end first, the
// kernel closes the filter, and every sync that waits or comes fails with ENOSYS: the process does not hang.
func (d *Disk) serve(filter int) {
	defer func() { _ = unix.Close(filter) }()
	var waiting sync.WaitGroup
	defer waiting.Wait() // they use the filter; its number must not be taken by another file meanwhile
	for {
		id, err := nextSync(filter)
		switch {
		case errors.Is(err, unix.ENOENT): // it was killed before we looked
			continue
		case err != nil:
			return
		}
		d.syncs.Add(1)
		came := time.Now()
		if left, _ := d.gate.look(came); left <= 0 {
			goOn(filter, id)
			continue
		}
		waiting.Go(func() {
			d.gate.pass(came)
			goOn(filter, id)
		})
	}
}
