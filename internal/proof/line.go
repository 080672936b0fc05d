package proof

import (
	"crypto/sha256"
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
	remote short
}

func (l *readLine) parse() {
	var keyErr, stateErr, sourceErr error
	l.key, keyErr = archive.ParseKey(l.Key)
	if isOfArrival(l.Line) { // its states are those of another machine
		l.wrong = keyErr != nil || l.Source != ""
		return
	}
	l.to, stateErr = ledger.ParseState(l.State)
	l.then, sourceErr = ledger.ParseSource(l.Source)
	l.wrong = keyErr != nil || stateErr != nil || sourceErr != nil
	if l.remote = noRemote; l.Remote != "" {
		l.remote = shorten(l.Remote)
	}
}

// isOfArrival reports whether a line is about an arrival, and about no entry.
func isOfArrival(l ledger.Line) bool { return l.Kind != "" }

// describe is what the line tells of, in a few words.
func (l *readLine) describe() string {
	return strings.Join(slices.DeleteFunc([]string{l.Event, l.Status, l.Remote}, func(word string) bool { return word == "" }), " ")
}

// item is what is known of one entry after the lines that were replayed so far.
type item struct {
	rev            uint32
	state          ledger.State
	source         ledger.Source
	posts, answers uint16
	tickets        uint32 // lines that bound a registration to it
	intent         bool   // the last act was announced and has no outcome yet
	stored         bool   // an entry with this key was seen
	old            bool   // its first lines were not shown: what they told is not known
	flags          string // of its last line
	id             archive.ID
	success        short // the registration of which the service said it was successful
	seal           short // of its package, as sealed last; zero: unknown
	size           int64 // of that package; zero: unknown
}

// stickyFlags are the words of a line's flags that never go away again; "double" does by evidence.
var stickyFlags = []string{"in-doubt", "double", "same-number", "strange-date", "checked", "cut-off"}

// takesBack reports whether the line lacks a flag of the line before that stays.
func (l *readLine) takesBack(flags string) bool {
	if flags == l.Flags {
		return false
	}
	now := strings.Fields(l.Flags)
	return slices.ContainsFunc(strings.Fields(flags), func(word string) bool {
		return slices.Contains(stickyFlags, word) && !slices.Contains(now, word) && !(word == "double" && l.provesEmpty())
	})
}

// provesEmpty reports whether the line is evidence that a registration holds no
// content. Only such a line may remove the flag "double".
func (l *readLine) provesEmpty() bool {
	if l.Event == (ledger.NotificationSeen{}).JournalName() {
		told := archive.MeaningOfPair(l.Status)
		return told == archive.MeansUndelivered || told == archive.MeansInvalid
	}
	return l.Event == (ledger.StatusSeen{}).JournalName() && (l.Status == archive.Failed.String() || l.Status == archive.WaitingForPackage.String())
}

// short is the number of a registration or a seal, shortened so that a million fit in memory.
type short [16]byte

func shorten(text string) short {
	h := sha256.Sum256([]byte(text))
	return short(h[:16])
}

var noRemote = shorten("")

// noSuccess marks an entry whose lines call it archived without a success of the service.
var noSuccess = short{1}

// binding is the clientUUID that a registration was given to, once and for
// ever. A later entry may take the clientUUID over from a rejected one.
type binding struct {
	first, last archive.Key
	id          archive.ID
	found       bool // learnt from the service, for this or an earlier generation of the identity
}

func (b binding) isBoundTo(k archive.Key) bool { return b.first == k || b.last == k }
