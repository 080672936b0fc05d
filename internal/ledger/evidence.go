package ledger

import "vaultd/internal/archive"

// evidence is how it is learned what became of a document, and what follows
// where that is not known. It is the column of a route's row that the state
// machine reads: a type with a method for each question.
type evidence interface {
	// allows reports whether ev can happen to e, as far as that depends on the
	// route.
	allows(e *Entry, ev Event) bool
	// number is the number of ours under which the document goes; empty: the
	// service gives the numbers.
	number(e Entry) archive.RemoteID
	// begin is the step of a sealed document.
	begin(e Entry) Step
	// await is the step of a document that the service has, or may have. None:
	// the next word comes by itself.
	await() Step
	// listed are those of an entry's registrations that the service tells about.
	listed(all []Registration) []Registration
	// repeat notes that an upload is announced while an earlier one has no
	// answer.
	repeat(e *Entry)
	// unsent is the state after an upload of which nothing left.
	unsent() State
	// lose ends what may have arrived, where no further upload may tell: why says
	// in words what is known.
	lose(e *Entry, why string)
	// restore puts an entry of a copy of the ledger where its lost part may have
	// gone on from.
	restore(e *Entry, at archive.Instant)
	// find completes a registration that the lost part may have used.
	find(r *Registration)
	// reaches reports whether a document can be in a state.
	reaches(s State) bool
	// recovers reports whether evidence beside a folder, or the service's, opens
	// an entry in a state.
	recovers(s State) bool
	// succeed ends the entry by its i-th registration, which has succeeded.
	succeed(e *Entry, i int, at archive.Instant)
	// release lets the document be sent again by decision.
	release(e *Entry)
	// mayHavePackage reports whether bytes of the package may be at the service.
	mayHavePackage(e *Entry) bool
	// contradicted is the class of an entry whose end in a state is contradicted.
	contradicted(s State) Attention
	// doubtStays reports whether a doubt outlives the decision to send again.
	doubtStays() bool
}

// evidence returns the one of the entry's route.
func (e *Entry) evidence() evidence { return e.Route.row().evidence }

// Listed returns the registrations that the service tells about when it is
// asked; nil where it cannot be asked.
func (e Entry) Listed() []Registration { return e.evidence().listed(e.Registrations) }

// isByNumber reports whether an event is one of a document that its service
// knows by a number of ours.
func isByNumber(ev Event) bool {
	switch ev.(type) {
	case FilesIntended, FilesStored, DocumentIntended, DocumentTaken, DocumentRefused, NotificationSeen,
		CopyPut:
		return true
	}
	return false
}

// list is the evidence of a service that tells, when it is asked, what became of
// a document: its list and its status are the last word.
type list struct{}

func (list) allows(_ *Entry, ev Event) bool {
	switch ev := ev.(type) {
	case DeliveryConfirmed, Unsealed:
		return false
	case UploadUnanswered:
		return !ev.NoRepeat
	}
	return !isByNumber(ev)
}

func (list) number(Entry) archive.RemoteID { return "" }

func (list) begin(e Entry) Step {
	if e.asksAgain() || e.waitsForProgress() {
		return Ask
	}
	return Register
}

// await: only the service knows what it has. Nothing is registered again before
// it answered.
func (list) await() Step { return Ask }

func (list) listed(all []Registration) []Registration { return all }

func (list) repeat(*Entry) {} // the same bytes to the same address cannot make a second document

func (list) unsent() State { return Registered }

func (list) lose(e *Entry, _ string) { e.enterState(Unclear) }

func (list) restore(e *Entry, at archive.Instant) {
	switch e.State {
	case Registered, Sending:
		// The lost part of its life may have uploaded to this address.
		e.Current().Fate = MaybeStored
		e.closeTicket(at.Wall)
		e.enterState(Unclear)
	case Registering: // the POST stays without an answer
		e.enterState(Packaged)
	}
}

func (list) reaches(s State) bool { return s != Delivered }

func (list) find(*Registration) {}

func (list) recovers(s State) bool {
	return s == Archived || s == Uploaded || s == Packaged || s == Rejected
}

func (list) succeed(e *Entry, i int, at archive.Instant) {
	e.enterState(Archived)
	e.ArchivedRemote, e.Contradicted = e.Registrations[i].Ticket.Remote, false
	if e.ArchivedAt.IsZero() {
		e.ArchivedAt = at.Wall
	}
}

func (list) release(e *Entry) { e.releaseFlagged() }

func (list) mayHavePackage(e *Entry) bool { return e.hasSent() }

func (list) contradicted(State) Attention { return ContradictedByService }

func (list) doubtStays() bool { return false }

// unasked is what the services that cannot be asked have in common: documents
// end as delivered, and what is unknown is decided by a person.
type unasked struct{}

