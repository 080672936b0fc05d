package proof

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/test/kit"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// book is a ledger in memory, written through the one door like a real one.
type book struct {
	t       *testing.T
	lines   [][]byte
	entries map[archive.Key]ledger.Entry
	balance ledger.Balance
	now     time.Time
}

// Journal is one consistent snapshot of a journal and of what the ledger says
// about it.
type Journal struct {
	Lines   iter.Seq2[uint64, []byte] // number and stored bytes, in the order of the journal
	Head    ledger.Head               // as the ledger, or better somebody else, keeps it
	Balance *ledger.Balance           // as the ledger counts it; may be nil

	Arrivals []arrival.Arrival // as they are stored, each once
}

// Check checks one consistent snapshot of a ledger. The entries may come in any
// order, each once. If reading them fails, the caller's iterators stop early,
// and the caller must throw the report away.
func Check(j Journal, entries iter.Seq[ledger.Entry]) Report {
	return NewReplay(nil, nil).check(j, entries)
}

func (f *Replay) check(j Journal, entries iter.Seq[ledger.Entry]) Report {
	f.showLines(j.Lines)
	for e := range entries {
		f.Entry(e)
	}
	for _, a := range j.Arrivals {
		f.Arrival(a)
	}
	return f.Finish(j.Head, j.Balance)
}

func (f *Replay) showLines(lines iter.Seq2[uint64, []byte]) {
	var at ledger.Head
	for n, stored := range lines {
		if at = at.Next(stored); n != at.N {
			f.addFinding("I14", archive.Key{}, "line %d stands where line %d belongs", n, at.N)
		}
		l, err := ledger.ParseLine(stored)
		f.Line(at, l, err)
	}
}

func newBook(t *testing.T) *book {
	b := &book{t: t, entries: map[archive.Key]ledger.Entry{}, now: noon}
	b.append(ledger.FirstLine("ledger-1", "test", noon))
	return b
}

func (b *book) append(l ledger.Line) { b.lines = append(b.lines, l.Encode()) }

// Entry implements Keeper.
func (b *book) Entry(k archive.Key) (ledger.Entry, bool, error) {
	e, ok := b.entries[k]
	return e, ok, nil
}

// FindByRemote implements Keeper.
func (b *book) FindByRemote(r archive.RemoteID) (archive.Key, bool, error) {
	for k, e := range b.entries {
		if slices.ContainsFunc(e.Registrations, func(g ledger.Registration) bool { return g.Ticket.Remote == r }) {
			return k, true, nil
		}
	}
	return archive.Key{}, false, nil
}

// forgetting is a replay that looks entries up where it has to remember more than so many.
func (b *book) forgetting(least int) *Replay {
	f := NewReplay(b, nil)
	f.least, f.mostNow = least, least
	return f
}

// do commits events to one entry.
func (b *book) do(key byte, evs ...ledger.Event) {
	b.t.Helper()
	k := archive.Key{key}
	e, ok := b.entries[k]
	if !ok {
		e.Key = k
	}
	for _, ev := range evs {
		next := kit.Value(ledger.Transition(e, ev, archive.Instant{Wall: b.now}))(b.t)
		b.balance.CountChange(e.State, next.State)
		told := next.Rev != e.Rev
		if e = next; !told {
			continue
		}
		b.append(ledger.NewLine(uint64(len(b.lines))+1, e, ev, archive.Instant{Wall: b.now}))
	}
	b.entries[k] = e
}

func (b *book) claim(key byte) {
	b.do(key, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: name(key)}, seal(key))
}

// upload takes an entry to uploaded under the given number.
func (b *book) upload(key byte, r archive.RemoteID) {
	p := b.entries[archive.Key{key}].Package // seal gives digest and seal the same bytes
	b.do(key, ledger.RegisterIntended{}, got(r), ledger.UploadIntended{}, ledger.UploadAccepted{Sent: p.SHA256, Seal: p.SHA256})
}

func (b *book) archive(key byte, r archive.RemoteID) {
	b.do(key, says(r, archive.Successful), ledger.PlaceIntended{Dest: "_archived/" + name(key)}, ledger.Placed{DisposeAt: noon})
}

// accepted says that the store took the package of seal.
func accepted(key byte) ledger.UploadAccepted {
	return ledger.UploadAccepted{Sent: seal(key).Package.SHA256, Seal: seal(key).Seal}
}

func name(key byte) string { return "folder " + string('a'+rune(key)) }

func seal(key byte) ledger.Sealed {
	return ledger.Sealed{ID: archive.ID{key}, Package: archive.Package{Size: int64(key) * 1000, SHA256: archive.Digest{key}}, Seal: archive.Digest{key}}
}

