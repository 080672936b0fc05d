package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// readLine is a line and what it says by itself, without the lines before it.
type readLine struct {
	ledger.Line
	key    archive.Key
	to     ledger.State
	then   ledger.Source
	wrong  bool // it names no key, state or source
	id     archive.ID
	remote number // that its bumId, or no bumId, is shortened to
	flags  flags
}

func (l *readLine) parse() {
	var keyErr, stateErr, sourceErr error
	l.key, keyErr = archive.ParseKey(l.Key)
	if isOfArrival(l.Line) { // its states are those of another machine
		l.wrong = keyErr != nil
		return
	}
	l.to, stateErr = ledger.ParseState(l.State)
	l.then, sourceErr = ledger.ParseSource(l.Source)
	l.wrong = keyErr != nil || stateErr != nil || sourceErr != nil
	if l.ID != "" {
		l.id, _ = archive.ParseID(l.ID)
	}
	if l.remote = noRemote; l.Remote != "" {
		l.remote = shortNumber(archive.RemoteID(l.Remote))
	}
	l.flags = parseFlags(l.Flags)
}

var noRemote = shortNumber("")

// item is what is known of one key after the lines that were replayed so far.
type item struct {
	rev            uint32
	state          ledger.State
	source         ledger.Source
	posts, answers uint16
	tickets        uint32 // lines that bound a registration to it
	intent         bool   // the last act was announced and has no outcome yet
	stored         bool   // an entry with this key was seen
	old            bool   // its first lines were not shown: what they told is not known
	flags          flags
	id             archive.ID
	success        number    // the registration of which the service said it was successful
	seal           sealStart // of its package, as sealed last; zero: unknown
	size           int64     // of that package; zero: unknown
}

// number is a registration's number, shortened so that a million fit in memory.
type number [16]byte

func shortNumber(r archive.RemoteID) number {
	h := sha256.Sum256([]byte(r))
	return number(h[:16])
}

// sealStart is the beginning of what stands for a ZIP in the journal: enough to
// compare, and a million fit in memory.
type sealStart [16]byte

func parseSeal(text string) (s sealStart) {
	if n, err := hex.Decode(s[:], []byte(text[:min(len(text), 2*len(s))])); err != nil || n < len(s) {
		return sealStart{}
	}
	return s
}

// noSuccess marks an entry whose lines call it archived without a success of the service.
var noSuccess = number{1}

// binding is the clientUUID that a registration was given to, once and for
// ever. A later entry may take the clientUUID over from a rejected one.
type binding struct {
	first, last archive.Key
	id          archive.ID
	found       bool // learnt from the service, for this or an earlier generation of the identity
}

func (b binding) isBoundTo(k archive.Key) bool { return b.first == k || b.last == k }

// edge is a pair of places between which an event may lead.
type edge struct {
	event, word  string
	from, to     ledger.State
	source, then ledger.Source
}

// flags are the words of a line's flags that never go away again, but by evidence; and
// the one that says what may not be done.
type flags struct{ inDoubt, double, needsReconcile, sameNumber, strangeDate, reviewed, cutOff bool }

func (it *item) replayFlags(f *Replay, key archive.Key, l *readLine) {
	now := l.flags
	was := it.flags
	if was.inDoubt && !now.inDoubt || was.double && !now.double && !provesEmpty(l) ||
		was.sameNumber && !now.sameNumber || was.strangeDate && !now.strangeDate || was.reviewed && !now.reviewed || was.cutOff && !now.cutOff {
		f.addFinding("I13", key, "line %d takes back the flags of the line before", l.N)
	}
	it.flags = now
}

// provesEmpty reports whether the line is evidence that a registration holds no
// content. Only such a line may remove the flag "double".
func provesEmpty(l *readLine) bool {
	if l.Event == (ledger.NotificationSeen{}).JournalName() {
		told := archive.MeaningOfPair(l.Status)
		return told == archive.MeansUndelivered || told == archive.MeansInvalid
	}
	return l.Event == (ledger.StatusSeen{}).JournalName() && (l.Status == archive.Failed.String() || l.Status == archive.WaitingForPackage.String())
}

func parseFlags(s string) flags {
	words := strings.Fields(s)
	has := func(word string) bool { return slices.Contains(words, word) }
	return flags{has("in-doubt"), has("double"), has("needs-reconcile"), has("same-number"), has("strange-date"), has("checked"), has("cut-off")}
}
