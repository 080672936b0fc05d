package boltledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// openReadOnly opens a ledger file without a committer and without a head:
// nothing is written, and a crash leaves nothing behind. The ledger closes the
// file, and so does an error. The list of free pages, which may be damaged where
// the pages are unchecked, is read for withFree alone.
func openReadOnly(f *os.File, loc *time.Location, withFree bool, check func(*Ledger) error) (l *Ledger, err error) {
	l = &Ledger{loc: loc, isCopy: true, file: f}
	if l.db, err = openDB(f, bbolt.Options{ReadOnly: true, PreLoadFreelist: withFree}); err != nil {
		return nil, err
	}
	if check != nil {
		err = check(l)
	}
	if err == nil {
		err = l.view(func(tx *bbolt.Tx) (err error) { l.state, err = readSelf(tx); return err })
	}
	if err != nil {
		return nil, errors.Join(err, l.closeFile())
	}
	return l, nil
}

// ReadOpenFile lets do read a ledger file that is open, and stays so, and
// locked until it is closed. Its pages were checked. Nothing of it is changed.
// loc is whose days count.
func ReadOpenFile(f *os.File, loc *time.Location, do func(*Ledger) error) error {
	return readOpenFile(f, loc, nil, do)
}

// CheckOpenFile is ReadOpenFile for a file whose pages are checked before
// anything else is read, which may end the process.
func CheckOpenFile(ctx context.Context, f *os.File, loc *time.Location, do func(*Ledger) error) error {
	return readOpenFile(f, loc, func(l *Ledger) error { return l.checkPagesHere(ctx) }, do)
}

func readOpenFile(f *os.File, loc *time.Location, check, do func(*Ledger) error) error {
	same, err := duplicate(f)
	if err != nil {
		return err
	}
	if err := lockFile(same, syscall.LOCK_EX); err != nil {
		return errors.Join(err, same.Close())
	}
	l, err := openReadOnly(same, loc, true, check)
	if err != nil {
		return err
	}
	return errors.Join(do(l), l.closeFile())
}

// InspectOpenFile returns what a ledger file that is open says of itself, and
// the end of its journal. It reads no more than Open does before it trusts a
// ledger, and changes nothing.
func InspectOpenFile(f *os.File) (info ledger.Info, head ledger.Head, err error) {
	err = ReadOpenFile(f, time.UTC, func(l *Ledger) error { info, head = l.Info(), l.Head(); return nil })
	if err != nil {
		err = fmt.Errorf("examine ledger %q: %w", f.Name(), err)
	}
	return info, head, err
}

// ReadWhileStopped lets fn read the ledger in dir while nobody works with it,
// and changes nothing: no file is made or given other rights. It refuses with
// [ledger.ErrMissing], [ledger.ErrLocked], [ledger.ErrLeftOpen],
// [ledger.ErrNewerSchema], [ledger.ErrDevelopment] or a [ledger.DamageError],
// and does not compare the ledger with its outside head. The caller holds the
// state directory's lock.
func ReadWhileStopped(dir string, fn func(*Ledger) error) error {
	var l *Ledger
	f, err := openLocked(pathIn(dir, fileName), os.O_RDONLY, syscall.LOCK_SH)
	if _, isClosed := os.Lstat(pathIn(dir, openingName)); err == nil && isClosed == nil {
		err = errors.Join(ledger.ErrLeftOpen, f.Close())
	}
	if err == nil {
		l, err = openReadOnly(f, time.UTC, false, nil)
	}
	if err != nil {
		return fmt.Errorf("open ledger %q for reading: %w", pathIn(dir, fileName), err)
	}
	return errors.Join(fn(l), l.closeFile())
}

// readSelf reads the ledger's records of itself and checks that the journal ends where they say.
func readSelf(tx *bbolt.Tx) (s summary, err error) {
	meta := tx.Bucket(metaBucket)
	if meta == nil {
		return s, damage("the bucket %s is missing", metaBucket)
	}
	// First, because a ledger of another form may have other buckets and other records: it is refused, and not called damaged.
	schema, err := checkForm(meta)
	if err != nil {
		return s, err
	}
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return s, damage("the bucket %s is missing", name)
		}
	}
	s, err = summaryForm.decode(meta.Get(summaryKey))
	if err == nil && (s.Secret.Key == [32]byte{} || s.Secret.Seed == [32]byte{}) {
		err = errors.New("the secret of the ledger is empty")
	}
	if err != nil {
		return s, damage("%v", err)
	}
	s.Info.Schema = schema
	return s, checkJournalEnd(tx, s.Head)
}

// checkJournalEnd checks that the last block of the journal leads to the head.
func checkJournalEnd(tx *bbolt.Tx, end ledger.Head) error {
	// Entries and journal are one commit. If the two disagree, the file was
	// changed by somebody else.
	last, err := headAt(tx, math.MaxUint64)
	if err == nil && last != end {
		err = damage("the journal ends at line %d, the head is at line %d", last.N, end.N)
	}
	return err
}

// checkOutsideHead checks the journal against the head that is kept outside.
func checkOutsideHead(tx *bbolt.Tx, s summary, outside *headRecord) error {
	this, end := s.This, s.Head
	name := headNameOf(this.N)
	switch {
	case outside != nil && outside.Incarnation >= this.N && outside.isUnreadable:
		return damage("%s holds no readable record", headNameOf(outside.Incarnation))
	case outside != nil && !outside.isUnreadable && outside.Ledger != s.Info.ID:
		return damage("%s belongs to the ledger %q, this one is %q", headNameOf(outside.Incarnation), outside.Ledger, s.Info.ID)
	case (outside == nil || outside.Incarnation < this.N) && end.N == this.From:
		return nil // a crash between the beginning of the incarnation and its head
	// Whoever removes the head to hide a rollback is noticed here.
	case outside == nil || outside.Incarnation < this.N:
		return damage("%s is missing, so that nobody can tell whether the ledger is the latest", name)
	case outside.Incarnation > this.N:
		return fmt.Errorf("%w: a restore or a rebuild took its place since, whose head is %s", ledger.ErrRolledBack, headNameOf(outside.Incarnation))
	case outside.N > end.N:
		return fmt.Errorf("%w: it has %d journal lines, the head outside knows %d", ledger.ErrRolledBack, end.N, outside.N)
	}
	// The head may be some commits behind after a crash. The line that it knows must be the same one.
	h, err := headAt(tx, outside.N)
	if err == nil && !outside.agreesWith(h) {
		err = damage("journal line %d is not the one that %s knows", outside.N, name)
	}
	return err
}
