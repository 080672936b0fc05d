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

// openFile opens ledger.db, having locked and examined the file on the very
// descriptor that bbolt then maps; mapped is how much address space it gets.
// file is that descriptor, which db closes.
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
	line := uint64(0)
	if outside != nil {
		line = outside.N
	}
	err = recoverDamage(func() (err error) {
		db, err = bbolt.Open(name, 0o600, &bbolt.Options{
			Timeout: time.Second, FreelistType: bbolt.FreelistMapType, InitialMmapSize: mapped,
			OpenFile: examinedOpener(line, &file),
		})
		return err
	})
	return db, file, err
}

// examinedOpener returns a function that opens an existing file, locks it and
// checks its pages, those that lead to the given journal line included. bbolt
// gets the file from it, with the lock held, and closes it; opened is set to
// it.
func examinedOpener(line uint64, opened **os.File) func(name string, mode int, _ os.FileMode) (*os.File, error) {
	return func(name string, mode int, _ os.FileMode) (_ *os.File, err error) {
		*opened, err = openAndExamine(name, mode, line)
		return *opened, err
	}
}

func openAndExamine(name string, mode int, line uint64) (*os.File, error) {
	// Never created here: a missing ledger is an error, and only init makes a new one.
	f, err := os.OpenFile(name, mode&^os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return examine(f, line, restrictRights)
}

// examine locks an open ledger file and checks its pages, those that lead to
// the given journal line included. It closes the file after an error.
func examine(f *os.File, line uint64, locked func(*os.File) error) (*os.File, error) {
	// The lock comes before the look: the pages must not change between both. The kernel drops it when the process dies.
	err := lockFile(f, syscall.LOCK_EX)
	if err == nil {
		err = locked(f)
	}
	if err == nil {
		err = checkBeforeMapping(f, line)
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
