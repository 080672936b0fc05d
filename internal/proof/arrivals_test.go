package proof

import (
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/test/kit"
)

// arrivalBook is a journal of one arrival, between the lines of an entry.
type arrivalBook struct {
	*book
	a arrival.Arrival
}

func newArrivalBook(t *testing.T) *arrivalBook {
	b := &arrivalBook{newBook(t), arrival.Arrival{Key: archive.Key{0xa0}}}
	b.do(1, ledger.ClaimedFolder{Vault: "V"})
	return b
}

func (b *arrivalBook) comes(evs ...arrival.Event) {
	b.t.Helper()
	for _, ev := range evs {
		next := kit.Value(arrival.Transition(b.a, ev, archive.Instant{Wall: noon}))(b.t)
		b.a = next
		b.append(arrival.NewLine(uint64(len(b.lines)+1), next, ev, archive.Instant{Wall: noon}))
	}
}

var twoFiles = []archive.ExtractFile{{Name: "a"}, {Name: "b"}}

func fileIsHeld(name string) arrival.FileHeld {
	return arrival.FileHeld{File: name, Stored: name, Size: 1, SHA256: archive.Digest{1}}
}

func (b *arrivalBook) live() {
	b.comes(arrival.Listed{Kind: arrival.Extract, Extract: archive.Extract{ID: "4711", Files: 2, Made: noon.Add(-time.Hour)}}, arrival.FilesListed{Files: twoFiles},
		arrival.DownloadIntended{File: "a"}, fileIsHeld("a"), arrival.DownloadIntended{File: "b"}, arrival.DownloadIntended{File: "b"}, fileIsHeld("b"),
		arrival.HeldWhole{Again: twoFiles, Manifest: archive.Digest{2}}, arrival.HandedOn{}, arrival.AcknowledgeIntended{OnlyHandedOn: true}, arrival.AcknowledgementTaken{})
}

// check checks the journal from its first line, with the arrival as it is stored.
func (b *arrivalBook) check() Report {
	j := Journal{Lines: numbered(b.lines), Arrivals: []arrival.Arrival{b.a}}
	for _, line := range b.lines {
		j.Head = j.Head.Next(line)
	}
	entries := []ledger.Entry{}
	for _, e := range b.entries {
		entries = append(entries, e)
	}
	return Check(j, slices.Values(entries))
}

func TestArrivals_I30_SoundJournal(t *testing.T) {
	b := newArrivalBook(t)
	b.live()
	r := b.check()
	kit.Check(t, r.OK(), "findings = %v, want none", r.Findings)
}

// An extract that was given up is told by its number: what it told is not known.
func TestArrivals_I32_GivenUpIsTold(t *testing.T) {
	b := newArrivalBook(t)
	b.comes(arrival.Listed{Kind: arrival.Extract, Extract: archive.Extract{ID: "4712", Files: 2, Made: noon.Add(-time.Hour)}}, arrival.Abandoned{By: &ledger.Operator{UID: 1000}})
	r := b.check()
	kit.Check(t, r.OK() && slices.Equal(r.GivenUp, []string{"4712"}), "%v, given up %q", r.Findings, r.GivenUp)
}

// without takes the lines of an event out of the arrival's, and numbers the others anew, as a program with a mistake would have written them.
func (b *arrivalBook) without(gone func(ledger.Line) bool) {
	lines := b.lines
	b.lines = nil
	rev := uint32(0)
	for _, stored := range lines {
		l := kit.Value(ledger.ParseLine(stored))(b.t)
		if l.Kind != "" {
			if gone(l) {
				continue
			}
			rev++
			l.Rev = rev
		}
		l.N = uint64(len(b.lines) + 1)
		b.append(l)
	}
	b.a.Rev = rev
}

// Each mistake of a program is seen in the journal that it would have written.
func TestArrivals_I30_BrokenOrder(t *testing.T) {
	for what, row := range map[string]struct {
		promise string
		gone    func(l ledger.Line) bool
	}{
		"HeldBeforeAFile":           {"I30", func(l ledger.Line) bool { return l.Event == "file-held" && l.File == "b" }},
		"AcknowledgedBeforeHeld":    {"I30", func(l ledger.Line) bool { return l.Event == "arrival-held" }},
		"AcknowledgedWithoutIntent": {"I11", func(l ledger.Line) bool { return l.Event == "acknowledge-intended" }},
		"HandedOnBeforeHeld": {"I30", func(l ledger.Line) bool {
			return l.Event == "arrival-held" || strings.HasPrefix(l.Event, "acknowledge")
		}},
		"CountedAfterTheDownload": {"I11", func(l ledger.Line) bool { return l.Event == "download-intended" && l.File == "a" }},
	} {
		b := newArrivalBook(t)
		b.live()
		b.without(row.gone)
		if r := b.check(); !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Promise == row.promise && f.Key == b.a.Key }) {
			t.Errorf("%s: %v, want %s", what, r.Findings, row.promise)
		}
	}
}

