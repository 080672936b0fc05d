package ledger

import (
	"slices"

	"vaultd/internal/archive"
)

// Arrow is one way an event may lead: from a state and source to the next. It is
// what a checker without the entry can hold journal lines against; whether the
// arrow was open to a particular entry, [Transition] alone decides.
type Arrow struct {
	Event        string                // as in journal lines
	Word         archive.ServiceStatus // of the service, where Event is status-seen
	From, To     State
	Source, Then Source // NoSource for both: the source is not touched, wherever it lies
}

// Arrows returns every arrow there is, in the order of an entry's life. A test
// holds the list against Transition in both directions.
func Arrows() []Arrow {
	as := []Arrow{{Event: ClaimedFolder{}.JournalName(), From: None, To: Discovered, Source: NoSource, Then: Claimed}}
	to := func(ev Event, next State, from ...State) {
		for _, s := range from {
			as = append(as, Arrow{Event: ev.JournalName(), From: s, To: next})
		}
	}
	stay := func(ev Event, in ...State) {
		for _, s := range in {
			to(ev, s, s)
		}
	}
	stay(StillChanging{}, Discovered)
	to(Sealed{}, Packaged, Discovered)
	to(Refused{}, Rejected, Discovered, Packaged)
	to(Refused{}, Quarantined, Discovered)
	to(FoundDuplicate{}, Duplicate, Discovered)
	stay(Resealed{}, Packaged, Registering, Registered, Sending)
	to(RegisterIntended{}, Registering, Packaged, Registering)
	to(RegisterUnanswered{}, Packaged, Registering)
	to(RegisterNotTaken{}, Packaged, Registering)
	to(BatchRefused{}, Packaged, Registering)
	to(RegisterRefused{}, Packaged, Registering)
	to(RegisterRefused{}, Rejected, Registering)
	to(RegisterRefused{}, Quarantined, Registering)
	to(AnswerMixedUp{}, Quarantined, Registering)
	to(TicketReceived{}, Registered, Registering)
	to(UploadIntended{}, Sending, Registered, Sending)
	to(UploadNotSent{}, Registered, Sending)
	to(UploadNotSent{}, Sending, Sending)
	to(UploadUnanswered{}, Sending, Sending)
	to(UploadRefused{}, Packaged, Sending)
	to(UploadRefused{}, Sending, Sending)
	to(UploadAccepted{}, Uploaded, Sending)
	to(WindowClosed{}, Packaged, Registered)
	to(WindowClosed{}, Unclear, Sending)
	as = append(as, answers()...)
	to(SentToQuarantine{}, Quarantined, slices.DeleteFunc(States(), func(s State) bool { return !s.IsOpen() })...)
	stay(Postponed{}, States()...)
	stay(Held{}, States()...)
	stay(Unheld{}, States()...)
	to(Closed{}, Rejected, Discovered, Packaged, Unclear, Quarantined, Rejected)
	to(Released{}, Packaged, Unclear, Quarantined)
	to(Released{}, Discovered, Quarantined)
	to(Released{}, Archived, Quarantined)
	to(Released{}, Uploaded, Unclear, Quarantined)
	stay(Closed{}, Archived)
	stay(Superseded{}, Rejected)
	stay(Retried{}, Rejected)
	stay(ReconcileRequired{}, slices.DeleteFunc(States(), func(s State) bool { return s >= Registering && s <= Sending })...)
	to(ReconcileRequired{}, Packaged, Registering)
	to(ReconcileRequired{}, Unclear, Registered, Sending)
	stay(RegistrationFound{}, Packaged, Registering, Registered, Sending, Uploaded, Unclear, Archived, Rejected, Quarantined)
	to(RegistrationFound{}, Unclear, Packaged, Uploaded)
	stay(Reconciled{}, States()...)
	return append(as, ofSource()...)
}

