package boltledger

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

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

// checkBeforeMapping refuses a file that would end bbolt's process or be misread: one that is too
// short, without a valid meta page, with a wrong freelist, or with wrong pages among those that
// opening reads, the pages to the given journal line included.
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
	// bbolt would map pages behind the end of the file, and the first read of one would end the process.
	case size < 4*p.size || p.count > size/p.size:
		return damage("it was cut off: %d bytes, %d pages of %d needed", size, p.count, p.size)
	case p.root >= p.count || (p.freelist >= p.count && p.freelist != noFreelist):
		return damage("its meta page points beyond the file")
	}
	if p.freelist != noFreelist {
		// A wrong list would let the next commit overwrite pages that are in use.
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
	// The first meta page is torn: a crash hit its write. The other one is valid, and lies one page on, whatever size a page has.
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
	// More than 65,534 free pages: then the first element holds the count.
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
