package front

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"strconv"

	"chancery/internal/base/who"
)

// errPeersUnknown says that an admin socket would be open to everybody.
var errPeersUnknown = errors.New("this system does not tell who connects to a socket")

// listenSocket listens on a unix socket that only the server's own user and root can open. A socket that is left over
// from a server that died is replaced; that no other server lives is known from the lock of the data directory.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if !peersKnown {
		return nil, errPeersUnknown
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

// An ownedListener accepts connections of the server's own user and of root, by the credentials that the kernel
// reports, and closes all others. The mode of the socket says the same; this holds also if somebody changes it.
type ownedListener struct {
	net.Listener
	log *slog.Logger
}

// An ownedConn is a connection of the person at the machine.
type ownedConn struct {
	net.Conn
	operator who.Caller
}

func (l ownedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid, err := peerUID(c)
		if err == nil && (uid == 0 || uid == os.Getuid()) {
			return &ownedConn{c, operator(uid)}, nil
		}
		l.log.Warn("a connection to the admin socket was refused", "uid", uid, "error", err)
		_ = c.Close()
	}
}

// operator makes the caller who is the person at the machine. It may do everything.
func operator(uid int) who.Caller {
	name := fmt.Sprintf("uid %d", uid)
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		name = u.Username
	}
	return who.Caller{
		Kind: who.Operator, ID: "operator", Name: name,
		Permissions: who.Permissions(), AllAuthorities: true, Credential: "socket",
	}
}
