package boltledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
)

// ReplacementConfig says what replaces a ledger that is missing, damaged or unwanted.
type ReplacementConfig struct {
	Dir string // the state directory

	Backup *os.File    // the ledger file it begins with, open for reading; nil: a new ledger
	Info   ledger.Info // of a new ledger
	Epoch  uint64      // of the result; 0: as it is in the backup, or in Info

	// ReceiptKeys are the keys of the result, with Backup: its own first. Nil:
	// as they are in the backup.
	ReceiptKeys []string

	Mark ledger.Mark  // restored or rebuilt: the first thing it tells of
	Note *ledger.Note // the reason that was given; may be nil

	// Fault is as in Config, and also called with "rename" before and with "renamed"
	// after each naming of a file.
	Fault func(op string) error
}

// Replacement is a ledger that is being made. It lies beside the one that it will replace,
// and is in safe mode from the beginning. Whoever began it must Commit or Discard it.
type Replacement struct {
	Ledger *Ledger // open, to be filled

	c      ReplacementConfig
	dir    string   // where it lies; empty: it is in its place, or removed
	locked *os.File // the ledger that it replaces; may be nil
	after  uint64   // no file of the ledger in c.Dir has a later incarnation
}

// BeginReplacement begins a replacement. It locks the ledger that is there, if one is, and
// changes nothing about it. A backup is checked as a whole first: what is wrong with it
// is a [ledger.DamageError]. One of another form is refused.
func BeginReplacement(ctx context.Context, c ReplacementConfig) (r *Replacement, err error) {
	if c.Fault == nil {
		c.Fault = func(string) error { return nil }
	}
	r = &Replacement{c: c}
	if err = r.begin(ctx); err != nil {
		err = errors.Join(fmt.Errorf("replace ledger %q: %w", pathIn(c.Dir, fileName), err), r.Discard())
		return nil, err
	}
	return r, nil
}

func (r *Replacement) begin(ctx context.Context) (err error) {
	// Nobody may commit to the old ledger while the new one is made: those commits would be lost.
	r.locked, err = openLocked(pathIn(r.c.Dir, fileName), os.O_RDONLY, syscall.LOCK_EX)
	if broken, ok := errors.AsType[*ledger.DamageError](err); ok { // no damage of the backup
		return fmt.Errorf("%s: move it out of the state directory, then try again", broken.What)
	}
	if err != nil && !errors.Is(err, ledger.ErrMissing) {
		return err
	}
	sweepLeftovers(r.c.Dir)
	outside, err := readHead(r.c.Dir)
	if err != nil {
		return err
	}
	if outside != nil {
		if r.after = outside.Incarnation; outside.isUnreadable {
			outside = nil
		}
	}
	// Beside the old ledger, on the same file system: the last step is one rename. A crash leaves a directory that the next
	// start sweeps away.
	dir := pathIn(r.c.Dir, replacementDir)
	if err = os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			dir = pathIn(dir, left[0].Name())
		}
		return fmt.Errorf("%q is in the way of the new ledger: move it out of the state directory, then try again", dir)
	}
	if err != nil {
		return err
	}
	r.dir = dir
	id, err := r.makeBase(ctx)
	if err != nil {
		return err
	}
	// Putting another ledger here would make every claimed folder belong to a ledger that does not know it.
	if outside != nil && outside.Ledger != id {
		return fmt.Errorf("%w: the head outside belongs to %q, this one would be %q", ledger.ErrOtherLedger, outside.Ledger, id)
	}
	m := r.c.Mark
	if outside != nil && m.Cause == "" {
		m.Cause = fmt.Sprintf("the outside head was at line %d", outside.N)
	}
	// The mark comes first, and with a backup that of each entry that is not at
	// rest: whatever happens from here on, nobody can open this ledger outside
	// safe mode, or act on an entry of it.
	first := markRequest{mark: m, note: r.c.Note, also: func(s *summary) {
		s.Safe.Marking = r.c.Backup != nil
		s.Info.Epoch = cmp.Or(r.c.Epoch, s.Info.Epoch)
		if r.c.ReceiptKeys != nil {
			s.Info.ReceiptKeys = r.c.ReceiptKeys
		}
	}}
	r.Ledger, err = Config{Dir: r.dir, Fault: r.c.Fault}.open(opening{replacement: &first})
	return err
}

