// Package ledger is the state machine of an invoice on its way to the archive:
// the entry, its states, the events that change it, what is due next, the
// journal line that tells of each change, and the balance over all entries. It
// also has the types and errors by which a stored ledger tells what is wrong with it.
//
// Everything here is pure: no clock, no disk, no network. State changes in one
// place: [Transition] takes an entry and an event and returns the next entry or
// refuses. Recovery is one function: [Due] says which step an entry needs and
// when, and a restart asks it again. A success is never concluded from silence,
// from a status that is not known, or from an answer about another registration.
//
// After a crash each entry is in the state of its last committed event. An
// intent (registering, sending, returning, keeping, disposing) is committed
// before the act that it announces. An entry that is found in such a state means:
// the act may have happened. What follows from that is decided here alone.
//
// Where to read: state.go has the states, transition.go the two functions, intake.go,
// remote.go, ask.go, source.go and operator.go the events in the order of a life,
// late.go and reconcile.go what happens after the end or after a restore.
//
// The package exports more than 25 names because the events are a closed set and
// each of them is a type of its own.
package ledger
