package selfcheck

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/spool"
)

// Result is what a check found. Texts hold no name of a folder. What is found of
// kept folders goes into their entries.
type Result struct {
	At     time.Time // when it ended; zero: none has yet
	Ledger []string  // what is wrong with the ledger: the first few, in words
	Files  []string  // packages and claimed folders that are not what the ledger says
	Unread []string  // packages and folders that could not be read: nothing is known of them
	Kept   int       // kept folders about which something new was found
	Failed string    // why the ledger could not be checked; empty: it was

	MayPass bool // it failed for want of time, memory or room alone, and may succeed without anybody
}

// OK reports whether nothing was found, and all could be read.
func (c Result) OK() bool {
	return len(c.Ledger)+len(c.Files)+len(c.Unread)+c.Kept == 0 && c.Failed == ""
}

// Checker is what one check reads.
type Checker struct {
	Verification
	Ledger  *boltledger.Ledger
	Spool   *spool.Spool
	Drops   []*dropwork.Drop
	MinFree int64 // bytes that stay free on the disk of the state directory

	// KeptFound commits what was found of the kept folder of an entry. It returns
	// false where the entry changed meanwhile.
	KeptFound func(context.Context, ledger.Entry, ledger.SourceChecked) (bool, error)
}

const (
	pause    = 5 * time.Millisecond // between two files
	namedFew = 20                   // findings of one kind that are named
)

// unreadError says that a file could not be read. That is no word about the file: neither that it is gone nor that it is another.
type unreadError struct {
	what  string
	cause error
}

// Error names no folder.
func (e *unreadError) Error() string {
	why := "the system does not say why"
	if _, mount := errors.AsType[*durable.MountError](e.cause); mount {
		why = "something is mounted there"
	} else if errno, ok := errors.AsType[syscall.Errno](e.cause); ok {
		why = errno.Error()
	}
	return "its " + e.what + " cannot be read, and nothing is known of it: " + why
}

// Check makes one check: of a copy of the ledger, then of the files.
func (c *Checker) Check(ctx context.Context) (r Result) {
	var err error
	r.Ledger, err = c.checkLedger(ctx)
	if broken, ok := errors.AsType[*ledger.DamageError](err); ok { // that keeps it from being copied
		r.Ledger = []string{broken.What}
	} else if err != nil {
		r.Failed, r.MayPass = err.Error(), isOfWant(err)
	} else if len(r.Ledger) == 0 {
		c.Ledger.NoteSound() // now, because a kill during what follows says nothing of it
		err := c.CheckFiles(ctx, &r)
		if broken, ok := errors.AsType[*ledger.DamageError](err); ok {
			r.Ledger = append(r.Ledger, broken.What)
		} else if err != nil {
			r.Unread = append(r.Unread, "the rest was not read: "+err.Error())
		}
	}
	r.At = c.Now()
	return r
}

// LastChecked returns when the whole ledger was checked last without a finding,
// or where that is unknown, as after a clock that was ahead, when it was made.
func (c *Checker) LastChecked() time.Time {
	if past, _ := c.readCheckpoint(c.Ledger); past != nil && !past.Whole.After(c.Now()) { // why it cannot be read is said by the check
		return past.Whole
	}
	return c.Ledger.Info().Created
}

// checkLedger verifies the whole ledger: chain, records, indexes, the journal replayed, and the balance. Without a finding
// it leaves a checkpoint, from which "vaultd verify" goes on.
func (c *Checker) checkLedger(ctx context.Context) (found []string, err error) {
	add := func(what string) {
		if len(found) < namedFew {
			found = append(found, what)
		}
	}
	v, err := c.VerifyCopy(ctx, c.Ledger, c.MinFree)
	if err != nil {
		return nil, err
	}
	// v.OtherPast is for the person who verifies: the ledger itself is sound, and nothing that waits depends on its former past.
	for _, p := range v.Problems {
		add(p.Where + ": " + p.What)
	}
	for _, f := range v.Report.Findings {
		add(f.String())
	}
	return found, nil
}

// CheckFiles reads what is on the disk: the packages that wait, and the folders that
// are claimed or kept.
func (c *Checker) CheckFiles(ctx context.Context, r *Result) error {
	looks := c.beginLooks()
	if err := c.checkEntries(ctx, looks, r); err != nil {
		return err
	}
	for _, l := range looks {
		l.end()
	}
	return nil
}

func (c *Checker) checkEntries(ctx context.Context, looks map[string]*look, r *Result) error {
	var owed time.Duration // of rest: most entries take so little that a timer for each would be the larger part
	return c.Ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		began := time.Now()
		what, err := c.checkFile(ctx, looks[e.Drop], e, r)
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

func (c *Checker) checkFile(ctx context.Context, l *look, e ledger.Entry, r *Result) (what string, err error) {
	if e.State >= ledger.Packaged && e.State <= ledger.Unclear && !e.Package.IsZero() {
		what, err = c.checkPackage(ctx, e)
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	switch {
	case err != nil || what != "" || l == nil:
		return what, err
	case e.NeedsReconcile:
		l.isPart = true
	case e.Source == ledger.Claimed:
		return l.lookForClaim(e)
	case e.Source == ledger.Kept && (e.State == ledger.Archived || e.State == ledger.Delivered):
		return "", c.lookAtKept(ctx, l, e, r)
	}
	return "", nil
}

// checkPackage compares a package in the spool with its digest.
func (c *Checker) checkPackage(ctx context.Context, e ledger.Entry) (what string, err error) {
	intact, err := c.Spool.HasDigest(ctx, e.Route, e.Key, e.Package, func(took time.Duration) error { return waitFor(ctx, 2*took) })
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is made anew when it is needed
		return "", nil
	case err != nil:
		return "", &unreadError{"package", err}
	case !intact:
		return "its package in the spool has another digest than when it was sealed", nil
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
