package ledger

import (
	"math/rand/v2"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// heard is the reference for what notices mean: what the network told of the present number of a document, in whatever order.
type heard struct{ delivered, undelivered bool }

// TestTransition_I13_NoticesLostAndRepeated takes documents of the network through random events against a reference: sends with every outcome,
// and notices that are lost, repeated, and in any order. The number stays, its bytes stay, the files that nobody names are counted, and the end
// is the first final word; a word against it is told aloud.
func TestTransition_I13_NoticesLostAndRepeated(t *testing.T) {
	words := []NotificationSeen{told("TechnicalAccept", "ReceivedForProcessing"), told("TechnicalAccept", "Delivered"), told("TechnicalReject", "Undelivered"),
		told("TechnicalReject", "InvalidContent"), told("BusinessReject", "DocumentRejected"), told("BusinessAccept", "DocumentAccepted"), told("TechnicalInformation", "ConversionStarted")}
	acts := []Event{FilesIntended{Count: 2}, filesStored("f"), filesStored("f", "g"), body, body, body, DocumentIntended{archive.Digest{8}},
		DocumentTaken{}, DocumentTaken{WasKnown: true}, DocumentRefused{}, UploadUnanswered{}, UploadNotSent{}, Released{byPerson}, Closed{byPerson}}
	ends := map[State]int{}
	contradicted := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		e, said := networkEntry(), heard{}
		for range 30 {
			ev := acts[r.IntN(len(acts))]
			var word *NotificationSeen
			if n := len(words); r.IntN(3) == 0 {
				word = &words[r.IntN(n)]
				ev = *word
				if r.IntN(3) == 0 {
					continue // it is lost
				}
				if current := e.Current(); current != nil {
					word.Notification.Document = current.Ticket.Remote
					ev = *word
				}
			}
			next, err := Transition(e, ev, at(0))
			if err != nil {
				continue
			}
			again, errAgain := Transition(next, ev, at(0))
			if word != nil && (errAgain != nil || again.State != next.State || again.Contradicted != next.Contradicted || again.Resolved != next.Resolved || again.Recipient != next.Recipient) {
				t.Fatalf("seed %d: %+v told twice: %+v, then %+v (%v)", seed, ev, next, again, errAgain)
			}
			checkNetworkStep(t, seed, e, next)
			if e = next; word != nil {
				said.hear(word.Notification)
			}
		}
		said.check(t, seed, e)
		ends[e.State]++
		if e.Contradicted {
			contradicted++
		}
	}
	kit.Check(t, ends[Delivered] >= 100 && ends[Rejected] >= 100 && ends[Quarantined] != 0 && contradicted >= 100,
		"vacuous: %v, %d contradicted", ends, contradicted)
}

func (h *heard) hear(n archive.Notification) {
	switch n.Meaning() {
	case archive.MeansDelivered:
		h.delivered = true
	case archive.MeansUndelivered, archive.MeansInvalid:
		h.undelivered = true
	}
}

// check holds the end of a document to what was told of it.
func (h heard) check(t *testing.T, seed uint64, e Entry) {
	t.Helper()
	switch {
	case e.State == Delivered && (!h.delivered || e.Contradicted != h.undelivered):
		t.Fatalf("seed %d: delivered, contradicted %v, told %+v", seed, e.Contradicted, h)
	case e.State == Rejected && h.delivered && !e.Contradicted:
		t.Fatalf("seed %d: rejected and told as delivered, and not contradicted: %+v", seed, e)
	case e.State == Uploaded && (h.delivered || h.undelivered):
		t.Fatalf("seed %d: still waits, told %+v", seed, h)
	}
}

// checkNetworkStep checks what must hold of every step.
func checkNetworkStep(t *testing.T, seed uint64, before, after Entry) {
	t.Helper()
	switch {
	case before.State.IsFinal() && after.State != before.State:
		t.Fatalf("seed %d: I13: %s became %s", seed, before.State, after.State)
	case after.OwnNumber() != before.OwnNumber() && !after.PossibleDouble:
		t.Fatalf("seed %d: I2: another number without a flag", seed)
	case before.sentAs() != nil && after.Generation == before.Generation && after.Body != before.Body:
		t.Fatalf("seed %d: I10: other bytes under one number", seed)
	case after.LostFiles < before.LostFiles, len(after.StoredFiles) < len(before.StoredFiles) && int(after.LostFiles) < len(before.StoredFiles),
		after.sentAs() != nil && after.FilesUnderWay > 0:
		t.Fatalf("seed %d: I9: %d files, %d lost, %d under way", seed, len(after.StoredFiles), after.LostFiles, after.FilesUnderWay)
	}
}

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
