package archive

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Bounds of a TIFF that is looked at: what is beyond them is not looked at.
const (
	mostPages  = 10_000
	mostStrips = 100_000 // of a page
)

func isTIFF(head []byte) bool {
	for _, mark := range []string{"II*\x00", "MM\x00*", "II+\x00", "MM\x00+"} {
		if bytes.HasPrefix(head, []byte(mark)) {
			return true
		}
	}
	return false
}

// tiffFile is a TIFF, or a BigTIFF, whose numbers are twice as wide.
type tiffFile struct {
	*formFile
	order binary.ByteOrder
	isBig bool
	zeros int64 // where the zeros at its end begin
}

// endOfTIFF walks over the pages: each is described where the one before says,
// and all of its strips or tiles are in the file.
func (f *formFile) endOfTIFF() Ending {
	t := tiffFile{formFile: f, order: binary.LittleEndian, isBig: bytes.ContainsRune(f.head[:4], '+'), zeros: f.size - f.countZeros()}
	if f.head[0] == 'M' {
		t.order = binary.BigEndian
	}
	at, width := int64(4), int64(4)
	if t.isBig {
		at, width = 8, 8
	}
	next, ok := t.number(at, width)
	if !ok || next == 0 {
		return EndsShort
	}
	for page := 0; next != 0 && page < mostPages; page++ {
		if next, ok = t.checkPage(next); !ok {
			return EndsShort
		}
	}
	return EndsWell
}

// number reads a number of that many bytes.
func (t *tiffFile) number(at, width int64) (int64, bool) {
	b := t.read(at, width)
	if int64(len(b)) < width {
		return 0, false
	}
	n := t.decode(b)
	return int64(n), n < 1<<62
}

// decode returns the number that b is.
func (t *tiffFile) decode(b []byte) uint64 {
	switch len(b) {
	case 2:
		return uint64(t.order.Uint16(b))
	case 4:
		return uint64(t.order.Uint32(b))
	}
	return t.order.Uint64(b)
}

// The tags that say where the data of a page is, and how it is compressed.
const (
	tagCompression = 259
	tagStrips      = 273
	tagStripSizes  = 279
	tagTiles       = 324
	tagTileSizes   = 325
)

// checkPage looks at the page that is described at a place. It returns where the
// next one is described; 0: it is the last one. ok is false where a part of the
// page is missing.
func (t *tiffFile) checkPage(at int64) (next int64, ok bool) {
	counter, entry, width := int64(2), int64(12), int64(4)
	if t.isBig {
		counter, entry, width = 8, 20, 8
	}
	n, ok := t.number(at, counter)
	if !ok || n == 0 || n > 1<<16 {
		return 0, false
	}
	places, sizes, compression := []int64(nil), []int64(nil), int64(1)
	for i := range n {
		field := at + counter + i*entry
		tag, ok := t.number(field, 2)
		if !ok {
			return 0, false
		}
		values := func() (list []int64) { list, ok = t.values(field); return list }
		switch tag {
		case tagCompression:
			if list := values(); len(list) > 0 {
				compression = list[0]
			}
		case tagStrips, tagTiles:
			places = values()
		case tagStripSizes, tagTileSizes:
			sizes = values()
		}
		if !ok {
			return 0, false
		}
	}
	if !t.hasData(places, sizes, compression != 1) {
		return 0, false
	}
	next, ok = t.number(at+counter+n*entry, width)
	return next, ok || at+counter+n*entry >= t.size // some writers leave out the last one
}

// values reads the whole numbers of a field.
func (t *tiffFile) values(field int64) (list []int64, ok bool) {
	counter, room := int64(4), int64(4)
	if t.isBig {
		counter, room = 8, 8
	}
	kind, ok := t.number(field+2, 2)
	width := map[int64]int64{3: 2, 4: 4, 16: 8}[kind]
	n, okCount := t.number(field+4, counter)
	if !ok || !okCount || width == 0 {
		return nil, ok && okCount
	}
	at := field + 4 + counter
	if n > 1<<32 {
		return nil, false
	}
	if n*width > room {
		if at, ok = t.number(at, room); !ok || at+n*width > t.size {
			return nil, false
		}
	}
	raw := t.read(at, min(n, mostStrips)*width)
	for ; int64(len(raw)) >= width; raw = raw[width:] {
		list = append(list, int64(min(t.decode(raw[:width]), 1<<62)))
	}
	return list, true
}

// hasData reports whether all data of a page is in the file, and does not end
// with a long tail of zeros. A page that is not compressed may be all zeros.
func (t *tiffFile) hasData(places, sizes []int64, isCompressed bool) bool {
	isBlank, limit := !isCompressed && len(places) > 0 && t.zeros <= slices.Min(places), int64(longZeros)
	if isCompressed {
		limit = textZeros
	}
	for i, at := range places {
		if i >= len(sizes) {
			return at < t.size
		}
		end := at + sizes[i]
		if at >= t.size && sizes[i] > 0 || end > t.size || end < at {
			return false
		}
		if zeros := end - max(at, t.zeros); !isBlank && sizes[i] > 0 && zeros >= min(limit, sizes[i]) {
			return false
		}
	}
	return true
}
