package ledger

import (
	"slices"
	"testing"

	"vaultd/internal/archive"
)

// TestArrows_AgreeWithTransition holds the list of arrows against what Transition
// does to the usual entries, in both directions.
func TestArrows_AgreeWithTransition(t *testing.T) {
	listed := map[Arrow]bool{}
	for _, a := range Arrows() {
		if listed[a] {
			t.Errorf("twice: %+v", a)
		}
		listed[a] = true
	}
	walked := map[Arrow]bool{}
	note := func(e Entry, ev Event) {
		if e.State == Unclear && (e.Package.IsZero() || slices.ContainsFunc(e.Registrations, func(r Registration) bool { return r.Fate == Succeeded })) {
			return // no entry in doubt looks like this
		}
		next, err := Transition(e, ev, at(0))
		if err != nil {
			return
		}
		a := Arrow{Event: ev.JournalName(), From: e.State, To: next.State, Source: e.Source, Then: next.Source}
		if seen, ok := ev.(StatusSeen); ok {
			a.Word = seen.Receipt.Status
		}
		any := a
		any.Source, any.Then = NoSource, NoSource
		if e.Source == next.Source && listed[any] {
			a = any
		}
		if !listed[a] && !walked[a] {
			t.Errorf("Transition goes where no arrow is: %+v", a)
		}
		walked[a] = true
	}
	for s := None; s <= Quarantined; s++ {
		for _, r := range stateTable {
			e := usual(s)
			if r.with != nil {
				r.with(&e)
			}
			note(e, r.ev)
			if s != None { // any history may stand behind it, heard of in any word
				orphan(Lapsed)(&e)
				note(e, r.ev)
				for w := archive.Unfamiliar; w <= archive.Absent; w++ {
					note(e, answer(w, "old"))
				}
			}
		}
		for _, src := range lies(s) {
			for _, r := range sourceTable {
				e := usual(s)
				ripe(&e)
				e.Source = src
				note(e, r.ev)
				doubted, halfway := e, e
				doubted.NeedsReconcile, halfway.Contradicted = true, s == Archived
				note(doubted, r.ev)
				note(halfway, r.ev)
			}
		}
	}
	for a := range listed {
		if !walked[a] {
			t.Errorf("no entry ever took the arrow %+v", a)
		}
	}
}

// lies returns where the source may be in a state.
func lies(s State) []Source {
	switch s {
	case None:
		return nil
	case Archived:
		return []Source{Claimed, Keeping, Kept, Disposing, Moved, Gone}
	case Delivered:
		return []Source{Claimed, Keeping, Kept}
	case Rejected, Duplicate:
		return []Source{Claimed, Returning, Returned}
	}
	return []Source{Claimed}
}
