package simulation

import (
	"archive/zip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/networkapi"
)

// addReceiving configures the intake of documents that come in over the business network: into the drop of the first vault.
func (w *World) addReceiving(cfg *daemon.Config, client *networkapi.Client) {
	if w.cfg.Network.Receives {
		cfg.Notices.Receive = &daemon.Receive{Service: networkapi.Receiver{Client: client}, Describe: networkapi.DescribeReceived, Into: vaultName(0),
			Confirm: w.cfg.Network.Confirms, Workers: max(w.cfg.Network.Workers, 1), TrustsType: w.cfg.Network.TrustsType}
	}
}

// incoming is a document that the network has for the world.
type incoming struct {
	bumID      string
	number     string // of the invoice or credit note
	data       []byte
	isComplete bool // it tells what the archive must know: it has a date
}

// archiveID is its identity in the archive.
func (d incoming) archiveID() archive.ID { return archive.DeriveReceivedID(archive.RemoteID(d.bumID)) }

// PublishReceived makes the n-th document of the world's seed wait at the network: an invoice or a credit note, and up to three files, among them
// web pages and PDFs whose end is missing. Some have no date, and some are announced twice.
func (w *World) PublishReceived(n int) {
	w.t.Helper()
	r := rand.New(rand.NewPCG(w.cfg.Seed, 1<<52+uint64(n)))
	d := incoming{number: fmt.Sprintf("R-%d-%d", w.cfg.Seed, n), isComplete: r.IntN(8) > 0}
	kind := []string{string(archive.NetworkInvoice), string(archive.NetworkInvoice), string(archive.NetworkCreditNote)}[r.IntN(3)]
	date := fmt.Sprintf(`"issueDate":"1999-%02d-%02d",`, 1+r.IntN(12), 1+r.IntN(28))
	if !d.isComplete {
		date = ""
	}
	d.data = fmt.Appendf(nil, `{"externalDocumentIdentifier":{"id":%q},%s"documentCurrencyCode":"EUR","accountingSupplierParty":{"partyName":"Otto & <Söhne>"},"taxTotal":{"taxSubtotals":[{"taxableAmount":9007199254740993.%02d}]}}`,
		d.number, date, r.IntN(100))
	p := emulator.ReceivedDocument{Kind: kind, Data: d.data}
	for i := range r.IntN(4) {
		form := []struct{ begin, end string }{{"%PDF-1.7\n", "\n%%EOF\n"}, {"PK\x03\x04", "PK\x05\x06" + strings.Repeat("\x00", 18)},
			{"<?xml version=\"1.0\"?><Invoice>", "</Invoice>"}, {"<!DOCTYPE html><html>", ""}, {"%PDF-1.7\n", "its end is missing"}}[r.IntN(5)]
		content := drawContent(r, drawSize(r))
		if form.begin[0] == '<' {
			content = []byte(hex.EncodeToString(content))
		}
		p.Files = append(p.Files, emulator.ReceivedFile{Name: fmt.Sprintf("file %d", i), Content: slices.Concat([]byte(form.begin), content, []byte(form.end))})
	}
	var err error
	d.bumID, err = w.emulator.PublishReceived(p)
	w.failOn(err)
	w.incoming = append(w.incoming, d)
	if r.IntN(5) == 0 {
		_, err := w.emulator.PublishNotice(emulator.NetworkNotice{BumID: d.bumID, DocumentType: kind, Announces: true})
		w.failOn(err)
	}
}