// makeBase makes the file that the replacement begins with, and returns the id
// of its ledger.
func (r *Replacement) makeBase(ctx context.Context) (id string, err error) {
	if r.c.Backup == nil {
		return r.c.Info.ID, create(r.dir, r.c.Info)
	}
	// A copy: the backup itself is never opened for writing, and stays as it is whatever happens.
	about, err := r.c.Backup.Stat()
	if err != nil || !about.Mode().IsRegular() {
		return id, errors.Join(err, damage("%s is not a regular file", filepath.Base(r.c.Backup.Name())))
	}
	f, err := os.OpenFile(pathIn(r.dir, fileName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return id, err
	}
	if err := copySynced(f, r.c.Backup, about.Size()); err != nil {
		return id, errors.Join(err, f.Close())
	}
	// All of it is checked before anything is replaced: a damaged backup must
	// not take the place of a ledger.
	err = CheckOpenFile(ctx, f, time.UTC, func(l *Ledger) error {
		id = l.Info().ID
		found, err := l.Verify(ctx)
		return cmp.Or(err, firstOf(found))
	})
	return id, errors.Join(err, f.Close())
}

// Commit closes the replacement and puts it in its place. A ledger that was there is kept
// beside it under the name that is returned; empty: there was none. After a crash either the
// old ledger is there or the new one, never none and never half of one.
func (r *Replacement) Commit(ctx context.Context) (kept string, err error) {
	if kept, err = r.commit(ctx); err != nil {
		err = fmt.Errorf("replace ledger %q: %w", pathIn(r.c.Dir, fileName), err)
	}
	return kept, err
}

func (r *Replacement) commit(ctx context.Context) (kept string, err error) {
	// The last commit before the ledger gets its place. There it has no outside
	// head until the next start makes it.
	err = r.Ledger.askCommitter(ctx, func(g *groupCommit) (refused, err error) {
		g.beginIncarnation(max(r.after, g.This.N) + 1)
		return nil, nil
	})
	if err != nil {
		return "", err
	}
	// Closed and synced before it gets its place: what is renamed is whole.
	if err := r.Ledger.Close(); err != nil {
		return "", err
	}
	if err := r.Ledger.Err(); err != nil {
		return "", err
	}
	place := pathIn(r.c.Dir, fileName)
	// A second name for the old ledger. A crash after it leaves the old ledger in its place and a link beside it.
	if err := r.changeNameDurably(func() error { kept, err = r.keepOld(); return err }); err != nil {
		return "", err
	}
	// The one step that replaces: a crash before it leaves the old ledger, a crash after it the new one.
	if err := r.changeNameDurably(func() error { return os.Rename(pathIn(r.dir, fileName), place) }); err != nil {
		return kept, err
	}
	forgetOpening(r.c.Dir) // it was of the old one; a crash before this has the new one probed
	return kept, r.Discard()
}

// keepOld gives the ledger that the replacement will overwrite a second name,
// with a number behind it where that is taken; empty: there is no such ledger.
func (r *Replacement) keepOld() (kept string, err error) {
	word := map[string]string{ledger.MarkRestored: "restore", ledger.MarkRebuilt: "rebuild"}[r.c.Mark.Name]
	begin := fmt.Sprintf("%s.before-%s-%s", fileName, word, r.c.Mark.At.UTC().Format("20060102T150405Z"))
	kept = begin
	for n := 2; ; n++ {
		// A link and no rename: the old ledger stays in its place until the new
		// one takes it. It never replaces a file: an older copy stays what it
		// is.
		err = os.Link(pathIn(r.c.Dir, fileName), pathIn(r.c.Dir, kept))
		if !errors.Is(err, fs.ErrExist) || n > 100 {
			break
		}
		kept = fmt.Sprintf("%s-%d", begin, n)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return kept, err
}

// changeNameDurably calls fn, which links, renames or removes, and syncs the directory.
func (r *Replacement) changeNameDurably(fn func() error) error {
	if err := r.c.Fault("rename"); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	d, err := durable.Open(r.c.Dir, nil)
	if err != nil {
		return err
	}
	// Before the next step: names must reach the disk in the order in which they were given.
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return err
	}
	return r.c.Fault("renamed")
}

// Discard closes the replacement and removes it. After Commit it does nothing.
func (r *Replacement) Discard() error {
	var errs []error
	if r.Ledger != nil {
		errs = append(errs, r.Ledger.Close())
	}
	if r.dir != "" {
		errs = append(errs, removeReplacement(r.dir))
		r.dir = ""
	}
	if r.locked != nil {
		errs = append(errs, r.locked.Close())
		r.locked = nil
	}
	return errors.Join(errs...)
}

// replacementDir is the directory of a replacement.
const replacementDir = ".replacement"

// removeReplacement removes a replacement's directory and the files that it can contain, and nothing
// else: with anything else in it, it stays.
func removeReplacement(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if _, isHead := incarnationIn(e.Name()); isHead || isCopy(e) || e.Name() == fileName || e.Name() == openingName {
			err = errors.Join(err, os.Remove(pathIn(dir, e.Name())))
		}
	}
	return errors.Join(err, os.Remove(dir))
}

