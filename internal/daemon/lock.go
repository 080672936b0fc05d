package daemon

import (
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

// HeldError says that another vaultd works on the same state.
type HeldError struct {
	Path string
	By   string // as the holder wrote it; empty: unknown
}

// Error implements error.
func (e *HeldError) Error() string {
	by := e.By
	if by == "" {
		by = "another process"
	}
	return fmt.Sprintf("%s is in use by %s", e.Path, by)
}

// lock takes the state directory for this process until the file is closed. The
// kernel gives it back when the process dies, however it dies.
func lock(stateDir, role string) (*os.File, error) {
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
		return nil, errors.Join(&HeldError{Path: stateDir, By: strings.TrimSpace(string(by))}, f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	// Who holds it is for people only: on a full disk the lock holds without. What is
	// there is overwritten before it is cut, so that it needs no new room.
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
	commandLook     = 20 * time.Millisecond
)

// patientLock takes the state directory for a daemon. It waits a little for a command
// that looks at the ledger just now, and never for another daemon.
func patientLock(stateDir string) (*os.File, error) {
	giveUp := time.NewTimer(commandPatience)
	defer giveUp.Stop()
	look := time.NewTicker(commandLook)
	defer look.Stop()
	for {
		f, err := lock(stateDir, daemonRole)
		if held, ok := errors.AsType[*HeldError](err); !ok || strings.HasPrefix(held.By, daemonRole) {
			return f, err
		}
		select {
		case <-giveUp.C:
			return f, err
		case <-look.C:
		}
	}
}

const daemonRole = "vaultd run"
