package drop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vaultd/internal/durable"
)

// LockedError says that another vaultd has the drop folder.
type LockedError struct {
	Path   string
	Holder string // "process 4711 on files01 since …", as the holder wrote it; empty: not known
}

func (e *LockedError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "another process"
	}
	return fmt.Sprintf("%q is in use by %s", e.Path, holder)
}

// ForeignError says that the drop folder belongs to another ledger, environment or a later epoch of this ledger.
type ForeignError struct {
	Path, LedgerID, Environment string
	Epoch                       uint64
	What                        string // what differs, in words
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%q belongs to %s (ledger %s, %s, epoch %d); nothing in it was touched", e.Path, e.What, e.LedgerID, e.Environment, e.Epoch)
}

const laterState = "a later state of this ledger, which may be an old copy"

// IsLaterEpoch reports whether it belongs to a later epoch of this very ledger: most likely another vaultd has taken it over.
func (e *ForeignError) IsLaterEpoch() bool { return e.What == laterState }

// ReadOnlyError says that nothing can be written in the drop folder: its file system is mounted read-only for this process.
type ReadOnlyError struct{ Path string }

func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("%q is read-only for vaultd: nothing can be taken from it, and its %s is old", e.Path, statusFile)
}

// Unwrap gives the error of the kernel.
func (e *ReadOnlyError) Unwrap() error { return syscall.EROFS }

// Advice says what a person should do about it. Under systemd the unit is the usual cause, and nothing shows it from within.
func (e *ReadOnlyError) Advice() string {
	return fmt.Sprintf("under systemd, name the folder in the unit: systemctl edit vaultd, add the lines [Service] and ReadWritePaths=%s, then systemctl daemon-reload and systemctl restart vaultd. "+
		"If it is there already, or there is no unit: mount the file system with write access (findmnt -T %s shows how it is mounted). Tell who drops folders that %s there is old", unitPath(e.Path), e.Path, statusFile)
}

// unitPath writes a path as a unit's setting takes it.
func unitPath(path string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	if strings.ContainsAny(path, " \t\"'\\") {
		return strconv.Quote(path)
	}
	return path
}

// writable reports as a [*ReadOnlyError] that the drop folder can only be read.
func (f *Folder) writable() error {
	if f.root.IsReadOnly() {
		return &ReadOnlyError{Path: f.cfg.Path}
	}
	return nil
}

// guard is .vaultd/drop.json.
type guard struct {
	LedgerID    string `json:"ledger"`
	Environment string `json:"environment"`
	Epoch       uint64 `json:"epoch"`
}

// takeLock locks the drop folder, then makes sure that it is ours. The mark is read before anything is written.
func (f *Folder) takeLock() (err error) {
	f.lock, err = durable.OpenLock(f.vaultd.Root(), lockFile)
	if err != nil {
		return err
	}
	switch err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		holder, _ := io.ReadAll(io.LimitReader(f.lock, 200)) // for the message only
		return &LockedError{Path: f.cfg.Path, Holder: strings.ToValidUTF8(strings.TrimSpace(string(holder)), "?")}
	case err != nil:
		return fmt.Errorf("lock %s/%s: %w", vaultdDir, lockFile, err)
	}
	if err := f.claimGuard(); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	holder := fmt.Sprintf("process %d on %s since %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
	// Who holds it is for people only: on a full disk the lock holds without. What is there is overwritten before it is cut,
	// so that it needs no new room.
	if n, err := f.lock.WriteAt([]byte(holder), 0); err == nil {
		_ = f.lock.Truncate(int64(n))
	}
	return nil
}

// claimGuard compares the mark with our ledger, and writes it where the folder is new or the ledger has a new epoch.
func (f *Folder) claimGuard() error {
	g, err := f.readGuard()
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.cfg.HasWorkedHere:
		return fmt.Errorf("%w: %q has no %s/%s any more", ErrUnavailable, f.cfg.Path, vaultdDir, guardFile)
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := f.compare(g); err != nil {
			return err
		}
	}
	ours := guard{f.cfg.LedgerID, f.cfg.Environment, f.cfg.Epoch}
	if err == nil && g == ours {
		return nil
	}
	data, err := json.Marshal(ours)
	if err != nil {
		return err
	}
	return f.vaultd.WriteFile(guardFile, append(data, '\n'), 0o600)
}

func (f *Folder) readGuard() (g guard, err error) {
	file, _, err := durable.OpenRegular(f.vaultd.Root(), guardFile)
	if err != nil {
		return g, err
	}
	defer file.Close() // read-only: its close has nothing to tell
	data, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return g, err
	}
	if err := json.Unmarshal(data, &g); err != nil || g.LedgerID == "" {
		return g, fmt.Errorf("%s/%s is not readable; whose folder this is cannot be told", vaultdDir, guardFile)
	}
	return g, nil
}

func (f *Folder) compare(g guard) error {
	foreign := &ForeignError{Path: f.cfg.Path, LedgerID: g.LedgerID, Environment: g.Environment, Epoch: g.Epoch}
	switch {
	case g.LedgerID != f.cfg.LedgerID:
		foreign.What = "another ledger"
	case g.Environment != f.cfg.Environment:
		foreign.What = "another environment"
	case g.Epoch > f.cfg.Epoch:
		foreign.What = laterState
	default:
		return nil
	}
	return foreign
}
