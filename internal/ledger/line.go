package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/archive"
)

// Line is one line of the journal: what happened to which entry, and its state
// since. It is JSON with the fields in this order, hashed as stored. It
// never holds a URL, a name, an amount or a reason's text. The order and the names
// of the fields never change; new ones are added at the end.
type Line struct {
	N      uint64 `json:"n"`
	At     string `json:"at"` // RFC 3339 in UTC, milliseconds
	Event  string `json:"event"`
	Key    string `json:"key,omitempty"`
	Rev    uint32 `json:"rev,omitempty"`
	State  string `json:"state,omitempty"`
	Source string `json:"source,omitempty"`
	Vault  string `json:"vault,omitempty"`
	ID     string `json:"clientUUID,omitempty"`
	Remote string `json:"bumId,omitempty"`
	Seal   string `json:"seal,omitempty"` // SHA-256 of the document's salt and the ZIP's SHA-256; of uploaded, of what left; of validation-kept, of the file in the place of the ZIP
	Size   int64  `json:"size,omitempty"` // bytes of the ZIP; of fetched and validation-kept, those that came
	Status string `json:"word,omitempty"` // the service's, as we know it
	Time   string `json:"time,omitempty"` // the service's own; of a mark, its clock when it was asked
	Cause  string `json:"cause,omitempty"`
	Other  string `json:"other,omitempty"`  // another entry's key: first, superseded, same content or same number
	Flags  string `json:"flags,omitempty"`  // hold, in-doubt, double, contradicted, resolved, needs-reconcile, same-number, strange-date, checked, cut-off; of word-intended, told
	UID    *int64 `json:"uid,omitempty"`    // of the person who acted
	Reason string `json:"reason,omitempty"` // SHA-256 of the note's salt and the reason that was given

	Ledger      string `json:"ledger,omitempty"`      // first line only
	Environment string `json:"environment,omitempty"` // first line only

	Route string `json:"route,omitempty"` // of claimed and recovered: empty for the way to the vault

	// Of what arrives from a service: all lines of entries have none of these.
	Item      string `json:"item,omitempty"`      // its number at the service
	File      string `json:"file,omitempty"`      // the service's name of one of its files
	Files     uint32 `json:"files,omitempty"`     // how many files are known
	Downloads uint32 `json:"downloads,omitempty"` // of the file, this one included
	Kind      string `json:"kind,omitempty"`      // what arrives; empty: the line is of an entry, or of the ledger as a whole
}

// FirstLine returns the line that opens a journal.
func FirstLine(ledger, environment string, at time.Time) Line {
	return Line{N: 1, At: formatTime(at), Event: "created", Ledger: ledger, Environment: environment}
}

// NewLine returns the line that tells of ev, which made after.
func NewLine(n uint64, after Entry, ev Event, at archive.Instant) Line {
	l := Line{
		N: n, At: formatTime(at.Wall), Event: ev.JournalName(), Key: after.Key.String(), Rev: after.Rev,
		State: after.State.String(), Source: after.Source.String(), Cause: after.Cause.Code, Flags: after.flagWords(),
	}
	if !after.ID.IsZero() {
		l.ID = after.ID.String()
	}
	// Only keys, numbers, digests and words: what names people must stay erasable while the chain verifies.
	switch ev := ev.(type) {
	case ClaimedFolder:
		l.Vault, l.Route, l.Other = string(ev.Vault), routeText(ev.Route), keyText(ev.Supersedes)
		l.UID = uidPointer(ev.Owner)
	case Sealed:
		l.Seal, l.Size = ev.Seal.String(), ev.Package.Size
		l.Other = cmp.Or(keyText(after.Supersedes), keyText(ev.SameContent), keyText(ev.SameNumber))
	case Resealed:
		l.Seal, l.Size = ev.Seal.String(), ev.Package.Size
	case FoundDuplicate:
		l.Other = keyText(ev.First)
	case Superseded:
		l.Other = keyText(ev.By)
	case Retried:
		l.Other = keyText(ev.As)
		l.setOperator(ev)
	case TicketReceived:
		l.Remote = string(ev.Ticket.Remote)
	case NotificationSeen:
		l.Remote, l.Status = string(ev.Notification.Document), ev.Notification.JournalPair()
		if !ev.Notification.Created.IsZero() {
			l.Time = formatTime(ev.Notification.Created)
		}
	case UploadIntended, UploadAccepted, DeliveryConfirmed, UploadNotSent, UploadRefused, UploadUnanswered, WindowClosed, DocumentIntended, DocumentTaken, DocumentRefused, CopyPut:
		if r := after.Current(); r != nil {
			l.Remote = string(r.Ticket.Remote)
		}
		switch sent := ev.(type) {
		case UploadAccepted:
			l.Seal = sent.Seal.String()
		case DeliveryConfirmed:
			l.Seal = sent.Seal.String()
		}
	case StatusSeen:
		l.Remote, l.Status = string(ev.Receipt.Remote), ev.Receipt.Status.String()
		if !ev.Receipt.Updated.IsZero() {
			l.Time = formatTime(ev.Receipt.Updated)
		}
	case RegistrationFound:
		l.Remote = string(ev.Remote)
	case ValidationKept:
		l.Seal, l.Size = ev.Seal.String(), ev.Size
	case Recovered:
		l.setRecovered(ev)
	default:
		l.setOperator(ev)
	}
	return l
}