func got(r archive.RemoteID) ledger.TicketReceived {
	return ledger.TicketReceived{Ticket: archive.Ticket{Remote: r, URL: "https://store.example/x"}}
}

func says(r archive.RemoteID, w archive.ServiceStatus) ledger.StatusSeen {
	return ledger.StatusSeen{Receipt: archive.Receipt{Remote: r, Status: w, Updated: noon, Record: []byte(`{"status":"ArchivingSuccessful"}`)}, Grace: 24 * time.Hour}
}

// everyday is a ledger in which a little of everything happened.
func everyday(t *testing.T) *book {
	b := newBook(t)
	b.claim(1) // archived, disposed of
	b.upload(1, "b1")
	b.archive(1, "b1")
	b.do(1, ledger.DisposeIntended{}, ledger.Disposed{})
	b.claim(2) // rejected, returned
	b.do(2, ledger.Refused{Cause: ledger.Cause{Code: "too-large"}}, ledger.PlaceIntended{Dest: "_rejected/" + name(2)}, ledger.Placed{})
	b.claim(3) // an answer was lost, a window was missed, kept
	b.do(3, ledger.RegisterIntended{}, ledger.RegisterUnanswered{}, ledger.RegisterIntended{}, got("b3"), ledger.WindowClosed{})
	b.upload(3, "b4")
	b.archive(3, "b4")
	b.claim(4) // in doubt, released, double
	b.do(4, ledger.RegisterIntended{}, got("b5"), ledger.UploadIntended{}, ledger.WindowClosed{}, ledger.Released{})
	b.upload(4, "b6")
	b.claim(5) // its answer is being waited for
	b.do(5, ledger.RegisterIntended{})
	return b
}

func (b *book) journal() Journal {
	var h ledger.Head
	for _, l := range b.lines {
		h = h.Next(l)
	}
	return Journal{Lines: numbered(b.lines), Head: h, Balance: &b.balance}
}

func numbered(lines [][]byte) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for i, l := range lines {
			if !yield(uint64(i)+1, l) {
				return
			}
		}
	}
}

// edit changes the n-th line as somebody would who can also make the chain anew.
func (b *book) edit(n int, f func(*ledger.Line)) {
	l := kit.Value(ledger.ParseLine(b.lines[n-1]))(b.t)
	f(&l)
	b.lines[n-1] = l.Encode()
}

// line returns the number of the k-th line that tells of an event of a key.
func (b *book) line(key byte, event string) int {
	for i, stored := range b.lines {
		if l, _ := ledger.ParseLine(stored); l.Event == event && l.Key == (archive.Key{key}).String() {
			return i + 1
		}
	}
	b.t.Fatalf("no line %s", event)
	return 0
}

// drop takes lines out and numbers the rest anew.
func (b *book) drop(n int) {
	b.lines = slices.Delete(b.lines, n-1, n)
	for i := range b.lines {
		b.edit(i+1, func(l *ledger.Line) { l.N = uint64(i) + 1 })
	}
}

func (b *book) change(key byte, f func(*ledger.Entry)) {
	e := b.entries[archive.Key{key}]
	e.Registrations = slices.Clone(e.Registrations)
	f(&e)
	b.entries[archive.Key{key}] = e
}

func TestCheck_EverydayHolds(t *testing.T) {
	b := everyday(t)
	r := Check(b.journal(), maps.Values(b.entries))
	kit.Want(t, "findings", r.Findings, nil)
	kit.Check(t, r.Lines == uint64(len(b.lines)) && r.Entries == 5 && r.Balance == b.balance && r.LostPosts == 2,
		"%d lines, %d entries, %d lost, %v", r.Lines, r.Entries, r.LostPosts, r.Balance)
	kit.Want(t, "orphans", r.Orphans, []Orphan{{archive.Key{3}, "b3"}})
	kit.Check(t, slices.Equal(r.Double, []archive.Key{{4}}) && len(r.Unclear)+len(r.InDoubt) == 0,
		"double %v, unclear %v, in doubt %v", r.Double, r.Unclear, r.InDoubt)
}

