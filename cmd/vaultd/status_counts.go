package main

import (
	"cmp"
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
	oldest          time.Time
	lastSuccess     time.Time
	lastDelivery    time.Time     // the beginning of its quarter of an hour
	clockComparedAt time.Time     // when the newest answer that gave the service's time was asked for
	clockAhead      time.Duration // by how much this clock was ahead of the service's then

	missing map[archive.Key]time.Time // since when the returned folders of rejections are not in their places

	present.AttentionCounts
}

type dropCounts struct {
	open, today, delivered int
	oldest                 time.Time
}

func newEntryCounts(v view) *entryCounts {
	t := &entryCounts{
		Clock: v.Clock, alertAfter: v.cfg.Status.AlertAfter, open: map[ledger.State]int{},
		byVault: map[archive.VaultID]int{}, drops: map[string]*dropCounts{}, routes: map[string]ledger.Route{},
	}
	for _, d := range v.cfg.Drops {
		t.drops[d.Name], t.routes[d.Name] = &dropCounts{}, ledger.Route(d.Route)
	}
	return t
}

// attentionClass is a class of entries that need a person, or are on their way.
type attentionClass struct {
	class  ledger.Attention
	open   bool      // they are on their way
	before time.Time // later ones need nobody yet
	since  time.Time // earlier ones need nobody any more; zero: all do
	count  *present.NamedCount
}

func (t *entryCounts) attentionClasses() []attentionClass {
	overdue, unusual := t.Now.Add(-t.alertAfter), t.Now.Add(-ledger.ReviewPeriod)
	return []attentionClass{
		{class: ledger.Waiting, open: true, before: overdue, count: &t.Overdue}, {class: ledger.WaitingForRights, open: true, before: overdue, count: &t.Overdue},
		{class: ledger.AwaitingDecision, open: true, count: &t.Undecided}, {class: ledger.RejectedUnresolved, count: &t.Rejected},
		{class: ledger.InQuarantine, count: &t.Quarantined}, {class: ledger.ContradictedByService, count: &t.Contradicted},
		{class: ledger.WaitingForRights, count: &t.Unreadable}, {class: ledger.ArchivedTwice, count: &t.ArchivedTwice}, {class: ledger.SourceChanged, count: &t.KeptDiffers},
		{class: ledger.NotCompared, count: &t.NotCompared},
		{class: ledger.RefusedByRecipient, count: &t.RejectedByRecipient},
		{class: ledger.AskedByService, count: &t.AskedByService},
		{class: ledger.RecipientNotListed, open: true, before: overdue, count: &t.Overdue}, {class: ledger.RecipientNotListed, count: &t.RecipientNotListed},
		{class: ledger.CopyNotMade, open: true, before: overdue, count: &t.Overdue}, {class: ledger.CopyNotMade, count: &t.CopyWaits},
		{class: ledger.RepeatedNumber, since: unusual, count: &t.SameNumber}, {class: ledger.StrangeDate, since: unusual, count: &t.StrangeDate},
		{class: ledger.LooksCutOff, since: unusual, count: &t.CutOff},
	}
}

// countFor returns the count of a class: of a route that delivers, one of its own where its words speak of the archive.
func (t *entryCounts) countFor(c attentionClass, r ledger.Route) *present.NamedCount {
	own := map[ledger.Route]map[ledger.Attention]*present.NamedCount{
		ledger.PDF:     {ledger.SourceChanged: &t.DeliveredDiffers},
		ledger.Network: {ledger.SourceChanged: &t.SentDiffers, ledger.ContradictedByService: &t.RejectedLate},
	}
	return cmp.Or(own[r][c.class], c.count)
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

// countAttention finds how many entries need a person, and the oldest of those on their way.
func (t *entryCounts) countAttention(l *boltledger.Ledger) error {
	for _, c := range t.attentionClasses() {
		crowds, err := l.CountAttention(c.class, c.before)
		if err != nil {
			return err
		}
		for _, of := range crowds {
			t.countFor(c, t.routeOf(of.Drop, of.Vault)).Count += of.Entries
			if c.open {
				t.oldest = earlierOf(t.oldest, of.Oldest)
			}
		}
		if c.since.IsZero() {
			continue
		}
		if crowds, err = l.CountAttention(c.class, c.since); err != nil {
			return err
		}
		for _, of := range crowds {
			c.count.Count -= of.Entries
		}
	}
	return nil
}

// nameLatest names the latest few of those that need a person.
func (t *entryCounts) nameLatest(l *boltledger.Ledger) error {
	for _, c := range t.attentionClasses() {
		es, err := l.LatestAttention(c.class, c.before, present.NamedAtMost-min(len(c.count.Entries), present.NamedAtMost))
		if err != nil {
			return err
		}
		for _, e := range es {
			if e.SeenAt.Before(c.since) {
				continue
			}
			why, err := present.SummarizeEntry(l, e, t.Location)
			if err != nil {
				return err
			}
			if since := t.missing[e.Key]; !since.IsZero() && c.class == ledger.RejectedUnresolved {
				why = present.DescribeMissing(e, t.Brief(since)) + ": drop it again, corrected, or vaultd close X"
			}
			count := t.countFor(c, e.Route)
			if ids := present.DescribeRequests(e.Requests()); count == &t.Overdue && ids != "" {
				why = strings.TrimPrefix(why+"; request ids: "+ids, "; ")
			}
			count.Add(e, why)
		}
	}
	return nil
}

// countOpen counts the open entries by state, drop and vault.
func (t *entryCounts) countOpen(l *boltledger.Ledger) error {
	for s, n := range l.Balance().States {
		if s := ledger.State(s); s.IsOpen() && n > 0 {
			t.open[s] = int(n)
		}
	}
	for _, c := range t.attentionClasses() {
		if !c.open {
			continue
		}
		crowds, err := l.CountAttention(c.class, time.Time{})
		if err != nil {
			return err
		}
		for _, of := range crowds {
			d := t.countsOfDrop(of.Drop)
			d.open += of.Entries
			d.oldest = earlierOf(d.oldest, of.Oldest)
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
	o := present.OpenCounts{States: map[string]int{}, Oldest: present.TimeOrNil(t.oldest), Limit: t.alertAfter.Seconds(), Overdue: t.Overdue.Count}
	for s, n := range t.open {
		o.States[s.String()] = n
		o.Total += n
	}
	return o
}
