package browser

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// party is a company that does not exist, with how much it charges at most and how often it writes.
type party struct {
	name   string
	most   int64 // in cents
	weight int
}

func parties() []party {
	return []party{
		{"Donauwerk GmbH", 900_000, 9}, {"Müller Bürobedarf", 60_000, 14}, {"Nordlicht Energie AG", 1_400_000, 4}, {"Huber & Sohn", 250_000, 8},
		{"Kunz Logistik", 120_000, 12}, {"Papier Otto KG", 40_000, 10}, {"Lehmann Gebäudereinigung", 90_000, 6}, {"Seewald Rechtsanwälte", 700_000, 2},
		{"Brenner Druck", 180_000, 5}, {"Hafenkontor Versicherung", 500_000, 3},
	}
}

// writeHistory gives a ledger the past of two years, the same each time but for the day on which it ends: about a hundred documents a month,
// fewer in summer, most of them archived within the hour, some rejected, and some PDFs that were delivered. The daemon must not run.
func (w *world) writeHistory(now time.Time) {
	w.t.Helper()
	l, err := boltledger.Open(boltledger.Config{Dir: filepath.Join(w.dir, "state")})
	if err != nil {
		w.t.Fatal(err)
	}
	h := history{rng: rand.New(rand.NewPCG(4711, 0)), parties: parties()}
	for day := now.AddDate(-2, 0, 0); day.Before(now.AddDate(0, 0, -1)); day = day.AddDate(0, 0, 1) {
		var changes []ledger.Change
		for range h.countOf(day) {
			changes = append(changes, h.document(day.Truncate(24*time.Hour).Add(7*time.Hour+time.Duration(h.rng.IntN(600))*time.Minute)))
		}
		results, err := l.Apply(w.t.Context(), changes...)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range results {
			if r.Err != nil {
				w.t.Fatalf("r.Err = %v, want r.Err = nil", r.Err)
			}
		}
	}
	if err := l.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// history makes up documents.
type history struct {
	rng     *rand.Rand
	parties []party
	made    int
}

// countOf returns how many documents come on a day: none at weekends.
func (h *history) countOf(day time.Time) int {
	if day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
		return 0
	}
	n := 3 + h.rng.IntN(5)
	if day.Month() == time.July || day.Month() == time.August {
		n /= 2
	}
	return n
}

func (h *history) sender() party {
	n := 0
	for _, p := range h.parties {
		n += p.weight
	}
	n = h.rng.IntN(n)
	for _, p := range h.parties {
		if n -= p.weight; n < 0 {
			return p
		}
	}
	panic("the weights do not sum up")
}

func (h *history) digest() (d archive.Digest) {
	for i := range d {
		d[i] = byte(h.rng.Uint32())
	}
	return d
}

