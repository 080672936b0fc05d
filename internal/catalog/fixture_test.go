package catalog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

var began = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

// world is a real ledger that fills with documents, and the catalog of it.
type world struct {
	t       testing.TB
	rng     *rand.Rand
	dir     string
	led     *boltledger.Ledger
	log     *textLog
	n       int
	open    []*life // documents that did not live to their end
	hasPDFs bool    // some documents go by the PDF route
	// What a query may ask for.
	texts []string
}

func newWorld(t testing.TB, seed uint64) *world {
	t.Helper()
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), log: &textLog{}}
	info := ledger.Info{ID: fmt.Sprintf("L-%d", seed), Environment: "test", BaseURL: "https://archive.example", Created: began}
	if err := boltledger.Create(w.dir, info); err != nil {
		t.Fatal(err)
	}
	w.openLedger()
	t.Cleanup(func() { w.led.Close() })
	return w
}

func (w *world) openLedger() {
	w.t.Helper()
	var err error
	if w.led, err = boltledger.Open(boltledger.Config{Dir: w.dir}); err != nil {
		w.t.Fatal(err)
	}
}

// inBubble calls fn on virtual time, with the ledger opened in it.
func (w *world) inBubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	w.led.Close()
	synctest.Test(t, func(t *testing.T) {
		w.openLedger()
		defer w.led.Close()
		fn(t)
	})
	w.openLedger()
}

func (w *world) config() Config {
	return Config{StateDir: w.dir, Ledger: w.led, Log: slog.New(slog.NewTextHandler(w.log, nil))}
}

// life is one document and what happens to it, one change after the other.
type life struct {
	key archive.Key
	rev uint32
	at  time.Time
	doc *ledger.Document
	evs [][]ledger.Event
}

// syllables make names that share pieces, in letters of several kinds.
var syllables = []string{"Mül", "muel", "ler", "Hu", "ber", "ß", "SS", "é", "e\u0301", "4711", "0500", "00", "7", "RE", "-", "/", "_", ".", "&", " ", "\u00a0", "Ä", "ae", "İ", "ı", "ﬁ", "℅", "½", "日本", "\U0001f600", "\xff", "\x00", "\"", "*", "º"}

func (w *world) text(most int) string {
	var b strings.Builder
	for range w.rng.IntN(most) + 1 {
		b.WriteString(syllables[w.rng.IntN(len(syllables))])
	}
	w.texts = append(w.texts, b.String())
	return b.String()
}

// valid is a text that JSON keeps as it is.
func (w *world) valid(most int) string { return strings.ToValidUTF8(w.text(most), "x") }

// name is the name of a folder.
func (w *world) name() string {
	name := strings.NewReplacer("/", "|", "\x00", "0").Replace(w.text(6))
	if strings.Trim(name, ".") == "" {
		name += "x"
	}
	return name
}

// newLife begins a document. One in ten has a key that is older than the last ones, as a claim that is adopted late.
func (w *world) newLife() *life {
	w.n++
	x := &life{at: began.Add(time.Duration(w.n) * time.Second)}
	if w.rng.IntN(10) == 0 {
		x.at = x.at.Add(-time.Duration(w.rng.IntN(200)) * time.Second)
	}
	x.key = archive.NewKey(x.at)
	binary.BigEndian.PutUint64(x.key[6:], w.rng.Uint64()) // not random: what fails once fails again
	binary.BigEndian.PutUint16(x.key[14:], uint16(w.n))
	folder := w.name()
	x.evs = [][]ledger.Event{{ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V1", Drop: "acme", Folder: folder, NotBefore: x.at.Add(time.Minute)}}}
	dest := folder
	if w.rng.IntN(4) == 0 {
		dest = w.name()
	}
	w.texts = append(w.texts, x.key.String(), dest, "_archived/2026-11/"+dest, "_rejected/"+dest)
	if w.hasPDFs && w.n%4 == 0 {
		w.goByPDF(x, folder, dest)
		return x
	}
	if w.rng.IntN(4) == 0 {
		x.doc = &ledger.Document{AsRead: archive.AsRead{Number: w.valid(4), SenderName: w.valid(4), RecipientIDs: w.valid(4), Amount: "1.234,56", Type: []string{"", "CreditNote", "Rechnung"}[w.n%3], Date: []string{"2026-11-07", "07.11.2026", ""}[w.n/3%3]}}
		x.evs = append(x.evs, []ledger.Event{ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}}}, []ledger.Event{ledger.PlaceIntended{Dest: "_rejected/" + dest}})
		return x
	}
	m := archive.Document{Type: "Invoice", Number: w.valid(4), Date: "2026-11-03T00:00:00Z", SenderName: w.valid(4), RecipientName: fmt.Sprintf("Acme %d", w.rng.IntN(3)),
		SenderIDs: []string{w.valid(2), "DE123456789"}, Currency: "EUR", Amount: "119.00"}
	m.Type, m.Date = archive.DocumentTypes[w.n%4], fmt.Sprintf("%d-11-%02dT00:00:00Z", 1960+10*(w.n%7), 1+w.n%28)
	m.Amount = archive.Decimal([]string{"119.00", "", "0.00", "-119.01", "0.1", "-0.10", "12345678901234567890.12", "119.005"}[w.n/2%8])
	x.doc = &ledger.Document{Salt: [16]byte{1}, Metadata: m.Metadata()}
	p := archive.Package{Path: "x.zip", Size: 1000, SHA256: archive.Sum(x.key[:])}
	id := archive.DeriveID("V1", archive.Sum(x.key[:]), archive.Sum(x.doc.Metadata))
	remote := archive.RemoteID(id.Generation(7).String())
	if w.rng.IntN(2) == 0 {
		remote = archive.RemoteID(fmt.Sprintf("%c%d", 'a'+rune(w.rng.IntN(26)), w.n))
	}
	w.texts = append(w.texts, id.String(), string(remote))
	sealed := ledger.Sealed{ID: id, Content: archive.Sum(x.key[:]), Metadata: archive.Sum(x.doc.Metadata), Package: p, Seal: x.doc.Seal(p)}
	x.evs = append(x.evs, []ledger.Event{sealed}, []ledger.Event{ledger.RegisterIntended{}},
		[]ledger.Event{ledger.TicketReceived{Ticket: archive.Ticket{Remote: remote, URL: archive.PresignedURL("https://store.example/" + remote), Sent: archive.Instant{Wall: x.at}}}, ledger.UploadIntended{}},
		[]ledger.Event{ledger.UploadAccepted{Sent: p.SHA256, Seal: sealed.Seal}},
		[]ledger.Event{ledger.StatusSeen{Receipt: archive.Receipt{Remote: remote, Status: archive.Successful, Updated: x.at, Record: []byte(`{}`)}, Grace: time.Hour}},
		[]ledger.Event{ledger.PlaceIntended{Dest: "_archived/2026-11/" + dest}}, []ledger.Event{ledger.Placed{}})
	return x
}

