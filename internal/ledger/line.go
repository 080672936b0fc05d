package ledger

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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
	Key    string `json:"key,omitzero"`
	Rev    uint32 `json:"rev,omitzero"`
	State  string `json:"state,omitzero"`
	Source string `json:"source,omitzero"`
	Vault  string `json:"vault,omitzero"`
	ID     string `json:"clientUUID,omitzero"`
	Remote string `json:"bumId,omitzero"`
	Seal   string `json:"seal,omitzero"` // SHA-256 of the document's salt and the ZIP's SHA-256; of uploaded, of what left
	Size   int64  `json:"size,omitzero"` // bytes of the ZIP; of fetched, those that came
	Status string `json:"word,omitzero"` // the service's, as we know it; of outcome-late, the event that it would have been
	Time   string `json:"time,omitzero"` // the service's own; of a mark, its clock when it was asked
	Cause  string `json:"cause,omitzero"`
	Other  string `json:"other,omitzero"`  // another entry's key: first, superseded, same content or same number
	Flags  string `json:"flags,omitzero"`  // hold, in-doubt, double, contradicted, resolved, needs-reconcile, same-number, strange-date, checked, cut-off; of word-intended, told
	UID    *int64 `json:"uid,omitzero"`    // of the person who acted
	Reason string `json:"reason,omitzero"` // SHA-256 of the note's salt and the reason that was given

	Ledger      string `json:"ledger,omitzero"`      // first line only
	Environment string `json:"environment,omitzero"` // first line only

	Route string `json:"route,omitzero"` // of claimed and recovered: empty for the way to the vault

	// Of what arrives from a service: all lines of entries have none of these.
	Item      string `json:"item,omitzero"`      // its number at the service
	File      string `json:"file,omitzero"`      // the service's name of one of its files
	Files     uint32 `json:"files,omitzero"`     // how many files are known
	Downloads uint32 `json:"downloads,omitzero"` // of the file, this one included
	Kind      string `json:"kind,omitzero"`      // what arrives; empty: the line is of an entry, or of the ledger as a whole
}

// FirstLine returns the line that opens a journal.
func FirstLine(ledger, environment string, at time.Time) Line {
	return Line{N: 1, At: formatTime(at), Event: "created", Ledger: ledger, Environment: environment}
}

// NewLine returns the line that tells of ev, which made after.
func NewLine(n uint64, after Entry, ev Event, at archive.Instant) Line {
	l := Line{
		N: n, At: formatTime(at.Wall), Event: ev.JournalName(), Key: after.Key.String(), Rev: after.Rev,
		State: after.State.String(), Source: after.Source.String(), Cause: after.Cause.Code, Flags: after.FlagWords(),
	}
	if !after.ID.IsZero() {
		l.ID = after.ID.String()
	}
	// Only keys, numbers, digests and words: what names people must stay erasable while the chain verifies.
	switch ev := ev.(type) {
	case ClaimedFolder:
		l.Vault, l.Route, l.Other = string(ev.Vault), ev.Route.Noted(), keyText(ev.Supersedes)
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
	case TicketShared:
		l.Remote = string(ev.Remote)
	case OutcomeLate:
		l.Remote, l.Status = string(ev.Act.Remote), ev.Outcome.JournalName()
	case Recovered:
		l.setRecovered(ev)
	}
	if by, ok := ActorOf(ev); ok {
		l.SetOperator(by)
	}
	return l
}

// NewArrivalLine returns the line of an event of what arrives from a service. The caller adds what is special about the event.
func NewArrivalLine(n uint64, event string, key archive.Key, rev uint32, state string, at time.Time) Line {
	return Line{N: n, At: formatTime(at), Event: event, Key: key.String(), Rev: rev, State: state}
}

// SetOperator adds who acted, and the digest of the reason.
func (l *Line) SetOperator(by Operator) {
	l.UID = uidPointer(by.UID)
	if !by.Reason.IsZero() {
		l.Reason = by.Reason.String()
	}
}

func (e Entry) FlagWords() string {
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

// asHashed are the options of the lines' text: what a web page would take for its
// own is escaped, as in the lines of journals that exist.
var asHashed = json.JoinOptions(jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true), jsontext.AllowInvalidUTF8(true))

// Encode returns the line's bytes, without a line feed.
func (l Line) Encode() []byte {
	b, err := json.Marshal(&l, asHashed)
	if err != nil {
		panic(fmt.Sprintf("encode a journal line: %v", err)) // texts and numbers always encode
	}
	return b
}

// ParseLine reads what Encode wrote. It refuses a field that it does not know, or
// that is there twice: no part of a line is read as nothing.
func ParseLine(b []byte) (Line, error) {
	var l Line
	if err := json.Unmarshal(b, &l, json.RejectUnknownMembers(true)); err != nil {
		return l, fmt.Errorf("parse journal line: %w", err)
	}
	return l, nil
}

// IsArrivalLine reports whether a stored line is about something that comes in,
// and about no entry. It does not parse the line.
func IsArrivalLine(stored []byte) bool { return bytes.Contains(stored, []byte(`,"kind":"`)) } // within a text the quotes would be escaped

// Head is the end of the journal: the number of its last line and the hash of all
// of them. The zero head is that of an empty journal.
type Head struct {
	N    uint64         `stored:"1"`
	Hash archive.Digest `stored:"2"`
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
