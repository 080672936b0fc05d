package arrival

import (
	"cmp"
	"math"
	"time"

	"vaultd/internal/archive"
)

// The events of documents that come in over the business network. A notification announces each; the document names its files, and both
// are fetched. A fetch changes nothing at the network and is counted by nobody, so no intent stands before it. The notification is deleted
// there only after everything is held here and lies in the drop folder, from where it is archived.

// DocumentFile is the name of the document itself among the files of an arrival. No file of the network has it.
const DocumentFile = "#document"

// Document returns the number of a received document at the network.
func (a Arrival) Document() archive.RemoteID { return archive.RemoteID(a.Item) }

// DocumentAnnounced is a notification that a document waits. It is committed before anything is asked about the document.
type DocumentAnnounced struct {
	Document archive.RemoteID
	Kind     archive.NetworkKind
	Notice   archive.AcknowledgementID
}

// JournalName implements Event.
func (DocumentAnnounced) JournalName() string { return "document-announced" }

func (ev DocumentAnnounced) apply(a *Arrival, at archive.Instant) error {
	if ev.Document == "" || ev.Kind == "" || ev.Notice == "" {
		return illegal("it has no number, no kind or no notification")
	}
	a.Kind, a.Item, a.Type, a.Notice, a.Count = Received, archive.ExtractID(ev.Document), string(ev.Kind), ev.Notice, -1
	a.AnnouncedAt = at.Wall
	a.enter(Announced)
	return nil
}

// DocumentHeld says that the document is durable and digested here, and which files it names.
type DocumentHeld struct {
	Stored string
	Size   int64
	SHA256 archive.Digest
	Files  []archive.FileRef

	Request archive.RequestID // of the call that brought it
}

// JournalName implements Event.
func (DocumentHeld) JournalName() string { return "document-held" }

func (ev DocumentHeld) apply(a *Arrival, _ archive.Instant) error {
	if a.Kind != Received {
		return illegal("not an announced document")
	}
	if ev.Stored == "" || ev.SHA256.IsZero() {
		return illegal("it has no name here or no digest")
	}
	a.Files = []File{{Name: DocumentFile, Stored: ev.Stored, Size: ev.Size, SHA256: ev.SHA256}}
	for _, f := range ev.Files {
		if f.ID == "" || a.findFile(string(f.ID)) != nil {
			return illegal("two files have one number, or a file has none")
		}
		a.Files = append(a.Files, File{Name: string(f.ID), Told: f.Told})
	}
	a.FetchRequest = ev.Request
	a.enter(Fetching)
	return nil
}

// ConfirmIntended is committed before the network is told that the document was received. That may be told twice: after a crash nobody
// knows whether the network heard it.
type ConfirmIntended struct{}

// JournalName implements Event.
func (ConfirmIntended) JournalName() string { return "confirm-intended" }

func (ConfirmIntended) apply(a *Arrival, _ archive.Instant) error {
	if a.Kind != Received || a.HandedOnAt.IsZero() || !a.ConfirmedAt.IsZero() || a.isRefused() {
		return illegal("not a document in the drop folder that is to be confirmed")
	}
	if a.ConfirmIntents < math.MaxUint16 {
		a.ConfirmIntents++
	}
	return nil
}

// ConfirmationTaken says that the network knows that the document was received.
type ConfirmationTaken struct{ Request archive.RequestID }

// JournalName implements Event.
func (ConfirmationTaken) JournalName() string { return "confirmed" }

func (ev ConfirmationTaken) apply(a *Arrival, at archive.Instant) error {
	if a.ConfirmIntents == 0 || !a.ConfirmedAt.IsZero() {
		return illegal("no confirmation was announced, or it was taken before")
	}
	a.ConfirmedAt, a.TellRequest = at.Wall, cmp.Or(ev.Request, a.TellRequest)
	a.enter(Held)
	return nil
}

// dueReceived says what a received document needs next.
func dueReceived(a Arrival, r Rules) (step Step, file string, at time.Time) {
	switch a.State {
	case Announced:
		return FetchDocument, "", a.NotBefore
	case Fetching:
		for _, f := range a.Files {
			if !f.IsHeld() {
				return Download, f.Name, a.NotBefore
			}
		}
		return Conclude, "", a.NotBefore
	case Held:
		switch {
		case a.HandedOnAt.IsZero():
			return HandOn, "", a.NotBefore
		case r.Confirm && a.ConfirmedAt.IsZero() && !a.isRefused():
			return Confirm, "", a.NotBefore
		}
		return Acknowledge, "", a.NotBefore
	}
	return NoStep, "", time.Time{}
}
