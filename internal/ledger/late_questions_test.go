package ledger

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// given returns an archived entry of which an earlier registration was given up at the epoch.
func given(f Fate) Entry {
	e := usual(Archived)
	orphan(f)(&e)
	e.Source = Kept
	return e
}

// What was given up is asked about for a month, more and more seldom, and then rests.
func TestLateQuestions_I2_GoOnForAMonth(t *testing.T) {
	want := []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour, 240 * time.Hour, 720 * time.Hour}
	for _, fate := range []Fate{Lapsed, Declined} {
		for _, word := range []archive.ServiceStatus{archive.Failed, archive.Absent, archive.WaitingForPackage, archive.Unfamiliar} {
			e := given(fate)
			var asked []time.Duration
			for step, when, due := Due(e); due; step, when, due = Due(e) {
				if step != Ask || len(e.DueQuestions(when)) != 1 || len(e.DueQuestions(when.Add(-time.Second))) != 0 || e.IsAtRest() {
					t.Fatalf("%s at %v about %v, at rest %t", step, when, e.DueQuestions(when), e.IsAtRest())
				}
				asked = append(asked, when.Sub(epoch))
				e = must(t, e, when.Sub(epoch), StatusSeen{Receipt: archive.Receipt{Remote: "old", Status: word}, Grace: grace})
			}
			if !slices.Equal(asked, want) || !e.IsAtRest() {
				t.Errorf("fate %d, %s: asked after %v, at rest %t", fate, word, asked, e.IsAtRest())
			}
		}
	}
}

// A machine that was off asks once, not once for each time that it missed.
func TestLateQuestions_I2_WhatWasMissedIsAskedOnce(t *testing.T) {
	e := must(t, given(Lapsed), 5*24*time.Hour, answer(archive.Failed, "old"))
	_, when, _ := Due(e)
	kit.Check(t, when.Equal(epoch.Add(10*24*time.Hour)), "asked again at %v", when)
}

// A document that never lost a registration is never asked about late.
func TestLateQuestions_I2_NobodyElseIsAsked(t *testing.T) {
	if e := given(Unsent); len(e.DueQuestions(epoch.Add(10000*time.Hour))) != 0 || !e.IsAtRest() {
		t.Errorf("asks about %v", e.DueQuestions(epoch.Add(10000*time.Hour)))
	}
}

// A disposal waits for the question that is due before it, and for no other one.
func TestLateQuestions_I3_DisposalWaitsForOneThatIsDue(t *testing.T) {
	e := given(Lapsed)
	e.DisposeAt = epoch.Add(2 * time.Hour)
	step, when, _ := Due(e)
	kit.Check(t, step == Ask && when.Equal(epoch.Add(time.Hour)), "%s at %v", step, when)
	e = must(t, e, time.Hour, answer(archive.Failed, "old"))
	step, when, _ = Due(e)
	kit.Check(t, step == Dispose && when.Equal(e.DisposeAt), "%s at %v", step, when)
	e = must(t, e, 2*time.Hour, DisposeIntended{}, Disposed{})
	step, when, _ = Due(e)
	kit.Check(t, step == Ask && when.Equal(epoch.Add(6*time.Hour)), "%s at %v", step, when)
}

// A late question that cannot be asked says nothing about why an entry ended.
func TestLateQuestions_I26_PostponedTheyKeepTheCause(t *testing.T) {
	e := usual(Quarantined)
	e.Registrations[0].Fate, e.Cause = Lapsed, Cause{Code: "archiving-failed"}
	if e = must(t, e, time.Hour, Postponed{NotBefore: at(2 * time.Hour).Wall, Cause: Cause{Code: "no-answer"}}); e.Cause.Code != "archiving-failed" {
		t.Errorf("cause %q", e.Cause.Code)
	}
	step, when, _ := Due(e)
	kit.Check(t, step == Ask && when.Equal(epoch.Add(2*time.Hour)), "%s at %v", step, when)
}

