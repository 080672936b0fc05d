package boltledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// mapSize is how much address space the file gets at once: a file that outgrows its
// mapping makes the writer wait until every reader, a backup too, is done. It costs
// no memory; pages that are read count as RssFile.
const mapSize int = 1 << (28 + 8*(^uint(0)>>63)) // 64 GiB, or 256 MiB on 32 bits

// openFile opens ledger.db, having locked the file on the very descriptor that
// bbolt then maps; mapped is how much address space it gets. file is that
// descriptor, which db closes.
func openFile(dir string, outside *headRecord, mapped int) (db *bbolt.DB, file *os.File, err error) {
	name := pathIn(dir, fileName)
	// Not followed: a link could lead to a ledger that another place owns.
	info, err := os.Lstat(name)
	switch {
	// A head without its ledger: there was one. Making a new one here would forget everything that was archived.
	case errors.Is(err, fs.ErrNotExist) && outside != nil:
		return nil, nil, fmt.Errorf("%w, though %s beside it knows %d journal lines: put the ledger back or restore a backup; do not run \"vaultd init\"",
			ledger.ErrMissing, headNameOf(outside.Incarnation), outside.N)
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, ledger.ErrMissing
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, damage("%s is not a regular file", fileName)
	}
	return openDB(name, bbolt.Options{FreelistType: bbolt.FreelistMapType, InitialMmapSize: mapped}, openToWork)
}

// openDB opens an existing file by bbolt. open opens and locks it; db closes it.
func openDB(name string, o bbolt.Options, open func(name string, mode int) (*os.File, error)) (db *bbolt.DB, file *os.File, err error) {
	var failed error
	o.Timeout = time.Second
	o.OpenFile = func(name string, mode int, _ os.FileMode) (*os.File, error) {
		// Never created here: a missing ledger is an error, and only init makes a new one.
		file, failed = open(name, mode&^os.O_CREATE)
		return file, failed
	}
	err = recoverDamage(func() (err error) {
		db, err = bbolt.Open(name, 0o600, &o)
		if _, isOfSystem := errors.AsType[syscall.Errno](err); err != nil && failed == nil && !isOfSystem {
			err = damage("it has no valid meta page: %v", err)
		}
		return err
	})
	switch {
	case err == nil:
		if err = checkLength(db, file); err != nil {
			err = errors.Join(err, db.Close())
		}
	case file != nil:
		_ = closeUnlocked(file) // bbolt leaves it open where it panics
	}
	return db, file, err
}

// checkLength compares the length of a file with what its meta page says.
// Reading a page behind its end would be a fault.
func checkLength(db *bbolt.DB, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return db.View(func(tx *bbolt.Tx) error {
		if info.Size() < tx.Size() {
			return damage("it was cut off: %d bytes of %d", info.Size(), tx.Size())
		}
		return nil
	})
}

// openToWork opens and locks a ledger file for one process alone.
func openToWork(name string, mode int) (*os.File, error) {
	f, err := os.OpenFile(name, mode|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return lockWhole(f, syscall.LOCK_EX, restrictRights)
}

// openToRead opens and locks a ledger file for readers alone.
func openToRead(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return lockWhole(f, syscall.LOCK_SH, nil)
}

// lockWhole locks an open ledger file, which must have bytes: bbolt would make a
// new one of an empty file. It closes the file after an error.
func lockWhole(f *os.File, how int, locked func(*os.File) error) (*os.File, error) {
	// The lock comes first. The kernel drops it when the process dies.
	err := lockFile(f, how)
	if err == nil && locked != nil {
		err = locked(f)
	}
	if info, statErr := f.Stat(); err == nil && statErr == nil && info.Size() == 0 {
		err = damage("it is empty, and has no meta page")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockFile locks a ledger file without waiting, as bbolt does: LOCK_EX to write, LOCK_SH to read.
func lockFile(f *os.File, how int) error {
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ledger.ErrLocked
	}
	return err
}

// closeUnlocked closes a file that stays mapped: the mapping would keep its lock.
func closeUnlocked(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// restrictRights leaves the ledger readable and writable by its owner alone.
func restrictRights(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return f.Chmod(0o600)
}

// recoverDamage turns what bbolt throws over a damaged page into a [ledger.DamageError]: a failed
// assertion, an index out of range, or the fault of reading beyond the file's end.
func recoverDamage(fn func() error) (err error) {
	// A file that was cut off while it is mapped raises a fault. Without this line it would end the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damage("reading it failed: %v", r)
		}
	}()
	return fn()
}
