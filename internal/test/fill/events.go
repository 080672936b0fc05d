package fill

import (
	"cmp"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Claimed is the event that opens the entry.
func (i *Item) Claimed() ledger.ClaimedFolder {
	drop := map[ledger.Route]string{ledger.PDF: "ap-scans", ledger.Network: "out"}[i.Route]
	return ledger.ClaimedFolder{Route: i.Route, Vault: i.Vault, Drop: cmp.Or(i.Drop, drop, "acme-in"), Folder: i.Name, Owner: 1000}
}

// Sealed is the event that freezes what is sent, and the document with it.
func (i *Item) Sealed() (ledger.Sealed, *ledger.Document) {
	doc := &ledger.Document{Salt: i.Salt, Files: i.Files}
	size := cmp.Or(i.Size, 1000)
	if len(doc.Files) == 0 {
		doc.Files = []archive.File{{Path: "rechnung.pdf", Size: 3, SHA256: archive.Sum([]byte(i.Name))}}
	}
	content := archive.ContentDigest(doc.Files)
	ev := ledger.Sealed{Content: content, Package: archive.Package{Path: "x.zip", Size: size, SHA256: archive.Sum([]byte(i.Name + ".zip"))}}
	if i.Route == ledger.PDF {
		to := archive.PDFRequest{Receiving: cmp.Or(i.PDF.Receiving, "ap@in.example"), Notify: cmp.Or(i.PDF.Notify, "clerk@acme.example")}
		doc.Metadata, doc.Files = to.Encode(), []archive.File{{Path: i.Name, Size: size, SHA256: doc.Files[0].SHA256}}
		ev.Package = archive.Package{Path: "x.pdf", Size: size, SHA256: doc.Files[0].SHA256}
		ev.Content, ev.Metadata = ev.Package.SHA256, archive.ReceivingDigest(to.Receiving)
		ev.ID = archive.DerivePDFID(to.Receiving, ev.Content)
	} else {
		doc.Metadata = i.metadata()
		ev.Metadata = archive.Sum(doc.Metadata)
		if ev.ID = archive.DeriveID(i.Vault, content, ev.Metadata); i.Route == ledger.Network {
			ev.ID = archive.DeriveNetworkID(content, ev.Metadata)
		}
	}
	ev.Seal = doc.Seal(ev.Package)
	if i.Change != nil {
		i.Change(&ev)
	}
	return ev, doc
}

func (i *Item) metadata() []byte {
	m := i.Document
	if m.Type == "" && m.Number == "" {
		m = archive.Document{Type: "Invoice", Number: "NR " + i.Name, Date: "2026-10-31T00:00:00Z", SenderName: "Müller GmbH", Amount: "119.00", Currency: "EUR"}
		if i.Route == ledger.Network {
			m.RecipientIDs = []string{"GLN:4012345000009"}
		}
	}
	return m.Metadata()
}

// Sending are the events before the content is sent.
func (i *Item) Sending(at time.Time) []ledger.Event {
	if i.Route.IsNotified() {
		return []ledger.Event{ledger.DocumentIntended{Body: archive.Sum([]byte(i.Name + " body"))}}
	}
	return []ledger.Event{ledger.RegisterIntended{}, Ticket(i.number(), at, i.Route), ledger.UploadIntended{}}
}

// Ticket is the service's answer to a registration at a time. The address of the
// upload holds the word "canary".
func Ticket(number archive.RemoteID, at time.Time, r ledger.Route) ledger.TicketReceived {
	ticket := archive.Ticket{Remote: number, URL: "https://store.example/x?X-Amz-Signature=canary&key=" + archive.PresignedURL(number), Sent: archive.Instant{Wall: at}}
	if r == ledger.PDF {
		ticket.Validity = time.Hour
	}
	return ledger.TicketReceived{Ticket: ticket}
}

func (i *Item) number() archive.RemoteID {
	prefix := "bum-"
	if i.Route == ledger.PDF {
		prefix = "slot-"
	}
	return cmp.Or(i.Remote, archive.RemoteID(prefix+i.Name))
}

// Accepted is the service's answer to the whole content.
func (i *Item) Accepted() ledger.Event {
	ev, _ := i.Sealed()
	return i.accepts(ev)
}

func (i *Item) accepts(ev ledger.Sealed) ledger.Event {
	switch {
	case i.Route.IsNotified():
		return ledger.DocumentTaken{}
	case i.Route.IsAsked():
		return ledger.UploadAccepted{Sent: ev.Package.SHA256, Seal: ev.Seal}
	}
	return ledger.DeliveryConfirmed{Sent: ev.Package.SHA256, Seal: ev.Seal}
}

// Seen is what the service says of a registration at a time.
func Seen(number archive.RemoteID, s archive.ServiceStatus, at time.Time) ledger.StatusSeen {
	return ledger.StatusSeen{Receipt: archive.Receipt{Remote: number, Status: s, Raw: s.String(), Updated: at, Record: []byte(`{}`)}, Grace: time.Hour}
}

// Life are the steps of an item of the archive or of the PDF route from its
// claim to its end, at one time each. A document is committed with the second.
func (i *Item) Life(at, end time.Time) [][]ledger.Event {
	sealed, _ := i.Sealed()
	sending := i.Sending(at)
	steps := [][]ledger.Event{{i.Claimed()}, {sealed}, sending[:1], sending[1:], {i.accepts(sealed)}}
	place := "_delivered/"
	if i.Route.IsAsked() {
		place = "_archived/"
		steps = append(steps, []ledger.Event{Seen(i.number(), archive.Successful, end)})
	}
	return append(steps, []ledger.Event{ledger.PlaceIntended{Dest: place + end.Format("2006-01") + "/" + i.Name}}, []ledger.Event{ledger.Placed{}})
}
