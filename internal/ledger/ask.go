package ledger

import (
	"time"

	"vaultd/internal/archive"
)

const (
	maxFailures = 3  // the service's failures before a person is called
	evidence    = 3  // equal answers that count as proof of absence
	spacing     = 24 // parts of the grace between two counted answers
)

// StatusSeen is the service's word about one registration of the entry.
type StatusSeen struct {
	Receipt   archive.Receipt
	Grace     time.Duration // after it nothing can be in flight any more
	NotBefore time.Time     // when to ask again, should there be need
}

// Word implements Event.
func (StatusSeen) Word() string { return "status-seen" }

func (ev StatusSeen) apply(e *Entry, at archive.Instant) error {
	r := e.registration(ev.Receipt.Remote)
	if r == nil {
		return ErrIllegal
	}
	r.hear(ev.Receipt.Word, at.Wall, ev.Grace)
	e.Attempt++
	e.NotBefore = ev.NotBefore
	switch ev.Receipt.Word {
	case archive.Successful:
		e.succeed(r, ev.Receipt, at)
	case archive.InProgress:
		e.progress(r, at)
	case archive.Failed:
		if ev.Receipt.Updated.IsZero() || !ev.Receipt.Updated.Before(r.Ticket.Date.Truncate(time.Second)) {
			e.fail(r, ev, at)
		}
	case archive.WaitingForPackage, archive.Absent:
		e.missing(r, ev, at)
	}
	return nil // an unfamiliar word changes nothing but the time of the next question
}

// hear counts equal answers that lie far enough apart.
func (r *Registration) hear(w archive.Word, at time.Time, grace time.Duration) {
	switch {
	case w != r.Word || r.Equal == 0:
		r.Word, r.Equal, r.Last = w, 1, at
	case at.Sub(r.Last) >= grace/spacing && r.Equal < 255:
		r.Equal, r.Last = r.Equal+1, at
	}
}

// proven reports whether the absence of content may be believed: nothing can be in
// flight any more, and the service said the same often enough.
func (r *Registration) proven(at time.Time, grace time.Duration) bool {
	closed := r.Closed
	if closed.IsZero() {
		closed = r.Ticket.Sent.Wall
	}
	return r.Equal >= evidence && at.Sub(closed) >= grace
}

func (e *Entry) isCurrent(r *Registration) bool { return r == e.Current() }

func (e *Entry) succeed(r *Registration, rc archive.Receipt, at archive.Instant) {
	r.Fate = Succeeded
	switch {
	case e.State.Open():
		e.close(at.Wall)
		e.enter(Archived)
		e.Archived, e.Record = rc.Remote, rc.Record
		e.ArchivedAt = rc.Updated
		if e.ArchivedAt.IsZero() {
			e.ArchivedAt = at.Wall
		}
		for i := range e.Registrations {
			f := e.Registrations[i].Fate
			e.Double = e.Double || (f == Succeeded && e.Registrations[i].Ticket.Remote != rc.Remote)
		}
	case e.State == Archived:
		e.Double = e.Double || rc.Remote != e.Archived
	default: // rejected, duplicate, quarantined: the service holds what we say it does not
		e.Contradicted, e.Record = true, rc.Record
	}
}

func (e *Entry) progress(r *Registration, at archive.Instant) {
	if r.Fate == Unsent || r.Fate == Maybe {
		r.Fate = Stored
	}
	if e.isCurrent(r) && (e.State == Unclear || e.State == Sending) {
		e.toUploaded(at)
	}
	e.Contradicted = e.Contradicted || (e.State == Rejected && !e.InDoubt)
}

func (e *Entry) toUploaded(at archive.Instant) {
	until := e.NotBefore
	e.close(at.Wall)
	e.enter(Uploaded)
	e.UploadedAt, e.NotBefore = at.Wall, until
}

// fail books the service's failure of r. A failed attempt is not a failed document.
func (e *Entry) fail(r *Registration, ev StatusSeen, at archive.Instant) {
	if r.Fate == Succeeded {
		e.Contradicted = true
		return
	}
	current := e.isCurrent(r)
	switch {
	case current && e.State == Uploaded:
		r.Fate = Lapsed
		e.Failures++
		c := Cause{Code: "archiving-failed", Text: ev.Receipt.Message}
		if e.Failures >= maxFailures {
			e.quarantine(c)
			return
		}
		e.again(c)
	case r.Fate == Stored && !current:
		r.Fate = Lapsed
	default:
		e.missing(r, ev, at)
	}
}

// missing books the service's word that it has no package for r. It is believed
// only as evidence, repeated and late; a 404 never is.
func (e *Entry) missing(r *Registration, ev StatusSeen, at archive.Instant) {
	current := e.isCurrent(r)
	switch {
	case r.Fate == Succeeded:
		e.Contradicted = e.Contradicted || ev.Receipt.Word != archive.Absent // retention may end
	case current && e.State == Uploaded:
		if at.Wall.Sub(e.UploadedAt) >= ev.Grace {
			until := e.NotBefore
			r.Fate, r.Equal = Maybe, 0
			e.enter(Unclear)
			e.NotBefore = until
			e.Cause = Cause{Code: "package-missing-at-service"}
		}
	case ev.Receipt.Word == archive.Absent || !r.proven(at.Wall, ev.Grace):
	case r.Fate == Maybe || r.Fate == Stored:
		r.Fate = Lapsed
		if current && e.State == Unclear {
			e.again(Cause{Code: "proven-absent"})
		}
	}
}

// again sends the document back to be registered once more.
func (e *Entry) again(c Cause) {
	e.enter(Packaged)
	e.Cause = c
}
