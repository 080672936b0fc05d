package ledger

import (
	"slices"
	"time"

	"vaultd/internal/archive"
)

// The events of documents whose numbers are ours, and whose service tells by notifications what became of them: those of the business
// network. Nothing has to be asked for before they are sent. Each file is stored there first, then the document is sent, which names
// them. The service knows a document by its number, so an unknown outcome is settled by the same bytes under the same number.

// CauseNumberTaken is the code of the cause of an entry whose number the network has already, from a document that the ledger does not know.
const CauseNumberTaken = "number-taken"

// CauseRecipientNotListed is the code of the cause of an entry of which nothing is sent yet, because the directory does not list its recipient.
const CauseRecipientNotListed = "recipient-not-listed"

// Codes of the causes of a rejection that a notification told of.
const (
	CauseUndelivered    = "undelivered"
	CauseInvalidContent = "invalid-content"
)

// RecipientWord is what the recipient of a delivered document said about it.
type RecipientWord uint8

// The words. Their numbers are stored and never change.
const (
	RecipientSilent RecipientWord = iota
	RecipientAccepted
	RecipientRejected
)

var recipientWords = []string{"", "accepted", "rejected"}

// String returns the word that people see; empty: the recipient said nothing.
func (w RecipientWord) String() string { return wordOf(recipientWords, int(w)) }

// sentAs returns the registration of the document under its present number; nil: this ledger knows of no POST with it. The lost part of the
// ledger may have sent it: see [Registration.FromLostPart].
func (e *Entry) sentAs() *Registration {
	if r := e.underPresentNumber(); r != nil && !(r.FromLostPart && e.Body.IsZero()) {
		return r
	}
	return nil
}

// underPresentNumber returns the registration that has the present number; nil: there is none.
func (e *Entry) underPresentNumber() *Registration {
	if r := e.Current(); r != nil && r.Generation == e.Generation {
		return r
	}
	return nil
}

// MayBeSentByLostPart reports whether the part of the entry's life that the ledger lost may have sent the document under its present number,
// which the ledger does not list. Then a notification may still tell what became of it, and [RegistrationFound] lists the number.
func (e Entry) MayBeSentByLostPart() bool {
	return e.NeedsReconcile && e.OwnNumber() != "" && e.State == Quarantined && !e.ID.IsZero() && e.underPresentNumber() == nil
}

// OwnNumber returns the number of ours under which the document goes to its
// service, the same each time. It is empty where the service gives the numbers.
func (e Entry) OwnNumber() archive.RemoteID { return e.evidence().number(e) }

// FilesIntended is committed before the POSTs with the files of the document
// that are not stored yet.
type FilesIntended struct{ Count uint32 }

// JournalName implements Event.
func (FilesIntended) JournalName() string { return "files-intended" }

func (ev FilesIntended) apply(e *Entry, _ archive.Instant) error {
	if e.NeedsReconcile || e.sentAs() != nil || ev.Count == 0 {
		return ErrIllegal // a document that was sent names its files
	}
	if e.State == Packaged {
		e.enterState(Sending)
	}
	// After a crash the network may have each of them. They are stored once
	// more: no document names the first copies, and the audit counts them.
	e.LostFiles, e.FilesUnderWay = e.LostFiles+e.FilesUnderWay, ev.Count
	return nil
}

// FilesStored says under which numbers the network has the next files of the
// document. Further ones may still be under way.
type FilesStored struct {
	IDs     []archive.FileID
	Request archive.RequestID // of the last call
}

// JournalName implements Event.
func (FilesStored) JournalName() string { return "files-stored" }

func (ev FilesStored) apply(e *Entry, _ archive.Instant) error {
	if len(ev.IDs) == 0 || slices.Contains(ev.IDs, "") || len(ev.IDs) > int(e.FilesUnderWay) {
		return ErrIllegal
	}
	e.FilesUnderWay -= uint32(len(ev.IDs))
	e.StoredFiles, e.SentRequest = append(slices.Clip(e.StoredFiles), ev.IDs...), ev.Request
	e.Attempt, e.NotBefore, e.Cause = 0, time.Time{}, Cause{} // the next act begins its own retries
	return nil
}

// postponeFiles ends the announcement of the files that are still under way. The
// network may have lost of them.
func (e *Entry) postponeFiles(lost uint32, until time.Time, why Cause) error {
	e.LostFiles, e.FilesUnderWay = e.LostFiles+lost, 0
	e.postpone(until, why)
	return nil
}

// DocumentIntended is committed before the POST with the document. Its body is frozen: each POST under one number has the same.
type DocumentIntended struct{ Body archive.Digest }

