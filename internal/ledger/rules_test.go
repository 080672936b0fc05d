package ledger

import (
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// must takes an entry through events at one instant.
func must(t *testing.T, e Entry, d time.Duration, evs ...Event) Entry {
	t.Helper()
	for _, ev := range evs {
		next, err := Transition(e, ev, at(d))
		kit.Must(t, err)
		e = next
	}
	return e
}

// TestStatusSeen_I2_EvidenceIsLateEqualAndSpaced follows the answers one by one: only
// the third equal one, each an hour after the other, the last after the grace, is
// believed.
func TestStatusSeen_I2_EvidenceIsLateEqualAndSpaced(t *testing.T) {
	hour := time.Hour
	waiting, failed, absent := answer(archive.WaitingForPackage, "now"), answer(archive.Failed, "now"), answer(archive.Absent, "now")
	for _, row := range []struct {
		name    string
		answers []StatusSeen
		at      []time.Duration
		want    State
	}{
		{"Proven", []StatusSeen{waiting, waiting, waiting}, []time.Duration{22 * hour, 23 * hour, 24 * hour}, Packaged},
		{"FailedCountsToo", []StatusSeen{failed, failed, failed}, []time.Duration{22 * hour, 23 * hour, 24 * hour}, Packaged},
		{"TooEarly", []StatusSeen{waiting, waiting, waiting, waiting}, []time.Duration{1 * hour, 2 * hour, 3 * hour, 24*hour - 1}, Unclear},
		{"TooClose", []StatusSeen{waiting, waiting, waiting, waiting}, []time.Duration{30 * hour, 30*hour + 1, 30*hour + 2, 31*hour - 1}, Unclear},
		{"OnlyTwo", []StatusSeen{waiting, waiting}, []time.Duration{30 * hour, 40 * hour}, Unclear},
		{"Differing", []StatusSeen{waiting, waiting, failed, waiting, waiting}, []time.Duration{30 * hour, 31 * hour, 32 * hour, 33 * hour, 34 * hour}, Unclear},
		{"AbsentIsNoProof", []StatusSeen{absent, absent, absent, absent}, []time.Duration{30 * hour, 31 * hour, 32 * hour, 33 * hour}, Unclear},
		{"AbsentInterrupts", []StatusSeen{waiting, waiting, absent, waiting}, []time.Duration{30 * hour, 31 * hour, 32 * hour, 33 * hour}, Unclear},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := usual(Unclear)
			for i, a := range row.answers {
				e = must(t, e, row.at[i], a)
			}
			kit.Want(t, "the state", e.State, row.want)
		})
	}
}

