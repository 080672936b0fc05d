package catalog

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// erasedLedger is a ledger in which the documents of some entries are erased.
type erasedLedger struct {
	Ledger
	erased map[archive.Key]bool
}

func (l erasedLedger) DocumentTexts(k archive.Key) (ledger.Document, bool, error) {
	if l.erased[k] {
		return ledger.Document{}, false, nil
	}
	return l.Ledger.DocumentTexts(k)
}

// goOnWith commits the next change of one document.
func (w *world) goOnWith(x *life) {
	w.t.Helper()
	c := ledger.Change{Key: x.key, Rev: x.rev, Events: x.evs[0], At: archive.Instant{Wall: x.at.Add(time.Duration(x.rev) * time.Second)}}
	if x.rev == 1 {
		c.Document = x.doc
	}
	x.rev, x.evs = w.led.Commit(c).Rev, x.evs[1:]
}

// filesHold returns which of the words stand in the files of the open catalog, in any case of letters.
func filesHold(t *testing.T, c *Catalog, words ...string) (held []string) {
	t.Helper()
	for _, end := range append([]string{"", ".new"}, besides...) {
		b, err := os.ReadFile(c.path() + end)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, word := range words {
			if bytes.Contains(bytes.ToLower(b), []byte(strings.ToLower(word))) {
				held = append(held, FileName+end+": "+word)
			}
		}
	}
	return held
}

// I7: once the document of an entry is erased and a line tells of the entry, no file of the catalog that is open holds a word of the
// document: neither its rows, nor the names of its parties, nor the pieces in the index, nor the log. Others are found as before.
func TestCatalog_I7_ErasedWordsAreGone(t *testing.T) {
	// No piece of them occurs in what else the world has.
	const sender, number, address = "Qwxvzj & Zjkqwv", "ZQXW-99887", "wqzvkj@vjqz.example"
	kit.Rows(t, map[string]func(w *world, x *life){
		"Sealed": func(_ *world, x *life) {
			m := archive.Document{Type: "Invoice", Number: number, Date: "2026-11-03T00:00:00Z", SenderName: sender, SenderIDs: []string{"DE-" + address}}
			x.live(x.item(fill.Item{Name: "x", Route: ledger.Vault, Vault: "V1", Document: m}), "x")
			x.evs = x.evs[:3]
		},
		"Refused": func(_ *world, x *life) {
			x.doc = &ledger.Document{AsRead: archive.AsRead{Number: number, SenderName: sender, RecipientIDs: address}}
			x.evs = [][]ledger.Event{x.evs[0], {ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}}}, {ledger.PlaceIntended{Dest: "_rejected/x"}}}
		},
		"PDF": func(w *world, x *life) {
			w.goByPDF(x, "scan.pdf", "scan.pdf")
			x.doc.Metadata = archive.PDFRequest{Receiving: number + "@in.example", Notify: sender + address}.Encode()
		},
	}, func(t *testing.T, make func(w *world, x *life)) {
		words := []string{sender, number, address, "qwxvzj", "wxvzj", "zjkqwv", "jkqwv", "998877"[:5], "wqzvkj", "qzvkj"}
		w := newWorld(t, 41)
		w.goOn(60)
		x := w.newLife()
		make(w, x)
		w.inBubble(t, func(t *testing.T) {
			cfg := w.config()
			erased := map[archive.Key]bool{}
			cfg.Ledger = erasedLedger{w.led, erased}
			c := New(cfg)
			stop := runUntilMade(c)
			defer stop()
			follow := func() {
				c.Wake()
				time.Sleep(gatherTime + retryAfter + startFirst)
				synctest.Wait()
			}
			time.Sleep(2 * retryAfter)
			w.goOnWith(x)
			w.goOnWith(x)
			follow()
			held := filesHold(t, c, words...)
			kit.Check(t, len(held) >= 4, "before: %q: the test shows nothing", held)
			w.goOn(30) // further rows, and segments of the index, lie behind them
			follow()
			erased[x.key] = true
			w.goOnWith(x)
			c.Wake()
			time.Sleep(gatherTime + startFirst/2) // not made anew yet
			synctest.Wait()
			held = filesHold(t, c, words...)
			kit.Check(t, len(held) <= 0, "a moment later the files hold %q", held)
			follow()
			held = filesHold(t, c, words...)
			kit.Check(t, len(held) <= 0, "the files hold %q", held)
			s := c.Status()
			kit.Check(t, s.Describe() == "" && helps(c, NewQuery([]string{"acme"})), "the catalog did not come back: %+v", s)
		})
		log := w.log.String()
		kit.Check(t, strings.Count(log, "made anew") == 2 && !strings.Contains(log, "WARN") && !strings.Contains(log, "ERROR"), "it says:\n%s", log)
	})
}

// I7: a document that is erased while the catalog is being made is in no file either, once the catalog has followed.
func TestCatalog_I7_ErasedWhileItIsMade(t *testing.T) {
	const sender = "Qwxvzj & Zjkqwv"
	w := newWorld(t, 42)
	w.goOn(60)
	x := w.newLife()
	x.doc = &ledger.Document{AsRead: archive.AsRead{SenderName: sender}}
	x.evs = [][]ledger.Event{x.evs[0], {ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}}}, {ledger.PlaceIntended{Dest: "_rejected/x"}}}
	w.goOnWith(x)
	w.goOnWith(x)
	w.inBubble(t, func(t *testing.T) {
		cfg := w.config()
		erased := map[archive.Key]bool{}
		cfg.Ledger = erasedLedger{w.led, erased}
		c := New(cfg)
		kit.Must(t, c.rebuild(t.Context()))
		erased[x.key] = true // after its row was written, before the file is opened
		w.goOnWith(x)
		held := filesHold(t, c, sender)
		kit.Check(t, len(held) != 0, "the row was not written: the test shows nothing")
		stop := runUntilMade(c)
		defer stop()
		time.Sleep(gatherTime + 2*retryAfter)
		synctest.Wait()
		if held := filesHold(t, c, sender, "qwxvzj", "wxvzj"); len(held) > 0 || c.Status().Describe() != "" {
			t.Errorf("the files hold %q, %+v", held, c.Status())
		}
	})
}

// What a row said before it changed is overwritten in the file, and not only left out.
func TestCatalog_I7_ChangedRowsAreOverwritten(t *testing.T) {
	w := newWorld(t, 43)
	w.goOn(20)
	c := New(w.config())
	kit.Must(t, c.rebuild(t.Context()))
	f, _, err := c.openFile(t.Context())
	kit.Must(t, err)
	const before = "what the number of all rows was before"
	for _, number := range []string{before, "x"} {
		kit.Value(f.conn.ExecContext(t.Context(), "UPDATE document SET number = ?", number))(t)
		kit.Check(t, number != before || len(filesHold(t, c, before)) != 0,
			"it was not written: the test shows nothing")
	}
	if err := c.closeFile(t.Context(), f); err != nil { // what the log holds goes into the file
		t.Fatal(err)
	}
	held := filesHold(t, c, before)
	kit.Check(t, len(held) <= 0, "%q, want len(held) <= 0", held)
}
