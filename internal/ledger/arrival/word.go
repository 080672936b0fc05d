package arrival

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Word is what a person says to the network about a received document. It is never said by itself. It is stored and never changes.
type Word string

// The words.
const (
	Accept          Word = "accept"           // its recipient accepts it
	Reject          Word = "reject"           // its recipient rejects it
	RejectTechnical Word = "reject-technical" // it cannot be read, so it does not reach its recipient
)

// codes are the words in the codes of the network.
var codes = map[Word][2]string{
	Accept:          {"BusinessAccept", "DocumentAccepted"},
	Reject:          {"BusinessReject", "DocumentRejected"},
	RejectTechnical: {"TechnicalReject", "Undelivered"},
}

// Codes returns the response code and the action code of the word; both are empty where it is not known.
func (w Word) Codes() (response, action string) { return codes[w][0], codes[w][1] }

// Pair returns both codes as a journal writes them.
func (w Word) Pair() string { return codes[w][0] + "/" + codes[w][1] }

// Outcome says what is certain of a word that was said. Its numbers are stored and never change.
type Outcome uint8

// The outcomes.
const (
	Unanswered Outcome = iota // the network may have taken it
	Taken                     // the network took it
	NotTaken                  // the network certainly did not take it
)

// String returns the outcome's word.
func (o Outcome) String() string {
	return [...]string{"unanswered", "taken", "not-taken"}[min(o, NotTaken)]
}

// Said is one word that a person said about a received document.
type Said struct {
	Rev        uint32       `stored:"1"` // of the arrival when it was about to be said: the note with the reason has it
	Word       Word         `stored:"2"`
	UID        uint32       `stored:"3"`
	At         time.Time    `stored:"4"`
	Outcome    Outcome      `stored:"5"`
	AnsweredAt time.Time    `stored:"6"` // when its outcome was committed; zero: nobody heard what became of it
	Cause      ledger.Cause `stored:"7"` // why it is unanswered or was not taken
	Told       bool         `stored:"8"` // its reason was to be said with it
}

// sayingTime is how long a word without any outcome may still be on its way.
const sayingTime = 2 * time.Minute

// isOnItsWay reports whether a word may be being said at this moment. A clock that was set back does not make it so for ever.
func (s Said) isOnItsWay(now time.Time) bool {
	since := now.Sub(s.At)
	return s.AnsweredAt.IsZero() && since >= 0 && since < sayingTime
}

// mostSaid bounds how many words are kept of one document.
const mostSaid = 100

// Why a word is refused. Each is an event that is not allowed.
var (
	ErrNotHere     = fmt.Errorf("%w: the document is not here whole", ledger.ErrIllegal)
	ErrConfirmed   = fmt.Errorf("%w: the network was told that the document was received", ledger.ErrIllegal)
	ErrContradicts = fmt.Errorf("%w: another word was said before", ledger.ErrIllegal)
	ErrSaidBefore  = fmt.Errorf("%w: it was said before, and the network took it", ledger.ErrIllegal)
	ErrMaybeSaid   = fmt.Errorf("%w: it may have been said before", ledger.ErrIllegal)
	ErrBeingSaid   = fmt.Errorf("%w: a word is being said at this moment", ledger.ErrIllegal)
)

// StandingWord returns the word that the network took or may have taken, whichever was said last; ok is false where there is none.
func (a Arrival) StandingWord() (s Said, ok bool) {
	for _, said := range slices.Backward(a.Said) {
		if said.Outcome != NotTaken {
			return said, true
		}
	}
	return s, false
}

// WordIntended is committed before a person's word leaves for the network. The network is not known to take two of them for one: a word that
// may have been taken is said again only where the person says so, and another word is refused until the first is known not to be taken.
type WordIntended struct {
	By    ledger.Operator
	Word  Word
	Again bool // it may have been said before, and the person says it once more
	Tell  bool // its reason is said with it
}

// JournalName implements Event.
func (WordIntended) JournalName() string { return "word-intended" }

func (ev WordIntended) apply(a *Arrival, at archive.Instant) error {
	if err := ev.check(*a, at.Wall); err != nil {
		return err
	}
	a.Said = append(a.Said, Said{Rev: a.Rev + 1, Word: ev.Word, UID: ev.By.UID, At: at.Wall, Told: ev.Tell})
	return nil
}

func (ev WordIntended) check(a Arrival, now time.Time) error {
	switch {
	case a.State == None || a.Kind != Received || codes[ev.Word] == [2]string{} || len(a.Said) >= mostSaid:
		return illegal("not a received document, no word that is known, or too many of them")
	case ev.Word == RejectTechnical && a.ConfirmIntents > 0:
		return ErrConfirmed
	case ev.Word != RejectTechnical && a.State != Held && a.State != Acknowledged:
		return ErrNotHere // who has not seen it cannot judge it
	}
	for _, said := range a.Said {
		switch {
		case said.Outcome == NotTaken:
		case said.isOnItsWay(now):
			return ErrBeingSaid
		case said.Word != ev.Word:
			return ErrContradicts
		case said.Outcome == Taken:
			return ErrSaidBefore
		case !ev.Again:
			return ErrMaybeSaid
		}
	}
	return nil
}

// WordAnswered says what became of a word: the network took it, certainly did not take it, or may have taken it.
type WordAnswered struct {
	Intent  uint32 // the revision of the [WordIntended]
	Outcome Outcome
	Cause   ledger.Cause
	Request archive.RequestID // of the call, where the network took it
}

// JournalName implements Event.
func (ev WordAnswered) JournalName() string {
	return [...]string{"word-unanswered", "word-taken", "word-not-taken"}[min(ev.Outcome, NotTaken)]
}

func (ev WordAnswered) apply(a *Arrival, at archive.Instant) error {
	s := a.findSaid(ev.Intent)
	if s == nil || !s.AnsweredAt.IsZero() || ev.Outcome > NotTaken {
		return illegal("no word was announced, or its outcome is known")
	}
	s.Outcome, s.AnsweredAt, s.Cause = ev.Outcome, at.Wall, ev.Cause
	a.TellRequest = cmp.Or(ev.Request, a.TellRequest)
	return nil
}

// findSaid returns the word that was announced at a revision; nil: there is none.
func (a *Arrival) findSaid(rev uint32) *Said {
	for i := range a.Said {
		if a.Said[i].Rev == rev {
			return &a.Said[i]
		}
	}
	return nil
}

// isRefused reports whether the network was told, or may have been told, that the document does not reach its recipient. Then nobody says
// that it was received.
func (a Arrival) isRefused() bool {
	s, ok := a.StandingWord()
	return ok && s.Word == RejectTechnical
}
