package ledger

import (
	"errors"
	"slices"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// applied applies events to an entry, and fails where one is not allowed.
func applied(t *testing.T, e Entry, evs ...Event) Entry {
	t.Helper()
	for _, ev := range evs {
		next := kit.Value(Transition(e, ev, at(0)))(t)
		e = next
	}
	return e
}

// networkEntry is a packaged entry of the business network.
func networkEntry() Entry {
	e := usual(Packaged)
	e.Route = Network
	return e
}

var (
	body = DocumentIntended{archive.Digest{7}}
	sent = []Event{FilesIntended{Count: 1}, filesStored("f"), body, DocumentTaken{}}
)

func filesStored(ids ...archive.FileID) FilesStored { return FilesStored{IDs: ids} }

// I13, I12: the words of the network in any order. A final word stays, and one that denies it is told aloud.
func TestNotificationSeen_I13_AnyOrder(t *testing.T) {
	processing, delivered, undelivered := told("TechnicalAccept", "ReceivedForProcessing"), told("TechnicalAccept", "Delivered"), told("TechnicalReject", "Undelivered")
	refused, accepted := told("BusinessReject", "DocumentRejected"), told("BusinessAccept", "DocumentAccepted")
	for _, r := range []struct {
		name         string
		words        []Event
		state        State
		contradicted bool
		person       bool
		attention    Attention
	}{
		{"processing", []Event{processing}, Uploaded, false, false, Waiting},
		{"delivered", []Event{processing, delivered}, Delivered, false, false, NoAttention},
		{"processing after delivered", []Event{delivered, processing}, Delivered, false, false, NoAttention},
		{"delivered twice", []Event{delivered, delivered}, Delivered, false, false, NoAttention},
		{"late reject", []Event{delivered, undelivered}, Delivered, true, true, RejectedLate},
		{"late reject, closed", []Event{delivered, undelivered, Closed{byPerson}}, Delivered, true, false, NoAttention},
		{"late reject, twice", []Event{delivered, undelivered, undelivered}, Delivered, true, true, RejectedLate},
		{"undelivered", []Event{processing, undelivered}, Rejected, false, true, RejectedUnresolved},
		{"processing after undelivered", []Event{undelivered, processing}, Rejected, false, true, RejectedUnresolved},
		{"delivered after undelivered", []Event{undelivered, delivered}, Rejected, true, true, ContradictedByService},
		{"delivered after undelivered, closed before", []Event{undelivered, Closed{byPerson}, delivered}, Rejected, true, true, ContradictedByService},
		{"rejected by the recipient", []Event{delivered, refused}, Delivered, false, true, RefusedByRecipient},
		{"rejected by the recipient, closed", []Event{delivered, refused, Closed{byPerson}}, Delivered, false, false, NoAttention},
		{"rejected by the recipient, told again", []Event{delivered, refused, Closed{byPerson}, refused}, Delivered, false, false, NoAttention},
		{"accepted in the end", []Event{delivered, refused, accepted}, Delivered, false, false, NoAttention},
	} {
		t.Run(r.name, func(t *testing.T) {
			e := applied(t, applied(t, networkEntry(), sent...), r.words...)
			if e.State != r.state || e.Contradicted != r.contradicted || e.NeedsPerson() != r.person || e.Attention() != r.attention {
				t.Errorf("%s, contradicted %v, needs a person %v, %v", e.State, e.Contradicted, e.NeedsPerson(), e.Attention())
			}
			kit.Check(t, e.State != Delivered || e.Means == "MailDelivery", "means %q", e.Means)
		})
	}
}

// I2, I10: after an unknown outcome the same bytes go under the same number. "It is known" is a success only then.
func TestDocumentTaken_I2_KnownOnlyAfterAnUnansweredTry(t *testing.T) {
	e := applied(t, networkEntry(), body)
	kit.Fails(t, "known after the first try", kit.Err(Transition(e, DocumentTaken{WasKnown: true}, at(0))), ErrIllegal)
	e = applied(t, e, UploadUnanswered{}, body)
	kit.Fails(t, "other bytes under the number",
		kit.Err(Transition(e, DocumentIntended{archive.Digest{8}}, at(0))), ErrIllegal)
	if e = applied(t, e, DocumentTaken{WasKnown: true}); e.State != Uploaded || e.PossibleDouble || len(e.Registrations) != 1 {
		t.Errorf("entry = %+v, want it %s under one number, and no double", e, Uploaded)
	}
	e = applied(t, networkEntry(), body, UploadNotSent{}, body)
	kit.Fails(t, "known after a try that certainly never left",
		kit.Err(Transition(e, DocumentTaken{WasKnown: true}, at(0))), ErrIllegal)
}

// I9: files that the network may have and no document names are counted.
func TestFiles_I9_UnknownOnesAreCounted(t *testing.T) {
	e := applied(t, networkEntry(), FilesIntended{Count: 3}, UploadUnanswered{}, FilesIntended{Count: 3}, filesStored("a"), UploadNotSent{}, FilesIntended{Count: 2}, filesStored("b"))
	kit.Fails(t, "the document is announced while a file is under way", kit.Err(Transition(e, body, at(0))), ErrIllegal)
	// After a crash the network may have both that were under way.
	e = applied(t, e, FilesIntended{Count: 1}, filesStored("c"), body)
	kit.Check(t, e.LostFiles == 2 && e.FilesUnderWay == 0 && len(e.StoredFiles) == 3,
		"%d lost, %d under way, %q", e.LostFiles, e.FilesUnderWay, e.StoredFiles)
	kit.Fails(t, "a file is stored after the document is announced", kit.Err(Transition(e, FilesIntended{Count: 1}, at(0))), ErrIllegal)
}

// I2: a document in doubt that a person releases goes under the same number, so the network refuses it where it has it. Only where the number
// is somebody else's the next generation is taken, and that is flagged.
func TestReleased_I2_SameNumberAgain(t *testing.T) {
	e := applied(t, networkEntry(), body, ReconcileRequired{}, Reconciled{})
	kit.Need(t, e.State == Quarantined && e.Cause.Code == CauseDeliveryUnknown,
		"%s because of %+v, want %s because of %s", e.State, e.Cause, Quarantined, CauseDeliveryUnknown)
	number := e.OwnNumber()
	e = applied(t, e, Released{byPerson})
	if e.State != Packaged || e.OwnNumber() != number {
		t.Errorf("%s under %s, was %s", e.State, e.OwnNumber(), number)
	}
	e = applied(t, e, body, SentToQuarantine{Cause{Code: CauseNumberTaken}}, Released{byPerson})
	kit.Check(t, e.OwnNumber() != number && e.PossibleDouble && e.sentAs() == nil,
		"entry = %+v, want another number than %s, and a possible double", e, number)
	if e = applied(t, e, DocumentIntended{archive.Digest{9}}, DocumentTaken{}); e.State != Uploaded || len(e.Registrations) != 2 {
		t.Errorf("entry = %+v, want it %s under a second number", e, Uploaded)
	}
}

// A document that is called delivered and did not arrive may be sent again; one that arrived is a duplicate.
func TestCompareIdentity_DroppedAgain(t *testing.T) {
	seal := Sealed{ID: archive.ID{1}, Package: zip(3)}
	e := applied(t, networkEntry(), append(sent[:4:4], told("TechnicalAccept", "Delivered"))...)
	kit.Want(t, "delivered", CompareIdentity(e, seal, Network, ""), Same)
	if e = applied(t, e, told("TechnicalReject", "Undelivered")); CompareIdentity(e, seal, Network, "") != Proceed {
		t.Errorf("the same document after an undelivered one: %v, want %v", CompareIdentity(e, seal, Network, ""), Proceed)
	}
}

// I8: a number that was found taken is somebody else's for ever. What the network says about it is refused, also where the document went
// under the next number since.
func TestReleased_I8_NumberTaken(t *testing.T) {
	e := applied(t, networkEntry(), body)
	first := e.OwnNumber()
	theirs := NotificationSeen{archive.Notification{AcknowledgementID: "a", Document: first, Response: "TechnicalAccept", Action: "Delivered"}}
	kit.Want(t, "own, not yet taken", applied(t, e, theirs).State, Delivered)
	for _, evs := range [][]Event{{DocumentRefused{Cause{Code: CauseNumberTaken}}}, {Released{byPerson}, DocumentIntended{archive.Digest{9}}}} {
		e = applied(t, e, evs...)
		if _, err := Transition(e, theirs, at(0)); !errors.Is(err, ErrIllegal) || e.IsOwnNumber(first) {
			t.Errorf("%s under %s: told of %s: %v, own %t, want %v", e.State, e.OwnNumber(), first, err, e.IsOwnNumber(first), ErrIllegal)
		}
	}
	if !e.IsOwnNumber(e.OwnNumber()) || e.OwnNumber() == first {
		t.Errorf("%s, then %s", first, e.OwnNumber())
	}
}

// I2, I8, I13: the lost part of a ledger may have sent a document that was only packed, or half sent, in the copy. Its number is listed, so what
// the network still tells ends it; released, it goes under the same number with its files stored anew, and "it is known" is a success.
func TestReconcileRequired_I2_TheLostPartMayHaveSentIt(t *testing.T) {
	for name, before := range map[string][]Event{"Packaged": nil, "FileUnderWay": {FilesIntended{Count: 1}}, "FileStored": {FilesIntended{Count: 1}, filesStored("old")}} {
		t.Run(name, func(t *testing.T) {
			e := applied(t, networkEntry(), append(before, ReconcileRequired{})...)
			if e.State != Quarantined || !e.MayBeSentByLostPart() {
				t.Fatalf("%s, may be sent %v", e.State, e.MayBeSentByLostPart())
			}
			e = applied(t, e, RegistrationFound{Remote: e.OwnNumber(), ID: e.ID}, Reconciled{})
			kit.Need(t, e.State == Quarantined && !e.MayBeSentByLostPart() && !e.WasDocumentSent() && !e.PossibleDouble,
				"entry = %+v, want it %s and certainly not sent", e, Quarantined)
			kit.Want(t, "the network calls it delivered",
				applied(t, e, told("TechnicalAccept", "Delivered")).State, Delivered)
			kit.Want(t, "a file is refused, though the lost part may have sent the document",
				applied(t, e, Released{byPerson}, FilesIntended{Count: 1}, DocumentRefused{}).State, Quarantined)
			e = applied(t, e, Released{byPerson}, FilesIntended{Count: 1}, filesStored("new"), body)
			kit.Check(t, len(e.Registrations) == 1 && e.HasEarlierUnanswered() && !e.PossibleDouble,
				"entry = %+v, want one number, an earlier unanswered POST and no double", e)
			if known := applied(t, e, DocumentTaken{WasKnown: true}); known.State != Uploaded || !known.Body.IsZero() || !known.Registrations[0].Sent.IsZero() {
				t.Errorf("known to the network: %s, and the bytes are recorded as those that were not sent", known.State)
			}
			if now := applied(t, e, DocumentTaken{}); now.State != Uploaded || now.Body != body.Body || now.Registrations[0].Sent != body.Body || now.Registrations[0].FromLostPart {
				t.Errorf("taken now: %+v", now)
			}
			kit.Want(t, "refused, though the lost part may have sent it",
				applied(t, e, DocumentRefused{}).State, Quarantined)
		})
	}
	e := applied(t, networkEntry(), body, ReconcileRequired{})
	kit.Check(t, !e.MayBeSentByLostPart(), "a listed number may be sent by the lost part: true, want false")
}

// I9: the files that the network may have and no document uses are never counted too few: also those that were stored for a document which it
// never took, or under a number that was given up.
func TestCountUnusedFiles_I9_AnUpperBound(t *testing.T) {
	stored := []Event{FilesIntended{Count: 2}, UploadUnanswered{}, FilesIntended{Count: 2}, filesStored("a", "b")}
	for name, row := range map[string]struct {
		then []Event
		want int
	}{
		"OnItsWay":      {nil, 1},
		"Taken":         {[]Event{body, DocumentTaken{}}, 1},
		"Delivered":     {[]Event{body, DocumentTaken{}, told("TechnicalAccept", "Delivered")}, 1},
		"Undelivered":   {[]Event{body, DocumentTaken{}, told("TechnicalReject", "Undelivered")}, 1},
		"Refused":       {[]Event{body, DocumentRefused{}}, 3},
		"FileRefused":   {[]Event{FilesIntended{Count: 1}, DocumentRefused{}}, 3},
		"ClosedInDoubt": {[]Event{body, SentToQuarantine{Cause{Code: CauseNumberTaken}}, Closed{byPerson}}, 3},
		"NextNumber":    {[]Event{body, SentToQuarantine{Cause{Code: CauseNumberTaken}}, Released{byPerson}, FilesIntended{Count: 1}, filesStored("c"), DocumentIntended{archive.Digest{9}}, DocumentTaken{}}, 3},
	} {
		if e := applied(t, networkEntry(), append(slices.Clip(stored), row.then...)...); e.CountUnusedFiles() != row.want {
			t.Errorf("%s: %d, want %d: %+v", name, e.CountUnusedFiles(), row.want, e)
		}
	}
}
