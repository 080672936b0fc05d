package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/proof"
)

// errStop ends a read early on purpose.
var errStop = errors.New("stop")

// Examined is the examination of the ledger that a report is about.
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

// ErrExaminedBefore says that the entries tell otherwise than an examination
// that rests on an earlier one: the whole ledger must be examined.
var ErrExaminedBefore = errors.New("the entries add up to another balance than at the earlier examination")

// Examine reads every entry and counts what the summary shows. It returns
// errors of the ledger and of the context, and ErrExaminedBefore; what is wrong
// with the ledger is in the summary.
func Examine(ctx context.Context, c Config) (*Audit, error) {
	c.Location = cmp.Or(c.Location, time.UTC)
	if c.Person == nil {
		c.Person = func(uid uint32) string { return fmt.Sprintf("uid %d", uid) }
	}
	a := &Audit{c: c}
	t := newCounts(c)
	report := c.Examined.Proof
	t.fetches, t.acts = report.Downloads, report.Acts
	if err := t.countAll(ctx); err != nil {
		return nil, fmt.Errorf("examine the ledger: %w", err)
	}
	if t.whole != report.Balance {
		if c.Examined.RestsOn != nil {
			return nil, ErrExaminedBefore
		}
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

// countAll counts every entry. A report that goes on from the last one follows
// all lines before, whoever examined them.
func (t *counts) countAll(ctx context.Context) error {
	if t.since.on {
		err := t.c.Ledger.Lines(1, func(n uint64, line []byte) error {
			t.since.countLine(n, line)
			return context.Cause(ctx)
		})
		if err != nil {
			return err
		}
		t.since.sortEnded()
	}
	return inOrder(t.c.Ledger.EntriesOldestFirst, t.readEntry, func(one readEntry) error {
		if err := t.countEntry(one); err != nil {
			return err
		}
		return context.Cause(ctx)
	})
}