// TestStatusSeen_I2_AClockThatWasSetProvesNothing: the grace has passed only when our
// clock says so since the registration was closed, and the service's since its ticket ended.
// One that went back was set, and the other decides.
func TestStatusSeen_I2_AClockThatWasSetProvesNothing(t *testing.T) {
	const hour, life, day = time.Hour, ticketLife, 24 * time.Hour
	for name, row := range map[string]struct {
		sent   time.Duration // on our clock; the registration was closed at the epoch
		ticket time.Duration // on the service's, when it came; zero if missing
		heard  time.Duration // on ours
		date   time.Duration // on the service's; zero if missing
		lost   bool
	}{
		"BothSaySo":               {-life, -life, day, day, true},
		"OursWasSetAhead":         {-life, -life, 61 * hour, 7 * hour, false},
		"TheirsWasSetAhead":       {-life, -life, 7 * hour, 61 * hour, false},
		"OursWasSetBack":          {-life, -life, -30 * hour, day, true},
		"OursWasSetBack_TooEarly": {-life, -life, -30 * hour, day - time.Second, false},
		"OursIsALittleBack":       {-life, -life, -time.Minute, day, false},
		"TheirsWasSetBack":        {-life, 60 * day, day, day, true},
		"BothWereSetBack":         {-life, 60 * day, -30 * hour, day, false},
		"TheirsIsAlwaysAhead":     {-life, 50*hour - life, day, 74 * hour, true},
		"TheirsIsAlwaysBehind":    {-life, -50*hour - life, day, -26 * hour, true},
		"AlmostOnTheirs":          {-life, -life, 25 * hour, day - time.Second, false},
		"SetAheadWhileUploading":  {-60 * day, -life, day, day, true},
		"SetBackWhileUploading":   {hour, -life, day, day, true},
		"SetBackThenAhead":        {hour, -life, 61 * hour, day - time.Second, false},
		"TheyTellNoTime":          {-life, 0, day, 0, true},
		"OneAnswerTellsNoTime":    {-life, -life, 61 * hour, 0, false},
		"OnlyTheAnswerTells":      {-life, 0, day, day, true},
		"OnlyTheAnswer_OursAhead": {-life, 0, 61 * hour, 7 * hour, false},
		"OnlyTheAnswer_ItsAhead":  {-life, 0, 7 * hour, 61 * hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := usual(Unclear)
			r := e.Current()
			r.Ticket.Sent.Wall, r.ClosedAt, r.Ticket.Date = epoch.Add(row.sent), epoch, time.Time{}
			r.LastStatus, r.EqualAnswers, r.LastAnswer = archive.WaitingForPackage, neededAnswers, epoch.Add(-100*hour)
			ev := answer(archive.WaitingForPackage, "now")
			if row.ticket != 0 {
				r.Ticket.Date = epoch.Add(row.ticket)
			}
			if ev.Receipt.Date = epoch.Add(row.date); row.date == 0 {
				ev.Receipt.Date = time.Time{}
			}
			if e = must(t, e, row.heard, ev); (e.State == Packaged) != row.lost {
				t.Errorf("state = %s, want %s: %v", e.State, Packaged, row.lost)
			}
		})
	}
}

// TestReconcileRequired_I2_EvidenceBeginsAnew: what the copy had nearly proven may be used again since,
// under the same number.
func TestReconcileRequired_I2_EvidenceBeginsAnew(t *testing.T) {
	e := usual(Unclear)
	r := e.Current()
	r.ClosedAt, r.LastStatus, r.EqualAnswers, r.LastAnswer = epoch.Add(-99*time.Hour), archive.WaitingForPackage, neededAnswers, epoch.Add(-2*time.Hour)
	e = must(t, e, 0, ReconcileRequired{})
	for hours := range 24 {
		if e = must(t, e, time.Duration(hours)*time.Hour, answer(archive.WaitingForPackage, "now")); e.State != Unclear {
			t.Fatalf("%s after %d hours", e.State, hours)
		}
	}
	if e = must(t, e, grace, answer(archive.WaitingForPackage, "now")); e.State != Packaged {
		t.Errorf("state = %s, want %s", e.State, Packaged)
	}
}

// TestStatusSeen_I2_AFoundRegistrationIsAsOldAsItsFinding: it has no ticket of its own. It
// was found when our clock was behind, which was put right later.
func TestStatusSeen_I2_AFoundRegistrationIsAsOldAsItsFinding(t *testing.T) {
	for age, want := range map[time.Duration]State{time.Hour: Unclear, 24*time.Hour - time.Second: Unclear, 24 * time.Hour: Packaged} {
		e := usual(Packaged)
		e.NeedsReconcile = true
		e = must(t, e, -30*time.Hour, RegistrationFound{Remote: "now", ID: e.ID, ServiceTime: epoch})
		r := e.Current()
		r.LastStatus, r.EqualAnswers, r.LastAnswer, e.NeedsReconcile = archive.WaitingForPackage, neededAnswers, epoch.Add(-100*time.Hour), false
		ev := answer(archive.WaitingForPackage, "now")
		ev.Receipt.Date = epoch.Add(age)
		if e = must(t, e, age, ev); e.State != want {
			t.Errorf("%s after %v", e.State, age)
		}
	}
}

