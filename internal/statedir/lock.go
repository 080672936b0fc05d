package statedir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/durable"
)

// InUseError says that another vaultd works on the same state.
type InUseError struct {
	Path string
	By   string // as the holder wrote it; empty: unknown
}

// Error implements error.
func (e *InUseError) Error() string {
	return fmt.Sprintf("%s is in use by %s", e.Path, cmp.Or(e.By, "another process"))
}

// Lock takes the state directory for this process until
// [durable.CloseLock]. The kernel gives it back when the process dies, however it dies.
func Lock(stateDir, role string) (*os.File, error) {
	path := filepath.Join(stateDir, lockName)
	root, err := os.OpenRoot(stateDir)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	defer root.Close() // read-only
	f, err := durable.OpenLock(root, lockName)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		by, _ := io.ReadAll(io.LimitReader(f, 200))
		return nil, errors.Join(&InUseError{Path: stateDir, By: strings.TrimSpace(string(by))}, f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	// Who holds the lock is for people only: on a full disk the lock holds without that text. The old text is overwritten before the
	// file is cut, so that it needs no new space.
	host, _ := os.Hostname()
	n, err := f.WriteAt(fmt.Appendf(nil, "%s, process %d on %s since %s\n", role, os.Getpid(), host, time.Now().Format(time.RFC3339)), 0)
	if err == nil {
		_ = f.Truncate(int64(n))
	}
	return f, nil
}

const lockName = "vaultd.lock"

const (
	commandPatience = 3 * time.Second // for a command that has the ledger open for a moment
	retryInterval   = 20 * time.Millisecond
	// sureAfter is how many looks in a row must name a daemon: a command that has just taken the lock of a daemon that died has not
	// written its own name yet.
	sureAfter = 5
)

// DaemonPatience is how long a daemon waits for a command. One that checks a
// large ledger may take as long, and the service manager counts starts that fail.
const DaemonPatience = time.Hour

// LockForDaemon takes the state directory for a daemon. It waits for a command
// that has the ledger open until ctx ends, and never for another daemon. wait is
// called once with the holder's name where that takes longer than a moment.
func LockForDaemon(ctx context.Context, stateDir string, wait func(by string)) (*os.File, error) {
	return lockPatiently(ctx.Done(), stateDir, daemonRole, DaemonPatience, wait)
}

// lockForCommand takes the state directory for a command. It waits for another
// one that has the ledger open for a moment, and for no daemon.
func lockForCommand(stateDir string) (*os.File, error) {
	return lockPatiently(nil, stateDir, commandRole, commandPatience, nil)
}

func lockPatiently(stop <-chan struct{}, stateDir, role string, patience time.Duration, wait func(by string)) (*os.File, error) {
	began, hasWaited := time.Now(), false
	retry := time.NewTicker(retryInterval)
	defer retry.Stop()
	for named := 0; ; {
		f, err := Lock(stateDir, role)
		inUse, ok := errors.AsType[*InUseError](err)
		if ok && strings.HasPrefix(inUse.By, daemonRole) {
			named++
		} else {
			named = 0
		}
		switch waited := time.Since(began); {
		case !ok || named >= sureAfter || waited >= patience:
			return f, err
		case waited >= commandPatience && !hasWaited:
			hasWaited = true
			retry.Reset(commandPatience)
			wait(inUse.By)
		}
		select {
		case <-stop:
			return nil, err
		case <-retry.C:
		}
	}
}

const daemonRole = "vaultd run"
