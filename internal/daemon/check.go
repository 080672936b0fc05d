package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"sync"
	"syscall"
	"time"

	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/proof"
)

// Checked is what the last full check found. Texts hold no name of a folder.
type Checked struct {
	At     time.Time // when it ended; zero: none has yet
	Ledger []string  // what is wrong with the ledger: the first few, in words
	Files  []string  // packages and receipts that are not what the ledger says
	Unread []string  // receipts that could not be read: nothing is known of them
	Failed string    // why it could not be made; empty: it was
}

// OK reports whether nothing was found, and all could be read.
func (c Checked) OK() bool { return len(c.Ledger)+len(c.Files)+len(c.Unread) == 0 && c.Failed == "" }

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

// checker holds the ledger to its promises beside the work: at once after the start, and
// then again and again.
type checker struct {
	wake chan struct{} // size 1: somebody else met damage

	mu   sync.Mutex
	last Checked // guarded by mu
}

const (
	checkRest  = 5 * time.Millisecond // between two short transactions
	checkRetry = time.Hour            // after a check that could not be made
	namedFew   = 20                   // findings of one kind that are told
)

func newChecker() *checker { return &checker{wake: make(chan struct{}, 1)} }

// CheckNow has the whole ledger checked at once: somebody met damage in it. It never
// blocks, and does nothing where the ledger is known to be damaged.
func (d *Daemon) CheckNow() {
	if s, is := d.ledger.SafeMode(); is && s.Mark == ledger.MarkDamaged {
		return
	}
	select {
	case d.check.wake <- struct{}{}:
	default:
	}
}

func (c *checker) found() Checked {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *checker) run(ctx context.Context, d *Daemon) {
	every := d.cfg.CheckEvery
	timer := time.NewTimer(0)
	defer timer.Stop()
	if every <= 0 {
		timer.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
		found := d.examine(ctx)
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		c.last = found
		c.mu.Unlock()
		d.judge(ctx, found)
		switch {
		case every <= 0:
		case found.Failed != "":
			timer.Reset(min(every, checkRetry))
		default:
			timer.Reset(every)
		}
	}
}

// judge tells what a check found. Damage in the ledger enters safe mode: what it says of
// the folders cannot be relied on any more.
func (d *Daemon) judge(ctx context.Context, found Checked) {
	log := d.cfg.Log
	switch {
	case found.Failed != "":
		log.Error("the ledger was not checked", "err", found.Failed)
		return
	case found.OK():
		log.Info("the ledger was checked: nothing differs")
		return
	}
	for _, what := range found.Files {
		log.Error("a file is not what the ledger says", "what", what)
	}
	for _, what := range found.Unread {
		log.Warn("a file could not be checked", "what", what)
	}
	if len(found.Ledger) == 0 {
		return
	}
	for _, what := range found.Ledger {
		log.Error("the ledger is damaged", "what", what)
	}
	if s, is := d.ledger.SafeMode(); is && s.Mark == ledger.MarkDamaged {
		return
	}
	cause := found.Ledger[0]
	if more := len(found.Ledger) - 1; more > 0 {
		cause += fmt.Sprintf(", and %d more", more)
	}
	err := d.ledger.CommitMark(ctx, ledger.Mark{Name: ledger.MarkDamaged, By: ledger.Operator{UID: ledger.VaultdUID}, Cause: clip(cause, 500), At: d.cfg.Now().Wall}, nil)
	if err != nil {
		d.die(fmt.Errorf("the ledger is damaged, and does not take that down: %w", err))
		return
	}
	d.tellSafe()
	d.statusFiles.AllChanged()
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// examine makes one check. What it finds in a ledger at work it looks for once more: a
// finding that was about two moments is gone then.
func (d *Daemon) examine(ctx context.Context) (c Checked) {
	for range 2 {
		found, err := d.examineLedger(ctx)
		if err != nil {
			c.Failed, c.At = err.Error(), d.cfg.Now().Wall
			return c
		}
		if c.Ledger = found; len(found) == 0 {
			break
		}
	}
	if len(c.Ledger) == 0 {
		err := d.examineFiles(ctx, &c)
		if broken, ok := errors.AsType[*ledger.DamageError](err); ok {
			c.Ledger = append(c.Ledger, broken.What)
		} else if err != nil {
			c.Failed = err.Error()
		}
	}
	c.At = d.cfg.Now().Wall
	return c
}

// examineLedger checks chain, records, indexes, the journal folded anew, and the balance.
func (d *Daemon) examineLedger(ctx context.Context) (found []string, err error) {
	add := func(what string) {
		if len(found) < namedFew {
			found = append(found, what)
		}
	}
	problems, err := d.ledger.VerifySlowly(ctx, checkRest)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		add(p.Where + ": " + p.What)
	}
	report, moved, err := Prove(ctx, d.ledger)
	if broken, ok := errors.AsType[*ledger.DamageError](err); ok {
		add(broken.What)
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	for _, f := range report.Findings {
		if !moved[f.Key] {
			add(f.String())
		}
	}
	return found, nil
}

// examineFiles reads what lies on the disk: the packages that wait, and the receipts of
// the folders that are kept.
func (d *Daemon) examineFiles(ctx context.Context, c *Checked) error {
	var owed time.Duration // of rest: most entries take so little that a timer for each would be the larger part
	return d.ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		began := time.Now()
		what, err := d.examineFile(ctx, e)
		if err == nil && what == "" {
			if owed += 2 * time.Since(began); owed < checkRest {
				return context.Cause(ctx)
			}
			err, owed = rest(ctx, owed), 0
			return err
		}
		now, ok, readErr := d.ledger.Entry(e.Key) // it may have moved on meanwhile
		list := &c.Files
		if unread, is := errors.AsType[*unreadError](err); is {
			list, what, err = &c.Unread, unread.Error(), nil
		}
		if ok && readErr == nil && now.Rev == e.Rev && what != "" && len(*list) < namedFew {
			*list = append(*list, e.Key.String()+": "+what)
		}
		return errors.Join(err, readErr)
	})
}