// TestStatusSeen_ClosesNoWindow: what is heard beside another step must not delay it,
// or an upload would miss its window for a question about an old registration.
func TestStatusSeen_ClosesNoWindow(t *testing.T) {
	e := usual(Registered)
	orphan(MaybeStored)(&e)
	ev := answer(archive.WaitingForPackage, "old")
	ev.NotBefore = epoch.Add(time.Hour)
	e = must(t, e, 0, ev)
	if step, when, _ := Due(e); step != Upload || !when.IsZero() {
		t.Errorf("%s is due at %v", step, when)
	}
	asked := usual(Unclear)
	ev.Receipt.Remote = "now"
	asked = must(t, asked, 0, ev)
	if step, when, _ := Due(asked); step != Ask || !when.Equal(ev.NotBefore) {
		t.Errorf("%s is due at %v", step, when)
	}
}

// TestDue_PostponedDisposalWaits: a disposal that could not be done is not due again
// at once, whatever questions are open.
func TestDue_PostponedDisposalWaits(t *testing.T) {
	for _, fate := range []Fate{Lapsed, MaybeStored} {
		e := usual(Archived)
		orphan(fate)(&e)
		e.Source = Kept
		ripe(&e)
		e = must(t, e, time.Hour, Postponed{NotBefore: epoch.Add(2 * time.Hour)})
		if step, when, ok := Due(e); !ok || when.Before(epoch.Add(2*time.Hour)) {
			t.Errorf("fate %d: %s is due at %v", fate, step, when)
		}
	}
}

// TestSameNumberAgain: a service that gives the same number again gives one
// registration, not an orphan beside another.
func TestSameNumberAgain(t *testing.T) {
	e := must(t, usual(Packaged), 0, RegisterIntended{}, TicketReceived{ticket("b")}, WindowClosed{},
		RegisterIntended{}, TicketReceived{ticket("b")}, UploadIntended{}, UploadUnanswered{}, WindowClosed{})
	if o := e.Orphans(); len(o) != 0 {
		t.Errorf("orphans %v, though content may be there", o)
	}
	e = must(t, e, 0, Released{byPerson}, RegisterIntended{}, TicketReceived{ticket("b")}, UploadIntended{}, accepted,
		answer(archive.Successful, "b"), PlaceIntended{"there"}, Placed{})
	if q := e.OpenQuestions(); len(q) != 0 || !e.IsAtRest() {
		t.Errorf("archived, and still asks about %v", q)
	}
}

// TestSucceeded_I2_SaysWhatElseMayHoldContent: an older registration comes through
// while the current one is at the store.
func TestSucceeded_I2_SaysWhatElseMayHoldContent(t *testing.T) {
	for _, s := range []State{Sending, Uploaded, Unclear} {
		e := usual(s)
		orphan(Lapsed)(&e)
		e = must(t, e, 0, answer(archive.Successful, "old"))
		if e.State != Archived || !e.PossibleDouble || !slices.Contains(e.OpenQuestions(), "now") {
			t.Errorf("from %s: %s, double %t, asks about %v", s, e.State, e.PossibleDouble, e.OpenQuestions())
		}
	}
	e := usual(Quarantined)
	orphan(Succeeded)(&e)
	if e = must(t, e, 0, Released{byPerson}); !e.PossibleDouble {
		t.Error("released to archived with another registration: possible double = false, want true")
	}
}

// TestDisposal_I13_StopsWhenContradicted: a service that takes its success back stops
// a disposal that a crash left half done.
func TestDisposal_I13_StopsWhenContradicted(t *testing.T) {
	e := usual(Archived)
	e.Source = Kept
	ripe(&e)
	e = must(t, e, 0, DisposeIntended{}, answer(archive.Failed, "now"))
	if _, err := Transition(e, DisposeIntended{}, at(0)); !e.Contradicted || err == nil {
		t.Errorf("contradicted %t, and the disposal goes on: %v", e.Contradicted, err)
	}
	if step, _, ok := Due(e); ok {
		t.Errorf("%s is due", step)
	}
}

