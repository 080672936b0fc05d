package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"vaultd/internal/config"
	"vaultd/internal/statedir"
)

// proxyListener accepts connections of the proxy alone: of processes that have the group, as the kernel recorded it when they connected,
// and of root.
type proxyListener struct {
	*net.UnixListener
	peerOf func(*net.UnixConn) (peer, error)
	group  uint32
	log    *slog.Logger
	told   time.Time // when a refusal was last logged
}

// Accept returns the next connection of the proxy. It closes those of others. One goroutine at a time calls it.
func (l *proxyListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		p, err := l.peerOf(conn)
		if err == nil && (p.uid == 0 || slices.Contains(p.groups, l.group)) {
			return conn, nil
		}
		if now := time.Now(); now.Sub(l.told) >= time.Minute {
			l.log.Warn("a process that is not the proxy's was refused on the proxy's socket", "uid", p.uid, "needs_group", l.group, "err", err)
			l.told = now
		}
		conn.Close()
	}
}

// listenProxy makes the socket on which the proxy asks. It replaces one of its own user that nobody answers on, and nothing else.
func listenProxy(c config.PageProxy, log *slog.Logger) (net.Listener, error) {
	groups, err := groupIDs([]string{c.Group})
	if err != nil {
		return nil, fail(exitConfig, err, "http.access.proxy.group names a group of this machine")
	}
	if _, err := os.Stat(filepath.Dir(c.Socket)); err != nil {
		return nil, fail(exitConfig, fmt.Errorf("look at the folder of the proxy's socket: %w", err), "write RuntimeDirectory=vaultd into the unit, or make the folder of http.access.proxy.socket")
	}
	if err := config.CheckSocketFolder(c.Socket); err != nil {
		return nil, fail(exitConfig, err, "http.access.proxy.socket needs a folder where only root and vaultd may write")
	}
	if err := clearSocketPath(c.Socket); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.Socket, Net: "unix"})
	if err != nil {
		return nil, fail(exitTemporary, fmt.Errorf("listen for the proxy: %w", err), "vaultd must be able to write into the folder of http.access.proxy.socket")
	}
	// The socket is there with the rights that the umask left: who connects in this moment is looked at all the same. A crash leaves the
	// socket, and the next start replaces it.
	if err := giveSocketTo(c.Socket, groups[0]); err != nil {
		return nil, errors.Join(fail(exitTemporary, err, ""), l.Close())
	}
	return &proxyListener{UnixListener: l, peerOf: peerOf, group: groups[0], log: log}, nil
}

// clearSocketPath removes a socket that an earlier vaultd left behind.
func clearSocketPath(path string) error {
	const hint = "move it away, or write another path in http.access.proxy.socket"
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fail(exitTemporary, fmt.Errorf("look at the proxy's socket: %w", err), "")
	case info.Mode().Type() != fs.ModeSocket:
		return fail(exitConfig, fmt.Errorf("%s is in the way: it is not a socket", path), hint)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return fail(exitConfig, fmt.Errorf("%s is in the way: it is the socket of another user", path), hint)
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	switch {
	case err == nil:
		return errors.Join(&statedir.InUseError{Path: path}, conn.Close())
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fail(exitTemporary, fmt.Errorf("look whether somebody answers on the proxy's socket: %w", err), hint)
	}
	// Nobody answers, and nobody but root and this user can write in the folder. A crash behind this leaves no socket, and the next start
	// makes one.
	if err := os.Remove(path); err != nil {
		return fail(exitTemporary, fmt.Errorf("remove the proxy's socket of an earlier vaultd: %w", err), hint)
	}
	return nil
}

// giveSocketTo lets the members of a group reach the socket. If the service
// manager forbids to change a group, everybody reaches it, and the kernel's
// word on who connects decides, as it does in any case.
func giveSocketTo(path string, group uint32) error {
	mode := fs.FileMode(0o660)
	err := os.Lchown(path, -1, int(group))
	if errors.Is(err, fs.ErrPermission) {
		mode, err = 0o666, nil
	}
	if err = errors.Join(err, os.Chmod(path, mode)); err != nil {
		return fmt.Errorf("set the rights of the proxy's socket: %w", err)
	}
	return nil
}
