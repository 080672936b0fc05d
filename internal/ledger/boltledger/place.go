package boltledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
)

// duplicate returns another descriptor of an open file, which may have lost its
// name.
func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate the descriptor of %s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// CheckPlace returns a [*ledger.LostError] where an open file of the ledger is
// no longer the one in the state directory: it was deleted, moved away or
// replaced, or lies below another mount. What is committed then ends with this
// process.
func (l *Ledger) CheckPlace() error {
	there, err := l.isInPlace(l.file, fileName)
	name := fileName
	if err == nil && there {
		name = headNameOf(l.head.of)
		there, err = l.isInPlace(l.head.file, name)
	}
	if err == nil && !there {
		err = &ledger.LostError{File: name, Gone: true}
	}
	return err
}

// isInPlace reports whether name leads to the open file f. The error is a
// [*ledger.LostError] where it leads to another one.
func (l *Ledger) isInPlace(f *os.File, name string) (bool, error) {
	opened, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("look at the open %s: %w", name, err)
	}
	found, err := os.Lstat(pathIn(l.dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at %s: %w", name, err)
	case !os.SameFile(opened, found):
		return false, &ledger.LostError{File: name}
	}
	return true, nil
}

// PutBack copies what is open of a lost ledger to its name. It replaces
// nothing: it fails where something is in the place, where the state directory
// is another one than at the start, and where verify returns a problem with a
// copy of the ledger, beside which commits are made. It leaves keep bytes free
// on the disk. After it the ledger commits nothing more, because the file that
// it has open is not the one in the state directory; Failed is closed.
func (l *Ledger) PutBack(ctx context.Context, keep int64, verify func(context.Context, *os.File) ([]ledger.Problem, error)) error {
	if err := l.putBack(ctx, keep, verify); err != nil {
		return fmt.Errorf("put the ledger back: %w", err)
	}
	return nil
}

func (l *Ledger) putBack(ctx context.Context, keep int64, verify func(context.Context, *os.File) ([]ledger.Problem, error)) error {
	home, err := os.Stat(l.dir)
	if err == nil && !os.SameFile(home, l.home) {
		err = fmt.Errorf("%s is another folder than at the start", l.dir)
	}
	if err != nil {
		return err
	}
	hasLedger, err := l.isInPlace(l.file, fileName)
	if err != nil {
		return err
	}
	hasHead, err := l.isInPlace(l.head.file, headNameOf(l.head.of))
	if err != nil {
		return err
	}
	// All of it is checked before: a damaged ledger must not look like a good
	// one. It waits for no other copy: until it is done a crash loses the ledger.
	copied, err := l.Copy(ctx, keep)
	if err != nil {
		return err
	}
	found, err := verify(ctx, copied)
	if err = cmp.Or(errors.Join(err, copied.Close()), firstOf(found)); err != nil {
		return err
	}
	// In the committer: nothing is committed between this copy and the end.
	err = l.askCommitter(ctx, func(*groupCommit) (refused, err error) {
		// A crash between the two leaves a head without its ledger, which no
		// start takes for a new ledger.
		if !hasHead {
			refused = l.writeHeadAgain()
		}
		if refused == nil && !hasLedger {
			refused = makeInPlace(l.dir, func(tmp *durable.TempFile) error { return l.copyInto(tmp, keep) })
		}
		if refused != nil {
			return refused, nil
		}
		return nil, &ledger.LostError{File: fileName, Gone: true, PutBack: true}
	})
	if lost, ok := errors.AsType[*ledger.LostError](err); ok && lost.PutBack {
		return nil
	}
	return err
}

// copyInto makes tmp a synced copy of the open file. A crash leaves a temporary
// file, which the next start sweeps away.
func (l *Ledger) copyInto(tmp *durable.TempFile, keep int64) error {
	info, err := l.file.Stat()
	if err == nil {
		err = checkRoom(l.dir, info.Size(), keep)
	}
	if err != nil {
		return err
	}
	return copySynced(tmp.File, l.file, info.Size()) // the file changes in a commit alone
}

// copySynced copies the first size bytes of a file to another one, and syncs
// that: bbolt trusts what it reads.
func copySynced(to, from *os.File, size int64) error {
	_, err := io.Copy(to, io.NewSectionReader(from, 0, size))
	return cmp.Or(err, to.Sync())
}

// firstOf returns the findings of a check as an error; nil where there is none.
func firstOf(found []ledger.Problem) error {
	if len(found) == 0 {
		return nil
	}
	return damage("%s (%d findings in all)", found[0], len(found))
}

// writeHeadAgain writes the outside head where none is in its place.
func (l *Ledger) writeHeadAgain() error {
	h, err := openHead(l.dir, l.state)
	if err != nil {
		return err
	}
	return h.closeFile()
}