// TestCheck_FindsWhatIsBroken breaks one thing at a time: its promise must be named
// first, for the right key, and none that is not listed.
func TestCheck_FindsWhatIsBroken(t *testing.T) {
	for _, row := range []struct {
		name     string
		promises string
		key      byte
		spoil    func(b *book, j *Journal)
	}{
		{"LineCutOff", "I14 I5 I9 I12", 0, func(b *book, j *Journal) { j.Lines = numbered(b.lines[:len(b.lines)-1]) }},
		{"LineChanged", "I14", 0, func(b *book, j *Journal) {
			b.edit(2, func(l *ledger.Line) { l.At = "2020-01-01T00:00:00.000Z" })
		}},
		{"LinesSwapped", "I14 I1 I5", 0, func(b *book, j *Journal) { b.lines[1], b.lines[2] = b.lines[2], b.lines[1] }},
		{"LineUnreadable", "I14 I1 I5", 0, func(b *book, j *Journal) { b.lines[1] = []byte("{") }},
		{"FirstLineMissing", "I14 I1 I5", 0, func(b *book, j *Journal) { b.drop(1); *j = b.journal() }},
		{"UnknownEvent", "I14 I1 I5", 0, func(b *book, j *Journal) {
			b.edit(2, func(l *ledger.Line) { l.Event = "blessed" })
			*j = b.journal()
		}},
		{"RevisionLeftOut", "I5 I1", 4, func(b *book, j *Journal) { b.drop(b.line(4, "window-closed")); *j = b.journal() }},
		{"EntryMissing", "I1", 5, func(b *book, _ *Journal) { delete(b.entries, archive.Key{5}) }},
		{"EntryWithoutLines", "I1", 9, func(b *book, _ *Journal) {
			b.entries[archive.Key{9}] = ledger.Entry{Key: archive.Key{9}, State: ledger.Discovered}
		}},
		{"BalanceOff", "I12", 0, func(_ *book, j *Journal) {
			bal := *j.Balance
			bal.Seen++
			j.Balance = &bal
		}},
		{"OtherBytesLeft", "I4", 3, func(b *book, j *Journal) {
			b.edit(b.line(3, "uploaded"), func(l *ledger.Line) { l.Seal = archive.Digest{99}.String() })
			*j = b.journal()
		}},
		{"NoDigestOfWhatLeft", "I4", 3, func(b *book, j *Journal) {
			b.edit(b.line(3, "uploaded"), func(l *ledger.Line) { l.Seal = "" })
			*j = b.journal()
		}},
		{"EntrySaysOtherBytesLeft", "I4", 3, func(b *book, _ *Journal) {
			b.change(3, func(e *ledger.Entry) { e.Current().Sent = archive.Digest{99} })
		}},
		{"PackageOfAnotherSize", "I12", 4, func(b *book, _ *Journal) { b.change(4, func(e *ledger.Entry) { e.Package.Size++ }) }},
		{"EntryAheadOfJournal", "I5", 4, func(b *book, _ *Journal) { b.change(4, func(e *ledger.Entry) { e.Rev++ }) }},
		{"EntrySaysArchived", "I12", 4, func(b *book, _ *Journal) {
			b.change(4, func(e *ledger.Entry) { e.State, e.ArchivedRemote = ledger.Archived, "b6" })
		}},
		{"FlagWiped", "I12", 4, func(b *book, _ *Journal) { b.change(4, func(e *ledger.Entry) { e.PossibleDouble = false }) }},
		{"FlagTakenBackByLine", "I13", 4, func(b *book, j *Journal) {
			b.edit(b.line(4, "released")+2, func(l *ledger.Line) { l.Flags = "" })
			*j = b.journal()
		}},
		{"AnswersOverstated", "I9", 3, func(b *book, _ *Journal) { b.change(3, func(e *ledger.Entry) { e.Answers++ }) }},
		{"NumberOfAnother", "I8", 4, func(b *book, j *Journal) {
			b.edit(b.line(4, "registered"), func(l *ledger.Line) { l.Remote = "b1" })
			*j = b.journal()
		}},
		{"StatusOfAnother", "I8 I12", 3, func(b *book, j *Journal) {
			b.edit(b.line(3, "status-seen"), func(l *ledger.Line) { l.Remote = "b1" })
			*j = b.journal()
		}},
		{"RegistrationHidden", "I8", 3, func(b *book, _ *Journal) {
			b.change(3, func(e *ledger.Entry) { e.Registrations = e.Registrations[1:] })
		}},
		{"PostWithoutIntent", "I11 I9", 3, func(b *book, j *Journal) {
			b.edit(b.line(3, "register-intended"), func(l *ledger.Line) { l.Event, l.State = "postponed", "packaged" })
			*j = b.journal()
		}},
		{"PutWithoutIntent", "I11", 1, func(b *book, j *Journal) {
			b.edit(b.line(1, "upload-intended"), func(l *ledger.Line) { l.Event, l.State = "postponed", "registered" })
			*j = b.journal()
		}},
		{"ArchivedByAnUnknownWord", "I12", 3, func(b *book, j *Journal) {
			b.edit(b.line(3, "status-seen"), func(l *ledger.Line) { l.Status = "unfamiliar" })
			*j = b.journal()
		}},
		{"ArchivedByThePut", "I12 I11", 3, func(b *book, j *Journal) {
			n := b.line(3, "uploaded")
			b.edit(n, func(l *ledger.Line) { l.State = "archived" })
			*j = b.journal()
		}},
		{"FinalReopened", "I13 I12", 2, func(b *book, j *Journal) {
			b.do(2, ledger.Superseded{By: archive.Key{3}})
			b.edit(len(b.lines), func(l *ledger.Line) { l.State = "packaged" })
			*j = b.journal()
			b.change(2, func(e *ledger.Entry) { e.State = ledger.Packaged })
		}},
		{"DisposedBeforeItWasPlaced", "I3", 1, func(b *book, j *Journal) {
			for _, ev := range []string{"place-intended", "placed"} {
				b.edit(b.line(1, ev), func(l *ledger.Line) { l.Event, l.Source = "postponed", "claimed" })
			}
			*j = b.journal()
		}},

		{"DisposedUncompared", "I3", 1, func(b *book, _ *Journal) {
			b.change(1, func(e *ledger.Entry) { e.Current().Unproven = true })
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := everyday(t)
			j := b.journal()
			row.spoil(b, &j)
			r := Check(j, maps.Values(b.entries))
			var found []string
			named := false
			for _, f := range r.Findings {
				found = append(found, f.Promise)
				named = named || f.Promise == strings.Fields(row.promises)[0] && (row.key == 0 || f.Key == archive.Key{row.key})
			}
			slices.Sort(found)
			got := strings.Join(slices.Compact(found), " ")
			kit.Check(t, got == sorted(row.promises) && named, "found %q, want %q of key %d:\n%v", got, row.promises, row.key, r.Findings)
		})
	}
}

