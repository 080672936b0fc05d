package catalog

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

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
