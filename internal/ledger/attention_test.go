package ledger

import (
	"fmt"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// TestAttention_I26_NothingThatNeedsAPersonCountsAsWaiting: what people are told of an
// entry follows from what stands in it; a contradiction is told before everything else.
func TestAttention_I26_NothingThatNeedsAPersonCountsAsWaiting(t *testing.T) {
	want := map[State]Attention{Quarantined: InQuarantine, Rejected: RejectedUnresolved, Archived: NoAttention, Delivered: NoAttention, Duplicate: NoAttention}
	for _, s := range States() {
		e := usual(s)
		is, ended := want[s]
		if !ended {
			is = Waiting
		}
		kit.Want(t, s.String(), e.Attention(), is)
		barred := e
		barred.Cause.Code = CauseCannotBeRead
		got := barred.Attention()
		kit.Check(t, (got == WaitingForRights) == (s == Discovered), "%s without rights: %d", s, got)
		unlisted := e
		unlisted.Cause.Code = CauseRecipientNotListed
		got = unlisted.Attention()
		kit.Check(t, (got == RecipientNotListed) == (s == Packaged), "%s without a listed recipient: %d", s, got)
		e.Hold, e.SameContent = true, archive.Key{1}
		if got := e.Attention(); s.IsOpen() && got != AwaitingDecision || !s.IsOpen() && got != is {
			t.Errorf("%s on hold for its content: %d", s, got)
		}
		e.Contradicted = true
		kit.Want(t, fmt.Sprintf("%s, contradicted", s), e.Attention(), ContradictedByService)
		e.Resolved = true
		got = e.Attention()
		kit.Check(t, got != ContradictedByService && got != RejectedUnresolved, "%s, closed by a person: still %d", s, got)
		kit.Check(t, e.Attention() == NoAttention || !e.IsAtRest(), "%s needs attention, and counts as at rest", s)
	}
}
