package ledger

import (
	"errors"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// A document with the number of another one, or with a date that cannot be, is told of from the moment on in which it is
// archived, until a person has looked: by letting it go on, or by closing it. Whoever looks settles nothing else.
func TestNeedsReview_ToldUntilAPersonReviewed(t *testing.T) {
	at := archive.Instant{Wall: epoch}
	for name, row := range map[string]struct {
		change func(*Entry)
		class  Attention
		flag   string
	}{
		"SameNumber":  {func(e *Entry) { e.SameNumber = archive.Key{7} }, RepeatedNumber, "same-number"},
		"StrangeDate": {func(e *Entry) { e.StrangeDate = true }, StrangeDate, "strange-date"},
	} {
		archived := usual(Archived)
		archived.Source, archived.Dest = Kept, "_archived/x"
		row.change(&archived)
		if archived.Attention() != row.class || archived.flagWords() != row.flag || archived.NeedsPerson() || !archived.IsAtRest() {
			t.Errorf("%s: archived, class %d, flags %q, needs a person: %t", name, archived.Attention(), archived.flagWords(), archived.NeedsPerson())
		}
		looked, err := Transition(archived, Closed{}, at)
		if err != nil || looked.Attention() != NoAttention || looked.Resolved || !strings.HasSuffix(looked.flagWords(), "checked") {
			t.Errorf("%s: closed: %v, class %d, flags %q", name, err, looked.Attention(), looked.flagWords())
		}
		_, err = Transition(looked, Closed{}, at)
		why, ok := errors.AsType[*IllegalError](err)
		kit.Check(t, ok && why.Reason == AlreadyResolved, "%s: closed twice: %v", name, err)
		if looked.Contradicted = true; looked.Attention() != ContradictedByService {
			t.Errorf("%s: a contradiction that came later is not told of: %d", name, looked.Attention())
		}
		held := usual(Packaged)
		row.change(&held)
		kit.Want(t, name+": on its way", held.Attention(), Waiting)
		if held.Hold = true; held.Attention() != AwaitingDecision {
			t.Errorf("%s: held, class %d", name, held.Attention())
		}
		on, err := Transition(held, Unheld{}, at)
		kit.Check(t, err == nil && on.Reviewed && on.Attention() == Waiting,
			"%s: let go on: %v, checked: %t", name, err, on.Reviewed)
	}
	plain := usual(Archived)
	plain.Hold = true
	if on, err := Transition(plain, Unheld{}, at); err != nil || on.Reviewed {
		t.Errorf("reviewed = %v (%v), want false: nothing was unusual", on.Reviewed, err)
	}
}
