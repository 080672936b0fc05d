package ledger

import (
	"time"

	"vaultd/internal/archive"
)

// The business network may have checked a document on its way to the recipient, and name a file with what it found. The file is fetched, and put
// beside the document before people get that back or find it among the delivered ones. It is waited for no longer than the engine says: what
// became of the document is known without it.

// ValidationState is what became of the file that tells what the network's check of a document found.
type ValidationState uint8

// The states. Their numbers are stored and never change.
const (
	NoValidation      ValidationState = iota // the network named no file
	ValidationAwaited                        // it named one, which is to be fetched: see [Entry.ValidationFile]
	ValidationIsKept                         // the file lies beside the document, see [ValidationKept]
	ValidationMissed                         // it could not be fetched in time, see [ValidationNotFetched]
)

// AwaitsValidation reports whether the file of a check is to be fetched now: the document has ended, and is not on its way to people yet.
func (e Entry) AwaitsValidation() bool {
	return e.Validation == ValidationAwaited && e.Source == Claimed && !e.NeedsReconcile && (e.State == Delivered || e.State == Rejected)
}

// hearValidation notes the file that a notification names. If the source was
// placed before, nothing is fetched: people have it already, and may have
// changed it.
func (e *Entry) hearValidation(r *Registration, n archive.Notification) {
	file := n.ValidationFile()
	if file == "" || !e.isCurrent(r) || e.Source != Claimed || (e.State != Delivered && e.State != Rejected) {
		return
	}
	e.ValidationFile, e.Validation = file, ValidationAwaited
}

// ValidationKept says that the file of a check lies beside the document.
type ValidationKept struct {
	Seal archive.Digest // of the file: [Document.Seal], with its digest in the place of the package's
	Size int64          // of the file, in bytes
}

// JournalName implements Event.
func (ValidationKept) JournalName() string { return "validation-kept" }

func (ValidationKept) apply(e *Entry, _ archive.Instant) error {
	return e.endValidation(ValidationIsKept)
}

// ValidationNotFetched says that the file of a check could not be had in time. The document goes on without it.
type ValidationNotFetched struct{}

// JournalName implements Event.
func (ValidationNotFetched) JournalName() string { return "validation-not-fetched" }

func (ValidationNotFetched) apply(e *Entry, _ archive.Instant) error {
	return e.endValidation(ValidationMissed)
}

func (e *Entry) endValidation(s ValidationState) error {
	if !e.AwaitsValidation() {
		return ErrIllegal
	}
	// A crash before this commit fetches the file again, and puts the same one in the place of the first.
	e.Validation = s
	e.Attempt, e.NotBefore = 0, time.Time{} // the next step begins its own retries
	return nil
}

// EndedAt returns when the network's last word about the present number came, and when the document was delivered otherwise; zero: neither did.
func (e Entry) EndedAt() time.Time {
	if r := e.underPresentNumber(); e.State == Rejected && r != nil {
		return r.ClosedAt
	}
	return e.CompletedAt()
}