// document returns the whole life of one document that was taken at a time.
func (h *history) document(at time.Time) ledger.Change {
	h.made++
	from := h.sender()
	number, folder := fmt.Sprintf("RE-%d-%04d", at.Year(), h.made), fmt.Sprintf("%s %d", from.name, 1000+h.made)
	claimed := ledger.ClaimedFolder{Route: ledger.Vault, Vault: "ACME", Drop: "acme-in", Folder: folder, Owner: 1000,
		Node: ledger.Node{Dev: 1, Ino: uint64(h.made)}, Fingerprint: h.digest()}
	change := ledger.Change{Key: archive.NewKey(at), At: archive.Instant{Wall: at}, Events: []ledger.Event{claimed}}
	if h.rng.IntN(30) == 0 {
		change.Events = append(change.Events, ledger.Refused{Cause: ledger.Cause{Code: "documentDate-not-understood", Text: "31.10. is no date"}},
			ledger.PlaceIntended{Dest: "_rejected/" + folder}, ledger.Placed{})
		if time.Since(at) > 30*24*time.Hour {
			change.Events = append(change.Events, ledger.Closed{By: ledger.Operator{UID: 1000}})
		}
		return change
	}
	if h.rng.IntN(8) == 0 {
		h.deliver(&change, at)
		return change
	}
	size := 20_000 + h.rng.Int64N(900_000)
	doc := &ledger.Document{Metadata: archive.Document{Type: "Invoice", Number: number, Date: at.Format("2006-01-02") + "T00:00:00Z", SenderName: from.name,
		SenderIDs: []string{"DE014814804"}, RecipientName: "Acme GmbH", Currency: "EUR", Amount: h.amount(from)}.Metadata(),
		Files: []archive.File{{Path: "rechnung.pdf", Size: size, SHA256: h.digest()}}}
	pkg := archive.Package{Path: fmt.Sprintf("%08d.zip", h.made), Size: size, SHA256: h.digest(), MD5: [16]byte(h.uuid())}
	remote := archive.RemoteID(h.uuid().String())
	done := at.Add(2*time.Minute + time.Duration(h.rng.ExpFloat64()*float64(20*time.Minute)))
	receipt := archive.Receipt{Remote: remote, Status: archive.Successful, Raw: "ArchivingSuccessful", Updated: done,
		Record: fmt.Appendf(nil, `{"bumId":"%s","status":"ArchivingSuccessful"}`, remote)}
	ticket := archive.Ticket{Remote: remote, URL: "https://store.example/" + archive.PresignedURL(remote), Sent: archive.Instant{Wall: at}, Date: at, SignedAt: at, Validity: 15 * time.Minute}
	change.Document = doc
	change.Events = append(change.Events,
		ledger.Sealed{ID: archive.ID(h.uuid()), Content: archive.ContentDigest(doc.Files), Metadata: archive.Sum(doc.Metadata), Package: pkg, Seal: doc.Seal(pkg), Number: archive.NumberDigest(h.uuid())},
		ledger.RegisterIntended{}, ledger.TicketReceived{Ticket: ticket}, ledger.UploadIntended{},
		ledger.UploadAccepted{NotBefore: at.Add(time.Minute), Sent: pkg.SHA256, Seal: doc.Seal(pkg)},
		ledger.StatusSeen{Receipt: receipt, Grace: 24 * time.Hour},
		ledger.PlaceIntended{Dest: "_archived/" + done.Format("2006-01") + "/" + folder}, ledger.Placed{})
	return change
}

// deliver makes a document a PDF that was delivered.
func (h *history) deliver(change *ledger.Change, at time.Time) {
	file := fmt.Sprintf("Scan %d.pdf", 1000+h.made)
	doc := &ledger.Document{Metadata: archive.PDFRequest{Receiving: "ap@in.example", Notify: "clerk@acme.example"}.Encode(),
		Files: []archive.File{{Path: file, Size: 300_000, SHA256: h.digest()}}}
	pkg := archive.Package{Path: fmt.Sprintf("%08d.pdf", h.made), Size: 300_000, SHA256: doc.Files[0].SHA256, MD5: [16]byte(h.uuid())}
	remote := archive.RemoteID(h.uuid().String())
	ticket := archive.Ticket{Remote: remote, URL: "https://store.example/" + archive.PresignedURL(remote), Sent: archive.Instant{Wall: at}, Date: at, SignedAt: at, Validity: time.Hour}
	change.Document = doc
	change.Events = []ledger.Event{
		ledger.ClaimedFolder{Route: ledger.PDF, Drop: "ap-scans", Folder: file, Owner: 1000, Node: ledger.Node{Dev: 1, Ino: uint64(h.made)}, Fingerprint: h.digest()},
		ledger.Sealed{ID: archive.DerivePDFID("ap@in.example", pkg.SHA256), Content: pkg.SHA256, Metadata: archive.ReceivingDigest("ap@in.example"), Package: pkg, Seal: doc.Seal(pkg)},
		ledger.RegisterIntended{}, ledger.TicketReceived{Ticket: ticket}, ledger.UploadIntended{}, ledger.DeliveryConfirmed{Sent: pkg.SHA256, Seal: doc.Seal(pkg)},
		ledger.PlaceIntended{Dest: "_delivered/" + at.Format("2006-01") + "/" + file}, ledger.Placed{}}
}

func (h *history) amount(from party) archive.Decimal {
	cents := 1_000 + h.rng.Int64N(from.most)
	return archive.Decimal(fmt.Sprintf("%d.%02d", cents/100, cents%100))
}
func (h *history) uuid() uuid.UUID {
	d := h.digest()
	return uuid.UUID(d[:16])
}
