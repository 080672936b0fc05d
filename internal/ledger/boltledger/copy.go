package boltledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

const (
	copiedAtOnce = 1 << 20  // bytes, between two looks at the room and at what is held
	leastHeld    = 64 << 20 // bytes of freed pages that a copy may keep from being used again
	copyTries    = 3
)

// ErrBusy says that too much was committed while the ledger was copied.
var ErrBusy = errors.New("too much was committed while the ledger was copied, and the copy was given up before the ledger's file grew: try again when less is sent, or stop vaultd before")

// NoRoomError says that the disk has no room for a copy of the ledger.
type NoRoomError struct {
	Dir                string
	Needed, Free, Kept int64 // bytes; Kept stay free in any case
}

// Error implements error.
func (e *NoRoomError) Error() string {
	mb := func(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/archive.MB) }
	return fmt.Sprintf("no room: a copy of the ledger needs %s more in %s, which has %s left and keeps %s free (spool.min_free): free space there, then try again",
		mb(e.Needed), e.Dir, mb(e.Free), mb(e.Kept))
}

// Unwrap makes it a lack of space like any other.
func (e *NoRoomError) Unwrap() error { return syscall.ENOSPC }

// Copy copies the file of the ledger as it is at one moment, free pages
// included, into a file without a name in the state directory. It leaves keep
// bytes free on the disk, else it fails with a [*NoRoomError]. The caller
// closes the copy, which ends it; so does a crash.
//
// The committer works meanwhile. A copy holds the pages of its moment, and those
// that commits free cannot be used again before it ends. If they become many,
// the copy is given up and tried again when the ledger is at rest; at
// last it fails with ErrBusy.
func (l *Ledger) Copy(ctx context.Context, keep int64) (to *os.File, err error) {
	if to, err = createUnnamed(l.dir); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		err = l.copyMoment(ctx, to, keep, cloneFile)
		if err == nil {
			// Bytes that cannot be written would be missing in what is read
			// later, and be taken for damage of the ledger.
			err = to.Sync()
		}
		if err == nil {
			return to, nil
		}
		if !errors.Is(err, ErrBusy) || try == copyTries {
			return nil, errors.Join(err, to.Close())
		}
		l.waitForRest(ctx)
	}
}

// waitForRest waits until a second passes without a commit, but no longer than a minute.
func (l *Ledger) waitForRest(ctx context.Context) {
	for range 60 {
		before := l.commits.Load()
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		if l.commits.Load() == before {
			return
		}
	}
}

// copyMoment makes to a copy of one moment, by clone where the file system can do that.
func (l *Ledger) copyMoment(ctx context.Context, to *os.File, keep int64, clone func(to, from *os.File) error) error {
	// bbolt counts at the end of a write what is held, and an earlier copy may have ended since.
	writer, err := l.db.Begin(true)
	if err == nil {
		err = writer.Rollback() // it wrote nothing
	}
	if err != nil {
		return err
	}
	return l.view(func(tx *bbolt.Tx) error {
		meta, err := metaPagesOf(tx, l.db.Info().PageSize)
		if err != nil {
			return err
		}
		// A commit writes to pages alone that this transaction cannot reach,
		// and to the meta pages. So the pages of the moment are the same
		// whenever they are read, and the meta pages, which are not, are taken
		// from the transaction.
		if clone(to, l.file) != nil {
			err = l.copyPages(ctx, to, tx.Size(), keep)
		}
		if err == nil {
			_, err = to.WriteAt(meta, 0)
		}
		if err == nil {
			err = to.Truncate(tx.Size()) // what a clone holds beyond is of later commits
		}
		return err
	})
}

// metaPagesOf returns the two meta pages of a file that shows the moment of tx.
func metaPagesOf(tx *bbolt.Tx, pageSize int) ([]byte, error) {
	// bbolt alone can make them, and writes them before all else.
	w := &firstBytes{most: 2 * pageSize}
	if _, err := tx.WriteTo(w); !errors.Is(err, errEnough) {
		return nil, errors.Join(errors.New("bbolt wrote no meta pages"), err)
	}
	return w.got, nil
}

// firstBytes takes the first bytes that are written to it, and no others.
type firstBytes struct {
	got  []byte
	most int
}

func (w *firstBytes) Write(b []byte) (int, error) {
	if len(w.got)+len(b) > w.most {
		return 0, errEnough
	}
	w.got = append(w.got, b...)
	return len(b), nil
}

// cloneFile lets to share all blocks of from: a matter of milliseconds, and of no room.
func cloneFile(to, from *os.File) error { return unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) }

// copyPages copies the first size bytes of the file.
func (l *Ledger) copyPages(ctx context.Context, to *os.File, size, keep int64) error {
	part := make([]byte, copiedAtOnce)
	for at := int64(0); at < size; at += int64(len(part)) {
		part = part[:min(copiedAtOnce, size-at)]
		// The file grows by no more than what is held, and what was held once
		// is there to be used beside the next copy.
		if held := int64(l.db.Stats().PendingPageN) * int64(l.db.Info().PageSize); held > max(leastHeld, size/50) {
			return ErrBusy
		}
		if err := errors.Join(context.Cause(ctx), checkRoom(l.dir, size-at, keep)); err != nil {
			return err
		}
		if _, err := l.file.ReadAt(part, at); err != nil {
			return readError(err, at)
		}
		if _, err := to.WriteAt(part, at); err != nil {
			return fmt.Errorf("write a copy of the ledger: %w", err)
		}
	}
	return nil
}

// checkRoom returns a *NoRoomError where more bytes in dir would leave less than keep bytes free.
func checkRoom(dir string, more, keep int64) error {
	if free := durable.FreeBytes(dir); free >= 0 && free-more < keep {
		return &NoRoomError{dir, more, free, keep}
	}
	return nil
}

// createUnnamed creates a file in dir that ends when it is closed, or with the process.
func createUnnamed(dir string) (*os.File, error) {
	// It has no name from the beginning: a crash leaves nothing behind.
	if f, err := os.OpenFile(dir, unix.O_TMPFILE|os.O_RDWR, 0o600); err == nil {
		return f, nil
	}
	return createAndRemove(dir) // not every file system can do that
}

func createAndRemove(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "."+fileName+"-*.tmp") // 0600
	if err != nil {
		return nil, err
	}
	// A crash before this leaves an empty file, which the next start sweeps away.
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// AwaitCopyTurn waits until every other caller has made and checked its copy, so
// that the disk needs room for one. The caller calls end.
func (l *Ledger) AwaitCopyTurn(ctx context.Context) (end func(), err error) {
	select {
	case l.copying <- struct{}{}:
		return func() { <-l.copying }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Location is whose days the ledger counts by.
func (l *Ledger) Location() *time.Location { return l.loc }
