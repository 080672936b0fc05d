package archive

import (
	"bytes"
	"encoding/binary"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Ending is how a file ends, as far as its form says. It is a hint and no
// verdict.
type Ending uint8

// The endings.
const (
	EndsWell  Ending = iota // whole, or of a form that has no end to look for
	EndsOddly               // whole, though its end is not where readers look first
	EndsShort               // it looks cut off
)

// A tail of zeros: a program that sets the size first has not come to the end.
const (
	longZeros   = 16 << 10 // more than formats pad with: a tar has at most 10 KiB of them
	textZeros   = 512      // of a file that begins as text, which has none at all, and of compressed data
	pieceToRead = 64 << 10
	mostRead    = 256 << 20 // from the end: no larger file is sent
	mostParts   = 1 << 17   // of a picture: behind them the end mark is looked for at the end alone
)

// FindEnding looks at the size bytes of in, the content of a file of that name.
// Bytes after the end of a form do not count. The error is one of
// reading.
func FindEnding(name string, in io.ReaderAt, size int64) (Ending, error) {
	head, err := readPart(in, 0, min(size, formTail))
	if err != nil {
		return EndsWell, err
	}
	f := formFile{in: in, size: size, head: head}
	text := bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	isXML := bytes.HasPrefix(text, []byte("<?xml")) || strings.EqualFold(path.Ext(name), ".xml") && bytes.HasPrefix(text, []byte("<"))
	var ending Ending
	switch {
	case size <= formHead && IsBegunPDF(head):
	case bytes.HasPrefix(head, []byte("%PDF-")) || strings.EqualFold(path.Ext(name), ".pdf") && bytes.Contains(head, []byte("%PDF-")):
		ending = f.endOfPDF()
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		ending = f.endOfZIP()
	case bytes.HasPrefix(head, []byte("\x89PNG")):
		ending = f.endOfPNG()
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		ending = f.endOfJPEG()
	case isTIFF(head):
		ending = f.endOfTIFF()
	case isXML:
		ending = f.endOfXML()
	default:
		ending = f.endByZeros()
	}
	return ending, f.err
}

var headOfPDF = regexp.MustCompile(`^%PDF-[0-9.]*\s*(?:%[^%\r\n]*\s*)?$`)

// IsBegunPDF reports whether a file of that content is empty, or has no more than
// the head of a PDF. It has no content that could be cut off.
func IsBegunPDF(content []byte) bool {
	return bytes.HasPrefix([]byte("%PDF-"), content) || headOfPDF.Match(content)
}

func endIf(whole bool) Ending {
	if whole {
		return EndsWell
	}
	return EndsShort
}

// formFile is a file whose form is looked at. The first error of reading stays.
type formFile struct {
	in   io.ReaderAt
	size int64
	head []byte // its first bytes, at most formTail
	err  error
}

// read returns n bytes from at, or fewer at the end of the file.
func (f *formFile) read(at, n int64) []byte {
	if f.err != nil || at < 0 || at >= f.size {
		return nil
	}
	part, err := readPart(f.in, at, min(n, f.size-at))
	if err != nil {
		f.err = err
		return nil
	}
	return part
}

// lastIndex returns where text is found last; -1: nowhere.
func (f *formFile) lastIndex(text string) int64 {
	for end := f.size; end > 0 && f.size-end < mostRead && f.err == nil; {
		from := max(0, end-pieceToRead)
		// A part that begins here may end in the piece behind it.
		if i := bytes.LastIndex(f.read(from, end-from+int64(len(text))-1), []byte(text)); i >= 0 {
			return from + int64(i)
		}
		end = from
	}
	return -1
}

// endByZeros looks at a file of a form that has no end of its own. An empty file
// is none that was cut off.
func (f *formFile) endByZeros() Ending {
	zeros, limit := f.countZeros(), int64(longZeros)
	if !bytes.ContainsRune(f.head[:min(int64(len(f.head)), f.size-zeros)], 0) {
		limit = textZeros
	}
	return endIf(zeros < min(limit, f.size) || f.size == 0)
}

// countZeros counts the zeros at the end.
func (f *formFile) countZeros() (n int64) {
	for n < min(f.size, mostRead) && f.err == nil {
		from := max(0, f.size-n-pieceToRead)
		piece := f.read(from, f.size-n-from)
		rest := len(bytes.TrimRight(piece, "\x00"))
		if n += int64(len(piece) - rest); rest > 0 {
			break
		}
	}
	return n
}

// hasAtEnd reports whether a mark is where readers look for it first.
func (f *formFile) hasAtEnd(mark string) bool {
	return bytes.Contains(f.read(max(0, f.size-formTail), formTail), []byte(mark))
}

// endOfZIP looks for the last end record, and for the directory that it names. A
// ZIP file in a ZIP file has an end record too.
func (f *formFile) endOfZIP() Ending {
	at := f.lastIndex("PK\x05\x06")
	end := f.read(at, 22)
	if at < 0 || len(end) < 22 {
		return EndsShort
	}
	files, directory := binary.LittleEndian.Uint16(end[10:]), binary.LittleEndian.Uint32(end[16:])
	isWide := directory == 1<<32-1 // another record has it
	return endIf(files == 0 || isWide || bytes.HasPrefix(f.read(int64(directory), 4), []byte("PK\x01\x02")))
}

var startOfXref = regexp.MustCompile(`^startxref\s+([0-9]{1,12})`)

// endOfPDF looks for the end mark where readers look first. A PDF without it is
// whole if its last startxref leads to a cross-reference table or stream.
func (f *formFile) endOfPDF() Ending {
	if f.hasAtEnd("%%EOF") {
		return EndsWell
	}
	last := f.lastIndex("startxref")
	m := startOfXref.FindSubmatch(f.read(last, 64))
	if last < 0 || m == nil {
		return EndsShort
	}
	at, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil || at <= 0 {
		return EndsShort
	}
	// Places count from the mark at the beginning, or from the first byte.
	shift := int64(max(0, bytes.Index(f.head, []byte("%PDF-"))))
	if f.isXref(at, last) || shift > 0 && f.isXref(at+shift, last) {
		return EndsOddly
	}
	return EndsShort
}

var xrefObject = regexp.MustCompile(`^\s*[0-9]{1,10}\s+[0-9]{1,5}\s+obj\b`)

// isXref reports whether a cross-reference table or stream begins at a place
// before end.
func (f *formFile) isXref(at, end int64) bool {
	if at >= end {
		return false
	}
	part := f.read(at, min(end-at, 4096))
	if bytes.HasPrefix(bytes.TrimLeft(part, "\x00\t\n\f\r "), []byte("xref")) {
		return f.hasTrailer(at, end)
	}
	dict, _, _ := bytes.Cut(part, []byte("stream"))
	return xrefObject.Match(part) && bytes.Contains(dict, []byte("/XRef"))
}

// hasTrailer reports whether the trailer of a table is between two places.
func (f *formFile) hasTrailer(at, end int64) bool {
	part := f.read(max(at, end-pieceToRead), min(end-at, pieceToRead))
	return bytes.Contains(part, []byte("trailer"))
}

// endOfPNG walks over the chunks to the last one. If something else is in the
// place of a chunk, the last one is looked for at the end alone.
func (f *formFile) endOfPNG() Ending {
	at := int64(8)
	for range mostParts {
		chunk := f.read(at, 12)
		if len(chunk) < 12 || !isLetters(chunk[4:8]) {
			break
		}
		if string(chunk[4:8]) == "IEND" {
			return EndsWell
		}
		at += 12 + int64(binary.BigEndian.Uint32(chunk))
	}
	return endIf(f.hasAtEnd("IEND"))
}

func isLetters(kind []byte) bool {
	for _, c := range kind {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			return false
		}
	}
	return true
}

