package boltledger

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"vaultd/internal/ledger"
)

// grown makes a ledger whose buckets are trees of several levels.
func grown(t *testing.T) string {
	t.Helper()
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	var cs []ledger.Change
	for n := range 500 {
		d := newDoc(t, l, n)
		cs = append(cs, d.change(d.claim(), d.sealed()))
	}
	for len(cs) > 0 {
		if rs, err := l.Apply(t.Context(), cs[:50]...); err != nil || rs[0].Err != nil {
			t.Fatal(err)
		}
		cs = cs[50:]
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rootOf returns the page on which a bucket begins, which is a branch.
func rootOf(t *testing.T, dir string, bucket []byte) (tr *pageTree, root dbPage) {
	t.Helper()
	f, err := os.Open(pathIn(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	p, ok := newestMeta(f, info.Size())
	if !ok {
		t.Fatal("no meta page")
	}
	tr = &pageTree{f: f, p: p}
	roots, err := tr.readBucketRoots()
	if err == nil {
		root, err = tr.read(roots[string(bucket)])
	}
	if err != nil || root.leaf || root.n < 3 {
		t.Fatalf("%s is no tree: %v, %d", bucket, err, root.n)
	}
	return tr, root
}

// A look at all pages needs memory for one of them, however many there are: what it leaves behind would pile up faster than
// it is gathered.
func TestPages_I21_OneLeafAtATime(t *testing.T) {
	dir := grown(t)
	tr, _ := rootOf(t, dir, docBucket)
	free, err := readFreelist(tr.f, tr.p)
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, Config{Dir: dir})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := l.checkAllPages(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	used, kept := after.TotalAlloc-before.TotalAlloc, (tr.p.count-uint64(len(free)))*tr.p.size
	t.Logf("%d bytes were used to look at %d", used, kept)
	if used > kept/2 {
		t.Error("that is too many")
	}
}

// turn makes the i-th child of a branch another page.
func turn(t *testing.T, dir string, tr *pageTree, pg dbPage, i int, to uint64) {
	t.Helper()
	f, err := os.OpenFile(pathIn(dir, fileName), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := binary.NativeEndian.AppendUint64(nil, to)
	_, err = f.WriteAt(b, int64(pg.id*tr.p.size)+pageHeader+int64(i)*elementSize+8)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// A page that leads back up would end the process: bbolt follows it until its stack is
// full, and nobody can recover from that. Each row says who must see it.
func TestPages_I15_ThatLeadAstray(t *testing.T) {
	source := grown(t)
	rows := map[string]struct {
		bucket []byte
		child  func(pg dbPage) int
		to     func(tr *pageTree, pg dbPage) uint64
		opens  bool
		want   string
	}{
		"JournalEndsInACircle": {journalBucket, func(pg dbPage) int { return pg.n - 1 }, func(_ *pageTree, pg dbPage) uint64 { return pg.id }, false, "circle"},
		"OpenBeginsInACircle":  {openBucket, func(dbPage) int { return 0 }, func(_ *pageTree, pg dbPage) uint64 { return pg.id }, false, "circle"},
		"CircleInTheMiddle":    {openBucket, func(pg dbPage) int { return pg.n / 2 }, func(_ *pageTree, pg dbPage) uint64 { return pg.id }, true, "reached twice"},
		"ChildTwice":           {docBucket, func(pg dbPage) int { return pg.n / 2 }, func(_ *pageTree, pg dbPage) uint64 { return pg.child(0) }, true, "reached twice"},
		"Beyond":               {docBucket, func(pg dbPage) int { return pg.n / 2 }, func(tr *pageTree, _ dbPage) uint64 { return tr.p.count }, false, "points to page"},
		"MetaPage":             {docBucket, func(pg dbPage) int { return pg.n / 2 }, func(*pageTree, dbPage) uint64 { return 1 }, false, "points to page"},
		"FreePage": {docBucket, func(pg dbPage) int { return pg.n / 2 }, func(tr *pageTree, _ dbPage) uint64 {
			free, err := readFreelist(tr.f, tr.p)
			if err != nil || len(free) == 0 {
				t.Fatal("nothing is free", err)
			}
			return free[0]
		}, true, "page"},
		"AnotherTree": {dueBucket, func(pg dbPage) int { return pg.n / 2 }, func(tr *pageTree, _ dbPage) uint64 {
			roots, _ := tr.readBucketRoots()
			return roots[string(docBucket)]
		}, true, "page"},
	}
	l := open(t, Config{Dir: copyLedger(t, source, fileName, headName)})
	_, before, err := l.VerifyWhole(t.Context(), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName, headName)
			tr, pg := rootOf(t, dir, row.bucket)
			turn(t, dir, tr, pg, row.child(pg), row.to(tr, pg))
			l, err := Open(Config{Dir: dir})
			var d *ledger.DamageError
			if (err == nil) != row.opens || err != nil && (!errors.As(err, &d) || !strings.Contains(err.Error(), row.want)) {
				t.Fatal(err)
			}
			if err != nil {
				t.Log(err)
				return
			}
			defer l.Close()
			unread := func(ledger.Head, ledger.Balance) { t.Error("what lies on the pages is read all the same") }
			found, _, err := l.VerifyWhole(t.Context(), 0, unread)
			since, _, err2 := l.VerifySince(t.Context(), before, unread)
			for _, found := range [][]ledger.Problem{found, since} {
				if errors.Join(err, err2) != nil || len(found) != 2 || found[0].Where != "pages" || !strings.Contains(found[0].What, row.want) {
					t.Errorf("%v %v %v", found, err, err2)
				}
			}
			if _, err := l.Backup(io.Discard); !errors.As(err, &d) {
				t.Errorf("it was backed up: %v", err)
			}
			t.Log(found)
		})
	}
}

func TestPages_OfASoundLedgerAreAllMet(t *testing.T) {
	dir := grown(t)
	l := open(t, Config{Dir: dir})
	sound(t, l)
	if err := l.checkAllPages(nil); err != nil {
		t.Error(err)
	}
	broken := errors.New("enough")
	asked := 0
	if err := l.checkAllPages(func() error { asked++; return broken }); !errors.Is(err, broken) || asked != 1 {
		t.Errorf("%v after %d", err, asked)
	}
}