// A count that goes down, a file without a digest, a list that shrinks, another number, and a state that ends and goes on.
func TestArrivals_I11_AlteredLines(t *testing.T) {
	for what, row := range map[string]struct {
		promise string
		alter   func(l *ledger.Line)
	}{
		"CountGoesDown":    {"I11", func(l *ledger.Line) { l.Downloads = min(l.Downloads, 1) }},
		"NoDigest":         {"I30", func(l *ledger.Line) { l.Seal = strings.TrimPrefix(l.Seal, l.Seal) }},
		"HandedOnInPart":   {"I30", func(l *ledger.Line) { l.Files -= uint32(strings.Count(l.Event, "handed-on")) }},
		"OtherNumber":      {"I8", func(l *ledger.Line) { l.Item += strings.Repeat("x", int(l.Rev)/5) }},
		"RevisionMissing":  {"I5", func(l *ledger.Line) { l.Rev += l.Rev / 5 }},
		"UnknownEvent":     {"I14", func(l *ledger.Line) { l.Event += strings.Repeat("x", int(l.Rev)/5) }},
		"HasASource":       {"I14", func(l *ledger.Line) { l.Source = "claimed" }},
		"StateLeadsAstray": {"I1", func(l *ledger.Line) { l.State = "held" }},
	} {
		b := newArrivalBook(t)
		b.live()
		for i, stored := range b.lines {
			if l, err := ledger.ParseLine(stored); err == nil && l.Kind != "" {
				row.alter(&l)
				b.lines[i] = l.Encode()
			}
		}
		if r := b.check(); !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Promise == row.promise }) {
			t.Errorf("%s: %v, want %s", what, r.Findings, row.promise)
		}
	}
}

// The stored arrival is held against its lines, and nothing may be missing on either side.
func TestArrivals_I12_StoredDiffers(t *testing.T) {
	for what, alter := range map[string]func(*arrival.Arrival){
		"Another state":    func(a *arrival.Arrival) { a.State = arrival.Held },
		"Another revision": func(a *arrival.Arrival) { a.Rev-- },
		"Another key":      func(a *arrival.Arrival) { a.Key[3] = 1 },
	} {
		b := newArrivalBook(t)
		b.live()
		alter(&b.a)
		kit.Check(t, !b.check().OK(), "%s: nothing is found", what)
	}
}

// receive is the life of a document that came in over the network.
func (b *arrivalBook) receive() {
	b.comes(arrival.DocumentAnnounced{Document: "bum-1", Kind: archive.NetworkInvoice, Notice: "ack-1"},
		arrival.DocumentHeld{Stored: "document", Size: 1, SHA256: archive.Digest{1}, Files: []archive.FileRef{{ID: "f"}}}, fileIsHeld("f"), arrival.HeldWhole{Manifest: archive.Digest{2}},
		arrival.HandedOn{}, arrival.ConfirmIntended{}, arrival.ConfirmationTaken{}, arrival.AcknowledgeIntended{}, arrival.AcknowledgementTaken{})
}

// Each mistake of a program that receives documents is seen in the journal that it would have written.
func TestArrivals_I30_ReceivedDocuments(t *testing.T) {
	b := newArrivalBook(t)
	b.receive()
	r := b.check()
	kit.Check(t, r.OK() && len(r.GivenUp) <= 0, "findings = %v, given up %v, want none", r.Findings, r.GivenUp)
	for event, promise := range map[string]string{"document-held": "I1", "file-held": "I30", "arrival-held": "I30", "handed-on": "I30", "confirm-intended": "I11", "acknowledge-intended": "I11"} {
		b := newArrivalBook(t)
		b.receive()
		b.without(func(l ledger.Line) bool { return l.Event == event })
		if r := b.check(); !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Promise == promise && f.Key == b.a.Key }) {
			t.Errorf("without %s: %v, want %s", event, r.Findings, promise)
		}
	}
}

