package selfcheck

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"reflect"
	"syscall"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
	"vaultd/internal/spool"
)

// Result is what a check found. Texts hold no name of a folder.
type Result struct {
	At     time.Time // when it ended; zero: none has yet
	Ledger []string  // what is wrong with the ledger: the first few, in words
	Files  []string  // packages and receipts that are not what the ledger says
	Unread []string  // receipts that could not be read: nothing is known of them
	Failed string    // why it could not be made; empty: it was
}

// OK reports whether nothing was found, and all could be read.
func (c Result) OK() bool { return len(c.Ledger)+len(c.Files)+len(c.Unread) == 0 && c.Failed == "" }

// Checker is what one check reads.
type Checker struct {
	Ledger      *boltledger.Ledger
	Spool       *spool.Spool
	Drops       []*dropwork.Drop
	Environment string
	StateDir    string // holds the checkpoint; empty: none is left
	Program     string // version of this program, for the checkpoint
	Now         func() archive.Instant
}

const (
	pause    = 5 * time.Millisecond // between two short transactions
	namedFew = 20                   // findings of one kind that are named
)

const mostReceipt = 16 << 20

// unreadError says that a file could not be read. That is no word about the file: neither that it is gone nor that it is another.
type unreadError struct{ cause error }

// Error names no folder.
func (e *unreadError) Error() string {
	why := "the system does not say why"
	if _, mount := errors.AsType[*durable.MountError](e.cause); mount {
		why = "something is mounted there"
	} else if errno, ok := errors.AsType[syscall.Errno](e.cause); ok {
		why = errno.Error()
	}
	return "its receipt cannot be read, and nothing is known of it: " + why
}

// Check makes one check. It checks twice where it finds something: the ledger may have changed between two reads of the
// first check.
func (c *Checker) Check(ctx context.Context) (r Result) {
	for range 2 {
		found, err := c.checkLedger(ctx)
		if err != nil {
			r.Failed, r.At = err.Error(), c.Now().Wall
			return r
		}
		if r.Ledger = found; len(found) == 0 {
			break
		}
	}
	if len(r.Ledger) == 0 {
		err := c.CheckFiles(ctx, &r)
		if broken, ok := errors.AsType[*ledger.DamageError](err); ok {
			r.Ledger = append(r.Ledger, broken.What)
		} else if err != nil {
			r.Failed = err.Error()
		}
	}
	r.At = c.Now().Wall
	return r
}

// checkLedger verifies the whole ledger: chain, records, indexes, the journal replayed, and the balance. Without a finding
// it leaves a checkpoint, from which "vaultd verify" goes on.
func (c *Checker) checkLedger(ctx context.Context) (found []string, err error) {
	add := func(what string) {
		if len(found) < namedFew {
			found = append(found, what)
		}
	}
	// In short transactions: a long one keeps the freed pages of the ledger from being used again.
	o := Verification{StateDir: c.StateDir, Program: c.Program, Whole: true, Now: func() time.Time { return c.Now().Wall }, rest: pause}
	v, err := o.Verify(ctx, c.Ledger)
	if err != nil {
		return nil, err
	}
	// v.OtherPast is for the person who verifies: the ledger itself is sound, and nothing that waits depends on its former past.
	for _, p := range v.Problems {
		add(p.Where + ": " + p.What)
	}
	for _, f := range v.Findings() {
		add(f.String())
	}
	return found, nil
}

// CheckFiles reads what lies on the disk: the packages that wait, and the receipts of
// the folders that are kept.
func (c *Checker) CheckFiles(ctx context.Context, r *Result) error {
	var owed time.Duration // of rest: most entries take so little that a timer for each would be the larger part
	return c.Ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		began := time.Now()
		what, err := c.checkFile(ctx, e)
		if err == nil && what == "" {
			if owed += 2 * time.Since(began); owed < pause {
				return context.Cause(ctx)
			}
			err, owed = waitFor(ctx, owed), 0
			return err
		}
		now, ok, readErr := c.Ledger.Entry(e.Key) // it may have moved on meanwhile
		list := &r.Files
		if unread, is := errors.AsType[*unreadError](err); is {
			list, what, err = &r.Unread, unread.Error(), nil
		}
		if ok && readErr == nil && now.Rev == e.Rev && what != "" && len(*list) < namedFew {
			*list = append(*list, e.Key.String()+": "+what)
		}
		return errors.Join(err, readErr)
	})
}

