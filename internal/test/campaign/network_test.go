package campaign

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
)

// network is the business network of the campaign: what it tells of a document comes soon, and not always as hoped.
var network = emulator.Network{Account: emulator.Account{Name: user, Secret: secret}, DeliverMin: 100 * time.Millisecond, DeliverMax: time.Second, RejectAfter: 2 * time.Second,
	Outcomes: []emulator.OutcomeRate{{Outcome: "undelivered", Rate: 0.1}, {Outcome: "invalid", Rate: 0.05}, {Outcome: "late-reject", Rate: 0.1}, {Outcome: "delayed", Rate: 0.1},
		{Outcome: "unknown-pair", Rate: 0.05}, {Outcome: "rejected-by-recipient", Rate: 0.05}}}

// told is what the network told of a document.
type told struct{ delivered, undelivered bool }

// toldOf returns what the network told of a number.
func (c *campaign) toldOf(number string) (t told) {
	for _, n := range c.service.Notices() {
		if n.BumID == number {
			t.delivered = t.delivered || n.ActionCode == "Delivered"
			t.undelivered = t.undelivered || n.ActionCode == "Undelivered" || n.ActionCode == "InvalidContent"
		}
	}
	return t
}

// openNotices names what the network told and nobody acknowledged.
func (c *campaign) openNotices() (left []string) {
	for _, n := range c.service.Notices() {
		if !n.IsAcknowledged {
			left = append(left, fmt.Sprintf("%s of %s is not acknowledged", n.ActionCode, n.BumID))
		}
	}
	return left
}

// documentAt returns the document that the network has under a number; nil: none.
func (c *campaign) documentAt(number string) *emulator.NetworkDocument {
	for _, d := range c.service.SentDocuments() {
		if d.BumID == number {
			return &d
		}
	}
	return nil
}

// decideDocument does what the program asks a person for, where nobody knows what became of a document: he looks for it at the network.
func (c *campaign) decideDocument(key, number string) {
	c.t.Helper()
	c.documents[ledger.Quarantined]++
	if c.documentAt(number) != nil {
		c.run(0, "close", key, "--reason", "the business network has it")
	} else {
		c.run(0, "release", key, "--reason", "the business network does not have it")
	}
}

// judgeDocument holds the end of one document to what it was dropped as, and to what the network has and told.
func (c *campaign) judgeDocument(p parcel, e ledger.Entry) {
	c.t.Helper()
	c.documents[ledger.None]++
	c.documents[e.State]++
	d, t := c.documentAt(string(e.NetworkNumber())), c.toldOf(string(e.NetworkNumber()))
	wrong := ""
	switch {
	case p.want == ledger.Rejected:
		if e.State != ledger.Rejected || d != nil {
			wrong = "it could not be sent"
		}
	case e.State == ledger.Delivered:
		switch {
		case d == nil || !t.delivered || d.SHA256 != e.Body.String():
			wrong = "the network does not have it so, or never said that it arrived"
		case e.Contradicted != t.undelivered:
			wrong = "what the network said later is not recorded, or recorded without a word of it"
		}
	case e.State == ledger.Rejected:
		if wasClosed := e.Resolved && d != nil; !wasClosed && (d == nil || !t.undelivered || t.delivered) {
			wrong = "the network did not say so"
		}
	case e.State != ledger.Duplicate:
		wrong = "it is not at its end"
	case p.want != ledger.Duplicate && !c.wasDroppedAgain(p): // of two folders with one document either may be the first that is taken
		wrong = "nothing else is the same document"
	}
	if wrong != "" {
		c.t.Errorf("I12: %q is %s (%s): %s. The network has it: %t, and told %+v", p.Name, e.State, e.Cause.Code, wrong, d != nil, t)
	}
}

// wasDroppedAgain reports whether people dropped a copy of a document.
func (c *campaign) wasDroppedAgain(p parcel) bool {
	return slices.ContainsFunc(c.people.all, func(o parcel) bool {
		return o.place.overNetwork && o.Name != p.Name && maps.EqualFunc(o.Files, p.Files, bytes.Equal)
	})
}

// judgeNetwork holds what the network has to the ledger: each document once, under an announced number, with the files that were dropped, and a
// second time only once the first was known not to arrive.
func (c *campaign) judgeNetwork(entries []ledger.Entry) {
	c.t.Helper()
	of := map[string]ledger.Entry{}
	for _, e := range entries {
		for _, r := range e.Registrations {
			of[string(r.Ticket.Remote)] = e
		}
	}
	sent := map[string]emulator.NetworkDocument{}
	for _, d := range c.service.SentDocuments() {
		e, known := of[d.BumID]
		i := slices.IndexFunc(c.people.all, func(p parcel) bool { return p.place == outgoing && p.Name == e.Folder })
		if !known || i < 0 || d.TimesAccepted != 1 {
			c.t.Errorf("I2, I11: the network took %s %d times; an entry announced it: %t", d.BumID, d.TimesAccepted, known)
			continue
		}
		if before, twice := sent[d.DataSHA256]; twice && !c.toldOf(before.BumID).undelivered {
			c.t.Errorf("I2: %q was sent as %s and as %s", e.Folder, before.BumID, d.BumID)
		}
		sent[d.DataSHA256] = d
		dropped, has := []string{}, []string{}
		for name, data := range c.people.all[i].Files {
			if name != "document.json" {
				dropped = append(dropped, archive.Sum(data).String())
			}
		}
		for _, f := range d.Files {
			has = append(has, f.SHA256)
		}
		slices.Sort(has)
		if slices.Sort(dropped); !slices.Equal(has, dropped) {
			c.t.Errorf("I4: %q is at the network with %q, and was dropped with %q", e.Folder, strings.Join(has, " "), strings.Join(dropped, " "))
		}
	}
}