// JournalName implements Event.
func (DocumentIntended) JournalName() string { return "document-intended" }

func (ev DocumentIntended) apply(e *Entry, at archive.Instant) error {
	if e.NeedsReconcile || ev.Body.IsZero() || e.FilesUnderWay > 0 {
		return ErrIllegal
	}
	r := e.sentAs()
	if r != nil && e.Body != ev.Body {
		return ErrIllegal // other bytes under a number that the network may know
	}
	if e.State == Packaged {
		e.enterState(Sending)
	}
	if r == nil {
		e.Body, e.RegisteredAt = ev.Body, at.Wall
		r = e.underPresentNumber()
	}
	if r == nil {
		e.Registrations = append(e.Registrations, Registration{Ticket: archive.Ticket{Remote: e.OwnNumber(), Sent: archive.Instant{Wall: at.Wall}}, Generation: e.Generation})
		r = e.Current()
	}
	// After a crash the network may have the document. The next start sends the same bytes under the same number.
	r.UploadIntents++
	r.Fate = MaybeStored
	e.PossibleDouble = e.PossibleDouble || e.countHolders() > 1
	return nil
}

// DocumentTaken says that the network has the document.
type DocumentTaken struct {
	// WasKnown: the network answered that it knows the number. It is the success of an earlier POST with the same body that nobody
	// answered; without one the number is somebody else's.
	WasKnown bool
	Request  archive.RequestID // of the call that the network took; empty: its answer was lost
}

// JournalName implements Event.
func (DocumentTaken) JournalName() string { return "document-taken" }

func (ev DocumentTaken) apply(e *Entry, at archive.Instant) error {
	r := e.sentAs()
	if r == nil || r.UploadIntents == 0 || ev.WasKnown && !r.hasEarlierUnanswered() {
		return ErrIllegal
	}
	e.SentRequest = ev.Request
	switch r.Fate = Stored; {
	case !r.FromLostPart:
		r.Sent = e.Body
	case ev.WasKnown:
		// What the network has may be what the lost part of the ledger sent. Its bytes, and the files that it names, are not known.
		e.Body = archive.Digest{}
	default: // the network took it now, so it had nothing under the number before
		r.Sent, r.FromLostPart = e.Body, false
	}
	e.enterUploaded(at)
	return nil
}

// hasEarlierUnanswered reports whether an attempt before the last one was left without an answer.
func (r *Registration) hasEarlierUnanswered() bool { return r.UploadIntents > r.WithoutEffect+1 }

// WasDocumentSent reports whether a POST with the document was announced under its present number.
func (e Entry) WasDocumentSent() bool { return e.sentAs() != nil }

// HasEarlierUnanswered reports whether the document was sent under its present number before, and nobody knows what became of that. It
// counts the attempt that is announced as the last one.
func (e Entry) HasEarlierUnanswered() bool {
	r := e.sentAs()
	return r != nil && r.hasEarlierUnanswered()
}

// CountUnusedFiles returns how many files the network may have of the entry
// that no document uses, at most: files whose numbers nobody knows, and those
// that were stored for a document which the network never took.
func (e Entry) CountUnusedFiles() int {
	n := int(e.LostFiles) + int(e.FilesUnderWay)
	for _, r := range e.Registrations {
		if r.Generation == e.Generation && (r.Fate == Stored || r.Fate == Succeeded || r.Fate == Lapsed) && !e.Body.IsZero() {
			return n // its document names the files that are listed
		}
	}
	if e.State.IsOpen() || e.State == Quarantined {
		return n // it may still be sent
	}
	return n + len(e.StoredFiles)
}

// DocumentRefused says that the network refuses the document, or a file of it,
// for what it is. If an earlier attempt to send the document was left
// unanswered, that one is still unknown, and a notification or an operator
// decides.
type DocumentRefused struct{ Cause Cause }

// JournalName implements Event.
func (DocumentRefused) JournalName() string { return "document-refused" }

func (ev DocumentRefused) apply(e *Entry, at archive.Instant) error {
	r := e.sentAs()
	e.FilesUnderWay = 0
	// The lost part of a ledger may have sent the document.
	if r == nil && e.underPresentNumber() != nil || r != nil && (ev.Cause.Code == CauseNumberTaken || !r.countWithoutEffect()) {
		e.enterQuarantine(ev.Cause)
		return nil
	}
	if r != nil {
		r.Fate = Declined
		e.closeTicket(at.Wall)
	}
	e.enterState(Rejected)
	e.Cause = ev.Cause
	return nil
}

