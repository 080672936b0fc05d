package arrival

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// receivedLife is the life of a document that came in over the network.
var receivedLife = []Event{
	DocumentAnnounced{"bum-1", archive.NetworkCreditNote, "ack-1"}, DocumentHeld{Stored: "document", Size: 9, SHA256: sum, Files: []archive.FileRef{{ID: "f1"}}}, heldFile("f1"),
	HeldWhole{Manifest: sum}, HandedOn{}, ConfirmIntended{}, ConfirmationTaken{}, AcknowledgeIntended{}, AcknowledgementTaken{},
}

// I30: each state of a received document allows what its life needs, and nothing that would delete its notification too early.
func TestTransition_I30_ReceivedDocuments(t *testing.T) {
	steps := []struct {
		state   State
		allowed string // of every event, and of those of this life
	}{
		{None, "arrival-announced arrival-adopted document-announced"},
		{Announced, "document-held arrival-postponed retry-asked arrival-left-out arrival-past-unknown downloads-allowed given-up"},
		{Fetching, "file-held file-doubted arrival-postponed retry-asked arrival-left-out arrival-past-unknown downloads-allowed given-up"},
		{Fetching, "arrival-postponed arrival-held retry-asked arrival-left-out arrival-past-unknown downloads-allowed given-up"},
		{Held, "arrival-postponed handed-on retry-asked given-up"},
		{Held, "arrival-postponed confirm-intended acknowledge-intended retry-asked"},
		{Held, "arrival-postponed confirm-intended confirmed acknowledge-intended retry-asked"},
		{Held, "arrival-postponed acknowledge-intended retry-asked"},
		{Held, "arrival-postponed acknowledge-intended acknowledged retry-asked"},
		{Acknowledged, ""},
	}
	for i, s := range steps {
		a := after(t, receivedLife[:i]...)
		kit.Want(t, fmt.Sprintf("after %d events it", i), a.State, s.state)
		for _, confirm := range []bool{false, true} {
			checkStage(t, a, Rules{Confirm: confirm})
		}
		for _, ev := range append(every(), receivedLife...) {
			_, err := Transition(a, ev, at)
			want := strings.Contains(" "+s.allowed+" ", " "+ev.JournalName()+" ")
			switch ev := ev.(type) { // those of the other kind have its files
			case WordIntended, WordAnswered: // TestWord_WhereItIsPossible
				continue
			case FileHeld:
				want = want && ev.File == "f1"
			case HeldWhole:
				want = want && len(ev.Again) == 0
			}
			kit.Check(t, (err == nil) == want, "%T after %d events: %v", ev, i, err)
		}
	}
	for name, ev := range map[string]Event{
		"NoNumber": DocumentAnnounced{"", archive.NetworkInvoice, "ack"}, "NoKind": DocumentAnnounced{"bum", "", "ack"}, "NoNotification": DocumentAnnounced{"bum", archive.NetworkInvoice, ""},
	} {
		kit.Fails(t, name+" is announced", kit.Err(Transition(Arrival{Key: archive.Key{1}}, ev, at)))
	}
	for name, ev := range map[string]Event{
		"NoDigest": DocumentHeld{Stored: "document", Size: 9, SHA256: archive.Digest{}, Files: nil}, "OneFileTwice": DocumentHeld{Stored: "document", Size: 9, SHA256: sum, Files: []archive.FileRef{{ID: "f"}, {ID: "f"}}},
		"FileOfTheDocumentsName": DocumentHeld{Stored: "document", Size: 9, SHA256: sum, Files: []archive.FileRef{{ID: DocumentFile}}},
	} {
		kit.Fails(t, name+" is held", kit.Err(Transition(after(t, receivedLife[0]), ev, at)))
	}
}

// I29: what a person decides about a received document has its line with who decided, and what failed before is tried at once. What lies in the
// drop folder, and an extract that is held, nobody can give up.
func TestTransition_I29_PersonsDecideAboutReceivedDocuments(t *testing.T) {
	by := ledger.Operator{UID: 1000, Reason: sum}
	later := Postponed{Until: at.Wall.Add(time.Hour), Cause: ledger.Cause{Code: "receive-lost"}}
	for _, ev := range []Event{RetryAsked{By: by}, Abandoned{By: &by, Cause: ledger.Cause{Code: "closed"}}} {
		before := after(t, append(receivedLife[:4:4], later)...)
		a := kit.Value(Transition(before, ev, at))(t)
		if line := string(NewLine(9, a, ev, at).Encode()); !strings.Contains(line, `"uid":1000,"reason":"`+sum.String()) || a.Rev != before.Rev+1 {
			t.Errorf("line of revision %d = %s, want the user and the reason, of revision %d", a.Rev, line, before.Rev+1)
		}
		actor, ok := ActorOf(ev)
		kit.Check(t, ok && actor == by, "%T is of %+v", ev, actor)
		step, _, when := Due(a, Rules{})
		kit.Check(t, (a.State != Held || step == HandOn && when.IsZero()) && (a.State != GivenUp || step == NoStep), "after %T %v is due %v", ev, step, when)
	}
	for name, a := range map[string]Arrival{"InTheDrop": after(t, receivedLife[:5]...), "HeldExtract": after(t, life[:7]...), "WithoutAPerson": after(t, receivedLife[0], LeftOut{}, receivedLife[1], receivedLife[2], receivedLife[3])} {
		ev := Abandoned{By: &by}
		if name == "WithoutAPerson" {
			ev.By = nil
		}
		kit.Fails(t, name+" was given up", kit.Err(Transition(a, ev, at)))
	}
}

