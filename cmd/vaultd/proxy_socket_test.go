// These tests are inside the package: they make up peers of other groups.
package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"vaultd/internal/config"
	"vaultd/internal/statedir"
	"vaultd/internal/test/kit"
)

// ownGroup is the name of this process's group.
func ownGroup(t *testing.T) string {
	t.Helper()
	g, err := user.LookupGroupId(strconv.Itoa(os.Getgid()))
	if err != nil {
		t.Skip("this process's group has no name:", err)
	}
	return g.Name
}

func proxyAt(t *testing.T, path string) config.PageProxy {
	return config.PageProxy{UserHeader: "Remote-User", Rights: map[string][]string{"*": {"read"}}, Socket: path, Group: ownGroup(t)}
}

// A socket that a dead vaultd left is replaced; nothing else that lies there is, and one that answers is not taken over.
func TestProxySocket_ReplacesItsOwnAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pages.sock")
	quiet := slog.New(slog.DiscardHandler)
	first := kit.Value(listenProxy(proxyAt(t, path), quiet))(t)
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o660 || info.Mode().Type() != os.ModeSocket {
		t.Errorf("info.Mode() = %v, err = %v, want no error, info.Mode().Perm() = 0o660, info.Mode().Type() = os.ModeSocket", info.Mode(), err)
	}
	if _, err := listenProxy(proxyAt(t, path), quiet); err == nil {
		t.Error("a socket that answers was taken over")
	} else if _, inUse := errors.AsType[*statedir.InUseError](err); !inUse {
		t.Errorf("err = %v, want inUse", err)
	}
	first.(*proxyListener).SetUnlinkOnClose(false) // as kill -9 leaves it
	first.Close()
	kit.Value(os.Lstat(path))(t)
	second, err := listenProxy(proxyAt(t, path), quiet)
	kit.Need(t, err == nil, "a stale socket: %v", err)
	second.Close()
	kit.Must(t, os.WriteFile(path, []byte("x"), 0o600))
	if _, err := listenProxy(proxyAt(t, path), quiet); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Error("a file in the way:", err)
	}
	if b, err := os.ReadFile(path); string(b) != "x" {
		t.Error("the file is gone:", err)
	}
	kit.Must(t, errors.Join(os.Remove(path), os.Symlink("/nowhere", path)))
	if _, err := listenProxy(proxyAt(t, path), quiet); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Error("a link in the way:", err)
	}
	kit.Must(t, os.Remove(path))
	if os.Geteuid() == 0 {
		l := kit.Value(net.Listen("unix", path))(t)
		kit.Must(t, os.Lchown(path, 12345, -1))
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
		_, err := listenProxy(proxyAt(t, path), quiet)
		kit.Check(t, err != nil && strings.Contains(err.Error(), "of another user"), "another user's socket: %v", err)
	}
	kit.Must(t, os.Chmod(dir, 0o777))
	if _, err := listenProxy(proxyAt(t, filepath.Join(dir, "other.sock")), quiet); err == nil || !strings.Contains(err.Error(), "could put another file in its place") {
		t.Error("a folder where others may write:", err)
	}
	kit.Fails(t, "a folder that is not there", kit.Err(listenProxy(proxyAt(t, filepath.Join(dir, "none", "s")), quiet)))
}

// Whoever has not the proxy's group is closed out by the kernel's word, whatever the rights of the socket are.
func TestProxySocket_I7_OthersAreRefused(t *testing.T) {
	l := kit.Value(listenProxy(proxyAt(t, filepath.Join(t.TempDir(), "pages.sock")), slog.New(slog.DiscardHandler)))(t)
	defer l.Close()
	p := l.(*proxyListener)
	p.group = 4242
	peers := []peer{{uid: 1000, groups: []uint32{1000}}, {uid: uint32(os.Geteuid()) + 1, groups: []uint32{0}}, {uid: 33, groups: []uint32{33, 4242}}, {uid: 1000}, {uid: 0, groups: []uint32{0}}}
	next := 0
	p.peerOf = func(*net.UnixConn) (peer, error) {
		if next++; next == 4 {
			return peer{uid: 0}, errors.New("the kernel does not tell")
		}
		return peers[next-1], nil
	}
	admitted := make(chan net.Conn, len(peers))
	go func() {
		defer close(admitted)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			admitted <- conn
		}
	}()
	var good []bool
	for range peers {
		conn, err := net.Dial("unix", l.Addr().String())
		kit.Must(t, err)
		defer conn.Close()
		conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		_, err = conn.Read(make([]byte, 1))
		good = append(good, errors.Is(err, os.ErrDeadlineExceeded)) // open, and nothing was asked
	}
	for i, want := range []bool{false, false, true, false, true} {
		kit.Want(t, fmt.Sprintf("%+v let", peers[i]), good[i], want)
	}
	l.Close() // ends the goroutine; a second Close below does nothing
	for conn := range admitted {
		conn.Close()
	}
}
