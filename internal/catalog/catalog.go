package catalog

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
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
	StateDir   string // the file lies there; empty: there is none, and questions are answered from a private one
	Ledger     Ledger
	Location   *time.Location // the time zone in which the days of the figures begin; nil: UTC
	Log        *slog.Logger
	CheckSpace func() error // says why nothing may be written for want of room; nil: there always is room
}

// Catalog is the catalog of one ledger. Its methods may be called from several goroutines.
type Catalog struct {
	cfg    Config
	isKept bool          // Run keeps it; false: what questions need is made for them, see openPrivate
	wake   chan struct{} // size 1: the ledger may have committed, or somebody met damage in the file

	writing sync.Mutex // held while rows are entered, by Run or for a question; taken before the others
	w       *writer    // guarded by writing; nil: no file is open for writing

	reading sync.RWMutex // read-locked while a question reads the file, write-locked while the file is closed; taken before mu

	mu     sync.Mutex    // never held while SQLite works: the health page and the metrics wait for it
	file   *readable     // guarded by mu; nil: no file is open that can be asked
	told   Status        // guarded by mu
	damage *rebuildError // guarded by mu; of told.Damaged

	uncounted bool // guarded by mu; true: the writer counts the rows as soon as it can
}

// readable is an open file as searches read it.
type readable struct {
	db    queryer
	close func() error
	at    ledger.Head // as committed; guarded by the catalog's mu
	of    fs.FileInfo

	isPrivate bool // no file of the state directory, see openPrivate

	ending context.Context // ended: searches are to stop
	end    context.CancelFunc
}

// queryer is a database, or one connection of it.
type queryer interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

func newReadable(db queryer, close func() error, at ledger.Head, of fs.FileInfo) *readable {
	f := &readable{db: db, close: close, at: at, of: of}
	f.ending, f.end = context.WithCancel(context.Background()) //lint:ignore forbidigo it ends with the file, and not with who opened it
	return f
}

// errEnding says that a search was ended because vaultd stops.
var errEnding = fmt.Errorf("vaultd is stopping: %w", context.Canceled)

// untilEnd returns a context for one question to the file: it ends when ctx does, and when vaultd stops, which waits for no search.
// done must be called with what came of it, and returns what to say of that.
func (f *readable) untilEnd(ctx context.Context) (question context.Context, done func(error) error) {
	question, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(f.ending, cancel)
	return question, func(err error) error {
		stop()
		cancel()
		if err != nil && f.ending.Err() != nil {
			return errEnding
		}
		return err
	}
}

// Status tells how a catalog is.
type Status struct {
	Made    int    // percent of it; 100: it has all but the last few seconds
	Fault   string // why it stopped; empty: it works
	Damaged string // what a search met in the file since it was opened; may be empty
	IsOff   bool   // none is kept
}

// New returns the catalog of a ledger, which Run keeps.
func New(cfg Config) *Catalog {
	isOff := cfg.StateDir == ""
	cfg.Location = cmp.Or(cfg.Location, time.UTC)
	return &Catalog{cfg: cfg, isKept: !isOff, wake: make(chan struct{}, 1), told: Status{IsOff: isOff}}
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
	case s.IsOff:
		return ""
	case s.Fault != "":
		return "the catalog is not complete: " + s.Fault
	case s.Made < 100:
		return fmt.Sprintf("the catalog is at %d %%", s.Made)
	}
	return ""
}

const (
	gatherTime   = 10 * time.Second       // from a commit of the ledger until the catalog follows, so that a document changes few times in it
	gatherLines  = 10_000                 // lines for which it follows at once
	batchLines   = 20_000                 // in one transaction
	retryAfter   = time.Minute            // after a fault
	retryDamaged = time.Hour              // after damage in the ledger: each try may read all of it
	startFirst   = 300 * time.Millisecond // from the start until a file is made anew: reading all entries must not delay the start
	mostBehind   = 3 * gatherLines        // lines that are entered while a question waits
)

// rebuildError says that the file must be made anew.
type rebuildError struct{ why string }

func (e *rebuildError) Error() string { return e.why }

var errMissing = &rebuildError{"there is none"}

