package ledger

import (
	"time"

	"vaultd/internal/archive"
)

// RegisterIntended is committed before a POST with this entry is sent. It may follow an
// earlier intent whose outcome was lost in a crash: that POST stays unanswered.
type RegisterIntended struct{}

// JournalName implements Event.
func (RegisterIntended) JournalName() string { return "register-intended" }

func (RegisterIntended) apply(e *Entry, _ archive.Instant) error {
	if e.NeedsReconcile {
		return ErrIllegal
	}
	// From this commit on the service may know the document, whatever happens to the process.
	e.State = Registering
	e.Posts++
	return nil
}

// RegisterUnanswered says that the service may have accepted the POST, and that its ticket was
// lost. Without a ticket nothing can be uploaded, so certainly no content is there.
type RegisterUnanswered struct {
	NotBefore time.Time
	Cause     Cause
}

// JournalName implements Event.
func (RegisterUnanswered) JournalName() string { return "register-unanswered" }

func (ev RegisterUnanswered) apply(e *Entry, _ archive.Instant) error {
	// Posts stays ahead of Answers: a later refusal can then be about this lost POST, and is not taken as a rejection.
	e.State = Packaged
	e.postpone(ev.NotBefore, ev.Cause)
	return nil
}

// RegisterNotTaken says that the POST certainly registered nothing, and that the document is not
// the reason: the POST never left, or the service refused the call as such.
type RegisterNotTaken struct {
	NotBefore time.Time
	Cause     Cause
}

// JournalName implements Event.
func (RegisterNotTaken) JournalName() string { return "register-not-taken" }

func (ev RegisterNotTaken) apply(e *Entry, _ archive.Instant) error {
	e.State = Packaged
	e.Answers++
	e.postpone(ev.NotBefore, ev.Cause)
	return nil
}

// BatchRefused says that the service refused the POST that this entry was part of;
// which of its documents it meant is found by asking again in smaller parts.
type BatchRefused struct{ Part uint16 } // documents that may share the next POST

// JournalName implements Event.
func (BatchRefused) JournalName() string { return "batch-refused" }

func (ev BatchRefused) apply(e *Entry, _ archive.Instant) error {
	if ev.Part == 0 {
		return ErrIllegal
	}
	e.State = Packaged
	e.Answers++
	e.BatchLimit = ev.Part
	return nil
}

// RegisterRefused says that the service refused this document, alone in its
// POST. If an earlier POST of its identity was taken or left unanswered, the
// refusal may be about the repetition, and the document goes on as its next
// generation.
type RegisterRefused struct{ Cause Cause }

// JournalName implements Event.
func (RegisterRefused) JournalName() string { return "register-refused" }

func (ev RegisterRefused) apply(e *Entry, _ archive.Instant) error {
	e.Answers++
	// The service refuses a clientUUID that it has already. Only a refusal of an identity that it never saw rejects the document.
	taken := false
	for _, r := range e.Registrations {
		taken = taken || r.Generation == e.Generation
	}
	if taken || e.Posts-e.Answers > e.LostAnswers {
		if e.Generation == archive.MaxGeneration {
			e.enterQuarantine(ev.Cause) // a later identity would not be recognised
			return nil
		}
		e.enterState(Packaged)
		e.Generation++
		e.ID = e.FirstID.Generation(int(e.Generation))
		// The unanswered POSTs belong to the old identity: they say nothing about the new one.
		e.LostAnswers = e.Posts - e.Answers
		e.Cause = ev.Cause
		return nil
	}
	if len(e.OpenQuestions()) > 0 {
		e.enterQuarantine(ev.Cause) // an earlier generation may have content: nothing is certain
		return nil
	}
	e.enterState(Rejected)
	e.Cause = ev.Cause
	return nil
}

// TicketReceived says that the service registered the document under the ticket's number.
type TicketReceived struct{ Ticket archive.Ticket }

// JournalName implements Event.
func (TicketReceived) JournalName() string { return "registered" }

func (ev TicketReceived) apply(e *Entry, at archive.Instant) error {
	if ev.Ticket.Remote == "" || ev.Ticket.URL == "" {
		return ErrIllegal
	}
	// An address that is not used any more is wiped with the commit that brings the new one: it is a secret.
	e.closeTicket(at.Wall)
	e.enterState(Registered)
	e.Answers++
	e.BatchLimit = 0
	e.Registrations = append(e.Registrations, Registration{Ticket: ev.Ticket, Generation: e.Generation})
	// The list is cut after the new one was added, so that the current registration is never the one that goes.
	e.pruneRegistrations()
	e.RegisteredAt = at.Wall
	return nil
}