// NotificationSeen is what the network tells of the document. Its record is committed with it, as it came.
type NotificationSeen struct{ Notification archive.Notification }

// JournalName implements Event.
func (NotificationSeen) JournalName() string { return "notification-seen" }

func (ev NotificationSeen) apply(e *Entry, at archive.Instant) error {
	n := ev.Notification
	r := e.findRegistration(n.Document)
	// A number that is another document's is decided about where that is known:
	// its notifications are not for this ledger.
	if !e.IsOwnNumber(n.Document) || n.AcknowledgementID == "" {
		return ErrIllegal
	}
	if file := n.ValidationFile(); file != "" && e.isCurrent(r) {
		e.ValidationFile = file
	}
	contradicted := e.Contradicted
	// A pair that is not known is in none of these cases: it never counts as a success or as a failure.
	switch n.Meaning() {
	case archive.MeansProcessing:
		e.hearProcessing(r, at)
	case archive.MeansDelivered:
		e.hearDelivered(r, n, at)
	case archive.MeansUndelivered:
		e.hearUndelivered(r, Cause{Code: CauseUndelivered, Text: n.Description}, at)
	case archive.MeansInvalid:
		e.hearUndelivered(r, Cause{Code: CauseInvalidContent, Text: n.Description}, at)
	case archive.MeansAccepted:
		e.Recipient = RecipientAccepted
	case archive.MeansRefusedByRecipient:
		if e.Recipient != RecipientRejected {
			e.Recipient, e.Resolved = RecipientRejected, false
		}
	case archive.MeansAsks, archive.MeansCreditNote:
		e.Asks, e.Resolved = n.Pair(), false
	}
	if e.Contradicted && !contradicted {
		e.Resolved = false // a person who resolved something before did not know this
	}
	return nil
}

// IsOwnNumber reports whether a number of the network is that of this document. One that was found taken is that of somebody else's
// document, and what is told of it is for whoever sent that.
func (e Entry) IsOwnNumber(number archive.RemoteID) bool {
	r := e.findRegistration(number)
	return e.OwnNumber() != "" && r != nil && r.Generation == e.Generation && !(e.State == Quarantined && e.Cause.Code == CauseNumberTaken)
}

// awaitsWord reports whether the state is one that a notification about r may end.
func (e *Entry) awaitsWord(r *Registration) bool {
	return e.isCurrent(r) && (e.State == Packaged || e.State == Sending || e.State == Uploaded || e.State == Quarantined)
}

// hearProcessing records that the network works on the document. It may come after a final word, because nobody promises an order.
func (e *Entry) hearProcessing(r *Registration, at archive.Instant) {
	switch r.Fate {
	case Succeeded, Lapsed, Stored:
		return
	}
	was := r.Fate
	r.Fate = Stored
	switch {
	case e.awaitsWord(r) && e.State != Uploaded:
		e.enterUploaded(at)
	case e.State == Rejected: // as refused at once, or closed in doubt
		e.Contradicted = e.Contradicted || was == Declined || !e.InDoubt
	}
}

// hearDelivered records that the network delivered the document.
func (e *Entry) hearDelivered(r *Registration, n archive.Notification, at archive.Instant) {
	was := r.Fate
	r.Fate = Succeeded
	e.PossibleDouble = e.PossibleDouble || e.countHolders() > 1
	switch {
	case e.awaitsWord(r):
		e.closeTicket(at.Wall)
		e.enterState(Delivered)
		e.UploadedAt, e.Means = at.Wall, n.DeliveryMeans()
	// What was told as undelivered, refused or closed in doubt has arrived after all. The end stays, and a person is told.
	case was != Succeeded:
		e.Contradicted = true
	}
}

// hearUndelivered records that the network does not deliver the document. That may come days after it told the opposite.
func (e *Entry) hearUndelivered(r *Registration, c Cause, at archive.Instant) {
	was := r.Fate
	r.Fate, r.ClosedAt = Lapsed, at.Wall
	e.PossibleDouble = e.PossibleDouble && (e.DuplicateConfirmed || e.countHolders() > 1)
	switch {
	case e.awaitsWord(r):
		e.enterState(Rejected)
		e.Cause = c
	case e.State == Delivered && was == Succeeded && e.isCurrent(r):
		e.Contradicted = true
		if !e.SourceDiffers() {
			e.Cause = c
		}
	}
}

// IsUndelivered reports whether the network said after the delivery that the document did not arrive. Then it may be sent again, under
// another number.
func (e Entry) IsUndelivered() bool {
	r := e.Current()
	return e.State == Delivered && e.Contradicted && r != nil && r.Fate == Lapsed
}