// findOpenReceipts names the documents that neither the archive nor an entry has yet, or of which the network still waits for a word. Whether the entries
// are through is checked with all others.
func (w *World) findOpenReceipts() (left []string) {
	w.t.Helper()
	if !w.cfg.Network.Receives {
		return nil
	}
	for _, n := range w.emulator.Notices() {
		if n.Announces && !n.IsAcknowledged {
			left = append(left, fmt.Sprintf("the notification that announces %s was not deleted", n.BumID))
		}
	}
	for _, a := range w.listArrivals(w.d.Ledger()) {
		if a.Kind == arrival.Received && a.State != arrival.Acknowledged {
			left = append(left, fmt.Sprintf("received document %s is %s since attempt %d (%s), not before %v", a.Item, a.State, a.Attempt, a.Cause, a.NotBefore))
		}
	}
	archived, folders := w.countArchived(nil, false), w.listArchivedFolders()
	for _, d := range w.incoming {
		// A ledger that was put back does not know that the archive has a document under another identity, because it once failed under its own. What it
		// found in the archive's index is called by its number alone.
		if w.setBacks > 0 && slices.ContainsFunc(folders, func(name string) bool { return name == d.number || strings.HasSuffix(name, " "+d.number) }) {
			continue
		}
		_, isTaken, err := w.d.Ledger().FindByID(d.archiveID())
		w.failOn(err)
		if d.isComplete && !isTaken && archived[d.archiveID()] == 0 {
			a, _, err := w.d.Ledger().FindArrival(arrival.Received, archive.ExtractID(d.bumID))
			w.failOn(err)
			left = append(left, fmt.Sprintf("received document %s (%s) has no entry; it is %s, %s", d.bumID, d.number, a.State, a.Cause.Text))
		}
	}
	return left
}

// listArchivedFolders returns the names of the folders of the archive's entries that are archived.
func (w *World) listArchivedFolders() (names []string) {
	w.t.Helper()
	w.failOn(w.d.Ledger().EntriesOldestFirst(func(e ledger.Entry) error {
		if e.Route == ledger.Vault && e.State == ledger.Archived {
			names = append(names, e.Folder)
		}
		return nil
	}))
	return names
}

// countArchived counts how often the archive has each document, by the identity that its entry had first: what the archive once failed goes there
// under another one. atOnce leaves out what the archive itself called failed or refused, which may come true long after the document went again.
func (w *World) countArchived(entries []ledger.Entry, atOnce bool) map[archive.ID]int {
	first := map[archive.ID]archive.ID{}
	for _, e := range entries {
		first[e.ID] = e.FirstID
	}
	has := map[archive.ID]int{}
	for _, r := range w.emulator.Registrations() {
		if r.ArchivedAt.IsZero() || atOnce && (!r.Archivable || r.Late) {
			continue
		}
		id, err := archive.ParseID(r.ClientUUID)
		w.failOn(err)
		if before := first[id]; !before.IsZero() {
			id = before
		}
		has[id]++
	}
	return has
}

// checkReceived holds the received documents to what the network has. It must hold at every instant at which no process runs: what was deleted there is
// whole here, and everything of it was put into the drop folder; and nothing is called received that the network does not have.
func (w *World) checkReceived(l *boltledger.Ledger) (problems []string) {
	w.t.Helper()
	if !w.cfg.Network.Receives {
		return nil
	}
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	files := map[string][]string{}
	for _, d := range w.emulator.ReceivedDocuments() {
		files[d.BumID] = nil
		for _, f := range d.Files {
			files[d.BumID] = append(files[d.BumID], f.SHA256)
		}
	}
	arrivals := map[string]arrival.Arrival{}
	for _, a := range w.listArrivals(l) {
		if a.Kind != arrival.Received {
			continue
		}
		arrivals[string(a.Item)] = a
		if _, is := files[string(a.Item)]; !is {
			say("I12: %s was announced as a received document, and the network has none of that number", a.Item)
		}
	}
	for _, n := range w.emulator.Notices() {
		a, known := arrivals[n.BumID]
		switch {
		case !n.Announces || !n.IsAcknowledged || w.setBacks > 0: // what it forgot it cannot show
			continue
		case !known || a.HandedOnAt.IsZero():
			say("I30: the notification that announced %s was deleted, and the document is not in the drop folder: %v", n.BumID, a.State)
		}
		var held []string
		for _, f := range a.Files {
			if f.Name != arrival.DocumentFile {
				held = append(held, f.SHA256.String())
			}
		}
		if !sameStrings(held, files[n.BumID]) && !w.wasGarbled() {
			say("I30: the notification that announced %s was deleted, and its files are not held as the network has them: %v, %v", n.BumID, held, files[n.BumID])
		}
	}
	return problems
}

