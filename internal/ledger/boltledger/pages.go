package boltledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// This file reads bbolt's own page format. bbolt follows the page numbers that it finds without asking: one that leads back
// up ends the process, and no recover helps. So pages are checked before bbolt reads them: at the start those that the start
// reads, and all of them before anything that reads the whole ledger.
//
// bbolt's own check, Tx.Check in a child process, cannot take its place:
//
//   - At the start: G8 allows 100 ms from a cold file to ready. With 200,000 documents (784 MB, cold, two cores) opening took
//     26 to 51 ms as it is, with this check in it. Tx.Check in a child took 5.7 to 7.9 s, 2.0 to 2.8 s of CPU and 311 MB, and
//     all of it grows with the ledger. checkAllPages took 1.1 to 1.4 s and 20 to 25 MB.
//   - In a running daemon: bbolt locks every file that it opens. A child cannot lock the file that its parent holds, and with
//     the parent's own descriptor it would first weaken and then release the parent's lock.

const (
	flagBranch  = 0x01
	flagLeaf    = 0x02
	elementSize = 16
	flagBucket  = 0x01 // of an element of a leaf
	maxDepth    = 40   // no tree is deeper
)

// pageTree reads the pages of one moment of the file.
type pageTree struct {
	f    io.ReaderAt
	p    metaPage
	seen []uint64     // a bit for each page that was met; nil: not counted
	stop func() error // asked at each page; nil: goes on

	leafDepth int                         // of the bucket that is walked; only with wanted
	wanted    func(low, high []byte) bool // whether a leaf with keys from low to high is read; nil: all are

	file *os.File // that f reads; nil: not this tree's
	head [pageHeader]byte
	leaf []byte // of the leaf that was read last
}

func (t *pageTree) countPages() { t.seen = make([]uint64, t.p.count/64+1) }

// dbPage is one page with its overflow, as far as its elements are sound.
type dbPage struct {
	id   uint64
	leaf bool
	data []byte
	n    int
}

// read returns a page whose elements lie within it, in order. What a leaf holds is there until the next one is read.
func (t *pageTree) read(id uint64) (pg dbPage, err error) {
	if id < 2 || id >= t.p.count {
		return pg, damage("a page points to page %d of %d", id, t.p.count)
	}
	head := t.head[:]
	if _, err := t.f.ReadAt(head, int64(id*t.p.size)); err != nil {
		return pg, fmt.Errorf("read page %d: %w", id, err)
	}
	n := binary.NativeEndian
	flags, overflow := n.Uint16(head[8:]), uint64(n.Uint32(head[12:]))
	switch {
	// Each page carries its own number: a write that the disk put in the wrong place shows here.
	case n.Uint64(head) != id || flags != flagBranch && flags != flagLeaf:
		return pg, damage("page %d is not what points to it", id)
	case overflow >= t.p.count-id:
		return pg, damage("page %d reaches beyond the file", id)
	}
	// Marked before its children are read: a circle is noticed at its first repetition.
	if err := t.markReached(id, overflow); err != nil {
		return pg, err
	}
	pg = dbPage{id: id, leaf: flags == flagLeaf, n: int(n.Uint16(head[10:]))}
	if size := int((overflow + 1) * t.p.size); pg.leaf {
		// One buffer for all leaves: a look at millions of pages leaves no garbage behind.
		t.leaf = slices.Grow(t.leaf[:0], size)[:size]
		pg.data = t.leaf
	} else {
		pg.data = make([]byte, size)
	}
	if _, err := t.f.ReadAt(pg.data, int64(id*t.p.size)); err != nil {
		return pg, fmt.Errorf("read page %d: %w", id, err)
	}
	return pg, pg.checkElements(t.p.count)
}

// markReached notes that a page was reached, which must happen once.
func (t *pageTree) markReached(id, overflow uint64) error {
	for n := id; t.seen != nil && n <= id+overflow; n++ {
		if t.seen[n/64]&(1<<(n%64)) != 0 {
			return damage("page %d is reached twice", n)
		}
		t.seen[n/64] |= 1 << (n % 64)
	}
	return nil
}

// checkElements checks the elements of a page.
func (pg dbPage) checkElements(count uint64) error {
	if len(pg.data) < pageHeader+pg.n*elementSize || !pg.leaf && pg.n == 0 {
		return damage("page %d has %d elements", pg.id, pg.n)
	}
	var last []byte
	for i := range pg.n {
		key, value, ok := pg.element(i)
		switch {
		case !ok:
			return damage("element %d of page %d lies outside", i, pg.id)
		case i > 0 && bytes.Compare(last, key) >= 0:
			return damage("page %d is out of order", pg.id)
		case !pg.leaf && (pg.child(i) < 2 || pg.child(i) >= count):
			return damage("page %d points to page %d of %d", pg.id, pg.child(i), count)
		case pg.leaf && pg.flags(i) > flagBucket, pg.leaf && pg.flags(i) == flagBucket && len(value) < pageHeader:
			return damage("element %d of page %d is of no kind", i, pg.id)
		}
		last = key
	}
	return nil
}

