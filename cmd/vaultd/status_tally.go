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

// tally counts entries for people; every number is the ledger's, so that none forgets at a
// restart. It comes from the ledger's indexes and the end of the journal: what is asked
// again and again must cost the same with ten entries and with a million.
type tally struct {
	present.Clock
	alertAfter  time.Duration
	open        map[ledger.State]int
	byVault     map[archive.VaultID]int // open
	drops       map[string]*dropTally
	oldest      time.Time
	lastSuccess time.Time
	told        time.Time     // when the newest answer that gave the service's time was asked for
	ahead       time.Duration // by how much this clock was ahead of the service's then

	contradicted, twice, differing, overdue, quarantined, rejected, undecided, numbered, misdated, unreadable namedCount
}

type dropTally struct {
	open, today int
	oldest      time.Time
}

func newTally(v view) *tally {
	t := &tally{
		Clock: v.Clock, alertAfter: v.cfg.Status.AlertAfter, open: map[ledger.State]int{},
		byVault: map[archive.VaultID]int{}, drops: map[string]*dropTally{},
	}
	for _, d := range v.cfg.Drops {
		t.drops[d.Name] = &dropTally{}
	}
	return t
}

// told is a class of entries that people are told of.
type told struct {
	class  ledger.Attention
	open   bool      // they are on their way
	before time.Time // later ones need nobody yet
	since  time.Time // earlier ones need nobody any more; zero: all do
	count  *namedCount
}

func (t *tally) classes() []told {
	overdue, unusual := t.Now.Add(-t.alertAfter), t.Now.Add(-ledger.ReviewPeriod)
	return []told{
		{class: ledger.Waiting, open: true, before: overdue, count: &t.overdue}, {class: ledger.WaitingForRights, open: true, before: overdue, count: &t.overdue},
		{class: ledger.AwaitingDecision, open: true, count: &t.undecided}, {class: ledger.RejectedUnresolved, count: &t.rejected},
		{class: ledger.InQuarantine, count: &t.quarantined}, {class: ledger.ContradictedByService, count: &t.contradicted},
		{class: ledger.WaitingForRights, count: &t.unreadable}, {class: ledger.ArchivedTwice, count: &t.twice}, {class: ledger.SourceChanged, count: &t.differing},
		{class: ledger.RepeatedNumber, since: unusual, count: &t.numbered}, {class: ledger.StrangeDate, since: unusual, count: &t.misdated},
	}
}

// count finds how many entries need a person, and the oldest of those on their way.
func (t *tally) count(l *boltledger.Ledger) error {
	for _, c := range t.classes() {
		crowds, err := l.CountAttention(c.class, c.before)
		if err != nil {
			return err
		}
		for _, of := range crowds {
			c.count.count += of.Entries
			if c.open {
				t.oldest = earlier(t.oldest, of.Oldest)
			}
		}
		if c.since.IsZero() {
			continue
		}
		if crowds, err = l.CountAttention(c.class, c.since); err != nil {
			return err
		}
		for _, of := range crowds {
			c.count.count -= of.Entries
		}
	}
	return nil
}

// name names the latest few of those that need a person.
func (t *tally) name(l *boltledger.Ledger) error {
	for _, c := range t.classes() {
		es, err := l.LatestAttention(c.class, c.before, sampled-min(len(c.count.names), sampled))
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
			c.count.name(e, why)
		}
	}
	return nil
}

// spread finds where what is open came from, and goes to.
func (t *tally) spread(l *boltledger.Ledger) error {
	for s, n := range l.Balance().States {
		if s := ledger.State(s); s.IsOpen() && n > 0 {
			t.open[s] = int(n)
		}
	}
	for _, c := range t.classes() {
		if !c.open {
			continue
		}
		crowds, err := l.CountAttention(c.class, time.Time{})
		if err != nil {
			return err
		}
		for _, of := range crowds {
			d := t.drop(of.Drop)
			d.open += of.Entries
			d.oldest = earlier(d.oldest, of.Oldest)
			t.byVault[of.Vault] += of.Entries
		}
	}
	return nil
}

// drop returns the tally of a drop, which may have been taken out of the configuration.
func (t *tally) drop(name string) *dropTally {
	d := t.drops[name]
	if d == nil {
		d = &dropTally{}
		t.drops[name] = d
	}
	return d
}

// success finds when the archive last took something. No clock of its may tell of the future.
func (t *tally) success(l *boltledger.Ledger) error {
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
	lookSpan = 1000   // journal lines that are looked through at once
	lookMost = 20_000 // of them, for the newest registration
)

// lookBack goes through the end of the journal: what was archived today, and how far the
// clocks were apart at the newest registration.
func (t *tally) lookBack(ctx context.Context, l *boltledger.Ledger) error {
	head := l.Head().N
	for upper := head; upper > 0; {
		from := upper - min(upper, lookSpan) + 1
		today, err := t.lookAt(ctx, l, from, upper)
		if err != nil {
			return err
		}
		if !today && (!t.told.IsZero() || head-from > lookMost) {
			return nil
		}
		upper = from - 1
	}
	return nil
}

// lookAt goes through the journal's lines in a range, and reports whether the first of
// them is of today.
func (t *tally) lookAt(ctx context.Context, l *boltledger.Ledger, from, to uint64) (today bool, err error) {
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
			err = t.archived(l, x)
		}
		return errors.Join(err, context.Cause(ctx))
	})
	if err == nil || errors.Is(err, errEnough) {
		err = t.registered(l, ticket)
	}
	return today, err
}

// archived counts the entry of a line by which it became archived.
func (t *tally) archived(l *boltledger.Ledger, x ledger.Line) error {
	key, err := archive.ParseKey(x.Key)
	if err != nil {
		return err
	}
	e, _, err := l.Entry(key)
	if err == nil && e.State == ledger.Archived && t.IsToday(e.ArchivedAt) {
		t.drop(e.Drop).today++
	}
	return err
}

// registered compares the clocks by the entry that the newest line of a ticket is about.
func (t *tally) registered(l *boltledger.Ledger, key string) error {
	k, err := archive.ParseKey(key)
	if err != nil || !t.told.IsZero() {
		return nil //nolint:nilerr // there is none
	}
	e, _, err := l.Entry(k)
	t.compare(e)
	return err
}

// earlier gives the earlier of two times, where zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (t *tally) openLine() openLine {
	o := openLine{States: map[string]int{}, Oldest: present.TimeOrNil(t.oldest), Limit: t.alertAfter.Seconds(), Overdue: t.overdue.count}
	for s, n := range t.open {
		o.States[s.String()] = n
		o.Total += n
	}
	return o
}