func (unasked) listed([]Registration) []Registration { return nil }

func (unasked) lose(e *Entry, why string) { e.enterQuarantine(DeliveryUnknown(why)) }

func (unasked) recovers(s State) bool { return s == Delivered || s == Quarantined || s == Rejected }

func (unasked) succeed(e *Entry, i int, at archive.Instant) {
	e.makeCurrent(i)
	e.enterState(Delivered)
	e.UploadedAt = at.Wall
}

func (unasked) doubtStays() bool { return true }

// none is the evidence of a service that says nothing after the upload. The
// store's 2xx to the recorded bytes is the last word, and an upload without an
// answer stays unknown permanently: only a person can decide what to do then.
type none struct{ unasked }

func (none) allows(_ *Entry, ev Event) bool {
	switch ev.(type) {
	case StatusSeen, UploadAccepted:
		return false
	}
	return !isByNumber(ev)
}

func (none) number(Entry) archive.RemoteID { return "" }

func (none) begin(Entry) Step { return Register }

func (none) await() Step { return NoStep } // a person is called at once, so nothing waits

// repeat: the same bytes sent once more to the same address may have been
// processed once more.
func (none) repeat(e *Entry) { e.PossibleDouble, e.DuplicateConfirmed = true, true }

func (none) unsent() State { return Registered }

func (none) restore(e *Entry, at archive.Instant) {
	e.restoreOpen(at)
	if e.State == Quarantined && e.Source == Claimed && e.Cause.Code != CauseDeliveryUnknown {
		// A person may have released it since. Released once more, it must be flagged.
		e.Cause = DeliveryUnknown("the ledger was put back, and the document may have been released and delivered since it was copied")
	}
}

func (none) reaches(s State) bool { return s != Archived && s != Uploaded && s != Unclear }

func (none) find(*Registration) {}

func (none) release(e *Entry) { e.releaseFlagged() }

func (none) mayHavePackage(e *Entry) bool { return e.hasSent() }

func (none) contradicted(State) Attention { return ContradictedByService }

// repeatable is the evidence of a service that knows a document by a number of
// ours, and notifies what became of it. It cannot be asked. An unknown outcome
// is settled by the same bytes under the same number.
type repeatable struct{ unasked }

func (repeatable) allows(e *Entry, ev Event) bool {
	switch ev.(type) {
	case UploadNotSent, UploadUnanswered, DocumentTaken, DocumentRefused: // of what was announced
		return e.sentAs() != nil || e.FilesUnderWay > 0
	case RegisterIntended, UploadIntended, WindowClosed, StatusSeen, UploadRefused, UploadAccepted, DeliveryConfirmed:
		return false
	}
	return true
}

func (repeatable) number(e Entry) archive.RemoteID { return archive.NewBumID(e.ID.String()) }

func (repeatable) begin(Entry) Step { return Upload } // its number is ours: there is nothing to register

func (repeatable) await() Step { return NoStep }

func (repeatable) repeat(*Entry) {}

func (repeatable) unsent() State { return Sending } // there is no ticket to go back to

func (repeatable) restore(e *Entry, at archive.Instant) { e.restoreOpen(at) }

// find counts the POST that the lost part may have announced as one that was
// never answered. So "it is known" is no surprise later.
func (repeatable) find(r *Registration) { r.UploadIntents, r.FromLostPart = 1, true }

func (repeatable) reaches(s State) bool { return s != Archived && s != Unclear }

func (repeatable) release(e *Entry) { e.releaseToNetwork() }

// mayHavePackage: the network gets the document and its files, and never the
// ZIP. Their digests are held where they are sent.
func (repeatable) mayHavePackage(e *Entry) bool { return e.sentAs() != nil && e.hasSent() }

func (repeatable) contradicted(s State) Attention {
	if s == Delivered {
		return RejectedLate
	}
	return ContradictedByService
}

// hasSent reports whether bytes of any registration may have reached the store.
func (e *Entry) hasSent() bool {
	for _, r := range e.Registrations {
		if r.Fate != Unsent {
			return true
		}
	}
	return e.Pruned.Lapsed > 0 && len(e.Registrations) > 0
}

// restoreOpen stops an entry on its way, whatever the copy of the ledger says:
// the document may have been delivered since. Nobody can be asked, so nothing
// sends it again by itself.
func (e *Entry) restoreOpen(at archive.Instant) {
	if !e.State.IsOpen() {
		return
	}
	if r := e.Current(); r != nil && (e.State == Registered || e.State == Sending) {
		r.Fate = MaybeStored
		e.closeTicket(at.Wall)
	}
	e.enterQuarantine(DeliveryUnknown("the ledger was put back, and the document may have been delivered since it was copied"))
}