// However often a store refuses a document, its entry stays small; those that it lists no
// more are the oldest.
func TestLateQuestions_I21_AreBounded(t *testing.T) {
	e := usual(Packaged)
	for n := range 100 {
		e = must(t, e, time.Duration(n)*time.Minute, RegisterIntended{}, TicketReceived{ticket(archive.RemoteID(fmt.Sprint(n)))}, UploadIntended{}, UploadRefused{})
	}
	if n := len(e.DueQuestions(epoch.Add(10000 * time.Hour))); n != maxLateListed+1 || e.Pruned.Total() != uint64(100-n) || e.Registrations[0].Ticket.Remote != "67" {
		t.Errorf("asks about %d, %+v folded, the first is %s", n, e.Pruned, e.Registrations[0].Ticket.Remote)
	}
}

// The service fails a package; a job that runs again brings it in after all. The second
// copy is certain then, and a person must look.
func TestLateSuccess_I2_IsFlaggedAtOnce(t *testing.T) {
	for _, fate := range []Fate{Lapsed, Declined} {
		e := given(fate)
		e = must(t, e, time.Hour, answer(archive.Successful, "old"))
		if !e.PossibleDouble || !e.IsArchivedTwice() || !e.NeedsPerson() || e.IsAtRest() || e.Attention() != ArchivedTwice {
			t.Fatalf("fate %d: double %t, twice %t, attention %d", fate, e.PossibleDouble, e.IsArchivedTwice(), e.Attention())
		}
		before := e.Rev
		e = must(t, e, 2*time.Hour, Closed{byPerson})
		if e.NeedsPerson() || !e.PossibleDouble || e.Attention() != NoAttention || e.Rev == before {
			t.Errorf("closed, and double %t, needs a person %t", e.PossibleDouble, e.NeedsPerson())
		}
		third := e
		third.Registrations = append([]Registration{{Ticket: bare("third"), Fate: Lapsed, ClosedAt: epoch}}, e.Registrations...)
		if third = must(t, third, 3*time.Hour, answer(archive.Successful, "third")); !third.NeedsPerson() {
			t.Errorf("a third copy: %s needs attention: false, want true", third.State)
		}
		for _, w := range []archive.ServiceStatus{archive.Absent, archive.WaitingForPackage, archive.Unfamiliar, archive.Failed} {
			for h := range 100 {
				e = must(t, e, 48*time.Hour+time.Duration(h)*time.Hour, answer(w, "old"))
			}
			kit.Check(t, e.PossibleDouble && e.IsArchivedTwice(), "%s took the flag back", w)
		}
	}
}

// What is archived after its entry had stopped in front of a person is told to him; a
// second one is flagged.
func TestLateSuccess_I2_OfAQuarantinedEntry(t *testing.T) {
	e := usual(Quarantined)
	e.Registrations[0].Fate = Lapsed
	orphan(Lapsed)(&e)
	if e = must(t, e, time.Hour, answer(archive.Successful, "old")); !e.Contradicted || e.PossibleDouble {
		t.Errorf("one success: contradicted %t, double %t", e.Contradicted, e.PossibleDouble)
	}
	if e = must(t, e, time.Hour, answer(archive.Successful, "now")); !e.PossibleDouble || !e.IsArchivedTwice() {
		t.Errorf("two successes: double %t", e.PossibleDouble)
	}
	if e = must(t, e, time.Hour, Released{byPerson}); e.State != Archived || !e.PossibleDouble || !e.NeedsPerson() {
		t.Errorf("released: %s, double %t", e.State, e.PossibleDouble)
	}
}

