package ledger

import (
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// I29: a folder that looks cut off is held before it is packed, and needs a
// decision. Once an operator lets it go on it is packed as it is then, and the
// mark stays, whatever is found of it later.
func TestCutOff_I29_MarkStays(t *testing.T) {
	at := archive.Instant{Wall: epoch}
	step := func(e Entry, ev Event) Entry {
		t.Helper()
		next := kit.Value(Transition(e, ev, at))(t)
		return next
	}
	e := step(usual(Discovered), Held{By: byPerson, CutOff: Cause{Code: CauseLooksCutOff, Text: "a.pdf looks cut off"}})
	kit.Want(t, "class", e.Attention(), AwaitingDecision)
	_, _, due := Due(e)
	kit.Want(t, "due", due, false)
	kit.Holds(t, "flags", e.flagWords(), "hold", "cut-off")
	e = step(e, Unheld{By: byPerson})
	kit.Want(t, "state", e.CutOff, CutOffTaken)
	kit.Want(t, "reviewed", e.Reviewed, false)
	next, _, due := Due(e)
	kit.Want(t, "due", due, true)
	kit.Want(t, "step", next, Seal)
	_, err := Transition(e, Held{By: byPerson, CutOff: Cause{Code: CauseLooksCutOff}}, at)
	kit.Check(t, err != nil, "held once more for what an operator took, want an error")
	for _, still := range []bool{true, false} {
		sealed := step(e, Sealed{ID: archive.ID{1}, Package: archive.Package{Path: "p", Size: 1, SHA256: archive.Digest{1}}, LooksCutOff: still})
		kit.Want(t, "state once sealed", sealed.CutOff, CutOffTaken)
		kit.Holds(t, "flags once sealed", sealed.flagWords(), "cut-off")
	}
}

// I26: one that is sent all the same is reported until an operator has seen it.
func TestCutOff_I26_SentAllTheSame(t *testing.T) {
	for _, state := range []State{Archived, Delivered} {
		e := usual(state)
		e.Source, e.Dest = Kept, "_archived/x"
		e.CutOff = CutOffFound
		kit.Want(t, "class", e.Attention(), LooksCutOff)
		next := kit.Value(Transition(e, Closed{By: byPerson}, archive.Instant{Wall: epoch}))(t)
		kit.Want(t, "class when it is closed", next.Attention(), NoAttention)
		kit.Want(t, "mark", next.CutOff, CutOffTaken)
		kit.Want(t, "resolved", next.Resolved, false)
	}
}
