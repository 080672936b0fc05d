package boltledger

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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

// openDB opens a file by bbolt. The caller has locked it, and bbolt maps this
// very descriptor. db closes it, and so does an error.
func openDB(f *os.File, o bbolt.Options) (db *bbolt.DB, err error) {
	o.Timeout = time.Second
	o.OpenFile = func(string, int, os.FileMode) (*os.File, error) { return f, nil }
	err = recoverDamage(func() (err error) {
		// bbolt would make a new ledger of an empty file.
		if info, err := f.Stat(); err != nil || info.Size() == 0 {
			return cmp.Or(err, damage("it is empty, and has no meta page"))
		}
		db, err = bbolt.Open(f.Name(), 0o600, &o)
		if _, isOfSystem := errors.AsType[syscall.Errno](err); err != nil && !isOfSystem {
			err = damage("it has no valid meta page: %v", err)
		}
		return err
	})
	if err != nil {
		_ = closeUnlocked(f) // bbolt leaves it open where it panics
		return nil, err
	}
	if err = checkLength(db, f); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
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

// openToWork opens and locks a ledger file for one process alone, and leaves it
// readable and writable by its owner alone.
func openToWork(name string) (*os.File, error) {
	f, err := openLocked(name, os.O_RDWR, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.Mode().Perm()&0o077 != 0 {
		if err = errors.Join(err, f.Chmod(0o600)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// openLocked opens and locks a ledger file, and never makes one. The kernel
// drops the lock when the process dies.
func openLocked(name string, flags, how int) (*os.File, error) {
	// Not followed: a link could lead to a ledger that another place owns.
	f, err := os.OpenFile(name, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ledger.ErrMissing
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EISDIR):
		return nil, damage("%s is not a regular file", filepath.Base(name))
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = damage("%s is not a regular file", filepath.Base(name))
	}
	if err == nil {
		err = lockFile(f, how)
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
