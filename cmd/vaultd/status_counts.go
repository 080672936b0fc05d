package main

import (
	"bytes"
	"context"
	"errors"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
)

// entryCounts counts entries for people. Every number comes from the ledger, so a restart loses none. They come from the
// ledger's indexes and the end of the journal: what is read every few seconds must cost the same with ten entries and
// with a million.
type entryCounts struct {
	present.Clock
	alertAfter      time.Duration
	open            map[ledger.State]int
	byVault         map[archive.VaultID]int // open
	drops           map[string]*dropCounts
	oldest          time.Time
	lastSuccess     time.Time
	clockComparedAt time.Time     // when the newest answer that gave the service's time was asked for
	clockAhead      time.Duration // by how much this clock was ahead of the service's then

	present.AttentionCounts
}

type dropCounts struct {
	open, today int
	oldest      time.Time
}

func newEntryCounts(v view) *entryCounts {
	t := &entryCounts{
		Clock: v.Clock, alertAfter: v.cfg.Status.AlertAfter, open: map[ledger.State]int{},
		byVault: map[archive.VaultID]int{}, drops: map[string]*dropCounts{},
	}
	for _, d := range v.cfg.Drops {
		t.drops[d.Name] = &dropCounts{}
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
		{class: ledger.RepeatedNumber, since: unusual, count: &t.SameNumber}, {class: ledger.StrangeDate, since: unusual, count: &t.StrangeDate},
	}
}

// countAttention finds how many entries need a person, and the oldest of those on their way.
func (t *entryCounts) countAttention(l *boltledger.Ledger) error {
	for _, c := range t.attentionClasses() {
		crowds, err := l.CountAttention(c.class, c.before)
		if err != nil {
			return err
		}
		for _, of := range crowds {
			c.count.Count += of.Entries
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
		es, err := l.LatestAttention(c.class, c.before, present.NamedAtMost-min(len(c.count.Names), present.NamedAtMost))
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
			c.count.Add(e, why)
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
func (t *entryCounts) findLastSuccess(l *boltledger.Ledger) error {
	totals, err := l.Totals()
	for _, x := range totals {
		if x.Last.After(t.lastSuccess) {
			t.lastSuccess = x.Last
		}
	}
	if t.lastSuccess.After(t.Now) {
		t.lastSuccess = t.Now
	}
	return err
}

const (
	journalSpan = 1000   // journal lines that are looked through at once
	journalMost = 20_000 // of them, for the newest registration
)

// readRecentJournal reads the end of the journal backwards: what was archived today, and how far the
// clocks were apart at the newest registration.
func (t *entryCounts) readRecentJournal(ctx context.Context, l *boltledger.Ledger) error {
	head := l.Head().N
	for upper := head; upper > 0; {
		from := upper - min(upper, journalSpan) + 1
		today, err := t.readJournalRange(ctx, l, from, upper)
		if err != nil {
			return err
		}
		if !today && (!t.clockComparedAt.IsZero() || head-from > journalMost) {
			return nil
		}
		upper = from - 1
	}
	return nil
}

// readJournalRange goes through the journal's lines in a range, and reports whether the first of
// them is of today.
func (t *entryCounts) readJournalRange(ctx context.Context, l *boltledger.Ledger, from, to uint64) (today bool, err error) {
	var ticket string
	err = l.Lines(from, func(n uint64, line []byte) error {
		archived := bytes.Contains(line, []byte(`"state":"archived","source":"claimed"`)) || bytes.Contains(line, []byte(`"event":"recovered"`))
		switch got := bytes.Contains(line, []byte(`"event":"`+(ledger.TicketReceived{}).JournalName()+`"`)); {
		case n > to:
			return errEnough
		case n != from && !archived && !got:
			return nil
		}
		x, err := ledger.ParseLine(line)
		if err != nil {
			return err
		}
		if n == from {
			at, err := time.Parse(time.RFC3339, x.At)
			if today = t.IsToday(at); err != nil {
				return err
			}
		}
		if x.Event == (ledger.TicketReceived{}).JournalName() {
			ticket = x.Key
		}
		if archived {
			err = t.countArchivedToday(l, x)
		}
		return errors.Join(err, context.Cause(ctx))
	})
	if err == nil || errors.Is(err, errEnough) {
		err = t.compareClockOf(l, ticket)
	}
	return today, err
}

// countArchivedToday counts the entry of a line by which it became archived.
func (t *entryCounts) countArchivedToday(l *boltledger.Ledger, x ledger.Line) error {
	key, err := archive.ParseKey(x.Key)
	if err != nil {
		return err
	}
	e, _, err := l.Entry(key)
	if err == nil && e.State == ledger.Archived && t.IsToday(e.ArchivedAt) {
		t.countsOfDrop(e.Drop).today++
	}
	return err
}

// compareClockOf compares the clocks by the entry that the newest line of a ticket is about.
func (t *entryCounts) compareClockOf(l *boltledger.Ledger, key string) error {
	k, err := archive.ParseKey(key)
	if err != nil || !t.clockComparedAt.IsZero() {
		return nil //nolint:nilerr // there is none
	}
	e, _, err := l.Entry(k)
	t.compareClock(e)
	return err
}

// compareClock notes by how much this machine's clock was ahead of the service's at the current registration of e. The
// service's time has a resolution of a second.
func (t *entryCounts) compareClock(e ledger.Entry) {
	r := e.Current()
	if r == nil || r.Ticket.Date.IsZero() || !r.Ticket.Sent.Wall.After(t.clockComparedAt) {
		return
	}
	t.clockComparedAt, t.clockAhead = r.Ticket.Sent.Wall, r.Ticket.Sent.Wall.Sub(r.Ticket.Date)
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
