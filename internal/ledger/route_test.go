package ledger

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// I2: each route has one way to learn what became of a document at most: it asks, it is notified, or nobody tells. Only where nobody can be
// asked may it stay unknown whether a document was delivered.
func TestRoute_I2_HowItLearnsWhatBecame(t *testing.T) {
	for _, r := range Routes() {
		if r.IsAsked() && r.IsNotified() || r.IsNotified() != (r == Network) || r.IsAsked() != (r == Vault) {
			t.Errorf("%s: asked %t, notified %t", r, r.IsAsked(), r.IsNotified())
		}
		if r.HasVaults() != (r == Vault) || r.PackageEnding() == "" {
			t.Errorf("%s: has vaults %t, packages end with %q", r, r.HasVaults(), r.PackageEnding())
		}
	}
}

// I2: what a ledger that was put back knows as taken, or as stopped before it was packed, may be delivered since. It is told what it is, so that
// the same document is recognised; nothing goes again before a person says so, and then it is flagged.
func TestReconcileRequired_I2_WhatWasNeverPackedIsIdentified(t *testing.T) {
	stopped := SentToQuarantine{Cause{Code: "mounted"}}
	for name, before := range map[string][]Event{"Taken": {ReconcileRequired{}}, "Stopped": {stopped, ReconcileRequired{}}} {
		t.Run(name, func(t *testing.T) {
			e := usual(Discovered)
			e.Route = PDF
			e = applied(t, e, before...)
			if !e.IsUnidentified() || e.Cause.Code != CauseDeliveryUnknown {
				t.Fatalf("%s, cause %s, unidentified %v", e.State, e.Cause.Code, e.IsUnidentified())
			}
			e = applied(t, e, sealed, Reconciled{})
			_, _, due := Due(e)
			kit.Need(t, e.State == Quarantined && e.ID == sealed.ID && e.Package == sealed.Package && !due, "%s as %s, something is due: %v", e.State, e.ID, due)
			closed := applied(t, e, Closed{byPerson})
			kit.Check(t, closed.InDoubt && closed.ID == sealed.ID, "closed: in doubt %v, as %s", closed.InDoubt, closed.ID)
			again := applied(t, e, Released{byPerson})
			kit.Check(t, again.State == Packaged && again.PossibleDouble, "released: %s, flagged %v", again.State, again.PossibleDouble)
		})
	}
}

// I2: a decision to send again what may be delivered is no proof that it was not. Closed or refused before it is sent, it stays in doubt, and the same
// document dropped again comes back.
func TestReleased_I2_DoubtOutlivesADecision(t *testing.T) {
	unknown := SentToQuarantine{DeliveryUnknown("the upload was never answered")}
	for name, row := range map[string]struct {
		events []Event
		state  State
	}{
		"ReleasedThenClosed":  {[]Event{sealed, unknown, Released{byPerson}, Closed{byPerson}}, Rejected},
		"ReleasedThenRefused": {[]Event{unknown, Released{byPerson}, Refused{Cause{Code: "too-large"}}}, Quarantined},
		"RefusedThenClosed":   {[]Event{unknown, Released{byPerson}, Refused{Cause{Code: "too-large"}}, Closed{byPerson}}, Rejected},
		"RetriedThenClosed":   {[]Event{sealed, Closed{byPerson}}, Rejected},
	} {
		t.Run(name, func(t *testing.T) {
			e := usual(Discovered)
			e.Route = PDF
			if name == "RetriedThenClosed" {
				e.PossibleDouble, e.DuplicateConfirmed = true, true
			}
			e = applied(t, e, row.events...)
			kit.Check(t, e.State == row.state && !e.IsCertainlyRejected() && e.InDoubt == (e.State == Rejected),
				"%s, in doubt %v, cause %s", e.State, e.InDoubt, e.Cause.Code)
		})
	}
	e := usual(Discovered)
	e.Route = PDF
	if e = applied(t, e, sealed, Closed{byPerson}); !e.IsCertainlyRejected() {
		t.Errorf("never sent and closed: %s is certainly rejected: false, want true", e.State)
	}
}

