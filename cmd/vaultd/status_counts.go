package main

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
)

// entryCounts counts entries for people. The counts of needs come from the
// ledger's indexes, those of today's documents from the catalog: they are read
// every few seconds, and must cost the same with ten entries and with ten
// million.
type entryCounts struct {
	present.Clock
	alertAfter      time.Duration
	open            map[ledger.State]int
	byVault         map[archive.VaultID]int // open
	drops           map[string]*dropCounts
	needs           present.EntryCounts
	oldest          time.Time
	lastSuccess     time.Time
	lastDelivery    time.Time
	bills           []present.Bill
	knowsToday      bool          // what was archived and delivered today is counted
	figuresLack     string        // why that, the last delivery and the bills are not known, or not all of them
	clockComparedAt time.Time     // when the newest answer that gave the service's time was asked for
	clockAhead      time.Duration // by how much this clock was ahead of the service's then

	missing map[archive.Key]time.Time // since when the returned folders of rejections are not in their places
}

type dropCounts struct {
	open, today, delivered int
	oldest                 time.Time
}

func newEntryCounts(v view) *entryCounts {
	t := &entryCounts{
		Clock: v.Clock, alertAfter: v.cfg.Status.AlertAfter, open: map[ledger.State]int{},
		byVault: map[archive.VaultID]int{}, drops: map[string]*dropCounts{}, needs: present.EntryCounts{},
	}
	for _, d := range v.cfg.Drops {
		t.drops[d.Name] = &dropCounts{}
	}
	return t
}

// countAttention finds how many entries need attention.
func (t *entryCounts) countAttention(l *boltledger.Ledger) error {
	for _, k := range present.NeedKinds() {
		since, before := k.Bounds(t.Now, t.alertAfter)
		for _, class := range k.Classes {
			crowds, err := l.CountAttention(class, before)
			if err != nil {
				return err
			}
			var old []ledger.AttentionCount // those that are settled
			if !since.IsZero() {
				if old, err = l.CountAttention(class, since); err != nil {
					return err
				}
			}
			n := t.needs.Of(k.What)
			for _, c := range crowds {
				n.Count += t.entriesOf(k, c)
			}
			for _, c := range old {
				n.Count -= t.entriesOf(k, c)
			}
		}
	}
	return nil
}

// entriesOf returns how many of a crowd are of a kind: either all of it or
// zero, by the route.
func (t *entryCounts) entriesOf(k present.NeedKind, c ledger.AttentionCount) int {
	if !k.IsOf(c.Route) {
		return 0
	}
	return c.Entries
}

// nameLatest names the latest few of those that need a person.
func (t *entryCounts) nameLatest(l *boltledger.Ledger) error {
	for _, k := range present.NeedKinds() {
		since, before := k.Bounds(t.Now, t.alertAfter)
		for _, class := range k.Classes {
			n := t.needs.Of(k.What)
			es, err := l.LatestAttention(class, before, present.NamedAtMost-min(len(n.Entries), present.NamedAtMost))
			if err != nil {
				return err
			}
			for _, e := range es {
				if e.SeenAt.Before(since) || !k.IsOf(e.Route) {
					continue
				}
				why, err := present.SummarizeEntry(l, e, t.Location)
				if err != nil {
					return err
				}
				if since := t.missing[e.Key]; !since.IsZero() && class == ledger.RejectedUnresolved {
					why = present.DescribeMissing(e, t.Brief(since)) + ": drop it again, corrected, or vaultd close X"
				}
				if ids := present.DescribeRequests(e.Requests()); k.What == "overdue" && ids != "" {
					why = strings.TrimPrefix(why+"; request ids: "+ids, "; ")
				}
				n.Add(e, why)
			}
		}
	}
	return nil
}

// openClasses are the classes of entries that are on their way.
var openClasses = []ledger.Attention{ledger.Waiting, ledger.WaitingForRights, ledger.AwaitingDecision, ledger.RecipientNotListed, ledger.CopyNotMade}

