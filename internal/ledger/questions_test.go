package ledger

import (
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// TestQuestions_I13_OldRegistrationsAreAskedAboutForEver: a registration that may hold
// content stays a question while a later one is on its way and after it was archived:
// the only way to learn of a double.
func TestQuestions_I13_OldRegistrationsAreAskedAboutForEver(t *testing.T) {
	for _, old := range []Fate{MaybeStored, Stored} {
		for _, s := range []State{Packaged, Registering, Registered, Sending, Uploaded, Unclear, Archived, Quarantined, Rejected} {
			e := usual(s)
			orphan(old)(&e)
			kit.Check(t, slices.Contains(e.OpenQuestions(), archive.RemoteID("old")),
				"%s: nobody asks any more about an old registration of fate %d", s, old)
		}
	}
}

// TestSucceeded_I2_TheSecondOneIsFlagged: two successes are two documents in the archive.
func TestSucceeded_I2_TheSecondOneIsFlagged(t *testing.T) {
	e := usual(Archived)
	orphan(MaybeStored)(&e)
	e.PossibleDouble = false
	again := must(t, e, 0, answer(archive.Successful, e.ArchivedRemote))
	kit.Check(t, !again.PossibleDouble, "the same success again: possible double = true, want false")
	second := must(t, e, 0, answer(archive.Successful, "old"))
	kit.Check(t, second.PossibleDouble, "a success of a second registration: possible double = false, want true")
}

// A receipt that calls its document possibly double knows of a registration that the
// new ledger does not list: that one found later is empty proves nothing about it.
func TestRecovered_I2_WhatAReceiptCallsDoubleStaysSo(t *testing.T) {
	at, grace := archive.Instant{Wall: epoch}, 24*time.Hour
	e := Entry{Key: archive.Key{1}}
	step := func(ev Event) {
		t.Helper()
		next := kit.Value(Transition(e, ev, at))(t)
		e = next
	}
	step(Recovered{State: Archived, Source: Kept, Dest: "_archived/2026-11/x", ID: archive.ID{1}, Content: archive.Digest{1},
		Package: archive.Package{Size: 1, SHA256: archive.Digest{2}}, Remote: "R1", SuccessRecord: []byte("x"), PossibleDouble: true, ArchivedAt: epoch})
	step(RegistrationFound{Remote: "R9", ID: archive.ID{1}})
	for range 5 {
		at.Wall = at.Wall.Add(13 * time.Hour)
		step(StatusSeen{Receipt: archive.Receipt{Remote: "R9", Status: archive.WaitingForPackage}, Grace: grace})
	}
	kit.Check(t, e.findRegistration("R9").Fate == Lapsed && e.PossibleDouble,
		"double %v, %+v", e.PossibleDouble, e.Registrations)
}