// NewArrivalLine returns the line of an event of what arrives from a service. The caller adds what is special about the event.
func NewArrivalLine(n uint64, event string, key archive.Key, rev uint32, state string, at time.Time) Line {
	return Line{N: n, At: formatTime(at), Event: event, Key: key.String(), Rev: rev, State: state}
}

func (l *Line) setOperator(ev Event) {
	if by, ok := ActorOf(ev); ok {
		l.SetOperator(by)
	}
}

// SetOperator adds who acted, and the digest of the reason.
func (l *Line) SetOperator(by Operator) {
	l.UID = uidPointer(by.UID)
	if !by.Reason.IsZero() {
		l.Reason = by.Reason.String()
	}
}

func (e Entry) flagWords() string {
	s := ""
	for _, f := range []struct {
		on   bool
		word string
	}{
		{e.Hold, "hold"}, {e.InDoubt, "in-doubt"}, {e.PossibleDouble, "double"}, {e.Contradicted, "contradicted"}, {e.Resolved, "resolved"}, {e.NeedsReconcile, "needs-reconcile"},
		{!e.SameNumber.IsZero(), "same-number"}, {e.StrangeDate, "strange-date"}, {e.Reviewed, "checked"}, {e.CutOff != NotCutOff, "cut-off"},
	} {
		if f.on && s != "" {
			s += " "
		}
		if f.on {
			s += f.word
		}
	}
	return s
}

// Encode returns the line's bytes, without a line feed. They are those of json.Marshal, written field by field: every change of
// every entry has a line.
func (l Line) Encode() []byte {
	b := strconv.AppendUint(append(make([]byte, 0, 320), `{"n":`...), l.N, 10)
	b = appendText(append(b, `,"at":`...), l.At)
	b = appendText(append(b, `,"event":`...), l.Event)
	b = appendUnlessEmpty(b, `,"key":`, l.Key)
	b = appendUnlessZero(b, `,"rev":`, int64(l.Rev))
	b = appendUnlessEmpty(b, `,"state":`, l.State)
	b = appendUnlessEmpty(b, `,"source":`, l.Source)
	b = appendUnlessEmpty(b, `,"vault":`, l.Vault)
	b = appendUnlessEmpty(b, `,"clientUUID":`, l.ID)
	b = appendUnlessEmpty(b, `,"bumId":`, l.Remote)
	b = appendUnlessEmpty(b, `,"seal":`, l.Seal)
	b = appendUnlessZero(b, `,"size":`, l.Size)
	b = appendUnlessEmpty(b, `,"word":`, l.Status)
	b = appendUnlessEmpty(b, `,"time":`, l.Time)
	b = appendUnlessEmpty(b, `,"cause":`, l.Cause)
	b = appendUnlessEmpty(b, `,"other":`, l.Other)
	b = appendUnlessEmpty(b, `,"flags":`, l.Flags)
	if l.UID != nil { // 0 is a user
		b = strconv.AppendInt(append(b, `,"uid":`...), *l.UID, 10)
	}
	b = appendUnlessEmpty(b, `,"reason":`, l.Reason)
	b = appendUnlessEmpty(b, `,"ledger":`, l.Ledger)
	b = appendUnlessEmpty(b, `,"environment":`, l.Environment)
	b = appendUnlessEmpty(b, `,"route":`, l.Route)
	b = appendUnlessEmpty(b, `,"item":`, l.Item)
	b = appendUnlessEmpty(b, `,"file":`, l.File)
	b = appendUnlessZero(b, `,"files":`, int64(l.Files))
	b = appendUnlessZero(b, `,"downloads":`, int64(l.Downloads))
	b = appendUnlessEmpty(b, `,"kind":`, l.Kind)
	return append(b, '}')
}

func appendUnlessEmpty(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(append(b, name...), text)
}

func appendUnlessZero(b []byte, name string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, name...), n, 10)
}

// isPlain tells the bytes that JSON, as the library writes it, has as they are.
var isPlain = func() (plain [256]bool) {
	for c := ' '; c <= '~'; c++ {
		plain[c] = !strings.ContainsRune(`"\<>&`, c)
	}
	return plain
}()

// appendText appends a string of JSON. Nearly all are plain ASCII; any other is left to the library, so that it is escaped as ever.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if !isPlain[text[i]] {
			quoted, err := json.Marshal(text)
			if err != nil {
				panic(fmt.Sprintf("encode a text of a journal line: %v", err)) // strings always encode
			}
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

// Head is the end of the journal: the number of its last line and the hash of all
// of them. The zero head is that of an empty journal.
type Head struct {
	N    uint64
	Hash archive.Digest
}

// String gives a head as vaultd prints it for people to keep: line and hash,
// parted by a colon.
func (h Head) String() string { return fmt.Sprintf("%d:%s", h.N, h.Hash) }

// Next returns the head after one more line: the hash is the SHA-256 of the hash
// before and the line's bytes as stored.
func (h Head) Next(line []byte) Head {
	// The bytes are hashed as they are stored. Encoding a line anew could give other bytes in a later version.
	s := sha256.New()
	s.Write(h.Hash[:])
	s.Write(line)
	return Head{N: h.N + 1, Hash: archive.Digest(s.Sum(nil))}
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// routeText is a route in a line. The way to the vault is not told: it was the only one when journals began.
func routeText(r Route) string {
	if r == Vault {
		return ""
	}
	return string(r)
}

func keyText(k archive.Key) string {
	if k.IsZero() {
		return ""
	}
	return k.String()
}

func uidPointer(u uint32) *int64 {
	v := int64(u)
	return &v
}
