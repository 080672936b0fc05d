package catalog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// checkHistory holds what the rows tell of rejected and archived documents against every entry.
func (w *world) checkHistory(c *Catalog) {
	w.t.Helper()
	var rejected []time.Time
	archived := map[archive.Key]bool{}
	kit.Must(w.t, w.led.EntriesOldestFirst(func(e ledger.Entry) error {
		switch e.State {
		case ledger.Rejected:
			rejected = append(rejected, e.SeenAt.Truncate(time.Millisecond))
		case ledger.Archived:
			archived[e.Key] = true
		}
		return nil
	}))
	slices.SortFunc(rejected, func(a, b time.Time) int { return b.Compare(a) })
	for _, most := range []int{1, len(rejected) / 2, len(rejected), 1000} {
		for _, n := range []int{0, len(rejected) / 3, len(rejected) - 1} { // since is the time of one of them
			got, err := c.RejectedSince(w.t.Context(), rejected[n], most)
			last := n + 1
			for last < len(rejected) && rejected[last].Equal(rejected[n]) {
				last++
			}
			if want := rejected[:min(last, most)]; err != nil || !slices.EqualFunc(got, want, time.Time.Equal) {
				w.t.Errorf("rejected since %v, %d at most: %v, %d times, want %d", rejected[n], most, err, len(got), len(want))
			}
		}
	}
	keys, err := c.NewestIn(w.t.Context(), ledger.Archived, 1000)
	kit.Check(w.t, err == nil && len(keys) == len(archived) && !slices.ContainsFunc(keys, func(k archive.Key) bool { return !archived[k] }),
		"%v: %d archived documents, want %d", err, len(keys), len(archived))
	few, err := c.NewestIn(w.t.Context(), ledger.Archived, 5)
	if err != nil || !slices.Equal(few, keys[:5]) {
		w.t.Errorf("%v: the newest five are %v, of all %v", err, few, keys[:5])
	}
	oldest := slices.MinFunc(keys, func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) })
	kit.Check(w.t, !slices.Contains(few, oldest), "the oldest document is among the newest five")
}

// What is drawn of rejected and archived documents are those of the ledger, in a catalog that followed it and in one that was made anew.
// One that stopped, or that cannot be read, tells nothing and says why.
func TestHistory_I32_RowsAreTheEntries(t *testing.T) {
	w := newWorld(t, 31)
	for range 10 {
		w.goOn(100)
	}
	w.inBubble(t, func(t *testing.T) {
		cfg := w.config()
		var isFull atomic.Bool
		cfg.CheckSpace = func() error {
			if isFull.Load() {
				return errors.New("no room")
			}
			return nil
		}
		c := New(cfg)
		_, err := c.RejectedSince(t.Context(), time.Time{}, 10)
		kit.Check(t, err != nil && err.Error() == "the catalog is at 0 %", "before it is opened: %v", err)
		stop := runUntilMade(c)
		synctest.Wait()
		w.checkHistory(c)
		for range 10 {
			w.goOn(100)
			c.Wake()
			time.Sleep(2 * gatherTime)
			synctest.Wait()
			w.checkHistory(c)
		}
		isFull.Store(true)
		w.goOn(10)
		c.Wake()
		time.Sleep(2 * gatherTime)
		synctest.Wait()
		_, err = c.NewestIn(t.Context(), ledger.Archived, 10)
		kit.Check(t, err != nil && err.Error() == "the catalog is not complete: no room", "after it stopped: %v", err)
		isFull.Store(false)
		time.Sleep(2 * retryAfter)
		synctest.Wait()
		w.checkHistory(c)
		stop()
		kit.Must(t, os.Remove(c.path()))
		c = New(w.config())
		defer runUntilMade(c)()
		w.checkHistory(c)
	})
}

// Damage that the drawings meet lets the catalog be made anew, as damage that a search meets.
func TestHistory_I26_DamageIsMetAndMended(t *testing.T) {
	w := newWorld(t, 32)
	for range 10 {
		w.goOn(100)
	}
	w.inBubble(t, func(t *testing.T) {
		c := New(w.config())
		stop := runUntilMade(c)
		synctest.Wait()
		stop()
		whole := kit.Value(os.ReadFile(c.path()))(t)
		for i := 2 * 4096; i < len(whole); i++ { // the schema and the position are in the first pages
			whole[i] ^= 0x55
		}
		kit.Must(t, os.WriteFile(c.path(), whole, 0o600))
		c = New(w.config())
		defer runUntilMade(c)()
		for range 3 {
			_, err := c.RejectedSince(t.Context(), time.Time{}, 1000)
			_, other := c.NewestIn(t.Context(), ledger.Archived, 1000)
			if err := errors.Join(err, other); err != nil && !strings.Contains(err.Error(), "catalog") {
				t.Error(err)
			}
			time.Sleep(retryAfter + gatherTime)
			synctest.Wait()
		}
		w.checkHistory(c)
		kit.Holds(t, "the log", w.log.String(), "the catalog is made anew")
	})
}

