package campaign

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// publishReceived lets a document come in over the business network: an invoice or a credit note, with up to three files.
func (c *campaign) publishReceived(n int) {
	c.t.Helper()
	d := emulator.ReceivedDocument{Kind: []string{"Invoice", "CreditNote"}[n%2], Data: fmt.Appendf(nil,
		`{"externalDocumentIdentifier":{"id":"R-%d"},"issueDate":"2026-10-%02d","documentCurrencyCode":"EUR","accountingSupplierParty":{"partyName":"Otto & Söhne"},"taxTotal":{"taxSubtotals":[{"taxableAmount":%d.50}]}}`, n, 1+n%28, n)}
	for i := range c.r.IntN(4) {
		content := make([]byte, 1+c.r.IntN(200_000))
		kit.Value(rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(i), 3}).Read(content))(c.t)
		d.Files = append(d.Files, emulator.ReceivedFile{Name: fmt.Sprintf("file %d.pdf", i), Content: slices.Concat([]byte("%PDF-1.7\n"), content, []byte("\n%%EOF\n"))})
	}
	kit.Value(c.service.PublishReceived(d))(c.t)
}

// exchange is what must be archived of the business network, by its identity there: what was delivered to others, and what came in.
func (c *campaign) exchange() (all map[string]emulator.NetworkDocument) {
	all = map[string]emulator.NetworkDocument{}
	for _, d := range c.service.SentDocuments() {
		if c.toldOf(d.BumID).delivered {
			all[archive.DeriveSentID(archive.RemoteID(d.BumID)).String()] = d
		}
	}
	for _, d := range c.service.ReceivedDocuments() {
		all[archive.DeriveReceivedID(archive.RemoteID(d.BumID)).String()] = d
	}
	return all
}

// openExchange names what is not archived yet of the business network.
func (c *campaign) openExchange() (left []string) {
	archived := map[string]bool{}
	for _, r := range c.service.Registrations() {
		archived[r.ClientUUID] = archived[r.ClientUUID] || !r.ArchivedAt.IsZero()
	}
	for id, d := range c.exchange() {
		if !archived[id] {
			left = append(left, fmt.Sprintf("document %s of the business network is not archived", d.BumID))
		}
	}
	return left
}

func countExchanged(entries []ledger.Entry) (n int) {
	for _, e := range entries {
		if e.Drop == exchanged.name {
			n++
		}
	}
	return n
}

// judgeExchange holds what the archive has of the business network to what was sent and what came in: each once, with every file byte for byte, and
// nothing else. It returns their identities.
func (c *campaign) judgeExchange(entries []ledger.Entry) map[string]bool {
	c.t.Helper()
	want, of := c.exchange(), map[string]bool{}
	for id := range want {
		of[id] = true
	}
	ids := map[archive.Key]archive.ID{}
	for _, e := range entries {
		ids[e.Key] = e.ID
	}
	for _, e := range entries {
		id := e.ID
		if e.State == ledger.Duplicate { // as a copy is that was made again after a death: it has the identity of its first
			id = ids[e.DuplicateOf]
		}
		if e.Drop == exchanged.name && (!of[id.String()] || e.State != ledger.Archived && e.State != ledger.Duplicate) {
			c.t.Errorf("I12: %q is %s, and nothing of the business network is it: %s", e.Folder, e.State, e.Cause.Text)
		}
	}
	times := map[string]int{}
	for _, r := range c.service.Registrations() {
		if r.ArchivedAt.IsZero() || !of[r.ClientUUID] {
			continue
		}
		times[r.ClientUUID]++
		kit.Want(c.t, "I4: document "+want[r.ClientUUID].BumID, c.compareExchanged(r.SHA256, want[r.ClientUUID]), nil)
	}
	for id, d := range want {
		kit.Want(c.t, "I2: document "+d.BumID+" of the business network is archived", times[id], 1)
	}
	c.exchanged = len(times)
	return of
}

// compareExchanged compares a package of the archive with a document of the business network: its files, and the body of what was sent.
func (c *campaign) compareExchanged(object string, d emulator.NetworkDocument) error {
	files, err := readZIP(filepath.Join(c.service.dir, "objects", object))
	if err != nil {
		return err
	}
	if body, is := files["sent.json"]; is && archive.Sum(body).String() != d.SHA256 {
		return fmt.Errorf("sent.json is not the body that the network took")
	}
	var have, want []string
	for name, content := range files {
		if !strings.HasSuffix(name, ".json") {
			have = append(have, archive.Sum(content).String())
		}
	}
	for _, f := range d.Files {
		want = append(want, f.SHA256)
	}
	slices.Sort(have)
	if slices.Sort(want); !slices.Equal(have, want) || files["document.json"] == nil {
		return fmt.Errorf("the archive holds %q, the network %d files beside the document", slices.Sorted(maps.Keys(files)), len(d.Files))
	}
	return nil
}
