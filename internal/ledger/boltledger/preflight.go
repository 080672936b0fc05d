package boltledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// mapSize is how much address space the file gets at once: a file that outgrows its
// mapping makes the writer wait until every reader, a backup too, is done. It costs
// no memory; pages that are read count as RssFile.
const mapSize = 1 << (28 + 8*(^uint(0)>>63)) // 64 GiB, or 256 MiB on 32 bits

// openFile opens ledger.db, having locked and examined the file on the very
// descriptor that bbolt then maps.
func openFile(dir string, outside *headRecord) (*bbolt.DB, error) {
	name := pathIn(dir, fileName)
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && outside != nil:
		return nil, fmt.Errorf("%w, though %s beside it knows %d journal lines: put the ledger back or restore a backup; do not run \"vaultd init\"",
			ledger.ErrMissing, headName, outside.N)
	case errors.Is(err, fs.ErrNotExist):
		return nil, ledger.ErrMissing
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, damage("%s is not a regular file", fileName)
	}
	line := uint64(0)
	if outside != nil {
		line = outside.N
	}
	var db *bbolt.DB
	err = recoverDamage(func() (err error) {
		db, err = bbolt.Open(name, 0o600, &bbolt.Options{
			Timeout: time.Second, FreelistType: bbolt.FreelistMapType, InitialMmapSize: mapSize, OpenFile: examinedOpener(line),
		})
		return err
	})
	return db, err
}

// examinedOpener opens an existing file, locks it and looks at its pages, those that lead to a
// journal line among them. bbolt asks it
// for the file, and then finds the lock already its own.
func examinedOpener(line uint64) func(name string, mode int, _ os.FileMode) (*os.File, error) {
	return func(name string, mode int, _ os.FileMode) (*os.File, error) { return openAndExamine(name, mode, line) }
}

func openAndExamine(name string, mode int, line uint64) (*os.File, error) {
	f, err := os.OpenFile(name, mode&^os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ledger.ErrLocked
	}
	if err == nil {
		err = restrictRights(f)
	}
	if err == nil {
		err = checkBeforeMapping(f, line)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// restrictRights takes the ledger away from everybody but its owner.
func restrictRights(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return f.Chmod(0o600)
}

// recoverDamage turns what bbolt throws over a damaged page into a [ledger.DamageError]: a failed
// assertion, an index out of range, or the fault of reading beyond the file's end.
func recoverDamage(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damage("reading it failed: %v", r)
		}
	}()
	return fn()
}

// The layout of bbolt's meta pages, as far as it must be known to tell whether the
// file is whole before it is mapped.
const (
	pageHeader   = 16
	metaSize     = 64
	boltMagic    = 0xED0CDAED
	boltVersion  = 2
	flagFreelist = 0x10
	noFreelist   = ^uint64(0)
)

// metaPage is what a valid meta page says.
type metaPage struct {
	size                        uint64 // of one page, in bytes
	root, freelist, count, txid uint64
}

// checkBeforeMapping refuses a file that bbolt would die on or misread: too short, without
// a valid meta page, with a freelist that is none, or with pages that lead astray on
// the way to what opening reads, the given journal line among it.
func checkBeforeMapping(f *os.File, line uint64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p, ok := newestMeta(f, info.Size())
	size := uint64(info.Size())
	switch {
	case !ok:
		return damage("it has no valid meta page (%d bytes)", size)
	case size < 4*p.size || p.count > size/p.size:
		return damage("it was cut off: %d bytes, %d pages of %d needed", size, p.count, p.size)
	case p.root >= p.count || (p.freelist >= p.count && p.freelist != noFreelist):
		return damage("its meta page points beyond the file")
	}
	if p.freelist != noFreelist {
		if _, err := readFreelist(f, p); err != nil {
			return err
		}
	}
	return checkOpeningPaths(f, p, line)
}

// newestMeta returns the valid meta page with the highest transaction. The second
// one lies one page on, whose size only the first one tells.
func newestMeta(f io.ReaderAt, size int64) (newest metaPage, ok bool) {
	try := func(offset int64) bool {
		p, valid := readMeta(f, offset)
		if valid && (!ok || p.txid > newest.txid) {
			newest, ok = p, true
		}
		return valid
	}
	if try(0) {
		try(int64(newest.size))
		return newest, ok
	}
	for offset := int64(1024); offset <= 1<<24 && offset < size; offset *= 2 {
		if try(offset) && newest.size == uint64(offset) {
			return newest, true
		}
		ok = false
	}
	return metaPage{}, false
}