// answers are the arrows of the service's words about a registration.
func answers() []Arrow {
	var as []Arrow
	heard := []State{Packaged, Registering, Registered, Sending, Uploaded, Unclear, Archived, Rejected, Quarantined}
	to := func(w archive.ServiceStatus, next State, from ...State) {
		for _, s := range from {
			as = append(as, Arrow{Event: StatusSeen{}.JournalName(), Word: w, From: s, To: next})
		}
	}
	for w := archive.Unfamiliar; w <= archive.Absent; w++ {
		for _, s := range heard {
			moves := w == archive.Successful && s.IsOpen() ||
				w == archive.InProgress && (s == Registered || s == Sending || s == Unclear)
			if !moves {
				to(w, s, s)
			}
		}
	}
	to(archive.Successful, Archived, heard[:6]...)
	to(archive.InProgress, Uploaded, Packaged, Registered, Sending, Unclear)
	to(archive.InProgress, Registered, Registered) // about an earlier registration
	to(archive.InProgress, Sending, Sending)
	to(archive.InProgress, Unclear, Unclear)
	to(archive.Failed, Packaged, Uploaded, Unclear)
	to(archive.Failed, Quarantined, Uploaded, Unclear)
	to(archive.WaitingForPackage, Quarantined, Unclear)
	to(archive.Failed, Unclear, Uploaded)
	to(archive.WaitingForPackage, Unclear, Uploaded)
	to(archive.WaitingForPackage, Packaged, Unclear)
	to(archive.Absent, Unclear, Uploaded)
	to(archive.Failed, Uploaded, Unclear) // another registration is asked about next
	to(archive.WaitingForPackage, Uploaded, Unclear)
	return as
}

// ofSource are the arrows that move the source and leave the state alone.
func ofSource() []Arrow {
	var as []Arrow
	move := func(ev Event, next Source, from Source, in ...State) {
		for _, s := range in {
			as = append(as, Arrow{Event: ev.JournalName(), From: s, To: s, Source: from, Then: next})
		}
	}
	for _, from := range []Source{Claimed, Returning} {
		move(PlaceIntended{}, Returning, from, Rejected, Duplicate)
	}
	for _, from := range []Source{Claimed, Keeping} {
		move(PlaceIntended{}, Keeping, from, Archived, Delivered)
	}
	move(Placed{}, Returned, Returning, Rejected, Duplicate)
	move(Placed{}, Kept, Keeping, Archived, Delivered)
	for _, from := range []Source{Kept, Disposing} {
		move(DisposeIntended{}, Disposing, from, Archived)
	}
	for _, next := range []Source{Moved, Gone} {
		move(Disposed{}, next, Disposing, Archived)
	}
	for _, from := range []Source{Kept, Disposing} {
		move(DisposalStopped{}, Kept, from, Archived, Delivered)
	}
	move(Closed{}, Kept, Disposing, Archived)
	for _, next := range []Source{Kept, Moved, Gone} {
		for _, from := range []Source{Claimed, Keeping, Kept, Disposing} {
			move(SourceFound{}, next, from, Archived)
		}
		if next != Moved {
			as = append(as, Arrow{Event: Recovered{}.JournalName(), From: None, To: Archived, Source: NoSource, Then: next})
		}
		move(SourceFound{}, next, Claimed, Quarantined)
	}
	for _, next := range []Source{Returned, Gone} {
		for _, from := range []Source{Claimed, Returning} {
			move(SourceFound{}, next, from, Rejected, Duplicate)
		}
	}
	move(SourceFound{}, Returned, Claimed, Quarantined)
	as = append(as, Arrow{Event: Recovered{}.JournalName(), From: None, To: Uploaded, Source: NoSource, Then: Gone})
	as = append(as, Arrow{Event: Recovered{}.JournalName(), From: None, To: Rejected, Source: NoSource, Then: Returned})
	as = slices.DeleteFunc(as, func(a Arrow) bool { return a.Event == (SourceFound{}).JournalName() && a.Source == a.Then })
	return slices.DeleteFunc(as, func(a Arrow) bool { return a.Source == Disposing && a.From == Delivered })
}
