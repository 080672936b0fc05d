package ledger

import (
	"fmt"
	"slices"
	"time"

	"vaultd/internal/archive"
)

// Change asks the ledger to apply events to one entry, all or none.
type Change struct {
	Key      archive.Key
	Rev      uint32 // the revision the events were decided on; 0: a new entry
	Fact     bool   // its facts, and the word of a person, change the entry as it is stored, whatever its revision: see [Change.EventsOn]
	Act      Act    // whose outcome the facts tell, if they tell one
	Events   []Event
	Document *Document // with Sealed: the erasable part, written once; with Refused, FoundDuplicate, Recovered: perhaps AsRead alone
	Note     *Note     // with a human act: the reason that was given, erasable too
	At       archive.Instant
}

// Result is what became of one change: the entry as committed, or why this change
// alone was not made.
type Result struct {
	Key   archive.Key
	Entry Entry
	Err   error
}

// StaleError says that the entry moved on since the change was decided.
type StaleError struct {
	Key       archive.Key
	Have, Saw uint32
}

// Error implements error.
func (e *StaleError) Error() string {
	return fmt.Sprintf("change %s: decided on revision %d, the entry is at %d", e.Key, e.Saw, e.Have)
}

// What a TakenError can be about.
const (
	TakenID     = "clientUUID"
	TakenRemote = "bumId"
	TakenObject = "upload address" // any address of one object
	TakenNumber = "invoice number" // only where the event does not name the other entry
	TakenFiles  = "list of files"  // only where the event does not name the other entry

	TakenNotification = "notification" // it is kept already
)

// TakenError says that an identity, or what the service gave, belongs to another entry, or
// to another generation of the same one.
type TakenError struct {
	What string // TakenID and so on
	By   archive.Key

	// Remote is the registration of By that has what the service gave; empty: By
	// lists it no more.
	Remote archive.RemoteID
}

// Error implements error.
func (e *TakenError) Error() string { return fmt.Sprintf("this %s belongs to entry %s", e.What, e.By) }

// Info is what a ledger says of itself.
type Info struct {
	ID          string    `stored:"1"` // given at creation
	Environment string    `stored:"2"` // test or production, fixed at creation
	BaseURL     string    `stored:"3"` // of the archive's service, fixed at creation
	Schema      int       `stored:"-"` // kept apart: every version can read it
	Created     time.Time `stored:"4"`
	Epoch       uint64    `stored:"5"` // 1 when it is made; raised where it takes over from a server that may still live
	Others      []Address `stored:"6"` // of the other services, each fixed at its first use

	// ReceiptKeys are the public keys with which receipts are checked, as
	// proof.Sign writes them. The first is of the key that signs; the others are
	// those of lost ledgers that this one was rebuilt from.
	ReceiptKeys []string `stored:"7"`
}

// Address is where a service is.
type Address struct {
	Key string `stored:"1"` // of the configuration, such as pdf.base_url
	URL string `stored:"2"`
}

// Bind returns i bound to each address of used whose key is new to it. An
// address that it has stays.
func (i Info) Bind(used []Address) Info {
	i.Others = slices.Clone(i.Others)
	for _, a := range used {
		if !slices.ContainsFunc(i.Others, func(had Address) bool { return had.Key == a.Key }) {
			i.Others = append(i.Others, a)
		}
	}
	return i
}