func (d *Daemon) examineFile(ctx context.Context, e ledger.Entry) (what string, err error) {
	switch {
	case e.State >= ledger.Packaged && e.State <= ledger.Unclear && !e.Package.IsZero():
		return d.examinePackage(ctx, e)
	case e.State == ledger.Archived && e.Source == ledger.Kept:
		return d.examineReceipt(e)
	}
	return "", context.Cause(ctx)
}

// examinePackage holds a package in the spool against its digest.
func (d *Daemon) examinePackage(ctx context.Context, e ledger.Entry) (what string, err error) {
	intact, err := d.spool.HasDigest(ctx, e.Key, e.Package, func(took time.Duration) error { return rest(ctx, 2*took) })
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

const mostReceipt = 16 << 20

// examineReceipt holds the receipt of a kept folder against what the ledger would write.
// A folder that people took away has none. One that cannot be read is an [*unreadError].
func (d *Daemon) examineReceipt(e ledger.Entry) (what string, err error) {
	for _, r := range d.drops {
		if r.Settings.Name != e.Drop {
			continue
		}
		f, done, err := r.Hold()
		if err != nil {
			return "", nil //nolint:nilerr // the drop is away, and says so itself
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
		return d.compareReceipt(e, text)
	}
	return "", nil
}

func (d *Daemon) compareReceipt(e ledger.Entry, text []byte) (what string, err error) {
	doc, ok, err := d.ledger.Document(e.Key)
	if err != nil || !ok || doc.IsOnlyAsRead() { // found in the archive's index: there is nothing to compare with
		return "", err
	}
	want, err := proof.NewReceipt(d.cfg.Environment, e, doc, nil)
	if err != nil {
		return "", err
	}
	have, err := proof.ParseReceipt(text)
	have.Double, have.Journal = want.Double, want.Journal // may have come later
	have.Differs = nil                                    // was said of the folder of then
	if err != nil || !reflect.DeepEqual(have, want) {
		return "the receipt in its kept folder is not the one that was written", nil //nolint:nilerr // said so
	}
	return "", nil
}

// rest waits, so that a check never takes the disk from the work.
func rest(ctx context.Context, d time.Duration) error {
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
