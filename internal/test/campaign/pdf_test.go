package campaign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/kit"
)

// slots are what the service of the PDFs has.
func (c *campaign) slots() []proof.Slot {
	c.t.Helper()
	all := []proof.Slot{}
	for _, s := range c.service.PDFSlots() {
		one := proof.Slot{Remote: archive.RemoteID(s.BumID)}
		for _, p := range s.PUTs {
			sum := kit.Value(archive.ParseDigest(p.SHA256))(c.t)
			one.Uploads = append(one.Uploads, proof.StoredUpload{SHA256: sum, Size: p.Size, Torn: p.IsTruncated})
		}
		all = append(all, one)
	}
	return all
}

// countInPDFFlow counts the slots that hold the PDF.
func (c *campaign) countInPDFFlow(p parcel) (n int) {
	sum := archive.Sum(p.Files[p.Name])
	for _, s := range c.slots() {
		if slices.ContainsFunc(s.Uploads, func(u proof.StoredUpload) bool { return u.SHA256 == sum }) {
			n++
		}
	}
	return n
}

// decide does what the program asks a person for: where nobody knows whether a PDF was delivered, he looks for it at the service, and closes
// the entry or has it sent again.
func (c *campaign) decide() {
	c.t.Helper()
	rows, _, code := c.command("list", "--json")
	for in := json.NewDecoder(bytes.NewReader(rows)); code == 0 && in.More(); {
		var row struct{ Key, Drop, Folder, State, BumID string }
		kit.Must(c.t, in.Decode(&row))
		if row.Drop == outgoing.name && row.State == "quarantined" {
			c.decideDocument(row.Key, row.BumID)
		}
		if row.Drop != scans.name || row.State != "quarantined" {
			continue
		}
		c.pdfs[ledger.Quarantined]++
		i := slices.IndexFunc(c.people.all, func(p parcel) bool { return p.place == scans && p.Name == row.Folder })
		if i < 0 {
			c.t.Errorf("%q waits for a person, and nobody dropped it", row.Folder)
		} else if c.countInPDFFlow(c.people.all[i]) > 0 {
			c.run(0, "close", row.Key, "--reason", "it is in the accounts-payable system")
		} else {
			c.run(0, "release", row.Key, "--reason", "it is not in the accounts-payable system")
		}
	}
}

// judgePDF holds the end of one PDF to what it was dropped as, and to what the service has.
func (c *campaign) judgePDF(p parcel, e ledger.Entry) {
	c.t.Helper()
	c.pdfs[ledger.None]++
	c.pdfs[e.State]++
	there := c.countInPDFFlow(p)
	switch {
	case p.want == ledger.Rejected:
		kit.Check(c.t, e.State == ledger.Rejected && !e.InDoubt && there <= 0,
			"%q is %s, in doubt %t, and the service has it in %d slots", p.Name, e.State, e.InDoubt, there)
	case there != 1: // nobody had any sent again that was there
		c.t.Errorf("%q, which is %s, lies in %d slots of the service", p.Name, e.State, there)
	case e.State != ledger.Delivered && e.State != ledger.Duplicate && e.State != ledger.Rejected:
		c.t.Errorf("%q is %s: %+v", p.Name, e.State, e.Cause)
	}
	var places []string
	kit.Must(c.t, filepath.WalkDir(c.path("drops", scans.name), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == p.Name {
			places = append(places, path)
		}
		return err
	}))
	kit.Len(c.t, fmt.Sprintf("%q lies", p.Name), places, 1)
}

// noteOfDelivery holds the delivery note beside a PDF to its entry.
func noteOfDelivery(at string, e ledger.Entry) error {
	text, err := os.ReadFile(filepath.Join(at, "_DELIVERED.json"))
	if err != nil {
		return err
	}
	note, err := proof.ParseDelivery(text)
	sent, wanted := note.Sent.SHA256, e.Package.SHA256
	if e.Route == ledger.Network {
		sent, wanted = note.Body, e.Body
	}
	if err == nil && (note.BumID != e.Current().Ticket.Remote || sent != wanted.String()) {
		return &fs.PathError{Op: "read note of slot " + string(note.BumID), Path: at, Err: fs.ErrInvalid}
	}
	return err
}
