package ledger

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// factBreaks says which promise the outcome of an act breaks that made after of before; empty: none. isLate: the entry did not wait for it.
func factBreaks(before, after Entry, act Act, isLate bool) string {
	switch {
	case before.State.IsFinal() && after.State != before.State:
		return "I13 a final state changed"
	case before.PossibleDouble && !after.PossibleDouble, before.Contradicted && !after.Contradicted, before.InDoubt && !after.InDoubt:
		return "I2 a flag was taken back"
	case isLate && act.Remote != "" && act.find(&before) == nil && (after.State != before.State || !after.Contradicted):
		return "I13 nobody is told of an act that the entry does not know"
	}
	for _, r := range before.Registrations {
		sameNumber := func(o Registration) bool { return o.Ticket.Remote == r.Ticket.Remote }
		holds := func(o Registration) bool { return sameNumber(o) && (o.Fate == r.Fate || o.Fate == Succeeded) }
		switch named := (Act{r.Ticket.Remote, r.Generation, act.Number}) == act; {
		case (r.Fate == Stored || r.Fate == Succeeded) && !slices.ContainsFunc(after.Registrations, holds):
			return "I2 content was forgotten"
		case named || slices.ContainsFunc(after.Registrations, r.equals):
		case r.Fate != Unsent && !r.IsGivenUp():
			return "I2 a registration that may hold content was forgotten"
		case slices.ContainsFunc(after.Registrations, sameNumber):
			return "I8 it changed another registration"
		}
	}
	return ""
}

// equals compares what is known of the content of two registrations.
func (r Registration) equals(o Registration) bool {
	return r.Ticket.Remote == o.Ticket.Remote && r.Generation == o.Generation && r.Fate == o.Fate && r.UploadIntents == o.UploadIntents &&
		r.WithoutEffect == o.WithoutEffect && r.Unproven == o.Unproven && r.Sent == o.Sent
}

// outcomes are the outcomes of the table, without those that no call has.
func outcomes() (evs []Event) {
	for _, r := range stateTable {
		if isOutcome(r.ev) && !slices.ContainsFunc(evs, func(ev Event) bool { return reflect.DeepEqual(ev, r.ev) }) {
			evs = append(evs, r.ev)
		}
	}
	return evs
}

// TestFact_I13_EachInEveryState tells each entry of the tables each outcome: of the act that it waits for, of one that it no longer waits for,
// and of one that it never knew, each of them twice. A final state stays, content is never forgotten, no other registration changes, no outcome
// is dropped, and an operator is told of what the entry does not know.
func TestFact_I13_EachInEveryState(t *testing.T) {
	told, tried := 0, map[string]bool{}
	for _, row := range stateTable {
		for _, s := range States() {
			e := usual(s)
			if row.with != nil {
				row.with(&e)
			}
			if r := e.Current(); s == Sending && r != nil && r.Fate != MaybeStored {
				continue // no entry that is being sent looks like this
			}
			look := fmt.Sprintf("%+v", e)
			if tried[look] {
				continue
			}
			tried[look] = true
			other := e
			other.Registrations = append([]Registration{{Ticket: bare("other"), UploadIntents: 1, Fate: MaybeStored, ClosedAt: epoch}}, e.Registrations...)
			for _, e := range []Entry{e, other} {
				acts := []Act{e.ActUnderWay(), {Number: 77}, {Remote: "unknown", Number: 77}, {Remote: "other", Number: 77}}
				if r := e.Current(); r != nil {
					acts = append(acts, Act{Remote: r.Ticket.Remote, Generation: r.Generation, Number: 77})
				}
				for _, act := range acts {
					for _, ev := range outcomes() {
						told++
						tellTwice(t, fmt.Sprintf("%s in %s (%s), act %+v", ev.JournalName(), s, row.name, act), e, act, ev)
					}
				}
			}
		}
	}
	kit.Check(t, told > 20_000, "outcomes told = %d, want more than 20,000", told)
}

// tellTwice tells an entry an outcome, and the same once more.
func tellTwice(t *testing.T, what string, e Entry, act Act, outcome Event) {
	t.Helper()
	c := Change{Key: e.Key, Rev: e.Rev, Fact: true, Act: act, Events: []Event{outcome}, At: at(0)}
	for n := range 2 {
		before := e
		evs, err := c.EventsOn(e)
		kit.Must(t, err)
		kit.Need(t, len(evs) == 1, "%s: %d events, want 1", what, len(evs))
		isLate := n == 1 || act == Act{} || act != before.ActUnderWay()
		after, err := Transition(e, evs[0], at(0))
		if errors.Is(err, ErrIllegal) && !isLate {
			return // no call in that state has this outcome
		}
		kit.Need(t, err == nil, "%s, time %d: %v, want it heard", what, n+1, err)
		_, foundUnused := evs[0].(RegistrationFound)
		_, late := evs[0].(OutcomeLate)
		kit.Need(t, late == isLate || foundUnused, "%s, time %d: heard as %T, late %t", what, n+1, evs[0], isLate)
		if text := factBreaks(before, after, act, late); text != "" {
			t.Errorf("%s, time %d: %s", what, n+1, text)
		}
		if n == 1 && (after.State != before.State || !reflect.DeepEqual(after.Registrations, before.Registrations) || after.Answers != before.Answers) {
			t.Errorf("%s: told twice, it became %s of %s, %+v of %+v", what, after.State, before.State, after.Registrations, before.Registrations)
		}
		e = after
	}
}

