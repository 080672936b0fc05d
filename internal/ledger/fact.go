package ledger

import (
	"slices"

	"vaultd/internal/archive"
)

// A fact is what another side told, or what certainly became of a call. It
// happened, whatever was committed about the entry meanwhile, and changes the
// entry as it is stored. So does the word of a person: whether it is still
// allowed, Transition says. Every other event is a decision of vaultd: it holds
// for the revision that it was made on alone.

// Act is a call about a document that was announced before it was made. Its outcome names it.
type Act struct {
	Remote     archive.RemoteID // of the registration that it is about; empty: there is none yet
	Generation uint8            // of the identity that is sent
	Number     uint32           // Entry.Acts at its intent
}

// ActUnderWay returns the act that was announced and whose outcome is awaited; zero: there is none.
func (e Entry) ActUnderWay() Act {
	a := Act{Generation: e.Generation, Number: e.Acts}
	switch r := e.Current(); {
	case e.State == Sending && r != nil:
		a.Remote, a.Generation = r.Ticket.Remote, r.Generation
	case e.State != Sending && e.State != Registering:
		return Act{}
	}
	return a
}

// find returns the registration that an act is about; nil: the entry does not list it.
func (a Act) find(e *Entry) *Registration {
	for i := len(e.Registrations) - 1; i >= 0; i-- {
		if r := &e.Registrations[i]; r.Ticket.Remote == a.Remote && r.Generation == a.Generation {
			return r
		}
	}
	return nil
}

// isIntent reports whether ev announces an act.
func isIntent(ev Event) bool {
	switch ev.(type) {
	case RegisterIntended, UploadIntended, FilesIntended, DocumentIntended:
		return true
	}
	return false
}

// isOutcome reports whether ev says what became of an act.
func isOutcome(ev Event) bool {
	switch ev.(type) {
	case RegisterUnanswered, RegisterNotTaken, BatchRefused, RegisterRefused, TicketReceived, AnswerMixedUp,
		UploadNotSent, UploadUnanswered, UploadRefused, UploadAccepted, DeliveryConfirmed,
		FilesStored, DocumentTaken, DocumentRefused:
		return true
	}
	return false
}

// isFact reports whether ev is a fact, or the word of a person.
func isFact(ev Event) bool {
	switch ev.(type) {
	case RegistrationFound, StatusSeen, NotificationSeen, TicketShared, OutcomeLate, ContentCompared, ContentDiffered:
		return true
	case Placed, Disposed, Superseded: // the folder was moved or removed, or its correction was taken, whatever was committed meanwhile
		return true
	}
	_, isWord := ActorOf(ev)
	return isWord || isOutcome(ev)
}

// EventsOn returns the events by which the change is made of the entry as it is
// stored. Facts always are among them. An outcome of an act that the entry no
// longer waits for is an [OutcomeLate]. Decisions are left out where the entry
// moved on since; where the change tells no fact, the error is a [*StaleError]
// then.
func (c Change) EventsOn(stored Entry) ([]Event, error) {
	moved := c.Rev != stored.Rev
	if moved && !slices.ContainsFunc(c.Events, func(ev Event) bool { return c.Fact && isFact(ev) }) {
		return nil, &StaleError{Key: c.Key, Have: stored.Rev, Saw: c.Rev}
	}
	late := c.Fact && (c.Act == Act{} || c.Act != stored.ActUnderWay())
	var evs []Event
	for _, ev := range c.Events {
		switch {
		case isOutcome(ev) && late:
			evs = append(evs, lateOutcome(stored, c.Act, ev, c.At))
		case !moved || isFact(ev):
			evs = append(append(evs, c.listAgain(stored, ev)...), ev)
		}
	}
	return evs, nil
}

// listAgain returns what comes before a fact: a word about a registration that
// the entry does not list, or lists no more, has it listed.
func (c Change) listAgain(stored Entry, ev Event) []Event {
	if told, ok := ev.(StatusSeen); ok && c.Fact && stored.findRegistration(told.Receipt.Remote) == nil {
		return []Event{RegistrationFound{Remote: told.Receipt.Remote, ID: told.Receipt.ID, ServiceTime: told.Receipt.Date}}
	}
	return nil
}

// lateOutcome returns the event by which an entry hears the outcome of an act
// that it no longer waits for. A ticket is one that nobody uses.
func lateOutcome(e Entry, a Act, ev Event, at archive.Instant) Event {
	if got, ok := ev.(TicketReceived); ok {
		unused := RegistrationFound{Remote: got.Ticket.Remote, ID: e.FirstID.Generation(int(a.Generation)), Date: got.Ticket.Date}
		if _, err := Transition(e, unused, at); err == nil {
			return unused
		}
	}
	return OutcomeLate{Act: a, Outcome: ev}
}

// OutcomeLate is the outcome of an act that the entry no longer waits for:
// something else ended or repeated the act meanwhile. It changes what is known
// of the registration that it is about. If it tells of content, this counts as
// the service's word that it has it. If the entry does not list that
// registration, nobody can say what follows, and an operator is told.
type OutcomeLate struct {
	Act     Act
	Outcome Event
}

// JournalName implements Event.
func (OutcomeLate) JournalName() string { return "outcome-late" }

func (ev OutcomeLate) apply(e *Entry, at archive.Instant) error {
	r := ev.Act.find(e)
	_, isTicket := ev.Outcome.(TicketReceived)
	if r == nil {
		if isTicket || ev.Act.Remote != "" {
			e.contradict()
		}
		return nil
	}
	was := e.Contradicted
	// That nothing was stored is no news about a registration which is asked
	// about, or about which somebody else told more since.
	if !e.evidence().allows(e, ev.Outcome) {
		return nil // no document of this route ends so
	}
	switch told := ev.Outcome.(type) {
	case UploadAccepted:
		r.Sent, r.Unproven, e.SentRequest = told.Sent, false, told.Request
		e.recordProgress(r, at)
	case DeliveryConfirmed:
		r.Sent, e.SentRequest = told.Sent, told.Request
		e.hearDelivered(r, archive.Notification{}, at)
	case DocumentTaken:
		e.hearProcessing(r, at)
	case DocumentRefused:
		e.Contradicted = e.Contradicted || r.Fate == Succeeded && !r.hasEarlierUnanswered()
	}
	if e.Contradicted && !was {
		e.Resolved = false // nobody who resolved something before knew this
	}
	return nil
}

// contradict notes a word that does not agree with the entry.
func (e *Entry) contradict() { e.Contradicted, e.Resolved = true, false }
