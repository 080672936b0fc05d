package boltledger

import (
	"fmt"

	"vaultd/internal/durable"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// Reserve makes the disk set aside room for the ledger beyond the bytes that are in
// use: nobody else can take it, and commits go on in it when the disk is full. It
// returns how much is held, which is less than room where the disk has no more; that
// is no error. Room that was set aside stays so after a crash; the next call finds it.
//
// The error wraps errors.ErrUnsupported where the file system cannot set room aside.
func (l *Ledger) Reserve(room int64) (held int64, err error) {
	err = l.view(func(tx *bbolt.Tx) error { // the file stays open for it
		for held = room; held > 0; { // what the disk cannot give whole it may give in part
			// The file's size, which bbolt keeps, stays what it is.
			err := unix.Fallocate(int(l.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, tx.Size(), held)
			switch {
			case err == unix.EINTR:
			case !durable.IsFull(err):
				return err
			case held < leastReserve:
				held = 0
			default:
				held /= 2
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("reserve room for the ledger: %w", err)
	}
	return held, nil
}

// leastReserve is the least room worth asking for.
const leastReserve = 64 << 10
