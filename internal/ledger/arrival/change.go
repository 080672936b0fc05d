package arrival

import (
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Change asks the ledger to apply events to one arrival, all or none.
type Change struct {
	Key    archive.Key
	Rev    uint32 // the revision the events were decided on; 0: a new arrival
	Events []Event
	Note   *ledger.Note // with a human act: the reason that was given, erasable
	At     archive.Instant
}

// ActorOf returns the person who caused ev; ok is false where nobody did.
func ActorOf(ev Event) (by ledger.Operator, ok bool) {
	switch ev := ev.(type) {
	case Allowed:
		return ev.By, true
	case WordIntended:
		return ev.By, true
	case RetryAsked:
		return ev.By, true
	case DoubtOverruled:
		return ev.By, true
	case Abandoned:
		if ev.By != nil {
			return *ev.By, true
		}
	}
	return by, false
}