// element returns key and value of the i-th element; of a branch the key alone.
func (pg dbPage) element(i int) (key, value []byte, ok bool) {
	at := uint64(pageHeader + i*elementSize)
	n := binary.NativeEndian
	e := pg.data[at:]
	pos, ksize, vsize := at+uint64(n.Uint32(e)), uint64(n.Uint32(e[4:])), uint64(0)
	if pg.leaf {
		pos, ksize, vsize = at+uint64(n.Uint32(e[4:])), uint64(n.Uint32(e[8:])), uint64(n.Uint32(e[12:]))
	}
	if pos+ksize+vsize > uint64(len(pg.data)) {
		return nil, nil, false
	}
	return pg.data[pos : pos+ksize], pg.data[pos+ksize : pos+ksize+vsize], true
}

func (pg dbPage) child(i int) uint64 {
	return binary.NativeEndian.Uint64(pg.data[pageHeader+i*elementSize+8:])
}

func (pg dbPage) flags(i int) uint32 {
	return binary.NativeEndian.Uint32(pg.data[pageHeader+i*elementSize:])
}

// childFor returns the last element of a branch that is not behind key.
func (pg dbPage) childFor(key []byte) (i int) {
	for i+1 < pg.n {
		if k, _, _ := pg.element(i + 1); bytes.Compare(k, key) > 0 {
			break
		}
		i++
	}
	return i
}

// walkSubtree calls fn with each leaf below a page, having checked everything on the way. The
// keys lie in [from, to); nil: no bound.
func (t *pageTree) walkSubtree(id uint64, from, to []byte, depth int, fn func(dbPage) error) error {
	if depth > maxDepth {
		return damage("its pages go in a circle")
	}
	if t.stop != nil {
		if err := t.stop(); err != nil {
			return err
		}
	}
	pg, err := t.read(id)
	if err != nil {
		return err
	}
	if pg.n > 0 {
		first, _, _ := pg.element(0)
		last, _, _ := pg.element(pg.n - 1)
		if bytes.Compare(first, from) < 0 || to != nil && bytes.Compare(last, to) >= 0 {
			return damage("page %d holds keys of another one", id)
		}
	}
	if pg.leaf {
		return fn(pg)
	}
	for i := range pg.n {
		low, _, _ := pg.element(i)
		high := to
		if i+1 < pg.n {
			high, _, _ = pg.element(i + 1)
		}
		// All leaves of a bucket lie at one depth: one that is not wanted need not be read to know that it is one.
		if t.wanted != nil && depth+1 == t.leafDepth && !t.wanted(low, high) {
			continue
		}
		if err := t.walkSubtree(pg.child(i), low, high, depth+1, fn); err != nil {
			return err
		}
	}
	return nil
}

// followPath checks the pages on the way down that choose takes.
func (t *pageTree) followPath(id uint64, choose func(dbPage) int) error {
	for range maxDepth {
		pg, err := t.read(id)
		if err != nil || pg.leaf {
			return err
		}
		id = pg.child(choose(pg))
	}
	return damage("its pages go in a circle")
}

// readBucketRoots returns where the buckets begin: 0 where one lies within the root's own leaf.
func (t *pageTree) readBucketRoots() (map[string]uint64, error) {
	roots := map[string]uint64{}
	err := t.walkSubtree(t.p.root, nil, nil, 0, func(pg dbPage) error {
		for i := range pg.n {
			name, value, _ := pg.element(i)
			if pg.flags(i) != flagBucket {
				return damage("page %d holds something else than buckets", pg.id)
			}
			root := binary.NativeEndian.Uint64(value)
			if root == 0 {
				if err := checkInlineBucket(value[pageHeader:]); err != nil {
					return err
				}
			}
			roots[string(name)] = root
		}
		return nil
	})
	return roots, err
}

// checkInlineBucket checks a bucket that is small enough to lie in its parent's leaf.
func checkInlineBucket(data []byte) error {
	if len(data) < pageHeader {
		return damage("a bucket of %d bytes", len(data))
	}
	pg := dbPage{leaf: true, data: data, n: int(binary.NativeEndian.Uint16(data[10:]))}
	if binary.NativeEndian.Uint16(data[8:]) != flagLeaf {
		return damage("a bucket that is no leaf")
	}
	return pg.checkElements(0)
}

