package arrival

import (
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// The events that people decide on. [Abandoned] may also come from the service.

// Allowed says that a person looked at what failed and allows more downloads.
type Allowed struct{ By ledger.Operator }

// JournalName implements Event.
func (Allowed) JournalName() string { return "downloads-allowed" }

func (ev Allowed) apply(a *Arrival, _ archive.Instant) error {
	a.Allowed = a.MostDownloads()
	a.UnknownPast, a.Refused = false, Refused{}
	a.enter(a.State)
	return nil
}

// Abandoned ends an arrival that is not held. A person decided so, or the service says of its number that it does not have it. A person may
// also end a received document that is held and does not get into the drop folder, as when its files here are lost: its notification then
// stays at the network.
type Abandoned struct {
	By    *ledger.Operator // nil: the service does not have it any more
	Cause ledger.Cause
}

// JournalName implements Event.
func (Abandoned) JournalName() string { return "given-up" }

func (ev Abandoned) apply(a *Arrival, _ archive.Instant) error {
	if a.State == Held && (a.Kind != Received || !a.HandedOnAt.IsZero() || ev.By == nil) {
		return illegal("it is held, and not stuck")
	}
	// Without a person, two words of the service are needed: a list without it, and a refusal of its number. One of them alone may be
	// a right that was taken away, or a path.
	if ev.By == nil && !a.Gone {
		return illegal("no list left it out")
	}
	a.enter(GivenUp)
	a.Cause = ev.Cause
	return nil
}

// RetryAsked says that a person wants what is due to be tried now.
type RetryAsked struct{ By ledger.Operator }

// JournalName implements Event.
func (RetryAsked) JournalName() string { return "retry-asked" }

func (RetryAsked) apply(a *Arrival, _ archive.Instant) error {
	if a.Kind != Received {
		return illegal("not a received document") // a person allows downloads of an extract one by one
	}
	a.enter(a.State) // what failed before counts no more
	return nil
}
