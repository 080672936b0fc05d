package ledger

import (
	"cmp"
	"slices"
	"time"

	"vaultd/internal/archive"
)

const (
	maxFailures   = 3  // packages that the service failed or lost before a person is called
	neededAnswers = 3  // equal answers that count as proof of absence
	graceParts    = 24 // parts of the grace between two counted answers, and before a failure is asked about again
)

// StatusSeen is the service's status of one registration of the entry.
type StatusSeen struct {
	Receipt   archive.Receipt
	Grace     time.Duration // after it nothing can be in flight any more
	NotBefore time.Time     // when to ask again, should there be need
}

// JournalName implements Event.
func (StatusSeen) JournalName() string { return "status-seen" }

func (ev StatusSeen) apply(e *Entry, at archive.Instant) error {
	r := e.findRegistration(ev.Receipt.Remote)
	if r == nil {
		return ErrIllegal
	}
	e.AskedRequest = cmp.Or(ev.Receipt.Request, e.AskedRequest)
	// What was known before is kept: the answer changes the counters below, and the decision needs both.
	contradicted, successes := e.Contradicted, e.countSuccesses()
	worked := r.EqualAnswers > 0 && (r.LastStatus == archive.InProgress || r.LastStatus == archive.Unfamiliar)
	// Counted before it is judged, because the evidence of absence includes this answer.
	r.countAnswer(ev.Receipt.Status, at.Wall, ev.Grace)
	if e.isWatched(r) {
		r.LastAnswer = at.Wall // the next late question comes after this answer, counted or not
	}
	// A word that is not known is in none of these cases: it never counts as success, failure or absence.
	switch ev.Receipt.Status {
	case archive.Successful:
		e.recordSuccess(r, ev.Receipt, at)
	case archive.InProgress:
		e.recordProgress(r, at)
	case archive.Failed:
		switch {
		case r.olderThan(ev.Receipt.Updated) && (worked || !r.mayBeUnused(ev.Receipt.Updated)):
			e.recordFailure(r, ev, at)
		case e.isCurrent(r) && e.State == Uploaded || r.olderThan(ev.Receipt.Updated):
			e.recordMissing(r, ev, at)
		}
	case archive.WaitingForPackage, archive.Absent:
		e.recordMissing(r, ev, at)
	}
	if e.Contradicted && (!contradicted || e.countSuccesses() > successes) || e.IsArchivedTwice() && e.countSuccesses() > successes {
		e.Resolved = false // a person who resolved something before did not know this
	}
	open := e.State == Uploaded || e.State == Unclear
	if step, when, _ := Due(*e); step == Ask && (open || !when.After(at.Wall)) { // heard beside another step, or before a late question, it must not delay that
		e.countAttempt()
		e.NotBefore = ev.NotBefore
	}
	return nil // an unfamiliar word changes nothing but the time of the next question
}

// olderThan reports whether a failure dated t is about r, and not about an earlier
// registration with the same number. A failure without a date counts as one of r.
func (r *Registration) olderThan(t time.Time) bool {
	return t.IsZero() || !t.Before(r.Ticket.Date.Truncate(time.Second))
}

// ticketLife is the life of a vault's ticket whose address does not tell it, and the longest in which
// any of a vault is used. Registrations of other routes are not asked about.
const ticketLife = 15 * time.Minute

// mayBeUnused reports whether a failure dated t can be the end of a ticket that
// was never used: the service calls such a ticket failed too. If the store
// accepted the package, this only means that the package has not reached the
// archive yet.
func (r *Registration) mayBeUnused(t time.Time) bool {
	end := r.Ticket.Date.Add(ticketLife)
	if r.Ticket.Validity > 0 && !r.Ticket.SignedAt.IsZero() {
		end = r.Ticket.SignedAt.Add(r.Ticket.Validity)
	}
	return t.IsZero() || r.Ticket.Date.IsZero() || !t.Before(end.Add(-time.Minute))
}

// countAnswer counts equal answers that lie far enough apart.
func (r *Registration) countAnswer(w archive.ServiceStatus, at time.Time, grace time.Duration) {
	switch {
	case w != r.LastStatus || r.EqualAnswers == 0:
		r.LastStatus, r.EqualAnswers, r.LastAnswer = w, 1, at
	// Answers that come right after one another may be one stale copy at the service: they count once.
	case at.Sub(r.LastAnswer) >= grace/graceParts && r.EqualAnswers < 255:
		r.EqualAnswers, r.LastAnswer = r.EqualAnswers+1, at
	}
}

