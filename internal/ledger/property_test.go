package ledger

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// walk takes an entry through random legal events and shows every attempt.
func walk(r *rand.Rand, steps int, show func(before Entry, ev Event, after Entry, err error)) {
	evs := samples()
	for w := archive.Unfamiliar; w <= archive.Absent; w++ {
		evs = append(evs, answer(w, "new"))
	}
	e := Entry{Key: archive.Key{1}}
	now := epoch
	for range steps {
		ev := evs[r.IntN(len(evs))]
		now = now.Add([]time.Duration{0, time.Second, grace / graceParts, grace}[r.IntN(4)])
		after, err := Transition(e, ev, archive.Instant{Wall: now, BootID: "b"})
		show(e, ev, after, err)
		e = after
	}
}

func walks(t *testing.T, show func(before Entry, ev Event, after Entry, err error)) {
	t.Helper()
	legal := 0
	for seed := range uint64(25) {
		walk(rand.New(rand.NewPCG(seed, 1)), 1000, func(before Entry, ev Event, after Entry, err error) {
			if err == nil {
				legal++
			}
			show(before, ev, after, err)
		})
	}
	kit.Check(t, legal >= 1_000, "only %d legal events in all walks", legal)
}

func TestTransition_CountsRevisionsAndKeepsItsArgument(t *testing.T) {
	walks(t, func(before Entry, ev Event, after Entry, err error) {
		copied := before
		copied.Registrations = slices.Clone(before.Registrations)
		Transition(before, ev, archive.Instant{Wall: epoch.Add(1000 * grace)})
		if !reflect.DeepEqual(before, copied) {
			t.Fatalf("%s changed its argument\n%+v\n%+v", ev.JournalName(), copied, before)
		}
		switch {
		case err != nil && !reflect.DeepEqual(after, before):
			t.Fatalf("%s was refused and changed the entry all the same", ev.JournalName())
		case err == nil && after.Rev != before.Rev && after.Rev != before.Rev+1:
			t.Fatalf("%s made revision %d of %d", ev.JournalName(), after.Rev, before.Rev)
		case err == nil && after.Rev == before.Rev && differs(before, after):
			t.Fatalf("%s changed what the journal tells of, and made no revision", ev.JournalName())
		}
	})
}

// differs compares all that a journal line tells: everything but when to look again.
func differs(a, b Entry) bool {
	la, lb := NewLine(1, a, Placed{}, archive.Instant{}), NewLine(1, b, Placed{}, archive.Instant{})
	la.Cause, lb.Cause = "", ""
	if !bytes.Equal(la.Encode(), lb.Encode()) || len(a.Registrations) != len(b.Registrations) || a.Posts != b.Posts || a.Answers != b.Answers {
		return true
	}
	for i, r := range a.Registrations {
		if o := b.Registrations[i]; r.Fate != o.Fate || r.UploadIntents != o.UploadIntents || r.WithoutEffect != o.WithoutEffect || r.LastStatus != o.LastStatus {
			return true
		}
	}
	return false
}

// What is asked for hours leaves one line for each new word, not one for each answer.
func TestTransition_RepeatedAnswersAreQuiet(t *testing.T) {
	e := Entry{Key: archive.Key{1}, Rev: 5, State: Uploaded, Source: Claimed, Registrations: []Registration{{Ticket: archive.Ticket{Remote: "b"}, UploadIntents: 1, Fate: Stored}}}
	revs := map[archive.ServiceStatus]uint32{}
	for _, w := range []archive.ServiceStatus{archive.InProgress, archive.InProgress, archive.InProgress, archive.Unfamiliar, archive.InProgress} {
		for h := range 50 {
			next, err := Transition(e, StatusSeen{Receipt: archive.Receipt{Remote: "b", Status: w}, Grace: grace}, at(time.Duration(h)*time.Hour))
			kit.Must(t, err)
			revs[w] += next.Rev - e.Rev
			e = next
		}
	}
	kit.Check(t, revs[archive.InProgress] == 2 && revs[archive.Unfamiliar] == 1,
		"lines by word: %v, want two in-progress and one unfamiliar", revs)
}