// What the service works on again is waited for, and not sent once more.
func TestLateProgress_I2_IsWaitedFor(t *testing.T) {
	e := usual(Packaged)
	e.Registrations = []Registration{{Ticket: bare("first"), Fate: Lapsed, ClosedAt: epoch}, {Ticket: bare("second"), Fate: Declined, ClosedAt: epoch}}
	e = must(t, e, time.Hour, answer(archive.InProgress, "first"))
	if e.State != Uploaded || e.Current().Ticket.Remote != "first" || e.PossibleDouble {
		t.Errorf("%s with %s, double %t", e.State, e.Current().Ticket.Remote, e.PossibleDouble)
	}
	sending := usual(Sending)
	orphan(Lapsed)(&sending)
	if sending = must(t, sending, 0, answer(archive.InProgress, "old")); !sending.PossibleDouble || sending.State != Sending {
		t.Errorf("a second content under way: %s, double %t", sending.State, sending.PossibleDouble)
	}
	racing := usual(Registering)
	orphan(Lapsed)(&racing)
	racing = must(t, racing, 0, answer(archive.InProgress, "old"), TicketReceived{ticket("new")}, UploadIntended{})
	kit.Check(t, racing.PossibleDouble, "sent while another one is being archived: possible double = false, want true")
}

// A list that is some minutes old, or one of several servers that is behind, still says "in progress" of what has failed.
// That is one failure and not many: no person is called, and nothing else is registered.
func TestLateProgress_I23_OneFailureToldManyTimesIsOne(t *testing.T) {
	e, began := uploaded()
	at := began.Add(time.Hour)
	tell := func(word archive.ServiceStatus) {
		t.Helper()
		at = at.Add(time.Minute)
		next, err := Transition(e, StatusSeen{Grace: grace, Receipt: archive.Receipt{Remote: "b1", Status: word, Updated: began.Add(time.Hour)}}, archive.Instant{Wall: at})
		kit.Must(t, err)
		e = next
	}
	for range 2 * maxFailures {
		tell(archive.InProgress)
		kit.Need(t, e.State == Uploaded && e.Failures == 0, "taken back: %s, %d failures", e.State, e.Failures)
		tell(archive.Failed)
		kit.Need(t, e.State == Packaged && e.Failures == 1, "%s, %d failures", e.State, e.Failures)
	}
}

// One word of failure is not believed before it was said again an hour later.
func TestAsksAgain_I2_BeforeItIsRegisteredAgain(t *testing.T) {
	failed := func() Entry {
		e, began := uploaded()
		e.Registrations[0].LastStatus, e.Registrations[0].EqualAnswers = archive.InProgress, 1
		e, err := Transition(e, StatusSeen{Grace: grace, Receipt: archive.Receipt{Remote: "b1", Status: archive.Failed, Updated: began.Add(time.Hour)}},
			archive.Instant{Wall: epoch})
		kit.Need(t, err == nil && e.State == Packaged, "state = %s (%v), want %s", e.State, err, Packaged)
		return e
	}
	e := failed()
	if step, when, _ := Due(e); step != Ask || !when.Equal(epoch.Add(grace/graceParts)) || !slices.Equal(e.DueQuestions(when), []archive.RemoteID{"b1"}) {
		t.Fatalf("%s at %v about %v", step, when, e.DueQuestions(when))
	}
	for word, want := range map[archive.ServiceStatus]string{
		archive.Failed: "packaged register", archive.Absent: "packaged register", archive.WaitingForPackage: "packaged register",
		archive.InProgress: "uploaded ask", archive.Successful: "archived place", archive.Unfamiliar: "packaged ask",
	} {
		next := must(t, e, grace/graceParts, StatusSeen{Grace: grace, Receipt: archive.Receipt{Remote: "b1", Status: word}})
		step, _, _ := Due(next)
		got := fmt.Sprint(next.State, " ", step)
		kit.Check(t, got == want && !next.PossibleDouble, "%s: %s, want %s", word, got, want)
	}
	e.Registrations[0].EqualAnswers = neededAnswers
	step, _, _ := Due(e)
	kit.Check(t, step == Register, "%s, though it was said often enough", step)
}

