package ledger

import (
	"time"

	"vaultd/internal/archive"
)

// Notice is one notification of the business network as it is kept: what came,
// and about which entry. It stays for as long as the ledger does. A
// notification is acknowledged at the network only after it was committed here.
// A notification about no document of this ledger, sent or received, is
// foreign, and is not acknowledged.
type Notice struct {
	ID      archive.AcknowledgementID `stored:"1"`
	Entry   archive.Key               `stored:"2"` // that it is about; zero: it is about none
	Seen    time.Time                 `stored:"3"`
	Raw     []byte                    `stored:"4"` // as it came; it may hold addresses that carry their own authority
	Unknown bool                      `stored:"5"` // its pair of codes is not known
	Arrival archive.Key               `stored:"6"` // of the received document that it is about; zero: it is about none
}

// IsForeign reports whether it is about no document of this ledger.
func (n Notice) IsForeign() bool { return n.Entry.IsZero() && n.Arrival.IsZero() }

// OtherNotice is a notification about no document that was sent from here.
type OtherNotice struct {
	Notification archive.Notification
	// Key is what a new arrival gets. Zero: the notification announces none.
	Key archive.Key
}