// wasGarbled reports whether an answer was garbled that had a received document or a file of one: nobody can tell that from what it should be.
func (w *World) wasGarbled() bool {
	fired := w.fate.firedCopy()
	return fired["calls network-fetch garble"]+fired["calls network-fetch-file garble"] > 0
}

func sameStrings(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// checkReceipts holds what the archive has of the received documents to what came: each once and byte for byte. It holds once everything is through.
func (w *World) checkReceipts(entries []ledger.Entry) (problems []string) {
	w.t.Helper()
	if !w.cfg.Network.Receives {
		return nil
	}
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	archived := w.countArchived(entries, true)
	byID := map[archive.ID]ledger.Entry{}
	for _, e := range entries {
		byID[e.ID], byID[e.FirstID] = e, e
	}
	for _, d := range w.incoming {
		switch n := archived[d.archiveID()]; {
		case n > 1 && !byID[d.archiveID()].PossibleDouble:
			say("I2: received document %s is archived %d times", d.bumID, n)
		case n > 0 && !d.isComplete:
			say("I12: received document %s has no date, and is archived", d.bumID)
		case !d.isComplete && w.setBacks == 0 && !slices.ContainsFunc(entries, func(e ledger.Entry) bool { return e.State == ledger.Rejected && strings.Contains(e.Folder, d.number) }):
			say("I1: received document %s has no date, and did not come back to people", d.bumID)
		}
	}
	if w.wasGarbled() {
		return problems
	}
	docs := w.emulator.ReceivedDocuments()
	for _, r := range w.emulator.Registrations() {
		i := slices.IndexFunc(w.incoming, func(d incoming) bool { return d.archiveID().String() == r.ClientUUID })
		if i < 0 || r.ArchivedAt.IsZero() {
			continue
		}
		d := w.incoming[i]
		at := slices.IndexFunc(docs, func(has emulator.NetworkDocument) bool { return has.BumID == d.bumID })
		for _, p := range w.compareReceived(r.SHA256, d, docs[at].Files) {
			say("I4: received document %s: %s", d.bumID, p)
		}
	}
	return problems
}

// compareReceived compares a package of the archive with the document and the files that the network has.
func (w *World) compareReceived(object string, d incoming, files []emulator.NetworkFile) (problems []string) {
	w.t.Helper()
	z, err := zip.OpenReader(filepath.Join(w.dir, "emulator", "objects", object))
	if err != nil {
		return []string{err.Error()}
	}
	defer z.Close()
	var have, want []string
	for _, f := range z.File {
		in, err := f.Open()
		w.failOn(err)
		content, err := io.ReadAll(in)
		w.failOn(err)
		switch f.Name {
		case "document.json":
			var had, sent struct{ Data any }
			w.failOn(json.Unmarshal(content, &had))
			w.failOn(json.Unmarshal(fmt.Appendf(nil, `{"data":%s}`, d.data), &sent))
			if !reflect.DeepEqual(had, sent) && !w.readings.TwinFields {
				problems = append(problems, fmt.Sprintf("the archive has %s, and %s came", content, d.data))
			}
		case "metadata.json":
			if !strings.Contains(string(content), fmt.Sprintf("%q", d.number)) {
				problems = append(problems, fmt.Sprintf("its number is not in %s", content))
			}
		default:
			have = append(have, archive.Sum(content).String())
		}
	}
	for _, f := range files {
		want = append(want, f.SHA256)
	}
	if !sameStrings(have, want) {
		problems = append(problems, fmt.Sprintf("the archive has the files %v, and %v came", have, want))
	}
	return problems
}