// An archive that never answers about what was given up is asked more and more seldom, and not for ever: the entry comes
// to rest, and its source is disposed of.
func TestLateQuestions_I25_EndWithoutAnAnswer(t *testing.T) {
	e := given(Lapsed)
	e.DisposeAt = epoch.Add(2 * time.Hour)
	asked := 0
	for ; asked < 1000; asked++ {
		step, when, due := Due(e)
		if !due || step != Ask {
			break
		}
		e = must(t, e, when.Sub(epoch), Postponed{NotBefore: when.Add(5 * time.Minute), Cause: Cause{Code: "http-400"}})
	}
	step, _, _ := Due(e)
	kit.Check(t, step == Dispose && asked <= 60, "%s after %d questions without an answer", step, asked)
}

// A failure that cannot be asked about again is believed after a day: nobody could do anything about the document before.
func TestAsksAgain_I25_EndsWithoutAnAnswer(t *testing.T) {
	e, began := uploaded()
	e.Registrations[0].LastStatus, e.Registrations[0].EqualAnswers = archive.InProgress, 1
	e = must(t, e, 0, StatusSeen{Grace: grace, Receipt: archive.Receipt{Remote: "b1", Status: archive.Failed, Updated: began.Add(time.Hour)}})
	for n := 0; n < 1000; n++ {
		step, when, _ := Due(e)
		if step == Register {
			waited := when.Sub(epoch)
			kit.Check(t, waited <= longestSilence+time.Hour, "registered again after %v", waited)
			return
		}
		e = must(t, e, when.Sub(epoch), Postponed{NotBefore: when.Add(5 * time.Minute), Cause: Cause{Code: "http-400"}})
	}
	t.Errorf("it is never registered again: %s", e.State)
}

// What the service works on again becomes the current registration, whichever others may hold content.
func TestLateProgress_I12_IsOfTheOneThatWasTold(t *testing.T) {
	e := usual(Packaged)
	e.Registrations = []Registration{
		{Ticket: bare("first"), Fate: Lapsed, ClosedAt: epoch}, {Ticket: bare("maybe"), Fate: MaybeStored, ClosedAt: epoch}, {Ticket: bare("unsent"), Fate: Unsent, ClosedAt: epoch},
	}
	e.PossibleDouble, e.DuplicateConfirmed = true, true
	e = must(t, e, time.Hour, answer(archive.InProgress, "first"))
	if e.State != Uploaded || e.Current().Ticket.Remote != "first" || e.Current().Fate != Stored {
		t.Errorf("%s with %s, fate %d", e.State, e.Current().Ticket.Remote, e.Current().Fate)
	}
}

// News that comes while a registration is asked for is waited for as well: nothing is registered once more beside it.
func TestLateProgress_I2_WhileItIsRegistered(t *testing.T) {
	e := usual(Registering)
	orphan(Lapsed)(&e)
	e = must(t, e, 0, answer(archive.InProgress, "old"), RegisterUnanswered{})
	if step, _, _ := Due(e); step != Ask || !slices.Contains(e.OpenQuestions(), "old") {
		t.Errorf("%s, questions %v", step, e.OpenQuestions())
	}
}

// A success after a person had closed a contradiction calls a person again.
func TestLateSuccess_I13_I26_AfterItWasClosed(t *testing.T) {
	e := usual(Rejected)
	orphan(Lapsed)(&e)
	e.Source = Returned
	e = must(t, e, time.Hour, answer(archive.InProgress, "old"))
	e = must(t, e, time.Hour, Closed{byPerson})
	kit.Need(t, !e.NeedsPerson(), "closed: %s needs attention: true, want false", e.State)
	if e = must(t, e, 2*time.Hour, answer(archive.Successful, "old")); !e.NeedsPerson() {
		t.Errorf("archived after it was rejected: %s needs attention: false, want true", e.State)
	}
}

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
