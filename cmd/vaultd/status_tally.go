package main

import (
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

func newTally(v view) *tally {
	t := &tally{
		clock: v.clock, alertAfter: v.cfg.Status.AlertAfter, open: map[ledger.State]int{},
		byVault: map[archive.VaultID]int{}, drops: map[string]*dropTally{},
	}
	for _, d := range v.cfg.Drops {
		t.drops[d.Name] = &dropTally{}
	}
	return t
}

func (t *tally) add(e ledger.Entry) {
	t.compare(e)
	d := t.drops[e.Drop]
	if d == nil { // the drop was taken out of the configuration
		d = &dropTally{}
		t.drops[e.Drop] = d
	}
	if e.State.Open() {
		t.open[e.State]++
		t.byVault[e.Vault]++
		d.open++
		d.oldest, t.oldest = earlier(d.oldest, e.SeenAt), earlier(t.oldest, e.SeenAt)
	}
	if e.State == ledger.Archived {
		if e.ArchivedAt.After(t.lastSuccess) {
			t.lastSuccess = e.ArchivedAt
		}
		if t.today(e.ArchivedAt) {
			d.today++
		}
	}
	switch {
	case e.Contradicted && !e.Resolved:
		t.contradicted.add(e)
	case e.State == ledger.Quarantined:
		t.quarantined.add(e)
	case e.State == ledger.Rejected && !e.Resolved:
		t.rejected.add(e)
	case e.Hold && !e.SameContent.IsZero() && e.State.Open():
		t.undecided.add(e)
	case e.State.Open() && t.now.Sub(e.SeenAt) > t.alertAfter:
		t.overdue.add(e)
	}
}

// earlier gives the earlier of two times, where zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func (t *tally) openLine() openLine {
	o := openLine{States: map[string]int{}, Oldest: inUTC(t.oldest), Limit: t.alertAfter.Seconds(), Overdue: t.overdue.count}
	for s, n := range t.open {
		o.States[s.String()] = n
		o.Total += n
	}
	return o
}