// checkOpeningPaths looks at the pages that opening a ledger reads: the buckets, the meta
// bucket, and the ways to both ends of the others and to one journal line.
func checkOpeningPaths(f io.ReaderAt, p metaPage, line uint64) error {
	t := &pageTree{f: f, p: p}
	t.countPages()
	roots, err := t.readBucketRoots()
	if err != nil {
		return err
	}
	// The depth alone bounds a circle from here on.
	t.seen = nil // the ways share pages
	ways := []func(dbPage) int{
		func(dbPage) int { return 0 },
		func(pg dbPage) int { return pg.n - 1 },
		func(pg dbPage) int { return pg.childFor(lineKey(line)) },
	}
	for name, root := range roots {
		for i, way := range ways {
			if root == 0 || i == 2 && name != string(journalBucket) {
				continue
			}
			if err := t.followPath(root, way); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkAllPages checks every page of the ledger at one moment.
func (l *Ledger) checkAllPages(stop func() error) error {
	for {
		err := l.view(func(tx *bbolt.Tx) error { return l.checkPagesOf(tx, stop) })
		// Two commits since the transaction began wrote over its meta page: a new transaction is taken.
		if !errors.Is(err, errOvertaken) {
			return err
		}
	}
}

// checkPages checks every page of a ledger that stays as it is meanwhile.
func (l *Ledger) checkPages(ctx context.Context) error {
	if !l.isCopy {
		return l.checkAllPages(func() error { return context.Cause(ctx) })
	}
	// Damage may end the process: a copy is checked in a child.
	tx, err := l.db.Begin(false)
	if err != nil {
		return err
	}
	for err := range tx.Check(bbolt.WithKVStringer(withoutKeys{})) {
		// The first difference is enough: pages in a circle have no last one.
		// bbolt reads on, and the file must stay mapped for it.
		l.isAstray = true
		return damage("%v", err)
	}
	return tx.Rollback()
}

// withoutKeys keeps keys and values out of what bbolt says: they hold names.
type withoutKeys struct{}

func (withoutKeys) KeyToString([]byte) string   { return "…" }
func (withoutKeys) ValueToString([]byte) string { return "…" }

// checkPagesOf checks every page that tx can reach: each must be reached once, and none may be
// free. It calls stop at each page, unless nil.
func (l *Ledger) checkPagesOf(tx *bbolt.Tx, stop func() error) error {
	t, err := l.openPages(tx, stop)
	if err != nil {
		return err
	}
	defer t.file.Close() // read-only
	roots, err := t.readBucketRoots()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := t.checkBucketPages(root, nil); err != nil {
			return err
		}
	}
	return nil
}

// openPages opens the pages that tx can reach. The caller closes the file.
func (l *Ledger) openPages(tx *bbolt.Tx, stop func() error) (t *pageTree, err error) {
	// Read through a descriptor of its own and not through the mapping: a damaged disk then gives an error and no fault.
	f, err := l.duplicateFile()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	p, err := metaOf(f, uint64(tx.ID()), uint64(l.db.Info().PageSize))
	if err != nil {
		return nil, err
	}
	t = &pageTree{f: f, file: f, p: p, stop: stop}
	t.countPages()
	if p.freelist == noFreelist {
		return t, nil
	}
	free, err := readFreelist(f, p)
	if err != nil {
		return nil, err
	}
	// Free pages count as reached: a tree that leads to one of them is damaged.
	for _, id := range free {
		if err := t.markReached(id, 0); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// checkBucketPages checks the pages of a bucket, of the leaves those that are wanted; nil: all.
func (t *pageTree) checkBucketPages(root uint64, wanted func(low, high []byte) bool) error {
	if root == 0 { // it lies within the root's own leaf
		return nil
	}
	if t.wanted = wanted; wanted != nil {
		depth := -1
		probe := &pageTree{f: t.f, p: t.p}
		if err := probe.followPath(root, func(dbPage) int { depth++; return 0 }); err != nil {
			return err
		}
		t.leafDepth = depth + 1
	}
	return t.walkSubtree(root, nil, nil, 0, func(pg dbPage) error {
		for i := range pg.n {
			if pg.flags(i) != 0 {
				return damage("page %d holds a bucket within a bucket", pg.id)
			}
		}
		return nil
	})
}

// errOvertaken says that the meta page of a transaction was written over by now.
var errOvertaken = errors.New("two commits overtook the reader")

// metaOf returns the meta page of a transaction.
func metaOf(f io.ReaderAt, txid, size uint64) (metaPage, error) {
	for _, at := range []uint64{0, size} {
		if p, ok := readMeta(f, int64(at)); ok && p.txid == txid {
			return p, nil
		}
	}
	return metaPage{}, errOvertaken
}