// TestDisposal_I3_StoppedItDoesNotBeginAgain: a source that is not what was
// archived stays. Its time to go is forgotten, so nothing but a decision of an
// operator can remove it.
func TestDisposal_I3_StoppedItDoesNotBeginAgain(t *testing.T) {
	e := usual(Archived)
	e.Source = Kept
	ripe(&e)
	e = must(t, e, 0, DisposeIntended{}, DisposalStopped{Cause: Cause{Code: CauseSourceChanged}})
	kit.Want(t, "source", e.Source, Kept)
	if step, when, ok := Due(e); ok {
		t.Errorf("due = %s at %v, want nothing", step, when)
	}
	if _, err := Transition(e, DisposeIntended{}, at(1000*time.Hour)); err == nil {
		t.Error("the disposal may begin again, want an error")
	}
}

// TestLook_I12_I26_WhatWasFoundStaysUntilAPersonEndsIt: a kept folder that is
// missing or changed needs a person once. What is found again as it was needs
// nobody again, what is new does. It is never removed by itself.
func TestLook_I12_I26_WhatWasFoundStaysUntilAPersonEndsIt(t *testing.T) {
	missing, changed := Cause{CauseSourceMissing, "It is not there", ""}, Cause{CauseSourceChanged, "\"a\" is missing", ""}
	for _, s := range []State{Archived, Delivered} {
		e := usual(s)
		e.Source, e.Cause = Kept, Cause{}
		ripe(&e)
		kit.Want(t, "says that it is whole", e.SaysOfSource(Cause{}), true)
		e = must(t, e, 0, SourceChecked{Cause: missing})
		kit.Want(t, "attention for a missing folder", e.Attention(), SourceChanged)
		kit.Want(t, "missing", e.IsSourceMissing(), true)
		kit.Want(t, "known as missing", e.SaysOfSource(missing), true)
		kit.Want(t, "time to go", e.DisposeAt.IsZero(), true)
		again := must(t, e, 0, SourceChecked{})
		kit.Want(t, "attention for one that is there again", again.Attention(), SourceChanged)
		kit.Want(t, "missing, there again", again.IsSourceMissing(), false)
		kit.Want(t, "known as there again", again.SaysOfSource(Cause{}), true)
		e = must(t, e, 0, Closed{byPerson})
		kit.Want(t, "attention once closed", e.Attention(), NoAttention)
		kit.Want(t, "missing, once closed", e.IsSourceMissing(), true)
		kit.Want(t, "there again after it was closed", must(t, e, 0, SourceChecked{}).Cause, Cause{})
		kit.Want(t, "known as changed", e.SaysOfSource(changed), false)
		kit.Want(t, "attention for what is new", must(t, e, 0, SourceChecked{Cause: changed}).Attention(), SourceChanged)
	}
}

// TestDisposal_I3_I4_WaitsForAComparison: what an upload without Content-MD5
// and without a 2xx left at the store is known by the service's status alone.
// The source stays until a download was compared.
func TestDisposal_I3_I4_WaitsForAComparison(t *testing.T) {
	without, success := UploadIntended{WithoutMD5: true}, answer(archive.Successful, "now")
	for name, row := range map[string]struct {
		evs  []Event
		want bool
	}{
		"Unanswered":          {[]Event{without, UploadUnanswered{}, WindowClosed{}, success}, true},
		"ByTheTicket":         {[]Event{UploadIntended{}, UploadNotSent{WithoutMD5: true}, UploadIntended{}, success}, true},
		"CrashBeforeTheReply": {[]Event{without, success}, true},
		"RefusedAfterwards":   {[]Event{without, UploadUnanswered{}, UploadIntended{}, UploadRefused{}, WindowClosed{}, success}, true},
		"ByProgress":          {[]Event{without, UploadUnanswered{}, answer(archive.InProgress, "now"), success}, true},
		"Accepted":            {[]Event{without, accepted, success}, false},
		"AcceptedAfterwards":  {[]Event{without, UploadUnanswered{}, UploadIntended{}, accepted, success}, false},
		"WithContentMD5":      {[]Event{UploadIntended{}, UploadUnanswered{}, WindowClosed{}, success}, false},
		"NotSent":             {[]Event{without, UploadNotSent{}, success}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := must(t, usual(Registered), 0, row.evs...)
			kit.Want(t, "state", e.State, Archived)
			kit.Want(t, "needs a comparison", e.NeedsComparison(), row.want)
			kit.Want(t, "named to people", e.Attention() == NotCompared, row.want)
			e.Source = Kept
			ripe(&e)
			step, _, _ := Due(e)
			kit.Want(t, "disposal is due", step == Dispose, !row.want)
			_, err := Transition(e, DisposeIntended{}, at(0))
			kit.Want(t, "disposal is refused", err != nil, row.want)
			if !row.want {
				return
			}
			closed := must(t, e, 0, Closed{byPerson})
			_, err = Transition(closed, DisposeIntended{}, at(0))
			kit.Want(t, "disposal is refused after a close", err != nil, true)
			kit.Want(t, "attention after a close", closed.Attention(), NoAttention)
			e = must(t, e, 0, ContentCompared{"now"})
			step, _, _ = Due(e)
			kit.Want(t, "due after the comparison", step, Dispose)
			kit.Want(t, "attention after the comparison", e.Attention(), NoAttention)
		})
	}
}

