package boltledger_test

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// grown makes a ledger whose buckets are trees of several levels.
func grown(t *testing.T) string {
	t.Helper()
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	var cs []ledger.Change
	for n := range 500 {
		d := newDoc(t, l, n)
		cs = append(cs, d.change(d.claim(), d.sealed()))
	}
	for some := range slices.Chunk(cs, 50) {
		applied(t, l, some...)
	}
	kit.Must(t, l.Close())
	return dir
}

// branch is the root page of a bucket that is a tree, as bbolt lays it out.
type branch struct {
	id, pageSize, pages uint64 // pages is how many the file has
	children            []uint64
	free, other         uint64 // a free page, and the root of another bucket
}

const branchElement = 16 // position and size of a key, and then the child

func rootOf(t *testing.T, dir string, bucket []byte) (root branch) {
	t.Helper()
	edit(t, dir, func(tx *bbolt.Tx) error {
		root.id, root.other = uint64(tx.Bucket(bucket).Root()), uint64(tx.Bucket(docBucket).Root())
		root.pageSize = uint64(tx.DB().Info().PageSize)
		root.pages = uint64(tx.Size()) / root.pageSize
		for id := 2; uint64(id) < root.pages && root.free == 0; id++ {
			if page, err := tx.Page(id); err != nil || page == nil {
				break
			} else if page.Type == "free" {
				root.free = uint64(id)
			}
		}
		return errUnchanged
	})
	root.pages = newest(t, dir).count
	b := kit.Value(os.ReadFile(pathIn(dir, fileName)))(t)
	page := b[root.id*root.pageSize:]
	for i := range int(binary.NativeEndian.Uint16(page[10:])) {
		root.children = append(root.children, binary.NativeEndian.Uint64(page[pageHeader+i*branchElement+8:]))
	}
	if isBranch := page[8]&1 != 0; !isBranch || len(root.children) < 3 || root.free == 0 {
		t.Fatalf("the root of %s is %+v, want a branch of three children and a free page", bucket, root)
	}
	return root
}

// A page that leads back up would end the process: bbolt follows it until its
// stack is full, and no caller can recover from that.
func TestPages_I15_ThatLeadAstray(t *testing.T) {
	source := grown(t)
	beginning := func(branch) int { return 0 }
	middle := func(b branch) int { return len(b.children) / 2 }
	end := func(b branch) int { return len(b.children) - 1 }
	itself := func(b branch) uint64 { return b.id }
	rows := map[string]struct {
		bucket []byte
		child  func(branch) int
		to     func(branch) uint64
		opens  bool // the usual start does not read the page
		want   string
	}{
		"JournalEndsInACircle": {journalBucket, end, itself, false, "circle"},
		"OpenBeginsInACircle":  {openBucket, beginning, itself, false, "circle"},
		"CircleInTheMiddle":    {openBucket, middle, itself, true, "reached twice"},
		"ChildTwice":           {docBucket, middle, func(b branch) uint64 { return b.children[0] }, true, "reached twice"},
		"Beyond":               {docBucket, middle, func(b branch) uint64 { return b.pages }, false, "points to page"},
		"MetaPage":             {docBucket, middle, func(branch) uint64 { return 1 }, false, "points to page"},
		"FreePage":             {docBucket, middle, func(b branch) uint64 { return b.free }, true, "page"},
		"AnotherTree":          {dueBucket, middle, func(b branch) uint64 { return b.other }, true, "page"},
	}
	l := open(t, boltledger.Config{Dir: copyLedger(t, source, fileName, headName)})
	_, before, err := l.VerifyWhole(t.Context(), 0, nil)
	kit.Must(t, err)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName, headName)
			root := rootOf(t, dir, row.bucket)
			kit.Must(t, overwrite(dir, int64(root.id*root.pageSize)+pageHeader+int64(row.child(root))*branchElement+8, row.to(root)))
			l, err := boltledger.Open(boltledger.Config{Dir: dir})
			var d *ledger.DamageError
			if (err == nil) != row.opens || err != nil && (!errors.As(err, &d) || !strings.Contains(err.Error(), row.want)) {
				t.Fatalf("open: %v, want it to open: %v, else damage that tells of %q", err, row.opens, row.want)
			}
			if err != nil {
				return
			}
			defer l.Close()
			unread := func(ledger.Head, ledger.Balance) {
				t.Error("the records on damaged pages are read, want only the pages checked")
			}
			found, _, err := l.VerifyWhole(t.Context(), 0, unread)
			since, _, err2 := l.VerifySince(t.Context(), before, unread)
			for _, found := range [][]ledger.Problem{found, since} {
				if errors.Join(err, err2) != nil || len(found) != 2 || found[0].Where != "pages" || !strings.Contains(found[0].What, row.want) {
					t.Errorf("the check found %v (%v, %v), want two problems with pages that tell of %q", found, err, err2, row.want)
				}
			}
			if _, err := l.Backup(io.Discard); !errors.As(err, &d) {
				t.Errorf("backup: %v, want damage", err)
			}
		})
	}
}
