package proof

import (
	_ "embed"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// arrivalEdgesText lists where each event of an arrival may lead. Like edgesText it is a file, so that a journal is held against what was
// reviewed.
//
//go:embed arrivaledges.txt
var arrivalEdgesText string

// arrivalEdges are the lines of that file, and the events in them.
func arrivalEdges() (edges, events map[string]bool) {
	edges, events = map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(arrivalEdgesText) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] != "#" {
			edges[strings.Join(fields, " ")], events[fields[0]] = true, true
		}
	}
	return edges, events
}

// arrivalItem is what the lines tell of one arrival.
type arrivalItem struct {
	Rev       uint32
	State     string
	Item      string
	Files     uint32            // that are known
	Downloads map[string]uint32 // that were announced, by file; nil once it is held
	Held      map[string]bool   // files that are durable; nil once it is held
	Whole     bool              // everything of it was durable before its last line
	Posts     uint32            // acknowledgements that were announced
	HandedOn  bool              // its files were put into a drop folder
	Kind      string            // what arrives
	Confirms  uint32            // confirmations of a received document that were announced
	Word      string            // what a person said of a received document, in the network's codes; empty: nothing that the network may have taken
	Doubted   string            // the file that was in doubt last
	Unsettled uint32            // of that word, how often it was announced and is not known to be not taken
	old       bool              // its first lines were not shown: what they told is not known
	stored    bool              // an arrival with this key was seen
}

// arrivals is the replay of the lines of arrivals.
type arrivals struct {
	edges, events map[string]bool
	items         map[archive.Key]arrivalItem // nil: arrivals are not shown
}

func newArrivals() arrivals {
	edges, events := arrivalEdges()
	return arrivals{edges, events, map[archive.Key]arrivalItem{}}
}

// replayArrival replays one line of an arrival.
func (f *Replay) replayArrival(l *readLine) {
	switch {
	case !f.arrivals.events[l.Event]:
		f.addFinding("I14", l.key, "line %d tells of %q, which is no event of an arrival", l.N, l.Event)
		return
	case l.wrong || l.Source != "":
		f.addFinding("I14", l.key, "line %d is of an arrival and names no key, or a source", l.N)
		return
	}
	it, known := f.arrivals.items[l.key]
	if !known {
		it = arrivalItem{State: arrival.None.String(), Item: l.Item, Kind: l.Kind}
	}
	if !known && f.before != nil && l.Rev > 1 {
		it.old, it.Rev = true, l.Rev-1
	}
	if l.Rev != it.Rev+1 {
		f.addFinding("I5", l.key, "line %d is revision %d after revision %d", l.N, l.Rev, it.Rev)
	}
	if !(it.old && !known) && !f.arrivals.edges[l.Event+" "+it.State+" "+l.State] {
		promise := "I1"
		if it.State == arrival.Acknowledged.String() || it.State == arrival.GivenUp.String() {
			promise = "I13"
		}
		f.addFinding(promise, l.key, "line %d: %s leads from %s to %s", l.N, l.Event, it.State, l.State)
	}
	if l.Item != it.Item || l.Kind != it.Kind {
		f.addFinding("I8", l.key, "line %d is about another number at the service than the lines before", l.N)
	}
	if it.Rev, it.State = l.Rev, l.State; !it.old {
		f.replayDownload(&it, l)
		f.replayCustody(&it, l)
		f.replayReceived(&it, l)
		f.replayWord(&it, l)
	}
	f.arrivals.items[l.key] = it
}

