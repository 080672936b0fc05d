package drop

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// LockedError says that another vaultd works in the drop folder.
type LockedError struct {
	Path   string
	Holder string // "process 4711 on files01 since …", as the holder wrote it; empty: unknown
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%q is in use by %s", e.Path, cmp.Or(e.Holder, "another process"))
}

// ForeignError says that the drop folder belongs to another ledger, to the other environment, or to a later epoch of this ledger.
type ForeignError struct {
	Path, LedgerID, Environment string
	Epoch                       uint64
	What                        string // what differs, in words
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%q belongs to %s (ledger %s, %s, epoch %d); nothing in it was touched", e.Path, e.What, e.LedgerID, e.Environment, e.Epoch)
}

const laterEpoch = "a later state of this ledger, which may be an old copy"

// IsLaterEpoch reports whether the folder belongs to a later epoch of this ledger: most likely another vaultd took it over.
func (e *ForeignError) IsLaterEpoch() bool { return e.What == laterEpoch }

// ReadOnlyError says that nothing can be written in the drop folder: its file system is mounted read-only for this process.
type ReadOnlyError struct{ Path string }

func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("%q is read-only for vaultd: nothing can be taken from it, and its %s is old", e.Path, statusFile)
}

// Unwrap returns the error number of the kernel.
func (e *ReadOnlyError) Unwrap() error { return syscall.EROFS }

// Advice says what a person should do. Under systemd the unit is the usual cause, and a process cannot see that from within.
func (e *ReadOnlyError) Advice() string {
	return fmt.Sprintf("under systemd, name the folder in the unit: systemctl edit vaultd, add the lines [Service] and ReadWritePaths=%s, then systemctl daemon-reload and systemctl restart vaultd. "+
		"If it is there already, or there is no unit: mount the file system with write access (findmnt -T %s shows how it is mounted). Tell who drops folders that %s there is old", quoteForUnit(e.Path), e.Path, statusFile)
}

// quoteForUnit writes a path in the form that a setting of a systemd unit takes.
func quoteForUnit(path string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	if strings.ContainsAny(path, " \t\"'\\") {
		return strconv.Quote(path)
	}
	return path
}

// checkWritable returns a [*ReadOnlyError] when the drop folder can only be read.
func (f *Folder) checkWritable() error {
	if f.root.IsReadOnly() {
		return &ReadOnlyError{Path: f.cfg.Path}
	}
	return nil
}
