// Package ledger is the state machine of an invoice on its way to the archive:
// the entry, its states, the events that change it, what is due next, the
// journal line that tells of each change, and the balance over all entries.
//
// Everything here is pure: no clock, no disk, no network. There is one door:
// [Transition] takes an entry and an event and gives the next entry or refuses.
// There is one recovery: [Due] says which step an entry needs and when, and a
// restart is nothing but asking it again. Nothing here ever learns a success by
// silence, by a word it does not know, or by an answer to somebody else.
//
// After a crash each entry stands in the state of its last committed event. An
// intent (registering, sending, returning, keeping, disposing) is committed
// before the act it announces, so an entry found in one of these means: the act
// may have happened. What that implies is decided here and nowhere else.
//
// The package exports more than 25 names because the events are a closed set and
// each of them is a type of its own.
package ledger