// countOpen counts the open entries by state, drop and vault, and finds the oldest.
func (t *entryCounts) countOpen(l *boltledger.Ledger) error {
	for s, n := range l.Balance().States {
		if s := ledger.State(s); s.IsOpen() && n > 0 {
			t.open[s] = int(n)
		}
	}
	for _, class := range openClasses {
		crowds, err := l.CountAttention(class, time.Time{})
		if err != nil {
			return err
		}
		for _, of := range crowds {
			d := t.countsOfDrop(of.Drop)
			d.open += of.Entries
			d.oldest, t.oldest = earlierOf(d.oldest, of.Oldest), earlierOf(t.oldest, of.Oldest)
			t.byVault[of.Vault] += of.Entries
		}
	}
	return nil
}

// countsOfDrop returns the counts of a drop, which may have been taken out of the configuration.
func (t *entryCounts) countsOfDrop(name string) *dropCounts {
	d := t.drops[name]
	if d == nil {
		d = &dropCounts{}
		t.drops[name] = d
	}
	return d
}

// findLastSuccess finds when the archive last took something, by its own clock. A time in the future counts as now.
func (t *entryCounts) findLastSuccess(l *boltledger.Ledger) error {
	if t.lastSuccess = l.LastSuccess(); t.lastSuccess.After(t.Now) {
		t.lastSuccess = t.Now
	}
	return nil
}

// readFigures reads from the catalog what was archived and delivered today,
// when something was delivered last, and the bills, after it entered what the
// ledger has committed.
func (v view) readFigures(ctx context.Context, t *entryCounts) (err error) {
	c, release := v.openCatalog()
	defer func() { err = errors.Join(err, release()) }()
	lacks, err := c.CatchUp(ctx)
	if err != nil {
		return err
	}
	t.figuresLack = lacks
	archived, err := c.CompletedOn(ctx, ledger.Archived, v.Now)
	if err != nil {
		return t.noteFigures(err)
	}
	delivered, err := c.CompletedOn(ctx, ledger.Delivered, v.Now)
	if err == nil {
		t.lastDelivery, err = c.LastDelivered(ctx)
	}
	if err == nil {
		err = v.readBills(ctx, c, t)
	}
	if err != nil {
		return t.noteFigures(err)
	}
	t.knowsToday = true
	for drop, n := range archived {
		t.countsOfDrop(drop).today = n
	}
	for drop, n := range delivered {
		t.countsOfDrop(drop).delivered = n
	}
	return nil
}

// readBills reads the bills from the catalog as it is.
func (v view) readBills(ctx context.Context, c *catalog.Catalog, t *entryCounts) (err error) {
	t.bills, err = v.billsOfThisYear(ctx, c)
	return t.noteFigures(err)
}

// noteFigures notes why figures are not known now, and returns any other error.
func (t *entryCounts) noteFigures(err error) error {
	incomplete, is := errors.AsType[*catalog.IncompleteError](err)
	if !is {
		return err
	}
	t.figuresLack = cmp.Or(t.figuresLack, incomplete.Why)
	return nil
}

// compareClocks notes by how much this machine's clock was ahead of the service's at the newest registration. The
// service's time has a resolution of a second.
func (t *entryCounts) compareClocks(l *boltledger.Ledger) error {
	asked, service := l.ClockComparison()
	if !asked.IsZero() {
		t.clockComparedAt, t.clockAhead = asked, asked.Sub(service)
	}
	return nil
}

// earlierOf gives the earlier of two times, where zero is none.
func earlierOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (t *entryCounts) summarizeOpen() present.OpenCounts {
	o := present.OpenCounts{States: map[string]int{}, Oldest: present.TimeOrNil(t.oldest), Limit: t.alertAfter.Seconds(), Overdue: t.needs.Of("overdue").Count}
	for s, n := range t.open {
		o.States[s.String()] = n
		o.Total += n
	}
	return o
}
