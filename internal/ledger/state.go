package ledger

import "fmt"

// State says what is certain about one invoice. docs/states.md draws the picture.
type State uint8

// The states. Their numbers are stored and never change.
const (
	None        State = iota // no entry yet
	Discovered               // claimed; its files may still be changing
	Packaged                 // sealed ZIP, read back; request frozen
	Registering              // intent committed; the POST may have happened
	Registered               // ticket committed; no byte sent
	Sending                  // intent committed; bytes may be at the store
	Uploaded                 // the store answered 2xx to the whole package, or the service says it has it
	Unclear                  // window over; bytes may be stored
	Archived                 // final: the service's own success
	Delivered                // final of routes without a later word
	Duplicate                // final: the same identity is archived
	Rejected                 // final: certainly no content there, or closed in doubt and flagged
	Quarantined              // cannot go on, and content or a mix-up is possible
)

// Source says what happens to the folder that was dropped.
type Source uint8

// The states of a source. Their numbers are stored and never change.
const (
	NoSource  Source = iota
	Claimed          // in .vaultd/claimed/<key>/
	Returning        // intent committed: it may lie at either end
	Returned         // in _rejected/ or _duplicates/
	Keeping          // intent committed: it may lie at either end
	Kept             // in _archived/ with its receipt
	Disposing        // intent committed: parts of it may be gone
	Moved            // where after_archive.to says
	Gone             // deleted after the grace
)

var stateWords = []string{"none", "discovered", "packaged", "registering", "registered", "sending", "uploaded", "unclear",
	"archived", "delivered", "duplicate", "rejected", "quarantined"}

var sourceWords = []string{"none", "claimed", "returning", "returned", "keeping", "kept", "disposing", "moved", "gone"}

// String returns the word that journal lines and people see.
func (s State) String() string { return wordOf(stateWords, int(s)) }

// String returns the word that journal lines and people see.
func (s Source) String() string { return wordOf(sourceWords, int(s)) }

// MarshalText writes the word, into JSON and logs alike.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText writes the word, into JSON and logs alike.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func wordOf(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return fmt.Sprintf("unknown-%d", i)
}

// ParseState reads a state's word.
func ParseState(s string) (State, error) {
	i, err := parseWord(stateWords, s)
	return State(i), err
}

// ParseSource reads a source's word.
func ParseSource(s string) (Source, error) {
	i, err := parseWord(sourceWords, s)
	return Source(i), err
}

func parseWord(words []string, s string) (int, error) {
	for i, w := range words {
		if w == s {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown word %q", s)
}

// States lists every state an entry can be in, in the order of the life of one.
func States() []State {
	var all []State
	for s := Discovered; s <= Quarantined; s++ {
		all = append(all, s)
	}
	return all
}

// IsFinal reports whether no event but a human act may change the state.
func (s State) IsFinal() bool {
	return s == Archived || s == Delivered || s == Duplicate || s == Rejected
}

// IsOpen reports whether the invoice still counts as open in the balance.
func (s State) IsOpen() bool { return s >= Discovered && s <= Unclear }