// replayDownload replays the lists of files and the downloads: each has its intent before it, and no count goes down.
func (f *Replay) replayDownload(it *arrivalItem, l *readLine) {
	switch l.Event {
	case (arrival.FilesListed{}).JournalName():
		if l.Files < it.Files {
			f.addFinding("I30", l.key, "line %d: %d files are known, there were %d before", l.N, l.Files, it.Files)
		}
		if l.Files > it.Files { // what was handed on was less
			it.HandedOn = false
		}
		it.Files = l.Files
	case (arrival.DownloadIntended{}).JournalName():
		if l.File == "" || l.Downloads <= it.Downloads[l.File] {
			f.addFinding("I11", l.key, "line %d: download %d of a file that was downloaded %d times before", l.N, l.Downloads, it.Downloads[l.File])
		}
		if it.Downloads == nil {
			it.Downloads = map[string]uint32{}
		}
		it.Downloads[l.File] = l.Downloads
	case (arrival.FileHeld{}).JournalName():
		switch {
		case it.Downloads[l.File] == 0 && !it.isReceived(): // nobody counts fetches of the network
			f.addFinding("I11", l.key, "line %d: a file is held without an intent to download it before", l.N)
		case l.Seal == "":
			f.addFinding("I30", l.key, "line %d: a file is held without its digest", l.N)
		}
		if it.Held == nil {
			it.Held = map[string]bool{}
		}
		it.Held[l.File] = true
	}
}

// replayCustody replays what says that everything is held, and the acknowledgements: none before each file was durable and digested.
func (f *Replay) replayCustody(it *arrivalItem, l *readLine) {
	switch l.Event {
	case (arrival.HeldWhole{}).JournalName():
		if n := uint32(len(it.Held)); n != it.Files || l.Files != n || l.Seal == "" {
			f.addFinding("I30", l.key, "line %d: held, with %d of %d files durable before it", l.N, n, max(it.Files, l.Files))
			return
		}
		it.Whole, it.Downloads, it.Held = true, nil, nil
	case (arrival.Adopted{}).JournalName():
		if l.Seal == "" {
			f.addFinding("I30", l.key, "line %d: adopted without a manifest", l.N)
			return
		}
		it.Whole, it.Files, it.Downloads, it.Held = true, l.Files, nil, nil
	case (arrival.CustodyLost{}).JournalName():
		f.requireWhole(it, l)
		it.Whole, it.Downloads, it.Held = false, nil, nil
	case (arrival.HandedOn{}).JournalName():
		if it.HandedOn || l.Files != it.Files {
			f.addFinding("I30", l.key, "line %d: handed on with %d of %d files, or not for the first time", l.N, l.Files, it.Files)
		}
		it.HandedOn = true
		f.requireWhole(it, l)
	case (arrival.Abandoned{}).JournalName():
		if it.Whole && (!it.isReceived() || it.HandedOn || l.UID == nil) {
			f.addFinding("I30", l.key, "line %d: given up, and everything of it was held before", l.N)
		}
	case (arrival.AcknowledgeIntended{}).JournalName():
		it.Posts++
		f.requireWhole(it, l)
	case (arrival.AcknowledgementTaken{}).JournalName():
		if it.Posts == 0 {
			f.addFinding("I11", l.key, "line %d: acknowledged without an intent before it", l.N)
		}
		f.requireWhole(it, l)
	}
}

// replayReceived replays what received documents alone have: the document that names its files, and its confirmation. Its notification is
// deleted only after it is in the drop folder.
func (f *Replay) replayReceived(it *arrivalItem, l *readLine) {
	f.replayDoubt(it, l)
	switch l.Event {
	case (arrival.DocumentHeld{}).JournalName():
		if l.Seal == "" || l.Files == 0 {
			f.addFinding("I30", l.key, "line %d: a document is held without its digest or without a count of its files", l.N)
		}
		it.Files, it.Held = l.Files, map[string]bool{arrival.DocumentFile: true}
	case (arrival.ConfirmIntended{}).JournalName():
		it.Confirms++
		f.requireHandedOn(it, l)
		if it.Word == arrival.RejectTechnical.Pair() {
			f.addFinding("I13", l.key, "line %d: confirmed after the network was told that it was not received", l.N)
		}
	case (arrival.ConfirmationTaken{}).JournalName():
		if it.Confirms == 0 {
			f.addFinding("I11", l.key, "line %d: confirmed without an intent before it", l.N)
		}
	case (arrival.AcknowledgeIntended{}).JournalName():
		if it.isReceived() {
			f.requireHandedOn(it, l)
		}
	}
}