// AnswerMixedUp says that the service's answer gave this entry a number or an address that
// belongs to another one. Nothing is ever uploaded on such an answer.
type AnswerMixedUp struct{ Cause Cause }

// JournalName implements Event.
func (AnswerMixedUp) JournalName() string { return "cross-wired" }

func (ev AnswerMixedUp) apply(e *Entry, _ archive.Instant) error {
	e.enterQuarantine(ev.Cause) // no answer: what the service registered stays unknown
	return nil
}

// TicketShared says that the service gave the number, or the upload address, of
// a registration to another document too. That document never uses it; the entry
// may be the wrong owner just as well. Unless bytes may be at the store already,
// none are sent: see [UploadIntended].
type TicketShared struct{ Remote archive.RemoteID }

// JournalName implements Event.
func (TicketShared) JournalName() string { return "ticket-shared" }

func (ev TicketShared) apply(e *Entry, _ archive.Instant) error {
	r := e.findRegistration(ev.Remote)
	if r == nil {
		e.contradict()
		return nil
	}
	r.Shared = true
	return nil
}

// IsTicketShared reports whether nothing may be uploaded with the current
// ticket, because another document has it too and nothing was sent yet.
func (e Entry) IsTicketShared() bool {
	r := e.Current()
	return r != nil && r.Shared && r.Fate == Unsent
}

// UploadIntended is committed before the connection of a PUT is used: from here on
// bytes may be at the store.
type UploadIntended struct {
	WithoutMD5 bool // it goes without Content-MD5, because the host took none before
}

// JournalName implements Event.
func (UploadIntended) JournalName() string { return "upload-intended" }

func (ev UploadIntended) apply(e *Entry, _ archive.Instant) error {
	if e.NeedsReconcile || e.Current().Ticket.URL == "" || e.IsTicketShared() {
		return ErrIllegal
	}
	if e.State == Sending {
		e.evidence().repeat(e)
	}
	// After a crash bytes of this attempt may be at the store, so it counts as one that may hold content until proven otherwise.
	e.State = Sending
	r := e.Current()
	r.UploadIntents++
	r.Fate = MaybeStored
	r.Ticket.WithoutMD5 = r.Ticket.WithoutMD5 || ev.WithoutMD5
	r.Unproven = r.Unproven || r.Ticket.WithoutMD5              // until its 2xx
	e.PossibleDouble = e.PossibleDouble || e.countHolders() > 1 // an earlier one turned out to be archived while this one was registered
	return nil
}

// UploadNotSent says that provably no byte of this attempt left, or that the service took nothing of it for a reason that is not the document's.
type UploadNotSent struct {
	NotBefore  time.Time
	Cause      Cause
	WithoutMD5 bool // the store refused the Content-MD5: the next attempt with this ticket goes without it
}

// JournalName implements Event.
func (UploadNotSent) JournalName() string { return "upload-not-sent" }

func (ev UploadNotSent) apply(e *Entry, _ archive.Instant) error {
	if e.FilesUnderWay > 0 { // the document itself is announced after them
		return e.postponeFiles(0, ev.NotBefore, ev.Cause)
	}
	// An earlier attempt that a crash or a lost answer left open may still have stored bytes: then the entry stays in sending.
	if r := e.Current(); r.countWithoutEffect() {
		r.Fate, e.State = Unsent, e.evidence().unsent()
	}
	if ev.WithoutMD5 {
		e.Current().Ticket.WithoutMD5 = true
	}
	e.postpone(ev.NotBefore, ev.Cause)
	return nil
}

// UploadUnanswered says that nobody knows what became of this attempt. Inside the
// window the same bytes go to the same address.
type UploadUnanswered struct {
	NotBefore time.Time
	Cause     Cause
	NoRepeat  bool // the same bytes must not go again, and nobody can be asked: an operator decides
}

// JournalName implements Event.
func (UploadUnanswered) JournalName() string { return "upload-unanswered" }

func (ev UploadUnanswered) apply(e *Entry, _ archive.Instant) error {
	if e.FilesUnderWay > 0 { // it is one of them
		return e.postponeFiles(1, ev.NotBefore, ev.Cause)
	}
	if ev.NoRepeat {
		e.evidence().lose(e, ev.Cause.Text)
		return nil
	}
	// The state stays sending: the same bytes to the same address cannot make a second document.
	e.postpone(ev.NotBefore, ev.Cause)
	return nil
}

