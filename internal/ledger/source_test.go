package ledger

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// The reason why a source could not be placed or removed ends once it was. The
// reason of a rejection, and one for which an operator must act, stays.
func TestPlaced_I12_TheReasonOfATryEnds(t *testing.T) {
	at := archive.Instant{Wall: epoch}
	apply := func(t *testing.T, e Entry, evs ...Event) Entry {
		for _, ev := range evs {
			next, err := Transition(e, ev, at)
			if err != nil {
				t.Fatalf("%s: %v, want it to be legal", ev.JournalName(), err)
			}
			e = next
		}
		return e
	}
	away := Postponed{NotBefore: epoch.Add(time.Minute), Cause: Cause{Code: "drop-paused", Text: "the drop folder is not there"}}
	rejected := usual(Rejected)
	rejected.Cause = Cause{Code: "no-sidecar"}
	asked := usual(Archived)
	asked.Contradicted, asked.Cause = true, Cause{Code: "contradicted"}
	for name, row := range map[string]struct {
		e    Entry
		evs  []Event
		want string
	}{
		"Placed":       {usual(Archived), []Event{away, PlaceIntended{Dest: "_archived/x"}, Placed{}}, ""},
		"StillAway":    {usual(Archived), []Event{away}, "drop-paused"},
		"Rejected":     {rejected, []Event{away, PlaceIntended{Dest: "_rejected/x"}, Placed{}}, "no-sidecar"},
		"Contradicted": {asked, []Event{away, PlaceIntended{Dest: "_archived/x"}, Placed{}}, "contradicted"},
		"Disposed": {usual(Archived), []Event{PlaceIntended{Dest: "_archived/x"}, Placed{DisposeAt: epoch}, away,
			DisposeIntended{}, Disposed{}}, ""},
	} {
		kit.Want(t, name+": code of the cause", apply(t, row.e, row.evs...).Cause.Code, row.want)
	}
}
