package main

import (
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peer is the user at the other end of a socket, as the kernel recorded it when the connection was made.
type peer struct {
	uid    uint32
	groups []uint32 // the main group and the others
}

// peerOf asks the kernel who connected.
func peerOf(conn *net.UnixConn) (peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return peer{}, fmt.Errorf("look at the connection: %w", err)
	}
	var p peer
	var peerErr error
	if err := raw.Control(func(fd uintptr) { p, peerErr = peerOfSocket(int(fd)) }); err != nil {
		return peer{}, fmt.Errorf("look at the connection: %w", err)
	}
	return p, peerErr
}

func peerOfSocket(fd int) (peer, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return peer{}, fmt.Errorf("ask for the peer's credentials: %w", err)
	}
	further, err := peerGroups(fd)
	if err != nil {
		return peer{}, fmt.Errorf("ask for the peer's groups: %w", err)
	}
	return peer{cred.Uid, append(further, cred.Gid)}, nil
}

// peerGroups reads SO_PEERGROUPS, for which there is no wrapper. It returns the groups of
// the process: on a member of a domain no file lists them.
func peerGroups(fd int) ([]uint32, error) {
	gids := make([]uint32, 64)
	for {
		size := uint32(len(gids)) * 4
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&gids[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return gids[:size/4], nil
		case errno == unix.ERANGE && int(size/4) > len(gids):
			gids = make([]uint32, size/4) // the kernel said how many there are
		default:
			return nil, errno
		}
	}
}
