package catalog

import (
	"bytes"
	"context"
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
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

var began = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

// world is a real ledger that fills with documents, and the catalog of it.
type world struct {
	t       testing.TB
	rng     *rand.Rand
	dir     string
	led     *fill.Ledger
	log     *textLog
	n       int
	open    []*life // documents that did not live to their end
	hasPDFs bool    // some documents go by the PDF route
	// What a query may ask for.
	texts []string
}

func newWorld(t testing.TB, seed uint64) *world {
	t.Helper()
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), log: &textLog{}}
	w.led = fill.New(t, boltledger.Config{}, ledger.Info{ID: fmt.Sprintf("L-%d", seed), Created: began})
	w.dir = w.led.Dir
	return w
}

// grown is a world after n steps.
func grown(t testing.TB, seed uint64, n int) *world {
	t.Helper()
	w := newWorld(t, seed)
	w.goOn(n)
	return w
}

// inBubble calls fn on virtual time, with the ledger opened in it.
func (w *world) inBubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	w.led.Close()
	synctest.Test(t, func(t *testing.T) {
		w.led.Open()
		defer w.led.Close()
		fn(t)
	})
	w.led.Open()
}

func (w *world) config() Config {
	return Config{StateDir: w.dir, Ledger: w.led, Log: slog.New(slog.NewTextHandler(w.log, nil))}
}

// made is a catalog whose file is made, and open until the test ends.
func (w *world) made(t *testing.T) *Catalog {
	t.Helper()
	return opened(t, w.config())
}

// opened makes the file of a catalog, and opens it until the test ends.
func opened(t *testing.T, cfg Config) *Catalog {
	t.Helper()
	c := New(cfg)
	kit.Must(t, c.makeFile(t.Context()))
	c.mustFollow(t)
	t.Cleanup(func() { kit.Must(t, c.Close()) })
	return c
}

// mustFollow opens the file, if it is not open, and enters what the ledger has.
func (c *Catalog) mustFollow(t *testing.T) {
	t.Helper()
	c.writing.Lock()
	defer c.writing.Unlock()
	kit.Must(t, c.follow(context.WithoutCancel(t.Context())))
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
	if w.n%3 == 0 {
		m.BuyerReferenceID, m.TradingPartner = w.valid(2), w.valid(3)
		m.Parameters = []archive.Parameter{{Key: "project", Value: w.valid(3)}, {Key: "order", Value: fmt.Sprint("PO-", w.n)}}
		w.texts = append(w.texts, m.BuyerReferenceID, m.TradingPartner, m.Parameters[0].Value, m.Parameters[1].Value)
	}
	it := x.item(fill.Item{Name: folder, Route: ledger.Vault, Vault: "V1", Drop: "acme", Document: m})
	sealed, _ := it.Sealed()
	it.Remote = archive.RemoteID(sealed.ID.Generation(7).String())
	if w.rng.IntN(2) == 0 {
		it.Remote = archive.RemoteID(fmt.Sprintf("%c%d", 'a'+rune(w.rng.IntN(26)), w.n))
	}
	w.texts = append(w.texts, sealed.ID.String(), string(it.Remote))
	x.live(it, "_archived/2026-11/"+dest)
	return x
}

// item returns the item with files that depend on the key.
func (x *life) item(it fill.Item) *fill.Item {
	it.Salt, it.Files = [16]byte{1}, []archive.File{{Path: "rechnung.pdf", Size: 3, SHA256: archive.Sum(x.key[:])}}
	return &it
}

// live lets an item live to its end in a place.
func (x *life) live(it *fill.Item, place string) {
	_, x.doc = it.Sealed()
	x.evs = it.Life(x.at, x.at)
	x.evs[len(x.evs)-2] = []ledger.Event{ledger.PlaceIntended{Dest: place}}
}

// goByPDF makes a document one that is delivered, or whose delivery is unknown.
func (w *world) goByPDF(x *life, folder, dest string) {
	it := x.item(fill.Item{Name: folder, Route: ledger.PDF, Drop: "scans", Size: 2000, Remote: archive.RemoteID(fmt.Sprintf("slot-%d", w.n))})
	it.PDF = archive.PDFRequest{Receiving: fmt.Sprintf("AP%d@in.example", w.rng.IntN(3)), Notify: w.valid(3) + "@acme.example"}
	sealed, _ := it.Sealed()
	w.texts = append(w.texts, it.PDF.Receiving, sealed.ID.String(), string(it.Remote), "_delivered/2026-11/"+dest)
	x.live(it, "_delivered/2026-11/"+dest)
	if w.n%12 == 0 {
		x.evs = append(x.evs[:4], []ledger.Event{ledger.UploadUnanswered{Cause: ledger.Cause{Code: "timeout"}}, ledger.SentToQuarantine{Cause: ledger.DeliveryUnknown("no answer")}})
	}
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
	rs := kit.Value(w.led.Apply(w.t.Context(), cs...))(w.t)
	for i, x := range of {
		if rs[i].Err != nil {
			w.t.Fatalf("rs[i].Err = %v, want rs[i].Err = nil", rs[i].Err)
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