func (c *Checker) checkFile(ctx context.Context, e ledger.Entry) (what string, err error) {
	switch {
	case e.State >= ledger.Packaged && e.State <= ledger.Unclear && !e.Package.IsZero():
		return c.checkPackage(ctx, e)
	case e.State == ledger.Archived && e.Source == ledger.Kept:
		return c.checkReceipt(e)
	}
	return "", context.Cause(ctx)
}

// checkPackage compares a package in the spool with its digest.
func (c *Checker) checkPackage(ctx context.Context, e ledger.Entry) (what string, err error) {
	intact, err := c.Spool.HasDigest(ctx, e.Route, e.Key, e.Package, func(took time.Duration) error { return waitFor(ctx, 2*took) })
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is made anew when it is needed
		return "", nil
	case err != nil:
		return "", err
	case !intact:
		return "its package in the spool has another digest than when it was sealed", nil
	}
	return "", nil
}

// checkReceipt compares the receipt of a kept folder with what the ledger would write.
// A folder that people took away has none. One that cannot be read is an [*unreadError].
func (c *Checker) checkReceipt(e ledger.Entry) (what string, err error) {
	for _, r := range c.Drops {
		if r.Settings.Name != e.Drop {
			continue
		}
		f, done, err := r.HoldOpen()
		if err != nil {
			return "", nil // the drop is away, and says so itself
		}
		defer done()
		dir, err := f.OpenPlaced(e.Dest, drop.Inode(e.Node))
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil // taken away by people
		}
		if err != nil {
			return "", &unreadError{err}
		}
		defer dir.Close() // read-only
		file, _, err := durable.OpenRegular(dir.Root(), "_RECEIPT.json")
		if errors.Is(err, fs.ErrNotExist) {
			return "its kept folder has lost its receipt", nil
		}
		_, mount := errors.AsType[*durable.MountError](err)
		if errors.Is(err, fs.ErrInvalid) && !mount {
			return "the receipt in its kept folder is no regular file", nil
		}
		if err != nil {
			return "", &unreadError{err}
		}
		defer file.Close() // read-only
		text, err := io.ReadAll(io.LimitReader(file, mostReceipt))
		if err != nil {
			return "", &unreadError{err}
		}
		return c.compareReceipt(e, text)
	}
	return "", nil
}

func (c *Checker) compareReceipt(e ledger.Entry, text []byte) (what string, err error) {
	doc, ok, err := c.Ledger.Document(e.Key)
	if err != nil || !ok || doc.IsOnlyAsRead() { // found in the archive's index: there is nothing to compare with
		return "", err
	}
	want, err := proof.NewReceipt(c.Environment, e, doc, nil)
	if err != nil {
		return "", err
	}
	// One that was never signed was confirmed by the archive when the ledger was rebuilt.
	if _, bad := proof.CheckSignature(text, c.Ledger.Info().ReceiptKeys); bad != nil && !errors.Is(bad, proof.ErrUnsigned) {
		return "the receipt in its kept folder " + bad.Error(), nil
	}
	have, err := proof.ParseReceipt(text)
	have.Double, have.Journal = want.Double, want.Journal // may have come later
	have.Differs = nil                                    // was said of the folder of then
	if err != nil || !reflect.DeepEqual(have, want) {
		return "the receipt in its kept folder is not the one that was written", nil // said so
	}
	return "", nil
}

// waitFor waits, so that a check never takes the disk from the work.
func waitFor(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(min(d, time.Second))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