// isProvenAbsent reports whether it is proven that the registration has no content: no upload
// can be under way any more, and the service gave the same answer often enough.
func (r *Registration) isProvenAbsent(at archive.Instant, ev StatusSeen) bool {
	return r.EqualAnswers >= neededAnswers && r.unusedFor(at.Wall, ev.Receipt.Date) >= ev.Grace
}

// Evidence says how far it is proven that no content is at the service under this
// registration: how many equal answers were counted, how many it needs, and before when
// on our clock they are not believed, because something may be in flight; the service's
// clock must say so too. need is 0 where no answer of this kind proves it.
func (r Registration) Evidence(grace time.Duration) (have, need int, from time.Time) {
	if r.LastStatus == archive.WaitingForPackage || r.LastStatus == archive.Failed {
		have, need = int(r.EqualAnswers), neededAnswers
	}
	return have, need, r.lastUse().Add(grace)
}

// unusedFor returns for how long nothing can have left for the registration's
// address, by our clock and by the service's, which read date when it answered.
// If it told the time with the ticket, an answer without it proves nothing;
// where it never does, ours counts.
func (r *Registration) unusedFor(at, date time.Time) time.Duration {
	// Both clocks must say that the time is over: one of them may have been set meanwhile.
	ours, granted := at.Sub(r.lastUse()), !r.Ticket.Date.IsZero()
	switch {
	case granted && date.IsZero():
		return 0
	case granted:
		return archive.ReliableElapsed(ours, date.Sub(r.Ticket.Date.Add(ticketLife)))
	case date.IsZero():
		return ours
	}
	return archive.ReliableElapsed(ours, date.Sub(r.lastUse())) // found, not granted: as old as its finding
}

// lastUse is the last moment at which a byte may have left for the registration's address.
func (r *Registration) lastUse() time.Time {
	if r.ClosedAt.IsZero() {
		return r.Ticket.Sent.Wall
	}
	return r.ClosedAt
}

func (e *Entry) isCurrent(r *Registration) bool { return r == e.Current() }

func (e *Entry) recordSuccess(r *Registration, rc archive.Receipt, at archive.Instant) {
	if !e.State.IsOpen() && r.Fate != Succeeded && r.Ticket.Remote != e.ArchivedRemote { // it counts beside the success that the entry has, or in spite of its end
		if r.SucceededAt = rc.Updated; r.SucceededAt.IsZero() {
			r.SucceededAt = at.Wall
		}
	}
	// The only place where an entry becomes archived by an answer, and only by the service's own success.
	r.Fate = Succeeded
	switch {
	case e.State.IsOpen():
		e.closeTicket(at.Wall)
		e.enterState(Archived)
		e.ArchivedRemote, e.SuccessRecord = rc.Remote, rc.Record
		e.ArchivedAt = rc.Updated
		if e.ArchivedAt.IsZero() {
			e.ArchivedAt = at.Wall
		}
		e.PossibleDouble = e.PossibleDouble || e.countHolders() > 1
	// The document is archived already under another number. Final states never change; a person is told of the second copy.
	case e.State == Archived:
		e.PossibleDouble = e.PossibleDouble || rc.Remote != e.ArchivedRemote
	default: // rejected, duplicate, quarantined: the service holds what we say it does not
		e.Contradicted, e.SuccessRecord, e.ArchivedAt = true, rc.Record, rc.Updated
		e.PossibleDouble = e.PossibleDouble || e.IsArchivedTwice()
	}
}

// recordProgress records that the service has content for r. If r was given up
// and no other package is under way, the document continues with r instead of
// being sent again.
func (e *Entry) recordProgress(r *Registration, at archive.Instant) {
	unawaited, failed := r.Fate == Unsent || r.IsGivenUp(), r.Fate == Lapsed
	if unawaited || r.Fate == MaybeStored {
		r.Fate = Stored
	}
	// Progress means that the service holds the bytes. Sending them again would make a second document, so the entry waits.
	switch current := e.isCurrent(r); {
	case current && (e.State == Unclear || e.State == Sending || e.State == Registered || e.State == Packaged):
		if failed && e.Failures > 0 {
			e.Failures-- // the service takes it back: one package that it calls failed again and again has failed once
		}
		e.enterUploaded(at)
	case unawaited && (e.State == Packaged || e.State == Registered):
		e.closeTicket(at.Wall) // a ticket that is not used is an orphan
		e.makeCurrent(slices.IndexFunc(e.Registrations, func(o Registration) bool { return o.Ticket.Remote == r.Ticket.Remote && o.Fate == Stored }))
		e.enterUploaded(at)
	}
	e.PossibleDouble = e.PossibleDouble || unawaited && e.countHolders() > 1
	e.Contradicted = e.Contradicted || (e.State == Rejected && !e.InDoubt)
}