// The bytes of a line are the same in every program, whatever is in it and
// whichever fields it has: two libraries write the same. What is read is what was
// written.
func TestLine_I14_SameBytesOfTwoLibraries(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 14))
	texts := []string{"", "archived", "2026-11-20T10:00:00.000Z", "M\u00fcller", "a<b>&c", `quote " and \\`, "\x00\x1f\x7f", "\u2028", "\ufffd\ufeff", "tab\tfeed\n", "~ }{", "\U0001f9fe"}
	for range 20_000 {
		var l Line
		v := reflect.ValueOf(&l).Elem()
		for i := range v.NumField() {
			if r.IntN(2) == 0 {
				continue
			}
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString(texts[r.IntN(len(texts))])
			case reflect.Uint64, reflect.Uint32:
				f.SetUint(uint64(r.Uint32() >> r.IntN(32)))
			case reflect.Int64:
				f.SetInt(r.Int64() >> r.IntN(64))
			default:
				f.Set(reflect.ValueOf(new(int64(r.Uint32() >> r.IntN(32)))))
			}
		}
		want := kit.Value(json.Marshal(l))(t)
		got := l.Encode()
		kit.Need(t, string(got) == string(want), "encoded is\n%s, the other library says\n%s", got, want)
		back := kit.Value(ParseLine(got))(t)
		kit.Need(t, reflect.DeepEqual(back, l), "%s is read as\n%+v, want\n%+v", got, back, l)
	}
}

// A line that is read says all that its bytes say, as other readers of JSON read
// them.
func TestParseLine_I14_RefusesWhatCanBeReadInTwoWays(t *testing.T) {
	for name, in := range map[string]string{
		"FieldTwice":      `{"n":2,"at":"","event":"x","key":"a","key":"b"}`,
		"FieldUnknown":    `{"n":2,"at":"","event":"x","keys":"a"}`,
		"OtherCase":       `{"n":2,"at":"","event":"x","Key":"a"}`,
		"NoUTF8":          "{\"n\":2,\"at\":\"\",\"event\":\"x\",\"vault\":\"\xff\"}",
		"HalfACharacter":  `{"n":2,"at":"","event":"x","vault":"\ud800"}`,
		"TwoLines":        `{"n":2,"at":"","event":"x"}{"n":3}`,
		"Cut":             `{"n":2,"at":"","event":"x"`,
		"CommaAtTheEnd":   `{"n":2,"at":"","event":"x",}`,
		"NumberTooLarge":  `{"n":2,"at":"","event":"x","rev":4294967296}`,
		"NumberWithZero":  `{"n":2,"at":"","event":"x","rev":07}`,
		"NumberWithPoint": `{"n":2,"at":"","event":"x","size":1.0}`,
		"NumberAsText":    `{"n":"2","at":"","event":"x"}`,
		"TextAsNumber":    `{"n":2,"at":"","event":7}`,
		"Nothing":         ``,
	} {
		l, err := ParseLine([]byte(in))
		kit.Check(t, err != nil, "%s: %s is read as %+v, want it refused", name, in, l)
	}
}

