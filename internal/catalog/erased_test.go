package catalog

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

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

func (l erasedLedger) Document(k archive.Key) (ledger.Document, bool, error) {
	if l.erased[k] {
		return ledger.Document{}, false, nil
	}
	return l.Ledger.Document(k)
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
	for _, end := range append([]string{""}, besides...) {
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
		w := grown(t, 41, 60)
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
			kit.Check(t, s.Describe() == "" && w.mustFind(c, "acme"), "the catalog did not come back: %+v", s)
		})
		log := w.log.String()
		kit.Check(t, strings.Count(log, "made anew") == 2 && !strings.Contains(log, "WARN") && !strings.Contains(log, "ERROR"), "it says:\n%s", log)
	})
}

// I7: a document that is erased while the catalog is being made is in no file either, once the catalog has followed.
func TestCatalog_I7_ErasedWhileItIsMade(t *testing.T) {
	const sender = "Qwxvzj & Zjkqwv"
	w := grown(t, 42, 60)
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
		kit.Must(t, c.makeFile(t.Context()))
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
	w := grown(t, 43, 20)
	c := New(w.config())
	kit.Must(t, c.makeFile(t.Context()))
	c.mustFollow(t)
	const before = "what the number of all rows was before"
	for _, number := range []string{before, "x"} {
		kit.Value(c.file.db.ExecContext(t.Context(), "UPDATE document SET number = ?", number))(t)
		kit.Check(t, number != before || len(filesHold(t, c, before)) != 0,
			"it was not written: the test shows nothing")
	}
	if err := c.Close(); err != nil { // what the log holds goes into the file
		t.Fatal(err)
	}
	held := filesHold(t, c, before)
	kit.Check(t, len(held) <= 0, "%q, want len(held) <= 0", held)
}

// A search that would take for ever does not hold up the stop of vaultd, and is not looked up in the ledger instead.
func TestCatalog_I23_StoppingEndsASearch(t *testing.T) {
	w := grown(t, 31, 50)
	w.inBubble(t, func(t *testing.T) {
		c := New(w.config())
		stop := runUntilMade(c)
		ended := make(chan error, 1)
		go func() {
			ended <- c.readRows(t.Context(), func(*sql.Rows) error { return nil }, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT count(*) FROM n")
		}()
		for c.reading.TryLock() { // until it reads
			c.reading.Unlock()
			runtime.Gosched()
		}
		stop()
		err := <-ended
		kit.Check(t, errors.Is(err, errEnding) && errors.Is(err, context.Canceled), "err = %v, want error %v, error context.Canceled", err, errEnding)
	})
	kit.Lacks(t, "the log", w.log.String(), "ERROR")
}

// A file of another user, which this one could not write, is moved away once: the folder is ours.
func TestCatalog_I26_AFileOfAnotherUserIsMovedAway(t *testing.T) {
	if os.Geteuid() != 0 {
		kit.Missing(t, "root, to give a file to another user")
	}
	const me, other = 65534, 1
	kit.Rows(t, map[string]string{"File": "", "Log": "-wal"}, func(t *testing.T, at string) {
		w := grown(t, 32, 20)
		w.inBubble(t, func(*testing.T) { runUntilMade(New(w.config()))() })
		path := filepath.Join(w.dir, FileName)
		if at != "" {
			kit.Must(t, os.WriteFile(path+at, nil, 0o600))
		}
		for p := w.dir; p != os.TempDir(); p = filepath.Dir(p) {
			kit.Must(t, os.Chmod(p, 0o755))
		}
		kit.Must(t, errors.Join(os.Chown(w.dir, me, me), os.Chown(path, me, me), os.Chown(path+at, other, other)))
		moved := make(chan error)
		go func() { // as another user, on a thread of its own, which ends with this
			runtime.LockOSThread()
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, me, me, me); errno != 0 {
				moved <- errno
				return
			}
			_, err := New(w.config()).moveForeign()
			moved <- err
		}()
		err := <-moved
		kit.Check(t, reasonToRebuild(err) != nil, "err = %v, want reasonToRebuild(err) other than nil", err)
		kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(path+".foreign-1"+at)), nil)
	})
}