func TestDue_I25_RestsOrGoesOn(t *testing.T) {
	walks(t, func(_ Entry, ev Event, e Entry, err error) {
		step, _, due := Due(e)
		switch {
		case err != nil:
		case e.IsAtRest() && due:
			t.Fatalf("at rest, and %s is due: %+v", step, e)
		case e.State.IsOpen() && !e.Hold && !due && !(e.NeedsReconcile && e.State == Packaged): // which waits to be reconciled
			t.Fatalf("%s after %s has nothing due and is open", e.State, ev.JournalName())
		case e.Hold && due:
			t.Fatalf("held, and %s is due", step)
		}
	})
}

func TestTransition_I13_FinalStatesAndFlagsStay(t *testing.T) {
	walks(t, func(before Entry, ev Event, after Entry, err error) {
		if before.State.IsFinal() && after.State != before.State {
			t.Fatalf("%s became %s by %s", before.State, after.State, ev.JournalName())
		}
		if before.DuplicateConfirmed && !(after.DuplicateConfirmed && after.PossibleDouble) {
			t.Fatalf("%s took back what a person or a receipt said", ev.JournalName())
		}
		if before.InDoubt && !after.InDoubt || before.PossibleDouble && !after.PossibleDouble && (lapsed(after) <= lapsed(before) || after.countHolders() > 1) {
			t.Fatalf("%s took back a flag", ev.JournalName())
		}
	})
}

// lapsed counts the registrations that are proven to hold nothing.
func lapsed(e Entry) (n int) {
	for _, r := range e.Registrations {
		if r.Fate == Lapsed {
			n++
		}
	}
	return n
}

// However often it is registered, an entry stays small, and what may hold content or is
// asked about is always listed.
func TestPruneRegistrations_I21_ListsOnlyWhatMatters(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	folded := uint64(0)
	for range 200 {
		e := usual(Packaged)
		given := map[archive.RemoteID]bool{}
		for n := range 60 {
			number := archive.RemoteID(rune('a' + r.IntN(26)))
			given[number] = true
			e = must(t, e, 0, RegisterIntended{}, TicketReceived{ticket(number)})
			before, spare := e, 0
			for i := range e.Registrations {
				if _, asked := e.nextLateQuestionOf(i); e.isPrunable(i) && !asked {
					spare++
				}
			}
			switch e.State = Packaged; r.IntN(20) {
			case 0:
				e.Current().Fate = []Fate{MaybeStored, Stored}[n%2]
			case 1, 2, 3:
				e.Current().Fate = Lapsed
			}
			all, _ := Transition(before, WindowClosed{}, at(0))
			kit.Need(t, spare <= maxListed && uint64(n+1) == uint64(len(e.Registrations))+e.Pruned.Total() && all.Pruned == before.Pruned,
				"%d spent ones are listed, %d and %d folded after %d", spare, len(e.Registrations), e.Pruned, n+1)
			whole := e
			whole.Registrations = append(slices.Clone(e.Registrations), Registration{Ticket: bare("next")})
			thin := whole
			thin.Registrations = slices.Clone(whole.Registrations)
			thin.pruneRegistrations()
			if !reflect.DeepEqual(thin.OpenQuestions(), whole.OpenQuestions()) || thin.countHolders() != whole.countHolders() || !reflect.DeepEqual(thin.Current(), whole.Current()) {
				t.Fatalf("folding lost a question: %v of %v", thin.OpenQuestions(), whole.OpenQuestions())
			}
		}
		folded += e.Pruned.Total()
	}
	kit.Check(t, folded >= 1000, "only %d were folded", folded)
}

func TestBalance_I1_AgreesAtEveryInstant(t *testing.T) {
	var b Balance
	walks(t, func(before Entry, _ Event, after Entry, err error) {
		if err == nil {
			b.CountChange(before.State, after.State)
		}
		kit.Need(t, b.IsBalanced(), "balance = %s, want one that agrees", b)
	})
	b.Seen++
	kit.Check(t, !b.IsBalanced(), "balance = %s, want one that does not agree", b)
}

