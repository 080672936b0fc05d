package ledger

import "slices"

const (
	maxListed     = 8  // registrations without content that an entry lists at the most
	maxLateListed = 32 // of them, beside those, that are still asked about
)

// pruneRegistrations removes the oldest registrations without content from the list, so that an
// entry stays small however often it is registered. One that may hold content, that succeeded or
// that is current always stays. News about a removed one still comes with the service's list and
// its index.
func (e *Entry) pruneRegistrations() {
	// Each counter reaches zero when its share of the list is full; what is above zero goes, the oldest first.
	idle, asked := -maxListed, -maxLateListed
	spare := func(i int) *int {
		if _, is := e.nextLateQuestionOf(i); is {
			return &asked
		}
		return &idle
	}
	for i := range e.Registrations {
		if e.isPrunable(i) {
			*spare(i)++
		}
	}
	if idle <= 0 && asked <= 0 {
		return
	}
	// A new slice: the entry that Transition was given still uses the old one.
	kept := make([]Registration, 0, len(e.Registrations))
	for i, r := range e.Registrations {
		switch {
		case *spare(i) <= 0 || !e.isPrunable(i):
			kept = append(kept, r)
			continue
		case r.Fate == Lapsed:
			e.Pruned.Lapsed++
		default:
			e.Pruned.Unsent++
		}
		*spare(i)--
	}
	e.Registrations = kept
}

// isPrunable reports whether no decision needs the i-th registration any more. Answers about a
// number are kept at its last registration, so that one stays as long as bytes were sent to any of them.
func (e *Entry) isPrunable(i int) bool {
	r := e.Registrations[i]
	if i == len(e.Registrations)-1 || r.Fate != Unsent && !r.IsGivenUp() {
		return false
	}
	return !e.isLatest(i) || !slices.ContainsFunc(e.Registrations, func(o Registration) bool {
		return o.Ticket.Remote == r.Ticket.Remote && o.Fate != Unsent && !o.IsGivenUp()
	})
}
