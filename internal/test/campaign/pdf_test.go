package campaign

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/kit"
	"vaultd/internal/test/outside"
)

// slots are what the service of the PDFs has.
func (c *campaign) slots() []outside.Slot {
	c.t.Helper()
	all := []outside.Slot{}
	for _, s := range c.service.PDFSlots() {
		one := outside.Slot{Remote: archive.RemoteID(s.BumID)}
		for _, p := range s.PUTs {
			sum := kit.Value(archive.ParseDigest(p.SHA256))(c.t)
			one.Uploads = append(one.Uploads, outside.StoredUpload{SHA256: sum, Size: p.Size, Torn: p.IsTruncated})
		}
		all = append(all, one)
	}
	return all
}

// countInPDFFlow counts the slots that hold the PDF.
func (c *campaign) countInPDFFlow(p parcel) (n int) {
	sum := archive.Sum(p.Files[p.Name])
	for _, s := range c.slots() {
		if slices.ContainsFunc(s.Uploads, func(u outside.StoredUpload) bool { return u.SHA256 == sum }) {
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
	d, t := c.documentAt(string(e.OwnNumber())), c.toldOf(string(e.OwnNumber()))
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
	kit.Check(c.t, wrong == "",
		"I12: %q is %s (%s): %s. The network has it: %t, and told %+v", p.Name, e.State, e.Cause.Code, wrong, d != nil, t)
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

// publishExtract makes the service offer one extract more. The list tells too few files of some, and one file more is added to the one before
// while it still comes.
func (c *campaign) publishExtract() {
	c.t.Helper()
	all := c.service.PublishedExtracts()
	n, now := len(all), time.Now().UTC().Truncate(time.Second)
	x := emulator.PublishedExtract{ID: fmt.Sprintf("extract-%d", n), Type: archive.DeltaExtract, Name: "books", Start: now.AddDate(0, 0, -1-n%2), End: now, Made: now}
	for i := range 1 + c.r.IntN(3) {
		x.Files = append(x.Files, c.makeExtractFile(n, i))
	}
	if n%3 == 0 {
		x.ToldFiles = 1
	}
	kit.Must(c.t, c.service.PublishExtract(x))
	// Where all files were sent, nobody could know of another one.
	if n > 0 && slices.ContainsFunc(all[n-1].Files, func(f emulator.ExtractFile) bool { return f.Downloads == 0 }) {
		kit.Must(c.t, c.service.PublishExtract(emulator.PublishedExtract{ID: all[n-1].ID, Files: []emulator.PublishedFile{c.makeExtractFile(n-1, len(all[n-1].Files))}}))
	}
}

func (c *campaign) makeExtractFile(n, i int) emulator.PublishedFile {
	c.t.Helper()
	content := make([]byte, 1+c.r.IntN(400_000))
	kit.Value(rand.NewChaCha8([32]byte{byte(n), byte(i)}).Read(content))(c.t)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w := kit.Value(z.Create("rows.json"))(c.t)
	kit.Value(w.Write(content))(c.t)
	kit.Must(c.t, z.Close())
	return emulator.PublishedFile{Table: "IA_INVOICE", Name: fmt.Sprintf("IA_INVOICE_%d_%d.zip", n, i), Content: b.Bytes()}
}

// checkAcknowledged demands that what the service knows as acknowledged is held whole. To look at the custody changes nothing there.
func (c *campaign) checkAcknowledged(l *boltledger.Ledger) (problems []string) {
	c.t.Helper()
	acknowledged := slices.DeleteFunc(c.service.PublishedExtracts(), func(x emulator.Extract) bool { return !x.IsAcknowledged })
	if len(acknowledged) == 0 {
		return nil
	}
	info := l.Info()
	kept, err := custody.Open(c.path("custody"), info.ID, info.Environment, nil)
	if err != nil {
		return []string{fmt.Sprintf("I30: extracts are acknowledged, and the custody does not open: %v", err)}
	}
	defer kept.Close()
	for _, x := range acknowledged {
		m, err := kept.Find(archive.ExtractID(x.ID))
		if err == nil {
			err = kept.Verify(c.t.Context(), m)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("I30: extract %s is acknowledged, and not whole in custody: %v", x.ID, err))
		}
		for _, f := range x.Files {
			if err == nil && !slices.ContainsFunc(m.Files, func(had custody.HeldFile) bool { return had.Name == f.Name && had.SHA256.String() == f.SHA256 }) {
				problems = append(problems, fmt.Sprintf("I30: extract %s is acknowledged, and %s of it is not in custody as the service has it", x.ID, f.Name))
			}
		}
	}
	return problems
}

// openExtracts names the extracts that are not acknowledged, and has more downloads allowed where a person has to.
func (c *campaign) openExtracts() (left []string) {
	c.t.Helper()
	rows, said, code := c.command("extracts", "--json")
	if code != 0 {
		return []string{fmt.Sprintf("no list of extracts: exit %d: %s", code, said)}
	}
	state := map[string]string{}
	for in := json.NewDecoder(bytes.NewReader(rows)); in.More(); {
		var row struct{ ID, State, Need string }
		kit.Must(c.t, in.Decode(&row))
		if state[row.ID] = row.State; row.Need != "" {
			c.command("extracts", "retry", row.ID)
		}
	}
	for _, x := range c.service.PublishedExtracts() {
		if state[x.ID] != "acknowledged" {
			left = append(left, fmt.Sprintf("%s is %q", x.ID, state[x.ID]))
		}
	}
	return left
}

// judgeExtracts holds the end of all extracts to what the service has.
func (c *campaign) judgeExtracts(l *boltledger.Ledger) {
	c.t.Helper()
	for _, p := range c.checkAcknowledged(l) {
		c.t.Error(p)
	}
	for _, x := range c.service.PublishedExtracts() {
		c.extracts++
		kit.Check(c.t, x.IsAcknowledged, "extract %s is not acknowledged at the service", x.ID)
		for _, f := range x.Files {
			c.downloads += f.Downloads
		}
	}
	parts := kit.Value(filepath.Glob(c.path("custody", "extracts", "*", "files", "*.part")))(c.t)
	mark, err := os.Stat(c.path("custody", "custody.json"))
	kit.Check(c.t, err == nil && mark.Size() != 0 && len(parts) == 0, "the custody has the parts %q, and its mark: %v", parts, err)
}
