//go:build !linux && !darwin

package front

import "net"

const peersKnown = false

func peerUID(net.Conn) (int, error) {
	return -1, errPeersUnknown
}