// UploadRefused says that the store refused this attempt. If an earlier attempt
// on the ticket was left unanswered, that one is still unknown.
type UploadRefused struct {
	NotBefore time.Time
	Cause     Cause
}

// JournalName implements Event.
func (UploadRefused) JournalName() string { return "upload-refused" }

func (ev UploadRefused) apply(e *Entry, at archive.Instant) error {
	if r := e.Current(); r.countWithoutEffect() {
		r.Fate = Declined // that it kept the bytes all the same, only the service could tell
		e.closeTicket(at.Wall)
		e.enterState(Packaged)
	}
	e.postpone(ev.NotBefore, ev.Cause)
	return nil
}

// UploadAccepted says that the store answered 2xx to the whole package. The digest of
// the bytes that left must be the recorded one.
type UploadAccepted struct {
	NotBefore time.Time
	Sent      archive.Digest    // SHA-256 of the bytes that left
	Seal      archive.Digest    // replaces Sent in the journal; see Document.Seal
	Request   archive.RequestID // of the upload
}

// JournalName implements Event.
func (UploadAccepted) JournalName() string { return "uploaded" }

func (ev UploadAccepted) apply(e *Entry, at archive.Instant) error {
	if ev.Sent != e.Package.SHA256 {
		return ErrIllegal
	}
	e.SentRequest = ev.Request
	// A crash before this commit leaves sending, and the next start sends the same bytes once more.
	r := e.Current()
	r.Fate, r.Sent, r.Unproven = Stored, ev.Sent, false
	e.closeTicket(at.Wall)
	e.enterState(Uploaded)
	e.UploadedAt = at.Wall
	e.NotBefore = ev.NotBefore
	return nil
}

// DeliveryConfirmed is UploadAccepted where the service has no later word: the document is delivered. The digest of the bytes that left
// must be the recorded one.
type DeliveryConfirmed struct {
	Sent    archive.Digest    // SHA-256 of the bytes that left
	Seal    archive.Digest    // replaces Sent in the journal; see Document.Seal
	Request archive.RequestID // of the upload
}

// JournalName implements Event.
func (DeliveryConfirmed) JournalName() string { return "delivered" }

func (ev DeliveryConfirmed) apply(e *Entry, at archive.Instant) error {
	if ev.Sent != e.Package.SHA256 {
		return ErrIllegal
	}
	e.SentRequest = ev.Request
	// A crash before this commit leaves sending, and nobody knows then whether the store has the document.
	r := e.Current()
	r.Fate, r.Sent, r.Unproven = Succeeded, ev.Sent, false
	e.PossibleDouble = e.PossibleDouble || e.countHolders() > 1
	e.closeTicket(at.Wall)
	e.enterState(Delivered)
	e.UploadedAt = at.Wall
	return nil
}

// WindowClosed says that no upload can start on the current ticket any more.
type WindowClosed struct{ NotBefore time.Time }

// JournalName implements Event.
func (WindowClosed) JournalName() string { return "window-closed" }

func (ev WindowClosed) apply(e *Entry, at archive.Instant) error {
	e.closeTicket(at.Wall)
	// After sending, bytes may be at the store: only evidence from the service leads back to packaged.
	if e.State == Registered {
		e.enterState(Packaged)
	} else {
		e.evidence().lose(e, "the time of the upload address is over, an upload to it was never answered")
	}
	e.NotBefore = ev.NotBefore
	return nil
}

// countWithoutEffect counts the last upload attempt as one without effect, and reports whether all of them are.
func (r *Registration) countWithoutEffect() bool {
	r.WithoutEffect++
	all := r.WithoutEffect == r.UploadIntents
	r.Unproven = r.Unproven && !all
	return all
}

// closeTicket records when the current registration stopped being an upload target, and wipes its address.
func (e *Entry) closeTicket(at time.Time) {
	if r := e.Current(); r != nil && r.ClosedAt.IsZero() {
		r.ClosedAt = at
		r.wipeTicket()
	}
}

// wipeTicket removes the secret address, and the boot time that the window was measured by. The
// wall time of the request stays.
func (r *Registration) wipeTicket() {
	r.Ticket.URL, r.Ticket.Headers = "", nil
	r.Ticket.Sent = archive.Instant{Wall: r.Ticket.Sent.Wall}
}
