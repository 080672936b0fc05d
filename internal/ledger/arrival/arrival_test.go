package arrival

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

var (
	at    = archive.Instant{Wall: time.Date(2026, 11, 20, 6, 0, 0, 0, time.UTC)}
	delta = archive.Extract{ID: "4711", Type: archive.DeltaExtract, Name: "books", Files: 2, Made: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}
	sum   = archive.Sum([]byte("content"))

	fileA = archive.ExtractFile{Extract: "4711", Table: "IA_INVOICE", Name: "a"}
	fileB = archive.ExtractFile{Extract: "4711", Table: "IA_INVOICE", Name: "b"}
	both  = []archive.ExtractFile{fileA, fileB}
)

// after returns the arrival that events make of a new one.
func after(t testing.TB, events ...Event) Arrival {
	t.Helper()
	a := Arrival{Key: archive.Key{1}}
	for _, ev := range events {
		var err error
		if a, err = Transition(a, ev, at); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func heldFile(name string) FileHeld {
	return FileHeld{File: name, Stored: "0001-" + name, Size: 7, SHA256: sum}
}

// life is one way through all states.
var life = []Event{
	Listed{Kind: Extract, Extract: delta}, FilesListed{both}, DownloadIntended{"a"}, heldFile("a"), DownloadIntended{"b"}, heldFile("b"),
	HeldWhole{Again: both, Manifest: sum}, AcknowledgeIntended{}, AcknowledgementTaken{},
}

// every returns an event of each type that its state allows somewhere.
func every() []Event {
	return []Event{
		Listed{Kind: Extract, Extract: delta}, FilesListed{both}, DownloadIntended{"a"}, heldFile("a"), Postponed{Cause: ledger.Cause{Code: "x"}}, HeldWhole{both, sum},
		Adopted{Kind: Extract, Extract: delta, Files: []File{{Name: "a", Stored: "s", SHA256: sum}}, Manifest: sum}, HandedOn{}, AcknowledgeIntended{}, AcknowledgementTaken{},
		DocumentAnnounced{"bum-1", archive.NetworkInvoice, "ack-1"}, DocumentHeld{Stored: "document", Size: 9, SHA256: sum, Files: []archive.FileRef{{ID: "f1"}}}, ConfirmIntended{}, ConfirmationTaken{}, RetryAsked{},
		FileDoubted{File: "f1", Stored: "s", SHA256: sum}, DoubtOverruled{File: "f1", SHA256: sum}, WordIntended{Word: Accept}, WordIntended{Word: RejectTechnical}, WordAnswered{Intent: 3, Outcome: Taken},
		LeftOut{}, ListedAgain{}, PastUnknown{}, CustodyLost{}, Allowed{}, Abandoned{By: &ledger.Operator{UID: 7}},
	}
}

// Which event is allowed in which state, of an arrival of which everything that the event needs is there.
func TestTransition_I13_EveryStateAndEvent(t *testing.T) {
	allowed := map[State]string{
		None:         "arrival-announced arrival-adopted document-announced",
		Announced:    "arrival-listed arrival-postponed arrival-adopted arrival-left-out arrival-past-unknown downloads-allowed given-up",
		Fetching:     "arrival-listed download-intended arrival-postponed arrival-adopted arrival-left-out arrival-past-unknown downloads-allowed given-up",
		Held:         "arrival-postponed handed-on acknowledge-intended custody-lost",
		Acknowledged: "custody-lost",
		GivenUp:      "arrival-adopted",
	}
	in := map[State]Arrival{
		None: {Key: archive.Key{1}}, Announced: after(t, life[:1]...), Fetching: after(t, life[:2]...), Held: after(t, life[:7]...), Acknowledged: after(t, life...),
		GivenUp: after(t, life[0], Abandoned{By: &ledger.Operator{}}),
	}
	for state, a := range in {
		kit.Need(t, a.State == state, "%v is %v", state, a.State)
		for _, ev := range every() {
			before := fmt.Sprintf("%+v", a)
			next, err := Transition(a, ev, at)
			want := strings.Contains(" "+allowed[state]+" ", " "+ev.JournalName()+" ")
			if (err == nil) != want || err != nil && !errors.Is(err, ledger.ErrIllegal) {
				t.Errorf("%s in %v: %v", ev.JournalName(), state, err)
			}
			if fmt.Sprintf("%+v", a) != before || err != nil && !reflect.DeepEqual(next, a) {
				t.Errorf("%s in %v changed what it was given", ev.JournalName(), state)
			}
		}
	}
}

// I30: what is missing, or was not announced, is never called held, and nothing is acknowledged before it.
func TestTransition_I30_RefusesWhatIsNotHeld(t *testing.T) {
	three := delta
	three.Files = 3
	rows := []struct {
		name   string
		before []Event
		ev     Event
	}{
		{"FileWithoutIntent", life[:2], heldFile("a")},
		{"FileOfNoList", life[:3], heldFile("c")},
		{"FileWithoutDigest", life[:3], FileHeld{File: "a", Stored: "s"}},
		{"FileTwice", life[:4], heldFile("a")},
		{"DownloadOfHeldFile", life[:4], DownloadIntended{"a"}},
		{"OneFileMissing", life[:5], HeldWhole{both, sum}},
		{"ListNamesAnother", life[:6], HeldWhole{append(both[:2:2], archive.ExtractFile{Name: "c"}), sum}},
		{"ListNamesFewer", life[:6], HeldWhole{both[:1], sum}},
		{"FewerThanAnnounced", append([]Event{Listed{Kind: Extract, Extract: three}}, life[1:6]...), HeldWhole{both, sum}},
		{"NoManifest", life[:6], HeldWhole{Again: both}},
		{"AcknowledgedWithoutIntent", life[:7], AcknowledgementTaken{}},
		{"AcknowledgedBeforeItIsHandedOn", life[:7], AcknowledgeIntended{OnlyHandedOn: true}},
		{"HandedOnBeforeItIsHeld", life[:6], HandedOn{}},
		{"HandedOnTwice", append(life[:7:7], HandedOn{}), HandedOn{}},
		{"TwoFilesWithOneName", life[:1], FilesListed{[]archive.ExtractFile{fileA, fileA}}},
		{"GivenUpWithoutAList", life[:2], Abandoned{}},
		{"ManifestOfAnother", life[:2], Adopted{Kind: Extract, Extract: archive.Extract{ID: "4712"}, Manifest: sum}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			kit.Fails(t, "allowed", kit.Err(Transition(after(t, r.before...), r.ev, at)))
		})
	}
}

func TestDue(t *testing.T) {
	rules := Rules{Acknowledge: true, MaxDownloads: 2}
	handsOn := Rules{Acknowledge: true, HandOn: true, MaxDownloads: 2}
	failing := []Event{life[0], life[1], DownloadIntended{"a"}, DownloadIntended{"b"}, DownloadIntended{"a"}, DownloadIntended{"b"}}
	later := Postponed{Until: at.Wall.Add(time.Hour), Cause: ledger.Cause{Code: "timeout"}}
	three := delta
	three.Files = 3
	rows := []struct {
		name   string
		events []Event
		rules  Rules
		step   Step
		file   string
	}{
		{"Announced", life[:1], rules, ListFiles, ""},
		{"FirstFile", life[:2], rules, Download, "a"},
		{"TheOneWithFewerDownloads", life[:3], rules, Download, "b"},
		{"SecondFile", life[:4], rules, Download, "b"},
		{"AllFiles", life[:6], rules, Conclude, ""},
		{"FewerThanAnnounced", append([]Event{Listed{Kind: Extract, Extract: three}}, life[1:6]...), rules, ListFiles, ""},
		{"Held", life[:7], rules, Acknowledge, ""},
		{"HeldAndSilent", life[:7], Rules{MaxDownloads: 2}, NoStep, ""},
		{"HeldForTheArchive", life[:7], handsOn, HandOn, ""},
		{"HandedOn", append(life[:7:7], HandedOn{}), handsOn, Acknowledge, ""},
		{"HandedOnAndSilent", append(life[:7:7], HandedOn{}), Rules{HandOn: true}, NoStep, ""},
		{"HandedOnPostponed", append(life[:7:7], later), handsOn, HandOn, ""},
		{"AcknowledgedBefore", life, handsOn, NoStep, ""},
		{"HeldUnanswered", life[:8], rules, Acknowledge, ""},
		{"Acknowledged", life, rules, NoStep, ""},
		{"TooManyDownloads", failing, rules, Person, "a"},
		{"MoreWereAllowed", append(failing[:6:6], Allowed{}), rules, Download, "a"},
		{"TheServicesLimit", append(failing[:6:6], Allowed{}), Rules{MaxDownloads: 60000}, Download, "a"},
		{"Postponed", append(life[:2:2], later), rules, Download, "a"},
		{"UnknownPast", []Event{Listed{Kind: Extract, Extract: delta, UnknownPast: true}, life[1], DownloadIntended{"a"}, heldFile("a"), DownloadIntended{"b"}}, rules, Person, "b"},
		{"GivenUp", []Event{life[0], Abandoned{By: &ledger.Operator{}}}, rules, NoStep, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			a := after(t, r.events...)
			step, file, when := Due(a, r.rules)
			kit.Check(t, step == r.step && file == r.file && (!strings.HasSuffix(r.name, "Postponed") || when.Equal(later.Until)),
				"got %v %q at %v", step, file, when)
		})
	}
	a := after(t, failing...)
	a.Files[0].Downloads, a.Files[1].Downloads, a.Allowed = 50, 50, 50
	step, _, _ := Due(a, Rules{MaxDownloads: 60000})
	kit.Check(t, step == Person, "%v after the service's last download", step)
}

