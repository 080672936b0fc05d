package boltledger

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// usedBytes returns how many bytes of the ledger file are in use or were once. Commits
// beyond them need new room on the disk, unless [Ledger.Reserve] holds it already.
func (l *Ledger) usedBytes() (used int64, err error) {
	err = l.view(func(tx *bbolt.Tx) error { used = tx.Size(); return nil })
	return used, err
}

// Reserve makes the disk set aside room for the ledger beyond the bytes that are in
// use: nobody else can take it, and commits go on in it when the disk is full. It
// returns how much is held, which is less than room where the disk has no more; that
// is no error. Room that was set aside stays so after a crash; the next call finds it.
//
// The error wraps errors.ErrUnsupported where the file system cannot set room aside.
func (l *Ledger) Reserve(room int64) (held int64, err error) {
	used, err := l.usedBytes()
	if err != nil {
		return 0, err
	}
	f, err := l.duplicateFile()
	if err != nil {
		return 0, fmt.Errorf("reserve room for the ledger: %w", err)
	}
	// A descriptor of its own: bbolt's size of the file stays what bbolt knows.
	defer f.Close()                        // nothing was written through it
	for held = room; held > 0; held /= 2 { // what the disk cannot give whole it may give in part
		if held < leastReserve && held < room {
			return 0, nil
		}
		err := allocateBlocks(f, used, held)
		if err == nil {
			return held, nil
		}
		if !isDiskFull(err) {
			return 0, fmt.Errorf("reserve room for the ledger: %w", err)
		}
	}
	return 0, nil
}

// leastReserve is the least room worth asking for.
const leastReserve = 64 << 10

func isDiskFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// allocateBlocks allocates blocks; the file's size, which bbolt keeps, stays what it is.
func allocateBlocks(f *os.File, from, length int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, from, length)
		if err != unix.EINTR {
			return err
		}
	}
}
