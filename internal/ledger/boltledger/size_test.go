package boltledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// A document at rest takes a bounded number of bytes in each bucket, all of it
// of the usual length and a hundred of them in each commit: what the rest of it
// gives is not stored.
func TestSize_G8_OfADocument(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	const docs = 500
	ds := make([]*doc, docs)
	for n := range ds {
		ds[n] = newDoc(t, l, n)
		ds[n].own = usualDocument(n)
	}
	for _, step := range []func(d *doc) []ledger.Event{
		func(d *doc) []ledger.Event {
			c := d.claim().(ledger.ClaimedFolder)
			c.Fingerprint, c.Owner, c.Node = sum("look"), 1000, ledger.Node{Dev: 64769, Ino: 12345678}
			return []ledger.Event{c}
		},
		func(d *doc) []ledger.Event {
			s := d.sealed()
			s.Package.Path, s.Package.MD5, s.Package.Size = "/var/lib/vaultd/spool/"+d.e.Key.String()+".zip", [16]byte{1, 2}, 470_000
			return []ledger.Event{s}
		},
		func(*doc) []ledger.Event { return []ledger.Event{ledger.RegisterIntended{}} },
		func(d *doc) []ledger.Event { return []ledger.Event{d.usualTicket(), ledger.UploadIntended{}} },
		func(d *doc) []ledger.Event {
			return []ledger.Event{d.accepted()}
		},
		func(d *doc) []ledger.Event {
			s := d.success()
			s.Receipt.Record = fmt.Appendf(nil, `{"bumId":"%s","clientUUID":"%s","documentId":"RE-2026-%06d","status":"ArchivingSuccessful","lastUpdated":"2026-11-20T10:11:12Z"}`,
				d.e.Current().Ticket.Remote, d.e.ID, d.n)
			return []ledger.Event{s}
		},
		func(*doc) []ledger.Event {
			return []ledger.Event{ledger.PlaceIntended{Dest: "_archived/2026-11/Müller 4711"}}
		},
		func(*doc) []ledger.Event { return []ledger.Event{ledger.Placed{}} },
	} {
		together(t, l, ds, step)
	}
	kit.Must(t, l.Close())
	most := map[string]int{"done": 720, "doc": 520, "journal": 480, "names": 136, "due": 0, "open": 0}
	edit(t, dir, func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			bytes, s := 0, b.Stats()
			err := b.ForEach(func(k, v []byte) error { bytes += len(k) + len(v); return nil })
			t.Logf("%-8s %5d bytes a document, %5d with its pages", name, bytes/docs, (s.LeafAlloc+s.BranchAlloc)/docs)
			limit, ok := most[string(name)]
			kit.Check(t, !ok || bytes/docs <= limit, "bucket %s takes %d bytes a document, want at most %d", name, bytes/docs, limit)
			return err
		})
	})
}

// together has a hundred documents at a time take one step in one commit.
func together(t *testing.T, l *boltledger.Ledger, ds []*doc, step func(d *doc) []ledger.Event) {
	t.Helper()
	for len(ds) > 0 {
		some := ds[:min(100, len(ds))]
		ds = ds[len(some):]
		var cs []ledger.Change
		for _, d := range some {
			cs = append(cs, d.change(step(d)...))
		}
		rs := kit.Value(l.Apply(t.Context(), cs...))(t)
		for i, r := range rs {
			if some[i].e = r.Entry; r.Err != nil {
				t.Fatalf("r.Err = %v, want r.Err = nil", r.Err)
			}
		}
	}
}

func usualDocument(n int) ledger.Document {
	return ledger.Document{
		Salt: [16]byte{1, byte(n), byte(n >> 8)},
		Metadata: fmt.Appendf(nil, `{"documentType":"Invoice","documentId":"RE-2026-%06d","documentDate":"2026-11-20T00:00:00Z","senderName":"Müller Maschinenbau GmbH",`+
			`"senderIds":["DE123456789"],"recipientName":"Acme Germany GmbH","recipientIds":["DE987654321"],"currencyCode":"EUR","amount":1234.56,"flowDirection":"receiving"}`, n),
		Files:        []archive.File{{Path: "rechnung.pdf", Size: 480_000, SHA256: sum(fmt.Sprint(n))}, {Path: "factur-x.xml", Size: 17_000, SHA256: sum(fmt.Sprint("x", n))}},
		ControlFiles: []archive.File{{Path: "metadata.json", Size: 512, SHA256: sum(fmt.Sprint("m", n))}},
	}
}

func (d *doc) usualTicket() ledger.TicketReceived {
	g := d.ticket()
	g.Ticket.Remote = archive.RemoteID(archive.DeriveID("V1", sum(fmt.Sprint(d.n)), archive.Digest{}).String())
	g.Ticket.URL = archive.PresignedURL(fmt.Sprintf("https://store.example/%d/%s", d.n, strings.Repeat("x", 400)))
	g.Ticket.Sent.BootID = "8087dfba-45ef-5a37-ac3c-d5567cfb6d39"
	g.Ticket.SignedAt, g.Ticket.Validity = d.at, 15*time.Minute
	return g
}