func TestDue_Received(t *testing.T) {
	want := []string{"fetch the document", "download f1", "conclude", "hand on", "confirm", "confirm", "acknowledge", "acknowledge", "none"}
	for _, confirm := range []bool{true, false} {
		for i := 1; i <= len(receivedLife); i++ {
			a := after(t, receivedLife[:i]...)
			expected := want[i-1]
			if !confirm && expected == "confirm" {
				expected = "acknowledge"
			}
			step, file, _ := Due(a, Rules{Confirm: confirm})
			kit.Want(t, fmt.Sprintf("after %d events", i), strings.TrimSpace(step.String()+" "+file), expected)
		}
	}
	until := at.Wall.Add(time.Hour)
	for i := 1; i < len(receivedLife); i++ {
		a := after(t, append(append([]Event(nil), receivedLife[:i]...), Postponed{Until: until, Cause: ledger.Cause{Code: "x"}})...)
		_, _, when := Due(a, Rules{})
		kit.Check(t, when.Equal(until), "after %d events it is due at %v", i, when)
	}
}

// I4, I29: the same bytes count on, other bytes begin anew, and neither a clock that was set nor a machine that was off makes them older than their
// fetches can have been. A person means the bytes that he saw.
func TestDoubt_I4_I29_CountsTheSameBytes(t *testing.T) {
	came := FileDoubted{File: "f1", Stored: "0001-f1", SHA256: sum, Why: "the PDF has no end", Until: at.Wall.Add(time.Minute), Cause: ledger.Cause{Code: "receive-doubt"}}
	a := after(t, receivedLife[:2]...)
	apply := func(ev Event, pass time.Duration) {
		t.Helper()
		next := kit.Value(Transition(a, ev, archive.Instant{Wall: at.Wall.Add(pass)}))(t)
		a = next
	}
	for _, pass := range []time.Duration{0, time.Minute, 365 * 24 * time.Hour, -time.Hour} {
		apply(came, pass)
	}
	f, ok := a.FindDoubted()
	if d := f.Doubt; !ok || d.Times != 4 || d.For != time.Minute+longestWait || d.Why != came.Why || a.Attempt != 4 || !a.NotBefore.Equal(came.Until) {
		t.Errorf("doubted file = %+v of %+v, want four times within %v", f, a, time.Minute+longestWait)
	}
	if rev := after(t, receivedLife[:2]...).Rev; a.Rev != rev+1 {
		t.Errorf("revision %d after %d: the same bytes are told once", a.Rev, rev)
	}
	by := ledger.Operator{UID: 7, Reason: sum}
	for name, ev := range map[string]Event{"OtherBytes": DoubtOverruled{By: by, File: "f1", SHA256: archive.Sum([]byte("x"))}, "NoSuchFile": DoubtOverruled{By: by, File: "f2", SHA256: sum}} {
		kit.Fails(t, name+": overruled", kit.Err(Transition(a, ev, at)))
	}
	over := DoubtOverruled{By: by, File: "f1", SHA256: sum}
	apply(over, 0)
	if line := string(NewLine(9, a, over, at).Encode()); !strings.Contains(line, `"uid":7`) || !strings.Contains(line, sum.String()) || !a.NotBefore.IsZero() {
		t.Errorf("line = %s, not before %v, want the user and the digest, and no wait", line, a.NotBefore)
	}
	actor, isHuman := ActorOf(over)
	kit.Check(t, isHuman && actor == by, "it is of %+v", actor)
	rev := a.Rev
	believed, overruled := a, after(t, append(receivedLife[:2:2], came)...)
	for _, text := range []string{"a page with a time", "the next one", "other"} { // each time other bytes, as with a page that has the time in it
		apply(FileDoubted{File: "f1", SHA256: archive.Sum([]byte(text)), Cause: came.Cause}, 0)
	}
	kit.Check(t, a.Rev == rev+1,
		"revision %d after %d: three pages, which fail for one reason, are told once", a.Rev, rev)
	f, _ = a.FindDoubted()
	kit.Check(t, !f.Doubt.Overruled && f.Doubt.Times == 1 && f.Doubt.For == 0, "other bytes: %+v", f)
	a = believed
	if apply(heldFile("f1"), 0); !a.Files[1].Doubt.Overruled {
		t.Errorf("doubt = %+v, want it overruled", a.Files[1].Doubt)
	}
	a = overruled
	if apply(FileHeld{File: "f1", Stored: "s", Size: 1, SHA256: archive.Sum([]byte("sound"))}, 0); a.Files[1].Doubt.IsSet() {
		t.Errorf("doubt of sound bytes = %+v, want none", a.Files[1].Doubt)
	}
	_, err := Transition(after(t, life[:2]...), FileDoubted{File: "a", SHA256: sum}, at)
	kit.Check(t, err != nil, "a doubted file of an extract is legal, want an error")
}