// After a restore the counts are those of the older ledger, and what custody holds counts as held.
func TestAdopted_I30_CountsNeverGoBack(t *testing.T) {
	a := after(t, life[0], life[1], DownloadIntended{"a"}, DownloadIntended{"a"}, DownloadIntended{"a"})
	a, err := Transition(a, Adopted{Kind: Extract, Extract: delta, Manifest: sum, HeldAt: at.Wall,
		Files: []File{{Name: "a", Stored: "0001-a", SHA256: sum}, {Name: "b", Stored: "0002-b", SHA256: sum}}}, at)
	kit.Check(t, err == nil && a.State == Held && a.Files[0].Downloads == 3 && a.Files[1].Downloads == 1,
		"adopted as %+v (%v), want %v with 3 and 1 downloads", a, err, Held)
}

// I14: a line tells what matters of each event, and no event has the name of one of an entry.
func TestNewLine_I14_TellsOfAnArrival(t *testing.T) {
	a := Arrival{Key: archive.Key{1}}
	var lines []string
	for i, ev := range life {
		var err error
		if a, err = Transition(a, ev, at); err != nil {
			t.Fatal(err)
		}
		l := NewLine(uint64(i+2), a, ev, at)
		lines = append(lines, string(l.Encode()))
		if !strings.HasSuffix(lines[i], `,"kind":"extract"}`) {
			t.Errorf("line = %s, want it to end with the kind", lines[i])
		}
	}
	if want := `{"n":4,"at":"2026-11-20T06:00:00.000Z","event":"download-intended","key":"` + a.Key.String() + `","rev":3,"state":"fetching","item":"4711","file":"a","downloads":1,"kind":"extract"}`; lines[2] != want {
		t.Errorf("line = %s, want %s", lines[2], want)
	}
	if !strings.Contains(lines[3], `"seal":"`+sum.String()+`"`) || !strings.Contains(lines[3], `"size":7`) || !strings.Contains(lines[6], `"files":2`) {
		t.Errorf("lines =\n%s\n%s\nwant the seal and the size of the file, and two files", lines[3], lines[6])
	}
	closed, _ := Transition(after(t, life[0]), Abandoned{By: &ledger.Operator{UID: 7, Reason: sum}, Cause: ledger.Cause{Code: "closed"}}, at)
	kit.Holds(t, "line", string(NewLine(9, closed, Abandoned{By: &ledger.Operator{UID: 7, Reason: sum}}, at).Encode()), `"uid":7,"reason":"`+sum.String())
}

func TestBalance_I1_CountsEachOnce(t *testing.T) {
	var b Balance
	a := Arrival{Key: archive.Key{1}}
	for _, ev := range life {
		next := kit.Value(Transition(a, ev, at))(t)
		b.CountChange(a.State, next.State)
		a = next
		want := Balance{Seen: 1}
		want.States[a.State] = 1
		kit.Want(t, "balance in "+a.State.String(), b, want)
	}
}