func readMeta(f io.ReaderAt, offset int64) (p metaPage, ok bool) {
	b := make([]byte, metaSize)
	if _, err := f.ReadAt(b, offset+pageHeader); err != nil {
		return p, false
	}
	n := binary.NativeEndian
	h := fnv.New64a()
	h.Write(b[:56])
	p = metaPage{
		size: uint64(n.Uint32(b[8:])), root: n.Uint64(b[16:]), freelist: n.Uint64(b[32:]),
		count: n.Uint64(b[40:]), txid: n.Uint64(b[48:]),
	}
	ok = n.Uint32(b) == boltMagic && n.Uint32(b[4:]) == boltVersion && n.Uint64(b[56:]) == h.Sum64() && p.size >= 1024
	return p, ok
}

// readFreelist reads the list of free pages, which has no checksum: a wrong one
// would make bbolt write over pages that are in use.
func readFreelist(f io.ReaderAt, p metaPage) (free []uint64, err error) {
	n := binary.NativeEndian
	head := make([]byte, pageHeader+8)
	at := int64(p.freelist * p.size)
	if _, err := f.ReadAt(head, at); err != nil {
		return nil, fmt.Errorf("read freelist: %w", err)
	}
	count, start := uint64(n.Uint16(head[10:])), int64(pageHeader)
	if count == 0xFFFF {
		count, start = n.Uint64(head[pageHeader:]), pageHeader+8
	}
	length := (uint64(n.Uint32(head[12:])) + 1) * p.size
	if n.Uint64(head) != p.freelist || n.Uint16(head[8:]) != flagFreelist || count > length/8 ||
		p.freelist+length/p.size > p.count || uint64(start)+count*8 > length {
		return nil, damage("the list of free pages is none")
	}
	ids := make([]byte, count*8)
	if _, err := f.ReadAt(ids, at+start); err != nil {
		return nil, fmt.Errorf("read freelist: %w", err)
	}
	last := uint64(1)
	for i := uint64(0); i < count; i++ {
		id := n.Uint64(ids[i*8:])
		if id <= last || id >= p.count {
			return nil, damage("the list of free pages is out of order")
		}
		last = id
		free = append(free, id)
	}
	return free, nil
}

// readSelf reads what the ledger says of itself and holds the last block against it.
func readSelf(tx *bbolt.Tx, f storedForm) (info ledger.Info, s summary, err error) {
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return info, s, damage("the bucket %s is missing", name)
		}
	}
	meta := tx.Bucket(metaBucket)
	schema, err := f.checkSchema(meta) // first: what follows can only be read in a form that is known
	if err != nil {
		return info, s, err
	}
	if info, err = infoForm.decode(meta.Get(infoKey)); err != nil {
		return info, s, damage("%v", err)
	}
	info.Schema = schema
	if _, err := readSecret(meta); err != nil {
		return info, s, err
	}
	if s, err = summaryForm.decode(meta.Get(summaryKey)); err != nil {
		return info, s, damage("%v", err)
	}
	for _, t := range s.counts {
		if t.state > ledger.Quarantined {
			return info, s, damage("the balance counts state %d", t.state)
		}
	}
	return info, s, checkJournalEnd(tx, s.head)
}

// checkJournalEnd holds the last block against the head.
func checkJournalEnd(tx *bbolt.Tx, end ledger.Head) error {
	last, err := headAt(tx, math.MaxUint64)
	if err == nil && last != end {
		err = damage("the journal ends at line %d, the head is at line %d", last.N, end.N)
	}
	return err
}

// checkOutsideHead holds the journal against the head that is kept outside.
func checkOutsideHead(tx *bbolt.Tx, id string, end ledger.Head, outside *headRecord) error {
	switch {
	case outside == nil && end.N == 1:
		return nil // a crash between making the ledger and its head
	case outside == nil:
		return damage("%s is missing, so that nobody can tell whether the ledger is the latest", headName)
	case outside.Ledger != id:
		return damage("%s belongs to the ledger %q, this one is %q", headName, outside.Ledger, id)
	case outside.N > end.N:
		return fmt.Errorf("%w: it has %d journal lines, the head outside knows %d", ledger.ErrRolledBack, end.N, outside.N)
	}
	h, err := headAt(tx, outside.N)
	if err == nil && !outside.agreesWith(h) {
		err = damage("journal line %d is not the one that %s knows", outside.N, headName)
	}
	return err
}