// endOfJPEG walks over the segments to the end mark. Segments hold pictures with
// end marks of their own. If something else is in the place of a segment, the
// end mark is looked for at the end alone.
func (f *formFile) endOfJPEG() Ending {
	at := int64(2)
	for range mostParts {
		mark := f.read(at, 4)
		switch {
		case len(mark) >= 2 && mark[0] == 0xff && mark[1] == 0xd9:
			return EndsWell
		case len(mark) < 4 || mark[0] != 0xff || mark[1] == 0:
			return endIf(f.hasAtEnd("\xff\xd9"))
		case mark[1] == 0xff: // a filler
			at++
		case mark[1] == 1 || mark[1] >= 0xd0 && mark[1] <= 0xd8: // marks without a segment
			at += 2
		default:
			at += 2 + int64(binary.BigEndian.Uint16(mark[2:]))
			if mark[1] == 0xda {
				at = f.skipScan(at)
			}
		}
	}
	return endIf(f.hasAtEnd("\xff\xd9"))
}

// skipScan returns where the next mark is behind the data of a scan; the size:
// there is none.
func (f *formFile) skipScan(at int64) int64 {
	for ; at < f.size && f.err == nil; at += pieceToRead - 1 {
		part := f.read(at, pieceToRead)
		for i := 0; ; i++ {
			n := bytes.IndexByte(part[min(i, len(part)):], 0xff)
			if n < 0 || i+n+1 >= len(part) {
				break
			}
			if i += n; part[i+1] != 0 && part[i+1] != 0xff && (part[i+1] < 0xd0 || part[i+1] > 0xd7) {
				return at + int64(i)
			}
		}
	}
	return f.size
}

var xmlRoot = regexp.MustCompile(`(?s)^\s*(?:<\?.*?\?>\s*|<!--.*?-->\s*|<!DOCTYPE[^<>\[]*(?:\[.*?\]\s*)?>\s*)*<([A-Za-z_][^\s/>]*)([^>]*>)?`)

// endOfXML looks for the end of the first element, whatever follows. If that
// element cannot be told, the file ends with a tag.
func (f *formFile) endOfXML() Ending {
	head := bytes.TrimPrefix(f.read(0, pieceToRead), []byte("\xef\xbb\xbf"))
	m := xmlRoot.FindSubmatch(head)
	if m == nil {
		tail := f.read(max(0, f.size-formTail), formTail)
		return endIf(bytes.HasSuffix(bytes.TrimRight(tail, " \t\r\n\x00"), []byte(">")))
	}
	if bytes.HasSuffix(m[2], []byte("/>")) {
		return EndsWell
	}
	end := "</" + string(m[1])
	at := f.lastIndex(end)
	return endIf(at >= 0 && bytes.HasPrefix(bytes.TrimLeft(f.read(at+int64(len(end)), 64), " \t\r\n"), []byte(">")))
}