func (e *Entry) enterUploaded(at archive.Instant) {
	e.closeTicket(at.Wall)
	e.enterState(Uploaded)
	e.UploadedAt = at.Wall
}

// recordFailure records that the service failed r. A failed attempt is not a failed document.
func (e *Entry) recordFailure(r *Registration, ev StatusSeen, at archive.Instant) {
	if r.Fate == Succeeded {
		e.Contradicted = true
		return
	}
	current := e.isCurrent(r)
	// A failure ends one attempt. The document is registered again, unless a person must look first.
	switch {
	case current && e.State == Uploaded:
		e.markLapsed(r, at)
		e.Failures++
		e.registerAgain(Cause{Code: "archiving-failed", Text: ev.Receipt.Message})
		if e.asksAgain() {
			e.NotBefore = at.Wall.Add(ev.Grace / graceParts)
		}
	case r.Fate == Stored && !current:
		e.markLapsed(r, at)
	default:
		e.recordMissing(r, ev, at)
	}
}

// recordMissing records that the service has no package for r. The answer counts as evidence
// only when it is repeated and late; a 404 never counts.
func (e *Entry) recordMissing(r *Registration, ev StatusSeen, at archive.Instant) {
	current := e.isCurrent(r)
	switch {
	// The service denies what it confirmed. The entry stays archived and is flagged; its folder is not disposed of.
	case r.Fate == Succeeded:
		e.Contradicted = e.Contradicted || ev.Receipt.Status != archive.Absent // retention may end
	case current && e.State == Uploaded:
		// The service's list may be behind the store. After the grace the package counts as doubtful, and evidence is collected.
		if at.Wall.Sub(e.UploadedAt) >= ev.Grace { // that alone sends nothing
			r.Fate, r.EqualAnswers = MaybeStored, 0
			e.Failures++
			e.enterState(Unclear)
			e.Cause = Cause{Code: "package-missing-at-service"}
		}
	case current && e.State == Sending: // the window decides first
	case ev.Receipt.Status == archive.Absent || !r.isProvenAbsent(at, ev):
	// Proven absent: this is the only way from unclear to a new registration without a person.
	case r.Fate == MaybeStored || r.Fate == Stored:
		e.markLapsed(r, at)
		if current && e.State == Unclear {
			e.registerAgain(Cause{Code: "proven-absent"})
		}
	}
}

// markLapsed records that nothing of r will be archived, as the service itself
// says. If only one registration is left that may hold content, the entry is no
// longer a possible double: on the same evidence it would be registered again
// without that flag. DuplicateConfirmed keeps the flag, because it can be about
// a registration that is not listed here. The service may correct itself, so
// late questions about r follow.
func (e *Entry) markLapsed(r *Registration, at archive.Instant) {
	r.Fate, r.ClosedAt = Lapsed, at.Wall
	e.PossibleDouble = e.PossibleDouble && (e.DuplicateConfirmed || e.countHolders() > 1)
}

// registerAgain lets the document be registered once more. It does not where the service failed
// or lost it so often that a person must decide, or where another registration may hold content:
// that one is asked about first.
func (e *Entry) registerAgain(c Cause) {
	// The same package failed again and again. Another attempt would cost money and fail too.
	if e.Failures >= maxFailures {
		e.enterQuarantine(c)
		return
	}
	next := Packaged
	// Another registration of this document may hold content: its fate is asked first, or there could be two copies.
	if !e.PossibleDouble && len(e.OpenQuestions()) > 0 {
		next = e.makeOpenQuestionCurrent()
	}
	e.enterState(next)
	e.Cause = c
}

// makeOpenQuestionCurrent makes the last registration with an open question the current one, and returns
// the state that its fate is.
func (e *Entry) makeOpenQuestionCurrent() State {
	i := len(e.Registrations) - 1
	for i > 0 && (e.Registrations[i].Fate != MaybeStored && e.Registrations[i].Fate != Stored || !e.isLatest(i)) {
		i--
	}
	if e.makeCurrent(i); e.Current().Fate == Stored {
		return Uploaded
	}
	return Unclear
}

// makeCurrent makes the i-th registration the current one.
func (e *Entry) makeCurrent(i int) {
	r := e.Registrations[i]
	e.Registrations = append(slices.Delete(e.Registrations, i, i+1), r)
}

// isUnderWay reports whether the service is archiving the registration, by its last answer.
func (r Registration) isUnderWay() bool {
	return r.Fate == Stored && r.LastStatus == archive.InProgress
}