// I29, I30: a person may give up a document that is held and not in the drop folder. Without a person, and from the drop folder on, it is seen.
func TestArrivals_I29_ReceivedDocumentGivenUp(t *testing.T) {
	for what, row := range map[string]struct {
		alter func(l *ledger.Line)
		isOK  bool
	}{
		"ByAPerson":     {alter: func(*ledger.Line) {}, isOK: true},
		"WithoutPerson": {alter: func(l *ledger.Line) { l.UID = nil }},
		"FromTheDrop":   {alter: func(l *ledger.Line) { l.Event = strings.ReplaceAll(l.Event, "retry-asked", "handed-on"); l.Files = 2 }},
	} {
		b := newArrivalBook(t)
		b.comes(arrival.DocumentAnnounced{Document: "bum-1", Kind: archive.NetworkInvoice, Notice: "ack-1"},
			arrival.DocumentHeld{Stored: "document", Size: 1, SHA256: archive.Digest{1}, Files: []archive.FileRef{{ID: "f"}}}, fileIsHeld("f"), arrival.HeldWhole{Manifest: archive.Digest{2}},
			arrival.RetryAsked{By: ledger.Operator{UID: 1000}}, arrival.Abandoned{By: &ledger.Operator{UID: 1000}})
		for i, stored := range b.lines {
			if l, err := ledger.ParseLine(stored); err == nil && l.UID != nil && l.Kind != "" {
				row.alter(&l)
				b.lines[i] = l.Encode()
			}
		}
		r := b.check()
		kit.Check(t, r.OK() == row.isOK, "%s: findings = %v, want none: %v", what, r.Findings, row.isOK)
	}
}

// I29, I4: only what was in doubt is taken as it is, by a person; and what is held, or has no digest, is in no doubt.
func TestArrivals_I29_Doubts(t *testing.T) {
	for what, row := range map[string]struct {
		promise string // empty: nothing is found
		event   string
		alter   func(l *ledger.Line)
	}{
		"Sound":            {event: "doubt-overruled", alter: func(*ledger.Line) {}},
		"NobodyDecided":    {"I29", "doubt-overruled", func(l *ledger.Line) { l.UID = nil }},
		"AnotherFile":      {"I29", "doubt-overruled", func(l *ledger.Line) { l.File = "f2" }},
		"WithoutDigest":    {"I29", "doubt-overruled", func(l *ledger.Line) { l.Seal = "" }},
		"DoubtWithout":     {"I4", "file-doubted", func(l *ledger.Line) { l.Seal = "" }},
		"DoubtOfAHeldFile": {"I4", "file-doubted", func(l *ledger.Line) { l.File = arrival.DocumentFile }},
	} {
		b := newArrivalBook(t)
		sum := archive.Sum([]byte("x"))
		b.comes(arrival.DocumentAnnounced{Document: "bum-1", Kind: archive.NetworkInvoice, Notice: "ack-1"}, arrival.DocumentHeld{Stored: "document.json", Size: 9, SHA256: sum, Files: []archive.FileRef{{ID: "f1"}}},
			arrival.FileDoubted{File: "f1", Stored: "0001-f1", SHA256: sum, Cause: ledger.Cause{Code: "receive-doubt"}}, arrival.DoubtOverruled{By: ledger.Operator{UID: 1000}, File: "f1", SHA256: sum})
		for i, stored := range b.lines {
			if l, err := ledger.ParseLine(stored); err == nil && l.Event == row.event {
				row.alter(&l)
				b.lines[i] = l.Encode()
			}
		}
		r := b.check()
		if row.promise == "" && !r.OK() || row.promise != "" && !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Promise == row.promise && f.Key == b.a.Key }) {
			t.Errorf("%s: %v, want %s", what, r.Findings, row.promise)
		}
	}
}

// I29, I13, I11: words about a received document are people's, announced before they are said, and contradict none that the network may have taken.
func TestArrivals_I29_Words(t *testing.T) {
	by := ledger.Operator{UID: 1000}
	for what, row := range map[string]struct {
		promise string // empty: nothing is found
		alter   func(l *ledger.Line)
		gone    string
	}{
		"Sound":         {alter: func(*ledger.Line) {}},
		"NobodySaidIt":  {promise: "I29", alter: func(l *ledger.Line) { l.UID = nil }},
		"Contradicted":  {promise: "I13", alter: func(l *ledger.Line) { l.Event = strings.Replace(l.Event, "word-not-taken", "word-unanswered", 1) }},
		"WithoutIntent": {promise: "I11", alter: func(*ledger.Line) {}, gone: "word-intended"},
	} {
		b := newArrivalBook(t)
		b.receive()
		b.comes(arrival.WordIntended{By: by, Word: arrival.Accept})
		b.comes(arrival.WordAnswered{Intent: b.a.Rev, Outcome: arrival.NotTaken, Cause: ledger.Cause{Code: "http-403"}}, arrival.WordIntended{By: by, Word: arrival.Reject})
		b.comes(arrival.WordAnswered{Intent: b.a.Rev, Outcome: arrival.Taken})
		if row.gone != "" {
			b.without(func(l ledger.Line) bool { return l.Event == row.gone })
		}
		for i, stored := range b.lines {
			if l, err := ledger.ParseLine(stored); err == nil && strings.HasPrefix(l.Event, "word-") {
				row.alter(&l)
				b.lines[i] = l.Encode()
			}
		}
		r := b.check()
		if row.promise == "" && !r.OK() || row.promise != "" && !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Promise == row.promise && f.Key == b.a.Key }) {
			t.Errorf("%s: %v, want %s", what, r.Findings, row.promise)
		}
	}
}