// sweepLeftovers removes what a crash left of copies and replacements. The caller holds the
// lock. What cannot be removed is tried again at the next start. Only names that this package
// gives are considered, and no link is followed: a link with such a name can lead to another
// ledger.
func sweepLeftovers(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		switch {
		case isCopy(e):
			_ = os.Remove(pathIn(dir, e.Name()))
		// A replacement that was never committed. Whoever began it has died: the lock of the ledger is ours.
		case e.IsDir() && e.Name() == replacementDir:
			_ = removeReplacement(pathIn(dir, e.Name()))
		}
	}
}

// isCopy reports whether a file is one that is written before it has its name, or has none.
func isCopy(e fs.DirEntry) bool {
	name := strings.TrimSuffix(strings.TrimPrefix(e.Name(), "."), ".tmp")
	_, isHead := incarnationIn(name)
	isOfCopy := strings.TrimRight(name, "0123456789") == fileName+"-"
	return e.Type().IsRegular() && (isHead || isOfCopy || name == fileName) && e.Name() == durable.TemporaryName(name)
}

// RestoreResult is what a restore did.
type RestoreResult struct {
	Info         ledger.Info
	Safe         ledger.SafeMode
	Head         ledger.Head // of the result
	Unreconciled int         // entries of which it is not known what happened meanwhile
	Kept         string      // name of the file that lay there before; empty: none did
}

// Restore puts a backup in the place of the ledger in c.Dir: checked, in safe mode, with
// every entry that is not at rest marked as to be reconciled. A crash leaves the old ledger
// or the new one.
func Restore(ctx context.Context, c ReplacementConfig) (done RestoreResult, err error) {
	c.Mark.Name = ledger.MarkRestored
	r, err := BeginReplacement(ctx, c)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, r.Discard()) }()
	err = r.Ledger.OpenEntries(func(e ledger.Entry) error {
		if e.NeedsReconcile {
			done.Unreconciled++
		}
		return nil
	})
	if err != nil {
		return done, err
	}
	done.Info, done.Head = r.Ledger.Info(), r.Ledger.Head()
	done.Safe, _ = r.Ledger.SafeMode()
	done.Kept, err = r.Commit(ctx)
	return done, err
}
