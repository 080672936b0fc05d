package main

import (
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
)

// entryCounts counts entries for people. Every number comes from the ledger, so a restart loses none. They come from the
// ledger's indexes and counts: what is read every few seconds must cost the same with ten entries and with ten million.
type entryCounts struct {
	present.Clock
	alertAfter      time.Duration
	open            map[ledger.State]int
	byVault         map[archive.VaultID]int // open
	drops           map[string]*dropCounts
	routes          map[string]ledger.Route // of the configured drops
	needs           present.EntryCounts
	oldest          time.Time
	lastSuccess     time.Time
	lastDelivery    time.Time     // the beginning of its quarter of an hour
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
		byVault: map[archive.VaultID]int{}, drops: map[string]*dropCounts{}, routes: map[string]ledger.Route{}, needs: present.EntryCounts{},
	}
	for _, d := range v.cfg.Drops {
		t.drops[d.Name], t.routes[d.Name] = &dropCounts{}, ledger.Route(d.Route)
	}
	return t
}

// routeOf returns the route of what came from a drop and went to a vault, or to none. What came from a drop that is not configured any more and
// went to none counts as a PDF.
func (t *entryCounts) routeOf(drop string, v archive.VaultID) ledger.Route {
	if v != "" {
		return ledger.Vault
	}
	if r := t.routes[drop]; r != "" && !r.HasVaults() {
		return r
	}
	return ledger.PDF
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
	if k.Route != "" && k.Route != t.routeOf(c.Drop, c.Vault) {
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
				if e.SeenAt.Before(since) || k.Route != "" && k.Route != e.Route {
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
func (t *entryCounts) findLastSuccess(l *boltledger.Ledger) (err error) {
	t.lastSuccess, err = l.LastSuccess()
	if t.lastSuccess.After(t.Now) {
		t.lastSuccess = t.Now
	}
	return err
}

// findLastDelivery finds the quarter of an hour in which a PDF was delivered last. Of a clock that was set back it says nothing: it is no
// success of the archive, and nothing is calculated with it.
func (t *entryCounts) findLastDelivery(l *boltledger.Ledger) (err error) {
	t.lastDelivery, err = l.LastDelivery()
	return err
}

// countArchivedToday counts, by drop folder, what the archive took today by its own clock.
func (t *entryCounts) countArchivedToday(l *boltledger.Ledger) error {
	today, err := l.CountArchived(t.Now, t.IsToday)
	for drop, n := range today {
		t.countsOfDrop(drop).today = n
	}
	return err
}

// countDeliveredToday counts, by drop folder, what was delivered today by this machine's clock.
func (t *entryCounts) countDeliveredToday(l *boltledger.Ledger) error {
	today, err := l.CountDelivered(t.Now, t.IsToday)
	for drop, n := range today {
		t.countsOfDrop(drop).delivered = n
	}
	return err
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
