package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// FileName is the catalog's file in the state directory.
const FileName = "catalog.db"

// Journal is the part of the ledger that tells what changed.
type Journal interface {
	Info() ledger.Info
	Head() ledger.Head
	// HeadAt returns the head as it was after line n; ok is false where the journal ends before it.
	HeadAt(n uint64) (h ledger.Head, ok bool, err error)
	Lines(from uint64, fn func(n uint64, line []byte) error) error
}

// Entries is the part of the ledger that tells what is known of each document.
type Entries interface {
	Entry(archive.Key) (ledger.Entry, bool, error)
	Document(archive.Key) (ledger.Document, bool, error)
	EntriesOldestFirst(fn func(ledger.Entry) error) error
	EntriesNewestFirst(fn func(ledger.Entry) error) error
}

// Ledger is what the catalog is made from.
type Ledger interface {
	Journal
	Entries
	Balance() ledger.Balance
}

// Config says of what a catalog is made and where it lies.
type Config struct {
	StateDir   string // the file lies there; empty: none is kept
	Ledger     Ledger
	Location   *time.Location // the time zone in which the days of the figures begin; nil: UTC
	Log        *slog.Logger
	CheckSpace func() error // says why nothing may be written for want of room; nil: there always is room
}

// Catalog is the catalog of one ledger. Its methods may be called from several goroutines.
type Catalog struct {
	cfg    Config
	isKept bool          // Run opens the file and makes it; false: questions do
	wake   chan struct{} // size 1: the ledger may have committed, or somebody met damage in the file

	writing sync.Mutex // held while the file is opened, changed or closed; taken before the others
	made    time.Time  // guarded by writing; when this process made the file last
	counted time.Time  // guarded by writing; when its rows were counted last

	reading sync.RWMutex // read-locked while a question reads the file, write-locked while the file is closed; taken before mu

	mu     sync.Mutex    // never held while SQLite works: the health page and the metrics wait for it
	file   *file         // guarded by mu, and changed under writing; nil: none is open
	told   Status        // guarded by mu
	damage *rebuildError // guarded by mu; why the open file must be made anew; nil: nobody knows a reason
}

// Status tells how a catalog is.
type Status struct {
	Made  int    // percent of it; 100: it has all but the last few seconds
	Fault string // why it stopped; empty: it works
}

// New returns the catalog of a ledger, which Run keeps.
func New(cfg Config) *Catalog {
	cfg.Location = cmp.Or(cfg.Location, time.UTC)
	if cfg.CheckSpace == nil {
		cfg.CheckSpace = func() error { return nil }
	}
	c := &Catalog{cfg: cfg, isKept: true, wake: make(chan struct{}, 1)}
	if cfg.StateDir == "" {
		c.told.Made = 100
	}
	return c
}

// OpenStopped returns the catalog of a ledger for a command that has the lock of
// the state directory and works as its owner, while no daemon runs. The first
// question opens the file, and enters what it lacks; one that cannot be read is
// made anew. Close closes it.
func OpenStopped(cfg Config) *Catalog {
	c := New(cfg)
	c.isKept = false
	return c
}

// Close gives back what a catalog has open that [OpenStopped] returned.
func (c *Catalog) Close() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.closeFile()
}

// Wake tells the catalog that the ledger has committed. It never blocks.
func (c *Catalog) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Status returns how the catalog is.
func (c *Catalog) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status()
}

// status is Status for callers that hold the lock.
func (c *Catalog) status() Status {
	s := c.told
	if c.file != nil {
		s.Made = percentOf(c.file.at.N, c.cfg.Ledger.Head().N)
	}
	return s
}

// Describe says how a catalog is; empty: it is complete, or none is kept.
func (s Status) Describe() string {
	switch {
	case s.Fault != "":
		return "the catalog is not complete: " + s.Fault
	case s.Made < 100:
		return fmt.Sprintf("the catalog is at %d %%", s.Made)
	}
	return ""
}

// percentOf returns n of all in percent. A few lines less than all count as all of them.
func percentOf(n, all uint64) int {
	if n+mostBehind >= all {
		return 100
	}
	return int(n * 100 / all)
}

const (
	gatherTime   = 10 * time.Second       // from a commit of the ledger until the catalog follows, so that a document changes few times in it
	gatherLines  = 10_000                 // lines for which it follows at once
	retryAfter   = time.Minute            // after a fault
	retryDamaged = time.Hour              // after damage in the ledger: each try may read all of it
	startFirst   = 300 * time.Millisecond // from the start until a file is made anew: reading all entries must not delay the start
	mostBehind   = 3 * gatherLines        // lines that are entered while a question waits
)