// plainLife is a document as most are: two parties of a few hundred, one registration, a number with the folder's number in it.
func plainLife(n int) *life {
	x := &life{at: began.Add(time.Duration(n) * 100 * time.Millisecond)}
	x.key = archive.NewKey(x.at)
	binary.BigEndian.PutUint16(x.key[14:], uint16(n))
	m := archive.Document{Type: "Invoice", Number: fmt.Sprintf("RE-2026-%07d", n), Date: "2026-11-03T00:00:00Z", Currency: "EUR", Amount: archive.Decimal(fmt.Sprintf("%d.%02d", n%10000, n%100)),
		SenderName: fmt.Sprintf("Müller & Söhne %d GmbH", n%500), SenderIDs: []string{fmt.Sprintf("DE%09d", n%500)}, RecipientName: "Acme Deutschland GmbH", RecipientIDs: []string{"DE123456789"}}
	it := x.item(fill.Item{Name: fmt.Sprintf("Rechnung %07d", n), Route: ledger.Vault, Vault: "8c8ee41c-2f5c-4d0f-8f61-9d7f9dd3b0e1", Document: m, Size: 300_000})
	sealed, _ := it.Sealed()
	it.Remote = archive.RemoteID(sealed.ID.Generation(7).String())
	x.live(it, "_archived/2026-11/"+it.Name)
	return x
}

// threadTime is the CPU that this thread has used. The caller has locked itself to it.
func threadTime(b *testing.B) time.Duration {
	var u unix.Rusage
	kit.Must(b, unix.Getrusage(unix.RUSAGE_THREAD, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCatalog fills a ledger of DOCS documents (10,000), a thousand at a time, each in eight changes. It tells the CPU of the
// catalog that follows once after the upload and once at the end, the CPU of one that is made anew, the bytes, and how long a search takes.
func BenchmarkCatalog(b *testing.B) {
	runtime.LockOSThread() // for threadTime
	defer runtime.UnlockOSThread()
	docs := 10_000
	if n, err := strconv.Atoi(os.Getenv("DOCS")); err == nil {
		docs = n
	}
	l := fill.New(b, boltledger.Config{}, ledger.Info{Created: began})
	c := New(Config{StateDir: l.Dir, Ledger: l, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	kit.Must(b, c.rebuild(b.Context()))
	for b.Loop() {
		followed := fillAndFollow(b, c, l, docs)
		b.ReportMetric(float64(followed.Microseconds())/float64(docs), "µs-follow/doc")
		began := time.Now()
		kit.Must(b, c.rebuild(b.Context()))
		b.ReportMetric(float64(docs)/time.Since(began).Seconds(), "docs-made-anew/s")
		info := kit.Value(os.Stat(c.path()))(b)
		b.ReportMetric(float64(info.Size())/float64(docs), "B/doc")
		searched := OpenStopped(b.Context(), c.cfg)
		began = time.Now()
		found := 0
		if err := searched.Search(b.Context(), NewQuery([]string{"Rechnung", fmt.Sprintf("%07d", docs/2)}), neverTold, func(Hit) error { found++; return nil }); err != nil || found != 1 {
			b.Fatalf("err = %v, found = %v, want no error, found = 1", err, found)
		}
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "ms/search")
		kit.Must(b, searched.Close())
	}
}

// fillAndFollow returns the CPU of the catalog alone.
func fillAndFollow(b *testing.B, c *Catalog, l *fill.Ledger, docs int) (followed time.Duration) {
	b.Helper()
	f, _, err := c.openFile(b.Context())
	kit.Must(b, err)
	for n := 0; n < docs; n += 1000 {
		var batch []*life
		for i := range min(1000, docs-n) {
			batch = append(batch, plainLife(n+i))
		}
		for step := range 8 {
			var cs []ledger.Change
			for _, x := range batch {
				ch := ledger.Change{Key: x.key, Rev: x.rev, Events: x.evs[step], At: archive.Instant{Wall: x.at}}
				if step == 1 {
					ch.Document = x.doc
				}
				cs = append(cs, ch)
			}
			rs, err := l.Apply(context.Background(), cs...)
			if err != nil || rs[0].Err != nil {
				b.Fatalf("err = %v, rs[0].Err = %v, want no error, rs[0].Err = nil", err, rs[0].Err)
			}
			for i, x := range batch {
				x.rev = rs[i].Entry.Rev
			}
			if step == 4 || step == 7 {
				from := threadTime(b)
				kit.Must(b, c.catchUp(b.Context(), f))
				followed += threadTime(b) - from
			}
		}
	}
	kit.Must(b, c.closeFile(b.Context(), f))
	return followed
}