// goByPDF makes a document one that is delivered, or that nobody knows the fate of.
func (w *world) goByPDF(x *life, folder, dest string) {
	to := archive.PDFRequest{Receiving: fmt.Sprintf("AP%d@in.example", w.rng.IntN(3)), Notify: w.valid(3) + "@acme.example"}
	w.texts = append(w.texts, to.Receiving)
	x.doc = &ledger.Document{Salt: [16]byte{1}, Metadata: to.Encode()}
	p := archive.Package{Path: "x.pdf", Size: 2000, SHA256: archive.Sum(x.key[:])}
	id := archive.DeriveID("pdf", archive.Sum(x.key[:]), archive.Sum(x.doc.Metadata))
	remote := archive.RemoteID(fmt.Sprintf("slot-%d", w.n))
	w.texts = append(w.texts, id.String(), string(remote), "_delivered/2026-11/"+dest)
	seal := x.doc.Seal(p)
	x.evs = [][]ledger.Event{{ledger.ClaimedFolder{Route: ledger.PDF, Drop: "scans", Folder: folder, NotBefore: x.at.Add(time.Minute)}},
		{ledger.Sealed{ID: id, Content: p.SHA256, Metadata: archive.Sum(x.doc.Metadata), Package: p, Seal: seal}, ledger.RegisterIntended{},
			ledger.TicketReceived{Ticket: archive.Ticket{Remote: remote, URL: archive.PresignedURL("https://store.example/" + remote), Sent: archive.Instant{Wall: x.at}, Validity: time.Hour}}, ledger.UploadIntended{}}}
	if w.n%12 == 0 {
		x.evs = append(x.evs, []ledger.Event{ledger.UploadUnanswered{Cause: ledger.Cause{Code: "timeout"}}, ledger.SentToQuarantine{Cause: ledger.DeliveryUnknown(ledger.PDF, "no answer")}})
		return
	}
	x.evs = append(x.evs, []ledger.Event{ledger.DeliveryConfirmed{Sent: p.SHA256, Seal: seal}}, []ledger.Event{ledger.PlaceIntended{Dest: "_delivered/2026-11/" + dest}}, []ledger.Event{ledger.Placed{}})
}

// goOn commits changes of documents that are there and of new ones, each of another document.
func (w *world) goOn(changes int) {
	w.t.Helper()
	var cs []ledger.Change
	var of []*life
	for len(cs) < changes {
		x := w.newLife()
		if len(w.open) > 0 && w.rng.IntN(3) > 0 {
			x = w.open[w.rng.IntN(len(w.open))]
		} else {
			w.open = append(w.open, x)
		}
		if slices.Contains(of, x) {
			continue
		}
		c := ledger.Change{Key: x.key, Rev: x.rev, Events: x.evs[0], At: archive.Instant{Wall: x.at}}
		if x.rev == 1 {
			c.Document = x.doc
		}
		cs, of = append(cs, c), append(of, x)
	}
	rs, err := w.led.Apply(w.t.Context(), cs...)
	if err != nil {
		w.t.Fatal(err)
	}
	for i, x := range of {
		if rs[i].Err != nil {
			w.t.Fatal(rs[i].Err)
		}
		x.rev, x.evs = rs[i].Entry.Rev, x.evs[1:]
	}
	w.open = slices.DeleteFunc(w.open, func(x *life) bool { return len(x.evs) == 0 })
}

// query returns words that mostly are parts of texts in the world.
func (w *world) query() []string {
	var words []string
	for range w.rng.IntN(2) + 1 {
		t := []rune(w.texts[w.rng.IntN(len(w.texts))])
		from := w.rng.IntN(len(t))
		to := from + 1 + w.rng.IntN(min(len(t)-from, 14))
		word := string(t[from:to])
		switch w.rng.IntN(6) {
		case 0:
			word = strings.ToUpper(word)
		case 1:
			word = "11/" + word
		case 2:
			word = w.texts[w.rng.IntN(len(w.texts))]
		}
		words = append(words, strings.Fields(word)...)
	}
	if len(words) == 0 {
		words = []string{"4711"}
	}
	return words
}

// textLog keeps what was logged. A test reads it while the catalog goes on.
type textLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *textLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *textLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *textLog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}