// Run keeps the catalog until ctx ends. It never returns for a fault: it says it once, and tries again later.
func (c *Catalog) Run(ctx context.Context) {
	if c.cfg.StateDir == "" {
		return
	}
	for ctx.Err() == nil {
		err := c.keep(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			c.noteWorks()
			c.awaitLines(ctx)
		default:
			wait := retryAfter
			if _, damaged := errors.AsType[*ledger.DamageError](err); damaged {
				wait = retryDamaged
			}
			c.noteFault(err, wait)
			c.waitFor(ctx, wait)
		}
	}
	if err := c.Close(); err != nil {
		c.cfg.Log.Warn("the catalog was not closed", "err", err)
	}
}

// keep enters what the ledger has committed. A file that does not fit is made anew.
func (c *Catalog) keep(ctx context.Context) error {
	c.writing.Lock()
	err := c.follow(ctx)
	if err == nil {
		err = c.countDaily(ctx)
	}
	again := reasonToRebuild(err)
	if again != nil {
		_ = c.closeFile() // it will be removed
	}
	c.writing.Unlock()
	if again == nil {
		return err
	}
	level := slog.LevelWarn
	switch again {
	case errMissing: // as after the first start
		level = slog.LevelInfo
	case errErased:
		level = slog.LevelInfo
		// At once, and not after the wait below. A crash before this line
		// leaves the file at the line before the erasure, which the next start
		// comes to again. If it cannot be removed, makeFile says so.
		_ = removeWithBesides(c.path())
	}
	c.cfg.Log.Log(ctx, level, "the catalog is made anew", "why", again.why)
	c.waitFor(ctx, max(startFirst, retryAfter-time.Since(c.made))) // a disk that damages every file keeps nobody busy
	if err := c.makeFile(ctx); err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.made = time.Now()
	return c.follow(ctx)
}

// follow opens the file where it is not open, and enters what the ledger has
// committed. The error is a [*rebuildError] where the file must be made anew.
// The caller holds writing.
func (c *Catalog) follow(ctx context.Context) error {
	if c.file == nil {
		if err := c.openFile(ctx); err != nil {
			return err
		}
	}
	if err := c.checkFile(c.file); err != nil {
		return err
	}
	f := c.file
	for ctx.Err() == nil {
		keys, head, err := c.readChanged(f.at)
		if err != nil || head.N == f.at.N {
			return err
		}
		if err := c.cfg.CheckSpace(); err != nil {
			return err
		}
		if err := f.enter(ctx, keys, c.readRow, head); err != nil {
			return fmt.Errorf("write %s: %w", FileName, err)
		}
		c.mu.Lock()
		f.at = head
		c.mu.Unlock()
	}
	return context.Cause(ctx)
}

func (c *Catalog) waitFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// noteFault logs a fault once, however often it comes.
func (c *Catalog) noteFault(err error, wait time.Duration) {
	means := "until it goes on, people find by key, clientUUID and bumId alone"
	c.mu.Lock()
	if c.file != nil { // nothing of the batch is in it
		means = "what people ask for is found as before, but for what changed since: each answer says so"
	}
	known := c.told.Fault == err.Error()
	c.told.Fault = err.Error()
	c.mu.Unlock()
	if !known {
		c.cfg.Log.Error("the catalog stopped; documents are archived as before, and "+means, "err", err, "again_in", wait)
	}
}

// noteWorks ends a fault.
func (c *Catalog) noteWorks() {
	c.mu.Lock()
	had := c.told.Fault
	c.told.Fault = ""
	c.mu.Unlock()
	if had != "" {
		c.cfg.Log.Info("the catalog goes on")
	}
}

// noteDamaged lets the file be made anew.
func (c *Catalog) noteDamaged(why *rebuildError) {
	c.mu.Lock()
	c.damage = why
	c.mu.Unlock()
	c.Wake()
}

// awaitLines waits until the ledger has lines that the file does not tell of,
// and then a little for more of them.
func (c *Catalog) awaitLines(ctx context.Context) {
	var gathered <-chan time.Time // nil: nothing to gather yet
	for {
		c.mu.Lock()
		newer, damage := c.cfg.Ledger.Head().N-c.file.at.N, c.damage
		c.mu.Unlock()
		if newer >= gatherLines || damage != nil {
			return
		}
		if newer > 0 && gathered == nil {
			t := time.NewTimer(gatherTime)
			defer t.Stop()
			gathered = t.C
		}
		select {
		case <-ctx.Done():
			return
		case <-gathered:
			return
		case <-c.wake:
		}
	}
}
