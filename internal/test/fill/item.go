package fill

import (
	"cmp"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// Item is a folder or a file that was dropped. An empty field gets the usual
// value. A test may change all fields until the item is claimed, and those of
// the document until it is sealed.
type Item struct {
	Name     string
	Route    ledger.Route
	Vault    archive.VaultID
	Drop     string
	Key      archive.Key        // set by the claim if it is zero
	Document archive.Document   // frozen metadata; empty: an invoice of Müller GmbH
	PDF      archive.PDFRequest // in its place on the PDF route
	AsRead   archive.AsRead     // of an item that is refused or a duplicate
	Files    []archive.File     // empty: one file, with the digest of the name
	Salt     [16]byte
	Size     int64                // of the package; 0: 1000 bytes
	Remote   archive.RemoteID     // of the registration; empty: "bum-" or "slot-", and the name
	Change   func(*ledger.Sealed) // changes the event that seals it

	ledger *Ledger
}

// Entry returns what the ledger has of the item now.
func (i *Item) Entry() ledger.Entry {
	i.ledger.t.Helper()
	e, _, err := i.ledger.Entry(i.Key)
	kit.Must(i.ledger.t, err)
	return e
}

// Apply commits events of the item, the first time together with its claim.
func (i *Item) Apply(at time.Time, evs ...ledger.Event) ledger.Entry {
	i.ledger.t.Helper()
	if i.Key.IsZero() {
		i.Key = Key(at, len(i.ledger.items))
	}
	c := ledger.Change{Key: i.Key, Rev: i.Entry().Rev, At: archive.Instant{Wall: at}}
	if c.Rev == 0 {
		evs = append([]ledger.Event{i.Claimed()}, evs...)
	}
	c.Events = evs
	for _, ev := range evs {
		switch ev.(type) {
		case ledger.Sealed:
			_, c.Document = i.Sealed()
		case ledger.Refused, ledger.FoundDuplicate:
			if i.AsRead != (archive.AsRead{}) {
				c.Document = &ledger.Document{AsRead: i.AsRead}
			}
		}
	}
	return i.ledger.Commit(c)
}

// Claim takes the item out of its drop folder.
func (i *Item) Claim(at time.Time) ledger.Entry {
	i.ledger.t.Helper()
	return i.Apply(at)
}

// Seal packs the item, unless it is.
func (i *Item) Seal(at time.Time) ledger.Entry {
	i.ledger.t.Helper()
	if e := i.Entry(); e.State > ledger.Discovered {
		return e
	}
	sealed, _ := i.Sealed()
	return i.Apply(at, sealed)
}

// Send seals the item and begins to send it; the answer is outstanding. An item
// that is further stays as it is.
func (i *Item) Send(at time.Time) ledger.Entry {
	i.ledger.t.Helper()
	if e := i.Seal(at); e.State != ledger.Packaged {
		return e
	}
	return i.Apply(at.Add(time.Second), i.Sending(at)...)
}

// Store sends the item, and the service takes it.
func (i *Item) Store(at time.Time) ledger.Entry {
	i.ledger.t.Helper()
	if e := i.Send(at); e.State != ledger.Sending {
		return e
	}
	return i.Apply(at.Add(2*time.Second), i.Accepted())
}

// Archive sends the item unless it was sent, has it archived after took, and
// puts its folder away.
func (i *Item) Archive(at time.Time, took time.Duration) ledger.Entry {
	i.ledger.t.Helper()
	i.Store(at)
	at = at.Add(took)
	i.Apply(at, Seen(i.number(), archive.Successful, at))
	return i.Place(at, "_archived/"+at.Format("2006-01")+"/"+i.Name)
}

// Deliver does the same on the routes that deliver: it is delivered after took.
func (i *Item) Deliver(at time.Time, took time.Duration) ledger.Entry {
	i.ledger.t.Helper()
	i.Send(at)
	at = at.Add(took)
	e := i.Apply(at, i.Accepted())
	if i.Route.IsNotified() {
		i.Apply(at, ledger.NotificationSeen{Notification: archive.Notification{AcknowledgementID: archive.AcknowledgementID("ack-" + i.Name),
			Document: e.OwnNumber(), Response: "TechnicalAccept", Action: "Delivered"}})
	}
	return i.Place(at, "_delivered/"+at.Format("2006-01")+"/"+i.Name)
}

// Lose sends the item unless it was sent, and loses the answer: the delivery
// stays unknown.
func (i *Item) Lose(at time.Time) ledger.Entry {
	i.ledger.t.Helper()
	i.Send(at)
	i.Apply(at.Add(time.Minute), ledger.UploadUnanswered{Cause: ledger.Cause{Code: "timeout", Text: "no answer"}})
	return i.Quarantine(at.Add(time.Hour), ledger.DeliveryUnknown("the upload was never answered"))
}

// Refuse rejects the item before it is sent. Place returns its folder.
func (i *Item) Refuse(at time.Time, why ledger.Cause) ledger.Entry {
	i.ledger.t.Helper()
	why.Code = cmp.Or(why.Code, "no-sidecar")
	return i.Apply(at, ledger.Refused{Cause: why})
}

// Quarantine stops the item until an operator decides.
func (i *Item) Quarantine(at time.Time, why ledger.Cause) ledger.Entry {
	i.ledger.t.Helper()
	return i.Apply(at, ledger.SentToQuarantine{Cause: why})
}

// Place moves the folder of the item to where it stays.
func (i *Item) Place(at time.Time, dest string) ledger.Entry {
	i.ledger.t.Helper()
	return i.Apply(at, ledger.PlaceIntended{Dest: dest}, ledger.Placed{})
}