// Run keeps the catalog until ctx ends. It never returns for a fault: it says it once, and tries again later.
func (c *Catalog) Run(ctx context.Context) {
	if c.cfg.StateDir == "" {
		return
	}
	var made time.Time // when the file was made anew last
	for {
		err := c.follow(ctx, !made.IsZero())
		if ctx.Err() != nil {
			return
		}
		if again := reasonToRebuild(err); again != nil {
			level := slog.LevelWarn
			switch again {
			case errMissing: // as after the first start
				level = slog.LevelInfo
			case errErased:
				level = slog.LevelInfo
				// At once, and not after the wait below. A crash before this
				// line leaves the file at the line before the erasure, which
				// the next start comes to again. If it cannot be removed,
				// rebuild says so.
				_ = removeWithBesides(c.path())
			}
			c.cfg.Log.Log(ctx, level, "the catalog is made anew", "why", again.why)
			c.waitFor(ctx, max(startFirst, retryAfter-time.Since(made))) // a disk that damages every file keeps nobody busy
			// A crash here leaves no file or an unfinished one, and the next start makes it anew.
			err = c.rebuild(ctx)
			made = time.Now()
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		wait := retryAfter
		if _, damaged := errors.AsType[*ledger.DamageError](err); damaged {
			wait = retryDamaged
		}
		c.noteFault(err, findsNumbers, wait)
		c.waitFor(ctx, wait)
	}
}

func (c *Catalog) waitFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// What a fault means for those who search.
const (
	findsNumbers = "until it goes on, people find by key, clientUUID and bumId alone"
	findsBefore  = "what people ask for is found as before, but for what changed since: each answer says so"
)

// noteFault logs a fault once, however often it comes.
func (c *Catalog) noteFault(err error, means string, wait time.Duration) {
	c.mu.Lock()
	known := c.told.Fault == err.Error()
	c.told.Fault = err.Error()
	c.mu.Unlock()
	if !known {
		c.cfg.Log.Error("the catalog stopped; documents are archived as before, and "+means, "err", err, "again_in", wait)
	}
}

// follow opens the file and enters what the ledger commits, until ctx ends or the file cannot go on. isFresh says that it was made
// anew by this process, and that its rows were not found right since.
func (c *Catalog) follow(ctx context.Context, isFresh bool) (err error) {
	w, info, err := c.openFile(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.closeFile(ctx, w)) }()
	var counted time.Time
	for ctx.Err() == nil {
		if err := c.checkFile(info); err != nil {
			return err
		}
		c.writing.Lock()
		err := c.catchUp(ctx, w)
		c.writing.Unlock()
		if err != nil {
			if reasonToRebuild(err) != nil || ctx.Err() != nil {
				return err
			}
			// Nothing of the batch is in the file. Questions are answered from what is.
			c.noteFault(err, findsBefore, retryAfter)
			c.waitFor(ctx, retryAfter)
			continue
		}
		if time.Since(counted) >= countEvery || c.isUncounted() {
			c.writing.Lock()
			done, err := c.checkCounts(ctx, w)
			c.writing.Unlock()
			differs := reasonToRebuild(err)
			switch {
			case differs != nil && isFresh: // then the balance is wrong, which the check of the ledger tells
				c.cfg.Log.Error("the catalog was made anew and differs", "why", differs.why)
				done = true
			case err != nil:
				return err
			case done:
				isFresh = false // it agreed once: what differs later is the file
			}
			if done {
				counted = time.Now()
				c.noteCounted()
			}
		}
		c.noteWorks()
		c.awaitLines(ctx)
	}
	c.catchUpLast(context.WithoutCancel(ctx), w)
	return nil
}

// catchUpLast enters the last lines before the file is closed, so that a
// command that runs alone has little to enter. Without it, or after a crash
// before it, that command or the next start enters them.
func (c *Catalog) catchUpLast(ctx context.Context, w *writer) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.cfg.Ledger.Head().N-w.at.N < gatherLines {
		_ = c.catchUp(ctx, w)
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

// awaitLines waits until the ledger has lines that the file does not tell of,
// and then a little for more of them.
func (c *Catalog) awaitLines(ctx context.Context) {
	var gathered <-chan time.Time // nil: nothing to gather yet
	for {
		c.mu.Lock()
		n := c.file.at.N
		c.mu.Unlock()
		newer := c.cfg.Ledger.Head().N - n
		if newer >= gatherLines || c.Status().Damaged != "" || newer == 0 && c.isUncounted() {
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

// catchUp enters all lines that the journal has now.
func (c *Catalog) catchUp(ctx context.Context, w *writer) error {
	for ctx.Err() == nil {
		keys, head, err := c.readChanged(w.at)
		if err != nil || head.N == w.at.N {
			return err
		}
		if c.cfg.CheckSpace != nil {
			if err := c.cfg.CheckSpace(); err != nil {
				return err
			}
		}
		plain := context.WithoutCancel(ctx) // a batch is short; SQLite would start a goroutine for each statement that can be cancelled
		err = w.inTransaction(plain, head, func() error { return c.enterAll(plain, w, keys) })
		if err != nil {
			return fmt.Errorf("write %s: %w", FileName, err)
		}
		if w == c.w { // else it is private, and open before it is asked
			c.noteProgress(w.at)
		}
	}
	return nil
}

// noteProgress makes a committed position known to searches.
func (c *Catalog) noteProgress(at ledger.Head) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.file.at = at
}

// percentOf returns n of all in percent. A few lines less than all count as all of them.
func percentOf(n, all uint64) int {
	if n+mostBehind >= all {
		return 100
	}
	return int(n * 100 / all)
}