// replayDoubt replays what came for a file and looks wrong: it is not held yet, and only a person takes it as it is at once.
func (f *Replay) replayDoubt(it *arrivalItem, l *readLine) {
	switch l.Event {
	case (arrival.FileDoubted{}).JournalName():
		if !it.isReceived() || l.Seal == "" || it.Held[l.File] {
			f.addFinding("I4", l.key, "line %d: a file is in doubt that is held, or that has no digest, or is of no received document", l.N)
		}
		it.Doubted = l.File
	case (arrival.DoubtOverruled{}).JournalName():
		if l.UID == nil || l.File == "" || it.Doubted != l.File || it.Held[l.File] || l.Seal == "" {
			f.addFinding("I29", l.key, "line %d: a file was taken as it is that was not in doubt, or nobody decided so", l.N)
		}
	}
}

// replayWord replays what people said of a received document: each word is a person's, has its intent before its outcome, and contradicts none
// that the network may have taken.
func (f *Replay) replayWord(it *arrivalItem, l *readLine) {
	notTaken := arrival.WordAnswered{Outcome: arrival.NotTaken}.JournalName()
	switch l.Event {
	case (arrival.WordIntended{}).JournalName():
		switch {
		case l.UID == nil:
			f.addFinding("I29", l.key, "line %d: %s was said, and nobody said it", l.N, l.Status)
		case it.Word != "" && it.Word != l.Status:
			f.addFinding("I13", l.key, "line %d: %s was said after %s, which the network may have taken", l.N, l.Status, it.Word)
		}
		it.Word = l.Status
		it.Unsettled++
	case notTaken, arrival.WordAnswered{Outcome: arrival.Taken}.JournalName(), arrival.WordAnswered{}.JournalName():
		switch {
		case it.Unsettled == 0 || it.Word != l.Status:
			f.addFinding("I11", l.key, "line %d: the outcome of %s, without an intent before it", l.N, l.Status)
		case l.Event == notTaken:
			if it.Unsettled--; it.Unsettled == 0 {
				it.Word = ""
			}
		}
	}
}

func (it *arrivalItem) isReceived() bool { return it.Kind == string(arrival.Received) }

func (f *Replay) requireHandedOn(it *arrivalItem, l *readLine) {
	if !it.HandedOn {
		f.addFinding("I30", l.key, "line %d: %s, and it was not put into a drop folder before", l.N, l.Event)
	}
}

func (f *Replay) requireWhole(it *arrivalItem, l *readLine) {
	if !it.Whole {
		f.addFinding("I30", l.key, "line %d: %s, and not everything of it was held before", l.N, l.Event)
	}
}

// Arrival compares one arrival with its lines.
func (f *Replay) Arrival(a arrival.Arrival) {
	if a.State == arrival.GivenUp && a.Kind != arrival.Received {
		f.GivenUp = append(f.GivenUp, string(a.Item))
	}
	it, ok := f.arrivals.items[a.Key]
	switch {
	case !ok && f.before != nil: // no line is about it since
		return
	case !ok:
		f.addFinding("I1", a.Key, "there is an arrival, but no line of the journal")
	case a.Rev != it.Rev || a.State.String() != it.State || string(a.Item) != it.Item:
		f.addFinding("I12", a.Key, "the arrival is at revision %d, %s, its last line at %d, %s", a.Rev, a.State, it.Rev, it.State)
	}
	for _, file := range a.Files {
		if n := it.Downloads[file.Name]; uint32(file.Downloads) < n {
			f.addFinding("I11", a.Key, "a file counts %d downloads, the journal announced %d", file.Downloads, n)
		}
	}
	it.stored = true
	f.arrivals.items[a.Key] = it
}

// endArrivals is called when all arrivals were shown.
func (f *Replay) endArrivals() {
	slices.Sort(f.GivenUp)
	for k, it := range f.arrivals.items {
		if !it.stored {
			f.addFinding("I1", k, "the journal knows it as an arrival, %s, but there is none", it.State)
		}
	}
}

// isOfArrival reports whether a line is about an arrival, and about no entry.
func isOfArrival(l ledger.Line) bool { return l.Kind != "" }
