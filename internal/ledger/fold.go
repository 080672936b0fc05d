package ledger

import "slices"

// listed is how many registrations without content an entry lists at the most.
const listed = 8

// fold takes the oldest registrations without content off the list, so that an entry
// stays small however often it is registered. One that may hold content, that
// succeeded, or that is current, always stays.
func (e *Entry) fold() {
	spare := -listed
	for i := range e.Registrations {
		if e.spent(i) {
			spare++
		}
	}
	if spare <= 0 {
		return
	}
	kept := make([]Registration, 0, len(e.Registrations))
	for i, r := range e.Registrations {
		switch {
		case spare <= 0 || !e.spent(i):
			kept = append(kept, r)
			continue
		case r.Fate == Lapsed:
			e.Folded.Lapsed++
		default:
			e.Folded.Unsent++
		}
		spare--
	}
	e.Registrations = kept
}

// spent reports whether nothing hangs on the i-th registration any more. The last one
// of a number speaks for those before it, and stays as long as one of them was sent.
func (e *Entry) spent(i int) bool {
	r := e.Registrations[i]
	if i == len(e.Registrations)-1 || r.Fate != Unsent && r.Fate != Lapsed {
		return false
	}
	return !e.latest(i) || !slices.ContainsFunc(e.Registrations, func(o Registration) bool {
		return o.Ticket.Remote == r.Ticket.Remote && o.Fate != Unsent && o.Fate != Lapsed
	})
}
