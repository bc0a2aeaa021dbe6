package front

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

const peersKnown = true

// peerUID gives the user at the other end of a unix socket (unix(4), LOCAL_PEERCRED).
func peerUID(c net.Conn) (int, error) {
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return -1, errors.New("not a unix socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return -1, err
	}
	var cred *unix.Xucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); err != nil {
		return -1, err
	}
	if failed != nil {
		return -1, failed
	}
	return int(cred.Uid), nil
}
