package ledger

import (
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// TestPosts_I9_AnswersAreCountedOnce: the registrations that the ledger does
// not know are at most as many as POSTs without an answer. Each POST counts, also
// one that is repeated after a crash, and only an answer that says what became
// of it counts as one.
func TestPosts_I9_AnswersAreCountedOnce(t *testing.T) {
	type counts struct{ Posts, Answers uint16 }
	for name, row := range map[string]struct {
		evs  []Event
		want counts
	}{
		"Registered":            {[]Event{RegisterIntended{}, TicketReceived{ticket("b")}}, counts{1, 1}},
		"Unanswered":            {[]Event{RegisterIntended{}, RegisterUnanswered{}}, counts{1, 0}},
		"NotTaken":              {[]Event{RegisterIntended{}, RegisterNotTaken{}}, counts{1, 1}},
		"BatchRefused":          {[]Event{RegisterIntended{}, BatchRefused{Part: 1}}, counts{1, 1}},
		"Refused":               {[]Event{RegisterIntended{}, RegisterRefused{}}, counts{1, 1}},
		"MixedUp":               {[]Event{RegisterIntended{}, AnswerMixedUp{}}, counts{1, 0}},
		"RepeatedAfterACrash":   {[]Event{RegisterIntended{}, RegisterIntended{}, TicketReceived{ticket("b")}}, counts{2, 1}},
		"RepeatedAfterATimeout": {[]Event{RegisterIntended{}, RegisterUnanswered{}, RegisterIntended{}, TicketReceived{ticket("b")}}, counts{2, 1}},
	} {
		e := must(t, usual(Packaged), 0, row.evs...)
		kit.Want(t, name+": POSTs and answers", counts{e.Posts, e.Answers}, row.want)
	}
}

// TestOrphans_I9_RegistrationsWithoutContent: the audit names each registration
// that never got content, also one whose upload the store refused.
func TestOrphans_I9_RegistrationsWithoutContent(t *testing.T) {
	for fate, want := range map[Fate][]archive.RemoteID{
		Unsent: {"old"}, Declined: {"old"}, MaybeStored: nil, Stored: nil, Succeeded: nil, Lapsed: nil,
	} {
		e := usual(Archived)
		orphan(fate)(&e)
		kit.Want(t, "registrations without content", e.Orphans(), want)
	}
}