func TestLine_RoundTripsAsStored(t *testing.T) {
	n := uint64(1)
	walks(t, func(_ Entry, ev Event, after Entry, err error) {
		if err != nil {
			return
		}
		n++
		stored := NewLine(n, after, ev, at(0)).Encode()
		l, err := ParseLine(stored)
		if err != nil || !bytes.Equal(l.Encode(), stored) {
			t.Fatalf("%s came back as %s: %v", stored, l.Encode(), err)
		}
		if s, err := ParseState(l.State); err != nil || s != after.State || l.Rev != after.Rev || l.Key != after.Key.String() {
			t.Fatalf("%s does not tell where the entry stands", stored)
		}
	})
}

// TestLine_FirstLineAndFieldOrder is a golden: these bytes were hashed by journals
// that exist.
func TestLine_FirstLineAndFieldOrder(t *testing.T) {
	l := FirstLine("L1", "test", epoch)
	want := `{"n":1,"at":"2026-11-20T12:00:00.000Z","event":"created","ledger":"L1","environment":"test"}`
	kit.Want(t, "first line", string(l.Encode()), want)
	e := usual(Unclear)
	e.PossibleDouble, e.Cause = true, Cause{Code: "c"}
	want = `{"n":2,"at":"2026-11-20T12:00:00.000Z","event":"released","key":"04000000000000000000000000","rev":9,"state":"unclear","source":"claimed",` +
		`"clientUUID":"01000000-0000-0000-0000-000000000000","cause":"c","flags":"double","uid":7,"reason":"0900000000000000000000000000000000000000000000000000000000000000"}`
	kit.Want(t, "line", string(NewLine(2, e, Released{byPerson}, at(0)).Encode()), want)
	want = `{"n":3,"at":"2026-11-20T12:00:00.000Z","event":"released","key":"04000000000000000000000000","rev":9,"state":"unclear","source":"claimed",` +
		`"clientUUID":"01000000-0000-0000-0000-000000000000","cause":"c","flags":"double","uid":0}`
	kit.Want(t, "line of root", string(NewLine(3, e, Released{}, at(0)).Encode()), want)
	l = Line{N: 1, At: "2", Event: "3", Key: "4", Rev: 5, State: "6", Source: "7", Vault: "8", ID: "9", Remote: "10", Seal: "11", Size: 12, Status: "13", Time: "14", Cause: "15",
		Other: "16", Flags: "17", UID: new(int64(0)), Reason: "<\x01\u2028&ü>", Ledger: "20", Environment: "21", Route: "22", Item: "23", File: "24", Files: 25, Downloads: 26, Kind: "27"}
	want = `{"n":1,"at":"2","event":"3","key":"4","rev":5,"state":"6","source":"7","vault":"8","clientUUID":"9","bumId":"10","seal":"11","size":12,"word":"13","time":"14","cause":"15",` +
		`"other":"16","flags":"17","uid":0,"reason":"\u003c\u0001\u2028\u0026ü\u003e","ledger":"20","environment":"21","route":"22","item":"23","file":"24","files":25,"downloads":26,"kind":"27"}`
	kit.Want(t, "line with every field", string(l.Encode()), want)
	got := (Head{}).Next([]byte("a")).Next([]byte("b"))
	kit.Check(t, got.N == 2 && got.Hash == archive.Sum(append(sum(append(make([]byte, 32), 'a')), 'b')), "chain of a and b ends as %v", got)
}

func sum(b []byte) []byte {
	d := archive.Sum(b)
	return d[:]
}

// canary fills every text, URL, header and record below v; the service's numbers and
// words, the vault, and codes may stand in a journal and stay as they are.
func canary(v reflect.Value) {
	switch v.Interface().(type) {
	case archive.RemoteID, archive.VaultID, Route, time.Time:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("canary")
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Code" && name != "BootID" {
				canary(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("canary"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), max(v.Len(), 1), max(v.Len(), 1))) // the old one belongs to the sample
		for i := range v.Len() {
			canary(v.Index(i))
		}
	}
}

func TestLine_I7_HoldsNoNameNoAddressNoReason(t *testing.T) {
	for _, ev := range samples() {
		told := reflect.New(reflect.TypeOf(ev)).Elem()
		told.Set(reflect.ValueOf(ev))
		canary(told)
		for s := Discovered; s <= Quarantined; s++ {
			e := usual(s)
			canary(reflect.ValueOf(&e).Elem())
			kit.Lacks(t, "the text", strings.ToLower(string(NewLine(2, e, told.Interface().(Event), at(0)).Encode())), "canary")
		}
	}
}
