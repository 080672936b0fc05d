package boltledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// bbolt follows the page numbers that it finds. Pages that go in a circle end
// the process that reads them, or fill its memory; recover is of no use there,
// and in the goroutine in which bbolt checks pages. So:
//
//   - A running daemon has a child check a copy of its ledger.
//   - A process that opens a ledger leaves a marker in the state directory. If
//     that process dies of what it reads, the next one finds the marker and has
//     a child probe the file before it opens it itself.

// ProbeFile checks every page of an open ledger file, and then what opening
// reads. Damage may end the process: it is for a child. The error is a
// [ledger.DamageError], or says why the file could not be read. A ledger of
// another form passes, because opening refuses it by its own error.
//
// It reads the file from end to end before that: bbolt reads the pages in any
// order, for which a slow disk needs a multiple of the time.
func ProbeFile(ctx context.Context, f *os.File) error {
	if err := readThrough(f); err != nil {
		return err
	}
	err := CheckOpenFile(ctx, f, time.UTC, func(*Ledger) error { return nil })
	if errors.Is(err, ledger.ErrDevelopment) || errors.Is(err, ledger.ErrNewerSchema) {
		return nil
	}
	return err
}

// readThrough reads a file from end to end.
func readThrough(f *os.File) error {
	part := make([]byte, copiedAtOnce)
	for at := int64(0); ; at += copiedAtOnce {
		if _, err := f.ReadAt(part, at); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return readError(err, at)
		}
	}
}

// readError is damage where a disk cannot give what was written.
func readError(err error, at int64) error {
	if errors.Is(err, syscall.EIO) || errors.Is(err, io.EOF) {
		return damage("it cannot be read from byte %d on: %v", at, err)
	}
	return fmt.Errorf("read the ledger: %w", err)
}

// checkPages checks every page of a ledger that stays as it is meanwhile: each
// must be reached once, hold its keys in order, and none in use may be free. A
// child does it where there is a probe.
func (l *Ledger) checkPages(ctx context.Context) error {
	if l.probe == nil {
		return l.checkPagesHere(ctx)
	}
	f, err := duplicate(l.file)
	if err != nil {
		return err
	}
	// The child shares the lock of the file, and leaves it one for readers.
	return errors.Join(l.probe(f), f.Close(), lockFile(l.file, syscall.LOCK_EX))
}

// checkPagesHere does it in this process. bbolt reads on after the end of ctx,
// and after the first difference, which is enough: pages in a circle have no
// last one. The file stays mapped for it.
func (l *Ledger) checkPagesHere(ctx context.Context) error {
	tx, err := l.db.Begin(false)
	if err != nil {
		return err
	}
	// First, because bbolt notes each page that a page says to go on over: a
	// wrong number would fill the memory.
	free, err := checkSpans(tx)
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	select {
	case err, found := <-tx.Check(bbolt.WithKVStringer(withoutKeys{})):
		if found {
			l.isAstray = true
			return damage("%v", err)
		}
	case <-ctx.Done():
		l.isAstray = true
		return context.Cause(ctx)
	}
	// The list of free pages may name others as well, which a commit would use and
	// bbolt's check passes over.
	if s := l.db.Stats(); free != s.FreePageN+s.PendingPageN {
		err = damage("%d of the free pages are pages of the file, and %d are listed", free, s.FreePageN+s.PendingPageN)
	}
	return errors.Join(err, tx.Rollback())
}

// checkSpans checks that each page in use ends within the file, and counts the free ones.
func checkSpans(tx *bbolt.Tx) (free int, err error) {
	last := int(tx.Size() / int64(tx.DB().Info().PageSize))
	for id := 2; id < last; id++ {
		page, err := tx.Page(id)
		switch {
		case err != nil || page == nil:
			return free, err
		case page.Type == "free":
			free++
		case page.OverflowCount < 0 || page.OverflowCount >= last-id:
			return free, damage("page %d goes on over %d pages, of %d in the file", id, page.OverflowCount, last)
		default:
			id += page.OverflowCount
		}
	}
	return free, nil
}

// closeFile closes the file, and leaves it mapped where bbolt still reads it.
func (l *Ledger) closeFile() error {
	if l.isAstray {
		return closeUnlocked(l.file)
	}
	return l.db.Close()
}

// withoutKeys keeps keys and values out of what bbolt says: they hold names.
type withoutKeys struct{}

func (withoutKeys) KeyToString([]byte) string   { return "…" }
func (withoutKeys) ValueToString([]byte) string { return "…" }

// openingName is the marker of a ledger that a process has open, or left open.
const openingName = "ledger.opening"

// noteOpening leaves the marker, and reports whether it was there already. It
// outlives this process; a power cut may take it, and then one more process dies
// of a damaged page. A full disk may refuse it, which must keep vaultd from
// nothing.
func noteOpening(dir string) (found bool) {
	f, err := os.OpenFile(pathIn(dir, openingName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return os.IsExist(err)
	}
	_ = f.Close() // it is empty
	return false
}

// NoteSound removes the marker of an open ledger, whose check has found it
// sound. Close does so, too.
func (l *Ledger) NoteSound() { forgetOpening(l.dir) }

// forgetOpening removes the marker. If that fails, the next start probes once more.
func forgetOpening(dir string) { _ = os.Remove(pathIn(dir, openingName)) }

// probeLeftOpen has check read the file that a process left open, unless nil.
func probeLeftOpen(dir string, check func(*os.File) error) error {
	if check == nil {
		return nil
	}
	f, err := openLocked(pathIn(dir, fileName), os.O_RDONLY, syscall.LOCK_SH)
	if err != nil {
		return nil // opening it says why
	}
	defer f.Close() // read-only
	if err := check(f); err != nil {
		return fmt.Errorf("a process ended with it open (%s): %w", openingName, err)
	}
	return nil
}
