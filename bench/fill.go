package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// filling is how many documents one commit of a filling ledger holds, which is what the committer takes at once.
const filling = 512

// ledger gives a filled ledger, made the first time that it is asked for. It is everybody's: a run that writes opens a
// copy.
func (b *bench) ledger(ctx context.Context, docs, open int) (dir string, err error) {
	return b.makeOnce(ctx, fmt.Sprintf("ledger-%d-%d", docs, open), func(ctx context.Context, dir string) error {
		return fillLedger(ctx, dir, docs, open, 0)
	})
}

// createLedger makes an empty ledger, as vaultd init does.
func createLedger(dir string) error {
	return boltledger.Create(dir, ledger.Info{ID: "vaultbench", Environment: "test", BaseURL: "https://" + ledgerAddress, Created: time.Now().UTC()})
}

// fillLedger makes a ledger of so many documents through the ledger's own door, with the events and the records of
// production. The last ones, open in number, wait for the service's word; all others are archived and kept. Production
// brings the events of a document one after the other, so many documents in one commit; with together 0 they come in
// one change, which leaves the same records in fewer commits.
func fillLedger(ctx context.Context, dir string, docs, open, together int) (err error) {
	if err := createLedger(dir); err != nil {
		return err
	}
	l, err := boltledger.Open(boltledger.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	all := newLives(time.Now().Add(-time.Duration(docs) * apart))
	for done := 0; done < docs; {
		some := all.take(min(cmp.Or(together, filling), docs-done))
		for _, cs := range stepsOf(some, docs-open-done, together > 0) {
			results, err := l.Apply(ctx, cs...)
			if err != nil {
				return err
			}
			for _, r := range results {
				if r.Err != nil {
					return r.Err
				}
			}
		}
		done += len(some)
	}
	return nil
}

// stepsOf gives what the commits of some documents hold, of which so many are archived and the others stay open: a step
// of each, or the whole life of each.
func stepsOf(some []*life, archived int, apart bool) (commits [][]ledger.Change) {
	if !apart {
		var cs []ledger.Change
		for i, one := range some {
			cs = append(cs, one.whole(i >= archived))
		}
		return [][]ledger.Change{cs}
	}
	for n := range some[0].changes {
		var cs []ledger.Change
		for i, one := range some {
			if i < archived || n < uploading {
				cs = append(cs, one.change(n, uint32(n))) // each step before it was one event
			}
		}
		if len(cs) > 0 {
			commits = append(commits, cs)
		}
	}
	return commits
}

// apart is the time between two documents of a filled ledger: so little that half a million that wait are less than a day
// old, or vaultd would have an alarm to tell of.
const apart = time.Second / 10

// lives makes documents that come one after the other and differ as those of production do.
type lives struct {
	at  time.Time
	n   int
	rng *rand.ChaCha8
}

func newLives(from time.Time) *lives {
	return &lives{at: from, rng: rand.NewChaCha8([32]byte{'l'})}
}

// life is one document: what happens to it, one change after the other, each made once the one before is durable.
type life struct {
	key      archive.Key
	at       time.Time
	changes  [][]ledger.Event
	remote   archive.RemoteID
	document *ledger.Document // comes with the second change
}

const (
	sealing   = 1 // the change that brings the document
	uploading = 6 // so many changes lead to the uploaded package
)

func (l *lives) next() *life {
	l.n++
	l.at = l.at.Add(apart)
	doc := &ledger.Document{Metadata: metadata(l.n), Files: []archive.File{
		{Path: "invoice.pdf", Size: 301_442, SHA256: l.digest()}, {Path: "invoice.xml", Size: 24_018, SHA256: l.digest()}, {Path: "scan.jpg", Size: 350_127, SHA256: l.digest()},
	}, ControlFiles: []archive.File{{Path: ".done", SHA256: l.digest()}, {Path: "metadata.json", Size: 402, SHA256: l.digest()}}}
	pkg := archive.Package{Path: fmt.Sprintf("%08d.zip", l.n), Size: 640_000 + int64(l.n%10_000), SHA256: l.digest(), MD5: [16]byte(l.uuid())}
	id := l.uuid()
	remote := archive.RemoteID(twin(id).String())
	receipt := archive.Receipt{Remote: remote, Status: archive.Successful, Raw: "ArchivingSuccessful", Updated: l.at,
		Record: fmt.Appendf(nil, `{"bumId":"%s","documentId":"R-%07d","lastUpdated":"%s","status":"ArchivingSuccessful","message":null}`, remote, l.n, l.at.Format(time.RFC3339))}
	ticket := archive.Ticket{Remote: remote, URL: archive.PresignedURL("https://store.example/packages/" + string(remote) + ".zip?X-Amz-Signature=0"), Sent: archive.Instant{Wall: l.at}, Date: l.at, SignedAt: l.at, Validity: 15 * time.Minute}
	return &life{key: archive.NewKey(l.at), at: l.at, remote: remote, document: doc, changes: [][]ledger.Event{
		{ledger.ClaimedFolder{Route: ledger.Vault, Vault: benchVault, Drop: "drop-1", Folder: fmt.Sprintf("Rechnung %07d", l.n), Owner: 1000, Node: ledger.Node{Dev: 1, Ino: uint64(l.n)}, Fingerprint: l.digest()}},
		{ledger.Sealed{ID: archive.ID(id), Content: archive.ContentDigest(doc.Files), Metadata: archive.Sum(doc.Metadata), Package: pkg, Seal: doc.Seal(pkg), Number: archive.NumberDigest(id)}},
		{ledger.RegisterIntended{}},
		{ledger.TicketReceived{Ticket: ticket}},
		{ledger.UploadIntended{}},
		{ledger.UploadAccepted{NotBefore: l.at.Add(time.Minute), Sent: pkg.SHA256, Seal: doc.Seal(pkg)}},
		{ledger.StatusSeen{Receipt: receipt, Grace: 24 * time.Hour}},
		{ledger.PlaceIntended{Dest: fmt.Sprintf("_archived/%s/Rechnung %07d", l.at.Format("2006-01"), l.n)}},
		{ledger.Placed{}},
	}}
}

// twin gives the clientUUID for the number that the service gave to a document of a filled ledger, and the number for the clientUUID.
func twin(id uuid.UUID) uuid.UUID {
	for i := range id {
		id[i] ^= 0xff
	}
	return id
}

func metadata(n int) []byte {
	return archive.Document{Type: "Invoice", Number: fmt.Sprintf("R-%07d", n), Date: "2026-10-31T00:00:00Z", SenderName: "Donauwerk GmbH", SenderIDs: []string{"ATU12345678"},
		RecipientName: "Brenner & Söhne KG", RecipientIDs: []string{"DE123456789"}, Currency: "EUR", Amount: archive.Decimal(money(int64(n)*37 + 1000)), FlowDirection: "sending"}.Metadata()
}

func (l *lives) digest() (d archive.Digest) {
	_, _ = l.rng.Read(d[:]) // always succeeds
	return d
}

func (l *lives) uuid() (id [16]byte) {
	_, _ = l.rng.Read(id[:])
	return uuid.UUID(id)
}

// change is the n-th change of a life, decided on the revision that the one before left.
func (f *life) change(n int, rev uint32) ledger.Change {
	c := ledger.Change{Key: f.key, Rev: rev, Events: f.changes[n], At: archive.Instant{Wall: f.at}}
	if n == sealing {
		c.Document = f.document
	}
	return c
}

// whole is a life in one change, up to the end or up to the upload.
func (f *life) whole(open bool) ledger.Change {
	changes := f.changes
	if open {
		changes = changes[:uploading]
	}
	c := f.change(sealing, 0)
	c.Events = slices.Concat(changes...)
	return c
}

// take makes so many documents.
func (l *lives) take(n int) []*life {
	all := make([]*life, n)
	for i := range all {
		all[i] = l.next()
	}
	return all
}