// Each number that the service archived is one transaction, at the service's own time and whatever state the entry is in.
func TestTransactions_EachSuccessIsOne(t *testing.T) {
	first, second := epoch.Add(time.Hour), epoch.AddDate(1, 0, 0)
	says := func(r archive.RemoteID, at time.Time) StatusSeen {
		return StatusSeen{Receipt: archive.Receipt{Remote: r, Status: archive.Successful, Updated: at, Record: []byte("{}")}, Grace: grace}
	}
	start := usual(Uploaded)
	orphan(Lapsed)(&start)
	start.Package.Size = 1000
	current := start.Current().Ticket.Remote
	refused := usual(Rejected)
	orphan(Lapsed)(&refused)
	for name, row := range map[string]struct {
		e    Entry
		says []StatusSeen
		want []Transaction
	}{
		"None":           {start, nil, nil},
		"One":            {start, []StatusSeen{says(current, first)}, []Transaction{{current, first, 1000}}},
		"TheSameAgain":   {start, []StatusSeen{says(current, first), says(current, second)}, []Transaction{{current, first, 1000}}},
		"Two":            {start, []StatusSeen{says(current, first), says("old", second)}, []Transaction{{current, first, 1000}, {"old", second, 1000}}},
		"TwoAndAgain":    {start, []StatusSeen{says(current, first), says("old", second), says("old", second.AddDate(1, 0, 0)), says(current, second)}, []Transaction{{current, first, 1000}, {"old", second, 1000}}},
		"TheOlderFirst":  {start, []StatusSeen{says("old", second), says(current, first)}, []Transaction{{current, first, 1000}, {"old", second, 1000}}},
		"WithoutATime":   {start, []StatusSeen{says(current, first), says("old", time.Time{})}, []Transaction{{current, first, 1000}, {"old", epoch, 1000}}},
		"OfARejectedOne": {refused, []StatusSeen{says("old", second)}, []Transaction{{"old", second, refused.Package.Size}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := row.e
			for _, s := range row.says {
				e = must(t, e, 0, s)
			}
			got := e.Transactions()
			slices.SortFunc(got, func(a, b Transaction) int { return a.At.Compare(b.At) })
			slices.SortFunc(row.want, func(a, b Transaction) int { return a.At.Compare(b.At) })
			kit.Want(t, "got", got, row.want)
		})
	}
}

// An entry that was made from the archive's index counts one document, of which nobody knows the size: it has no 0 bytes.
func TestTransactions_TheSizeOfARecoveredOneIsNotKnown(t *testing.T) {
	at := time.Date(2026, 12, 31, 23, 30, 0, 0, time.UTC)
	e, err := Transition(Entry{Key: archive.Key{1}}, Recovered{State: Archived, Source: Gone, Vault: "V", ID: archive.ID{1}, Remote: "R1", SuccessRecord: []byte("x"), ArchivedAt: at}, archive.Instant{Wall: epoch})
	kit.Must(t, err)
	all := e.Transactions()
	kit.Need(t, len(all) == 1 && all[0].Size == 0, "transactions = %v, want one without a size", all)
	if got, want := all[0].Total("V", time.UTC), (Total{Vault: "V", Year: 2026, Month: 12, Documents: 1, Unsized: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	got := all[0].Total("V", time.FixedZone("CET", 3600))
	kit.Check(t, got.Year == 2027 && got.Month == 1, "an hour to the east: %+v", got)
}

// I12: a delivery is no transaction of the archive, and nobody pays the archive for it.
func TestTransactions_I12_ADeliveryIsNone(t *testing.T) {
	e := usual(Sending)
	byPDF(&e)
	e = must(t, e, 0, DeliveryConfirmed{Sent: e.Package.SHA256})
	all := e.Transactions()
	kit.Check(t, e.State == Delivered && len(all) == 0, "%s with the transactions %v, want %s and none", e.State, all, Delivered)
}

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
	kit.Holds(t, "flags", e.FlagWords(), "hold", "cut-off")
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
		kit.Holds(t, "flags once sealed", sealed.FlagWords(), "cut-off")
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
		if archived.Attention() != row.class || archived.FlagWords() != row.flag || archived.NeedsPerson() || !archived.IsAtRest() {
			t.Errorf("%s: archived, class %d, flags %q, needs a person: %t", name, archived.Attention(), archived.FlagWords(), archived.NeedsPerson())
		}
		looked, err := Transition(archived, Closed{}, at)
		if err != nil || looked.Attention() != NoAttention || looked.Resolved || !strings.HasSuffix(looked.FlagWords(), "checked") {
			t.Errorf("%s: closed: %v, class %d, flags %q", name, err, looked.Attention(), looked.FlagWords())
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
	on, err := Transition(plain, Unheld{}, at)
	kit.Check(t, err == nil && !on.Reviewed, "reviewed = %v (%v), want false: nothing was unusual", on.Reviewed, err)
}
