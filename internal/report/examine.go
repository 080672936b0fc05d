package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/proof"
)

// errStop ends a read early on purpose.
var errStop = errors.New("stop")

// Examined is an examination of the ledger that was made before the report and found nothing.
type Examined struct {
	Proof   proof.Report // of the whole ledger; its entries are those that were held against their lines now
	RestsOn *RestsOn     // nil: all lines were replayed now
}

// RestsOn is the earlier examination that one rests on. Lines up to Line, and entries that are at rest and have not changed since, were
// examined then and not now.
type RestsOn struct {
	Line    uint64         // of the journal
	Hash    archive.Digest // of the chain there
	At      time.Time      // of that examination; its program is the one that makes the report
	Whole   time.Time      // when the whole ledger was examined last
	ToLine  uint64         // up to which line, then
	Entries uint64         // that were not held against their lines now
}

// Examine finds out what the summary shows. If c brings no examination it makes
// one: it replays the journal up to c.Head, and compares the entries with it.
// Then it reads every entry and counts what the summary shows. It returns
// errors of the ledger and of the context only; what is wrong with the ledger
// is in the summary.
//
// Its memory does not grow with the ledger. An examination that c brings is not
// believed where the entries that are counted tell otherwise: then everything
// is examined. If something differs, everything is read a second time by a
// check that remembers all entries, because only that one can name all of them.
// If that are too many, verify names them.
func Examine(ctx context.Context, c Config) (*Audit, error) {
	return examineNaming(ctx, c, rememberedAtMost)
}

// rememberedAtMost is how many entries the second check may remember, some 300 bytes each.
const rememberedAtMost = 300_000

// examineNaming is Examine with a second check of at most so many entries.
func examineNaming(ctx context.Context, c Config, most uint64) (*Audit, error) {
	c.Location = cmp.Or(c.Location, time.UTC)
	if c.Person == nil {
		c.Person = func(uid uint32) string { return fmt.Sprintf("uid %d", uid) }
	}
	if len(c.Problems) > 0 {
		c.Examined = nil
	}
	a := &Audit{c: c}
	r := &reader{c: c}
	var report proof.Report
	if c.Examined != nil {
		report = c.Examined.Proof
	} else {
		report = proof.Check(r.journal(ctx, r.entry()), r.entries(ctx))
	}
	t := newCounts(c)
	t.fetches, t.acts = report.Downloads, report.Acts
	r.count(ctx, t)
	if r.failed != nil {
		return nil, fmt.Errorf("examine the ledger: %w", r.failed)
	}
	differs := func() bool { return t.whole != report.Balance }
	isEqual := t.registrations.hasEqual()
	again := !report.OK() || differs() || isEqual
	if again && c.Examined != nil {
		c.Examined = nil
		return examineNaming(ctx, c, most)
	}
	switch {
	case again && t.whole.Seen <= most:
		r := &reader{c: c}
		report = proof.Check(r.journal(ctx, nil), r.entries(ctx))
		if r.failed != nil {
			return nil, fmt.Errorf("examine the ledger: %w", r.failed)
		}
	case isEqual:
		report.Findings = append(report.Findings, proof.Finding{Promise: "I8", Text: "two entries list the same registration; vaultd verify --whole names them"})
	}
	if differs() {
		report.Findings = append(report.Findings, proof.Finding{Promise: "I12",
			Text: fmt.Sprintf("the entries add up to another balance than the journal: %v", t.whole)})
	}
	for _, p := range c.Problems {
		report.Findings = append(report.Findings, proof.Finding{Promise: "I14", Text: p.Where + ": " + p.What})
	}
	a.counts, a.proof, a.match, a.since = t.selected, report, t.match, t.since
	a.hasDeliveries = t.deliveries.hasRows
	var err error
	a.Summary, err = a.newSummary(t)
	return a, err
}

// reader reads a ledger for one check up to the head of the audit.
type reader struct {
	c Config

	mu     sync.Mutex // lines are read ahead, while entries are looked up
	failed error      // guarded by mu until the check has ended
}

func (r *reader) keep(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !errors.Is(err, errStop) {
		r.failed = errors.Join(r.failed, err)
	}
}

// lines yields the journal up to the head of the audit.
func (r *reader) lines(ctx context.Context) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		r.keep(r.c.Ledger.Lines(1, func(n uint64, line []byte) error {
			if !yield(n, line) {
				return errStop
			}
			return context.Cause(ctx)
		}))
	}
}

// journal returns the journal. entry looks an entry up; nil: the check remembers all of them.
func (r *reader) journal(ctx context.Context, entry func(archive.Key) (ledger.Entry, bool)) proof.Journal {
	return proof.Journal{Lines: r.lines(ctx), Head: r.c.Head, Balance: &r.c.Balance, Entry: entry}
}

// count counts every entry. A report that goes on from the last one follows all lines before, whoever examined them.
func (r *reader) count(ctx context.Context, t *counts) {
	if t.since.on {
		for n, line := range r.lines(ctx) {
			t.since.countLine(n, line)
		}
		t.since.sortEnded()
	}
	r.keep(inOrder(r.c.Ledger.EntriesOldestFirst, t.readEntry, func(one readEntry) error {
		if err := t.countEntry(one); err != nil {
			return err
		}
		return context.Cause(ctx)
	}))
}

// entry returns the function that looks an entry up.
func (r *reader) entry() func(archive.Key) (ledger.Entry, bool) {
	return proof.KeepRecent(func(k archive.Key) (ledger.Entry, bool) {
		e, ok, err := r.c.Ledger.Entry(k)
		r.keep(err)
		return e, ok
	})
}

// entries returns all entries.
func (r *reader) entries(ctx context.Context) iter.Seq[ledger.Entry] {
	return func(yield func(ledger.Entry) bool) {
		r.keep(r.c.Ledger.EntriesOldestFirst(func(e ledger.Entry) error {
			if !yield(e) {
				return errStop
			}
			return context.Cause(ctx)
		}))
	}
}

// numberSet tells whether two entries list the same registration, in eight bytes for each.
type numberSet struct {
	seed   maphash.Seed
	hashes []uint64
}

// addOf adds the registrations of an entry, each number once.
func (s *numberSet) addOf(e ledger.Entry) {
	for i, r := range e.Registrations {
		n := r.Ticket.Remote
		isSame := func(before ledger.Registration) bool { return before.Ticket.Remote == n }
		if n != "" && !slices.ContainsFunc(e.Registrations[:i], isSame) {
			s.hashes = append(s.hashes, maphash.String(s.seed, string(n)))
		}
	}
}

// hasEqual reports whether two entries may have the same number. It orders the set anew.
func (s *numberSet) hasEqual() bool {
	slices.Sort(s.hashes)
	for i := 1; i < len(s.hashes); i++ {
		if s.hashes[i] == s.hashes[i-1] {
			return true
		}
	}
	return false
}
