package proof

import (
	"slices"

	"vaultd/internal/ledger/arrival"
)

// arrivalItem is what the lines tell of one arrival.
type arrivalItem struct {
	Rev       uint32
	State     string
	Item      string
	Files     uint32            // that are known
	Downloads map[string]uint32 // that were announced, by file; nil once it is held
	Held      map[string]bool   // files that are durable; nil once it is held
	Whole     bool              // everything of it was durable before its last line
	Posted    bool              // an acknowledgement was announced
	HandedOn  bool              // its files were put into a drop folder
	Kind      string            // what arrives
	Confirmed bool              // the confirmation of a received document was announced
	Word      string            // what a person said of a received document, in the network's codes; empty: nothing that the network may have taken
	Doubted   string            // the file that was in doubt last
	Unsettled uint32            // of that word, how often it was announced and is not known to be not taken
	old       bool              // its first lines were not shown: what they told is not known
	stored    bool              // an arrival with this key was seen
}

// replayArrival replays one line of an arrival.
func (f *Replay) replayArrival(l *readLine) {
	it, known := f.arrivals[l.key]
	if !known {
		it = arrivalItem{State: arrival.None.String(), Item: l.Item, Kind: l.Kind}
	}
	if !known && f.before != nil && l.Rev > 1 {
		it.old, it.Rev = true, l.Rev-1
	}
	f.checkRevision(l, it.Rev)
	if !(it.old && !known) && !f.arrivalEdges.all[edge{l.Event, it.State, l.State}] {
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
		hold(f, arrivalRules[l.Event], &it, l)
		it.advance(l)
	}
	f.arrivals[l.key] = it
}

func (it *arrivalItem) isReceived() bool { return it.Kind == string(arrival.Received) }

// Arrival compares one arrival with its lines.
func (f *Replay) Arrival(a arrival.Arrival) {
	if a.State == arrival.GivenUp && a.Kind != arrival.Received {
		f.GivenUp = append(f.GivenUp, string(a.Item))
	}
	it, ok := f.arrivals[a.Key]
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
	f.arrivals[a.Key] = it
}

// endArrivals is called when all arrivals were shown.
func (f *Replay) endArrivals() {
	slices.Sort(f.GivenUp)
	for k, it := range f.arrivals {
		if !it.stored {
			f.addFinding("I1", k, "the journal knows it as an arrival, %s, but there is none", it.State)
		}
	}
}
