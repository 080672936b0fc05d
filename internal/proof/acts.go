package proof

import (
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// ActsAtMost is how many acts of people are listed, the latest ones.
const ActsAtMost = 1000

// Acts is what the journal tells of people: what they did, and what their comparisons of the ledger with the archive's index found.
// The zero value has none. Its fields are exported so that it can be stored; its memory does not grow with the journal.
type Acts struct {
	Count    uint64
	Last     []Act                          // the latest ones, the oldest first; see Latest
	Compared map[archive.VaultID]Comparison // the last one of each vault; empty: the one that ended safe mode, for all of them
}

// Act is what a person did.
type Act struct {
	Line   uint64    // of the journal
	At     time.Time // zero: the line's time is broken
	Event  string
	Key    string // of the entry; empty: it is about the ledger as a whole
	Rev    uint32
	Remote string // of a download: what was downloaded
	UID    uint32
	Digest string // of the reason; may be empty
}

// Comparison is the last one of the ledger with the archive's index of one vault, as the journal tells it.
type Comparison struct {
	At      time.Time
	Outcome string // one of ledger.CompareOutcomes; empty: it ended safe mode, and the journal says no more
	Words   string // how much was read, and how much differs

	Aborted time.Time // of the last one after it that was not complete, and so concluded nothing; zero if missing
}

// AddLine takes in a line of the journal, where it tells what a person did. The owner of a folder did nothing here.
func (a *Acts) AddLine(l ledger.Line) {
	switch {
	case l.UID == nil, l.Event == (ledger.ClaimedFolder{}).JournalName():
		return
	case l.Event == ledger.MarkFetched, l.Event == ledger.MarkReported:
		return // what came of an act that was told; a report that was written, which decides nothing
	}
	a.Count++
	at, _ := time.Parse(time.RFC3339, l.At) // a broken time is shown as none
	if l.Key == "" && (l.Event == ledger.MarkReconciled || l.Event == ledger.MarkCompared) {
		a.addComparison(l, at)
	}
	a.Last = append(a.Last, Act{Line: l.N, At: at, Event: l.Event, Key: l.Key, Rev: l.Rev, Remote: l.Remote, UID: uint32(*l.UID), Digest: l.Reason})
	if len(a.Last) >= 2*ActsAtMost {
		a.Last = append(a.Last[:0], a.Latest()...)
	}
}

// Latest returns the latest acts, the oldest first.
func (a *Acts) Latest() []Act { return a.Last[max(len(a.Last)-ActsAtMost, 0):] }

func (a *Acts) addComparison(l ledger.Line, at time.Time) {
	if a.Compared == nil {
		a.Compared = map[archive.VaultID]Comparison{}
	}
	if l.Event == ledger.MarkReconciled {
		a.Compared[""] = Comparison{At: at}
		return
	}
	outcome, words, ok := ledger.ParseComparedCause(l.Cause)
	v := archive.VaultID(l.Vault)
	before, known := a.Compared[v]
	switch {
	case !ok: // a line that says nothing; nothing is concluded from it
	case outcome == ledger.CompareIncomplete && known && before.Outcome != ledger.CompareIncomplete:
		before.Aborted = at // what was found before stands: nothing was concluded since
		a.Compared[v] = before
	default:
		a.Compared[v] = Comparison{At: at, Outcome: outcome, Words: words}
	}
}