// TestFact_I8_AnOlderAttemptIsNotTheLastOne: the outcome of an attempt that is told when the next one is under way says nothing about that one.
func TestFact_I8_AnOlderAttemptIsNotTheLastOne(t *testing.T) {
	e := must(t, usual(Registered), 0, UploadIntended{})
	first := e.ActUnderWay()
	e = must(t, e, 0, UploadUnanswered{}, UploadIntended{})
	for _, ev := range []Event{UploadNotSent{}, UploadRefused{}, UploadUnanswered{}} {
		c := Change{Key: e.Key, Rev: e.Rev, Fact: true, Act: first, Events: []Event{ev}, At: at(0)}
		evs, err := c.EventsOn(e)
		kit.Must(t, err)
		after := must(t, e, 0, evs...)
		r := after.Current()
		if after.State != Sending || r.Fate != MaybeStored || r.WithoutEffect != 0 || after.ActUnderWay() != e.ActUnderWay() {
			t.Errorf("%s of the first attempt: %s, fate %d, %d without effect, act %+v; want %s, %d, 0, %+v",
				ev.JournalName(), after.State, r.Fate, r.WithoutEffect, after.ActUnderWay(), Sending, MaybeStored, e.ActUnderWay())
		}
	}
}

// TestFact_I11_DecisionsAreMadeAnew: where the entry moved on, what was decided after an outcome is left out, and the outcome is heard.
func TestFact_I11_DecisionsAreMadeAnew(t *testing.T) {
	e := must(t, usual(Registered), 0, UploadIntended{})
	held := must(t, e, 0, Held{})
	c := Change{Key: e.Key, Rev: e.Rev, Fact: true, Act: e.ActUnderWay(), Events: []Event{UploadNotSent{}, SentToQuarantine{}}}
	for _, row := range []struct {
		name   string
		change func(*Change)
		stored Entry
		want   []Event
		stale  bool
	}{
		{"AsDecided", func(*Change) {}, e, c.Events, false},
		{"Moved", func(*Change) {}, held, c.Events[:1], false},
		{"MovedAndNoFact", func(c *Change) { c.Fact = false }, held, nil, true},
		{"WordOfAPerson", func(c *Change) { c.Events = []Event{Unheld{byPerson}} }, held, []Event{Unheld{byPerson}}, false},
		{"MovedAndDecisionsAlone", func(c *Change) { c.Events = c.Events[1:] }, held, nil, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			change := c
			row.change(&change)
			evs, err := change.EventsOn(row.stored)
			_, stale := errors.AsType[*StaleError](err)
			kit.Want(t, "stale", stale, row.stale)
			kit.Want(t, "events", evs, row.want)
		})
	}
}

// TestFact_I9_ALateTicketIsListed: a ticket that comes when the entry no longer waits for it is listed under the identity that it was asked for,
// and nothing goes to its address.
func TestFact_I9_ALateTicketIsListed(t *testing.T) {
	e := must(t, usual(Packaged), 0, RegisterIntended{})
	act := e.ActUnderWay()
	e = must(t, e, 0, RegistrationFound{Remote: "found", ID: e.FirstID.Generation(1)})
	kit.Want(t, "generation", e.Generation, uint8(1))
	c := Change{Key: e.Key, Rev: e.Rev, Fact: true, Act: act, Events: []Event{TicketReceived{ticket("late")}}, At: at(0)}
	evs, err := c.EventsOn(e)
	kit.Must(t, err)
	e = must(t, e, 0, evs...)
	r := e.findRegistration(archive.RemoteID("late"))
	if r == nil || r.Generation != 0 || r.Ticket.URL != "" || r.Fate != Unsent || e.State != Registering {
		t.Errorf("%s, registrations %+v, want it %s with an unused one of generation 0 without an address", e.State, e.Registrations, Registering)
	}
}

// I12: the folder of an entry is moved, removed or corrected while an operator
// changes the entry. What became of it is recorded all the same.
func TestFact_I12_WhatBecameOfASource(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		source Source
		ev     Event
		want   Source
	}{
		"Moved":    {Disposing, Disposed{Dest: "2026/Otto 9"}, Moved},
		"Removed":  {Disposing, Disposed{}, Gone},
		"Kept":     {Keeping, Placed{}, Kept},
		"Returned": {Returning, Placed{}, Returned},
	} {
		t.Run(name, func(t *testing.T) {
			stored := Entry{Rev: 8, State: Archived, Source: row.source, Hold: true}
			if row.source == Returning {
				stored.State = Rejected
			}
			evs, err := Change{Rev: 7, Fact: true, Events: []Event{row.ev}}.EventsOn(stored)
			kit.Must(t, err)
			kit.Need(t, len(evs) == 1, "events on the entry that moved on = %v, want what became of its folder", evs)
			after, err := Transition(stored, evs[0], archive.Instant{})
			kit.Must(t, err)
			kit.Want(t, "source", after.Source, row.want)
		})
	}
	evs, err := Change{Rev: 7, Fact: true, Events: []Event{Superseded{By: archive.Key{1}}}}.EventsOn(Entry{Rev: 8, State: Rejected})
	kit.Must(t, err)
	kit.Want(t, "events on a rejection whose correction was taken", len(evs), 1)
}
