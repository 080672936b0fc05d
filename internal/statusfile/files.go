package statusfile

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/spool"
)

// Ledger is what the status files read.
type Ledger interface {
	Head() ledger.Head
	SafeMode() (ledger.SafeMode, bool)
	Entry(k archive.Key) (e ledger.Entry, ok bool, err error)
	EntriesNewestFirst(fn func(ledger.Entry) error) error
	CountAttention(class ledger.Attention, before time.Time) ([]ledger.AttentionCount, error)
	VisitAttention(class ledger.Attention, before time.Time, limit int, fn func(ledger.Entry)) error
}

// Config is what the status files tell of.
type Config struct {
	Ledger      Ledger
	Disk        *spool.Disk
	Pauses      func() []ingest.Pause // circuit breakers that are not closed
	LostSince   func() time.Time      // since when the ledger is not in its place; zero: it is
	Environment string
	Location    *time.Location // nil: UTC
	Now         func() archive.Instant
	Log         *slog.Logger
	Interval    time.Duration // a tenth of the time between two writes where nothing changes, and ten times the least; 0: half a minute
}

// Files keeps the status files of all drop folders.
type Files struct {
	cfg      Config
	overview overview
	writers  map[string]*writer // by the name of the drop; fixed once Run began
}

// New returns the status files of no drop folder yet.
func New(cfg Config) *Files {
	cfg.Location = cmp.Or(cfg.Location, time.UTC)
	cfg.Interval = cmp.Or(cfg.Interval, usualInterval)
	return &Files{cfg: cfg, writers: map[string]*writer{}}
}

// rewriteAfter is the age at which a file is written again without a change.
func (f *Files) rewriteAfter() time.Duration { return intervalsPerWrite * f.cfg.Interval }

// Add takes in a drop folder, before Run.
func (f *Files) Add(drop *dropwork.Drop) { f.writers[drop.Settings.Name] = newWriter(f, drop) }

// Run keeps the files true until ctx ends, and leaves them as things stand then.
func (f *Files) Run(ctx context.Context) {
	var g errgroup.Group
	for _, w := range f.writers {
		g.Go(func() error { w.keepFile(ctx); return nil })
	}
	_ = g.Wait() // no writer returns an error
}

// NoteChange says that something may have changed in a drop. It never blocks.
func (f *Files) NoteChange(drop string) { f.writers[drop].wakeUp() }

// NoteChangeOfAll says that something may have changed in every drop. It never blocks.
func (f *Files) NoteChangeOfAll() {
	for _, w := range f.writers {
		w.wakeUp()
	}
}

// NotePause says that a circuit breaker opened, or that it now needs a person. It never blocks.
func (f *Files) NotePause(t ingest.Target) {
	for _, w := range f.writers {
		if w.isDelayedBy(t) {
			w.wakeUp()
		}
	}
}

// NoteCommit is the commit listener of the files.
func (f *Files) NoteCommit(rs []ledger.Result) {
	for _, r := range rs {
		if w := f.writers[r.Entry.Drop]; r.Err == nil && w != nil {
			w.noteCommitted(r.Entry, f.cfg.Now().Wall)
		}
	}
}

// mostRecalled bounds the entries that a start reads for what happened today.
const mostRecalled = 200_000

// RecallToday counts what happened on this calendar day before the start. No file is written before it ended. An entry that is committed meanwhile counts once.
func (f *Files) RecallToday(ctx context.Context) error {
	errEnough := errors.New("enough")
	y, m, day := f.cfg.Now().Wall.In(f.cfg.Location).Date()
	horizon, seen := time.Date(y, m, day-1, 0, 0, 0, 0, f.cfg.Location), 0
	err := f.cfg.Ledger.EntriesNewestFirst(func(e ledger.Entry) error {
		if seen++; seen > mostRecalled || e.Key.Time().Before(horizon) {
			return errEnough
		}
		if w := f.writers[e.Drop]; w != nil {
			w.mu.Lock()
			w.day.addEarlier(e, f.cfg.Now().Wall.In(f.cfg.Location))
			w.mu.Unlock()
		}
		return context.Cause(ctx)
	})
	for _, w := range f.writers {
		w.mu.Lock()
		w.day.endRecall()
		w.mu.Unlock()
		w.wakeUp()
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