// I3, I26: a download that differs from what was sent needs attention, and
// keeps the source until a later download is the same, also after an operator
// has closed it. An earlier close leaves it open.
func TestDownload_I3_I26_OtherContent(t *testing.T) {
	differs := ContentDiffered{"now"}
	e := usual(Archived)
	e.Source, e.SameNumber, e.Resolved = Kept, archive.Key{7}, true
	ripe(&e)
	e = must(t, e, 0, differs)
	for _, after := range []struct {
		what     string
		ev       Event
		want     Attention
		disposes bool
	}{
		{"differs", nil, ContentDiffers, false},
		{"closed", Closed{byPerson}, RepeatedNumber, false},
		{"the same", ContentCompared{"now"}, RepeatedNumber, true},
		{"differs again", differs, ContentDiffers, false},
	} {
		if after.ev != nil {
			e = must(t, e, 0, after.ev)
		}
		kit.Want(t, after.what+": attention", e.Attention(), after.want)
		kit.Want(t, after.what+": at rest", e.IsAtRest(), !after.disposes && after.want != ContentDiffers)
		_, err := Transition(e, DisposeIntended{}, at(0))
		kit.Want(t, after.what+": may be disposed of", err == nil, after.disposes)
	}
	if _, err := Transition(e, differs, at(0)); err == nil {
		t.Error("what is known is taken as news")
	}
}

func TestCompareIdentity_Verdicts(t *testing.T) {
	same := Sealed{Content: archive.Digest{1}, Metadata: archive.Digest{2}}
	other := Sealed{Content: archive.Digest{1}, Metadata: archive.Digest{3}}
	for _, row := range []struct {
		name  string
		state State
		with  func(*Entry)
		ev    Sealed
		vault string
		want  Verdict
	}{
		{"SameArchived", Archived, nil, same, "V", Same},
		{"SameOnItsWay", Sending, nil, same, "V", WaitFor},
		{"SameQuarantined", Quarantined, nil, same, "V", WaitFor},
		{"SameRejected", Rejected, nil, same, "V", Proceed},
		{"SameClosedInDoubt", Rejected, func(e *Entry) { e.InDoubt = true }, same, "V", Conflict},
		{"SameRejectedButArchived", Rejected, func(e *Entry) { e.Contradicted = true }, same, "V", Conflict},
		{"OtherArchived", Archived, nil, other, "V", Conflict},
		{"OtherVault", Archived, nil, same, "W", Conflict},
		{"OtherNeverTaken", Rejected, func(e *Entry) { e.Registrations, e.Answers = nil, e.Posts }, other, "V", Proceed},
		{"OtherMaybeTaken", Rejected, func(e *Entry) { e.Registrations, e.Answers = nil, 0 }, other, "V", Conflict},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := usual(row.state)
			e.Route, e.Vault, e.Content, e.Metadata = Vault, "V", archive.Digest{1}, archive.Digest{2}
			if row.with != nil {
				row.with(&e)
			}
			kit.Want(t, "verdict", CompareIdentity(e, row.ev, Vault, row.vault), row.want)
		})
	}
}