func sorted(words string) string {
	ws := strings.Fields(words)
	slices.Sort(ws)
	return strings.Join(ws, " ")
}

// TestCheck_EveryPrefixHolds: the check may run at any instant, so it holds after
// every single line.
func TestCheck_EveryPrefixHolds(t *testing.T) {
	whole := everyday(t)
	for n := 1; n <= len(whole.lines); n++ {
		lines := whole.lines[:n]
		var h ledger.Head
		for _, l := range lines {
			h = h.Next(l)
		}
		r := Check(Journal{Lines: numbered(lines), Head: h}, func(func(ledger.Entry) bool) {})
		for _, f := range r.Findings {
			kit.Holds(t, "the finding", f.Text, "there is no entry")
		}
	}
}

// TestCheck_FindingsAreBounded: a journal of rubbish gives a short list.
func TestCheck_FindingsAreBounded(t *testing.T) {
	lines := slices.Repeat([][]byte{[]byte("rubbish")}, 5*maxFindings)
	r := Check(Journal{Lines: numbered(lines)}, func(func(ledger.Entry) bool) {})
	kit.Check(t, len(r.Findings) == maxFindings && r.Omitted != 0 && !r.OK(),
		"%d findings, %d omitted", len(r.Findings), r.Omitted)
}

func FuzzCheck_NeverPanics(f *testing.F) {
	f.Add([]byte(`{"n":1,"event":"created","ledger":"x"}`), []byte(`{"n":2,"event":"status-seen","key":"00000000000000000000000000","rev":1,"state":"archived","source":"claimed"}`))
	f.Add([]byte(`{`), []byte(`{"n":2,"event":"claimed","state":"none"}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		Check(Journal{Lines: numbered([][]byte{a, b, b})}, func(func(ledger.Entry) bool) {})
	})
}

// Two registrations of one entry that the service calls successful are two copies: a line that does not say so is found.
func TestCheck_I2_ASecondSuccessMustBeFlagged(t *testing.T) {
	b := newBook(t)
	b.claim(1)
	b.do(1, ledger.RegisterIntended{}, got("b1"), ledger.UploadIntended{}, ledger.UploadRefused{})
	b.upload(1, "b2")
	b.do(1, says("b2", archive.Successful), says("b1", archive.Successful))
	if r := Check(b.journal(), maps.Values(b.entries)); len(r.Findings) != 0 || len(r.Double) != 1 {
		t.Fatalf("%v, %d double", r.Findings, len(r.Double))
	}
	b.edit(len(b.lines), func(l *ledger.Line) { l.Flags = "" })
	b.change(1, func(e *ledger.Entry) { e.PossibleDouble = false })
	r := Check(b.journal(), maps.Values(b.entries))
	kit.Check(t, len(r.Findings) == 1 && r.Findings[0].Promise == "I2", "findings = %v, want one of I2", r.Findings)
}
