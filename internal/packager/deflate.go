package packager

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/flate"
)

// encoding is how a run of bytes is written. Runs of different encodings may follow each other: a deflate stream is a row of
// blocks, and any reader reads it.
type encoding int

const (
	matched encoding = iota // with repetitions, at the level of the rules
	literal                 // short codes for frequent bytes; repetitions are not looked for, because there are none
	stored                  // as it is
	numEncodings
)

// minRun is the least length of a run that is written in another encoding than the rest. A change of encoding costs some 100
// bytes, and the bytes before it can no longer be referred to.
const minRun = 24 << 10

// runDeflater writes a deflate stream. Looking for repetitions takes the time, so it looks only where there are some. It
// decides by the content, wherever in the file that is and whatever the file is called. Most bytes of an invoice are
// pictures and fonts that a compressor wrote already, inside files (PDF) that shrink all the same by what stands between
// them.
type runDeflater struct {
	writers [numEncodings]*flate.Writer
	to      io.Writer
	open    *flate.Writer // the writer of the last run; nil: nothing was written
}

func newRunDeflater(level int) (*runDeflater, error) {
	s := &runDeflater{}
	for w, level := range [numEncodings]int{matched: level, literal: flate.HuffmanOnly, stored: flate.NoCompression} {
		var err error
		if s.writers[w], err = flate.NewWriter(io.Discard, level); err != nil {
			return nil, err
		}
	}
	// A fast level takes no longer to look for repetitions, and stores runs that have none.
	if level < 7 {
		s.writers[literal] = s.writers[matched]
	}
	return s, nil
}

func (s *runDeflater) reset(to io.Writer) { s.to, s.open = to, nil }

// releaseData drops the reference to the writer, which holds a whole folder.
func (s *runDeflater) releaseData() {
	s.reset(nil)
	for _, w := range s.writers {
		w.Reset(io.Discard)
	}
}

// write takes the next piece of the content. How content is cut into pieces changes the output, so the pieces must depend on
// the content alone.
func (s *runDeflater) write(piece []byte) error { return splitRuns(piece, s.writeRun) }

func (s *runDeflater) writeRun(w encoding, data []byte) error {
	if next := s.writers[w]; s.open != next {
		if s.open != nil {
			if err := s.open.Flush(); err != nil {
				return err
			}
		}
		next.Reset(s.to)
		s.open = next
	}
	_, err := s.open.Write(data)
	return err
}

// close ends the stream, which must have at least one byte.
func (s *runDeflater) close() error { return s.open.Close() }

// splitRuns cuts data into runs by the encoding that suits them, and calls use for each.
func splitRuns(data []byte, use func(encoding, []byte) error) error {
	begin := 0 // of what was not given to use yet
	for at := 0; at < len(data); {
		n, w := findRun(data[at:], len(data))
		if w != matched {
			if at > begin {
				if err := use(matched, data[begin:at]); err != nil {
					return err
				}
			}
			if err := use(w, data[at:at+n]); err != nil {
				return err
			}
			begin = at + n
		}
		// The block that ended the run belongs to no run.
		at += n + blockSize
	}
	if begin == len(data) {
		return nil
	}
	return use(matched, data[begin:])
}

// blockSize is the length of the blocks that are looked at one by one.
const blockSize = 1 << 10

// findRun returns the length of the run at the start of data in which all byte values are about equally frequent, and the
// encoding that suits it. data is the rest of a piece of whole bytes.
func findRun(data []byte, whole int) (n int, w encoding) {
	var run byteCounts
	for n < len(data) {
		block := data[n:min(n+blockSize, len(data))]
		if seemsASCII(block) {
			break
		}
		var t byteCounts
		t.count(block)
		if t.unevenness(len(block)) > len(block)*3/4 { // some 7 % could be saved
			break
		}
		run.add(&t)
		n += len(block)
	}
	switch {
	case n == 0 || n < minRun && n < whole*3/4: // a small picture may be the whole file
		return n, matched
	case run.unevenness(n) <= n/18: // less than 0.5 %
		w = stored
	case n >= minRun:
		w = literal
	}
	if w != matched && hasRepeats(data[:n], run.mostFrequent()) {
		w = matched
	}
	return n, w
}

// seemsASCII reports whether a block is ASCII text as far as a few samples
// tell. That saves counting.
func seemsASCII(block []byte) bool {
	var bits uint64
	for at := 0; at+8 <= len(block); at += blockSize / 16 {
		bits |= binary.LittleEndian.Uint64(block[at:])
	}
	return len(block) >= 8 && bits&0x8080808080808080 == 0
}

// byteCounts counts the bytes of each value.
type byteCounts [256]uint32

func (t *byteCounts) count(block []byte) {
	// Two tables in turn, so that an increment need not wait for the one before.
	var other byteCounts
	for ; len(block) >= 4; block = block[4:] {
		t[block[0]]++
		other[block[1]]++
		t[block[2]]++
		other[block[3]]++
	}
	for _, b := range block {
		t[b]++
	}
	t.add(&other)
}

func (t *byteCounts) add(u *byteCounts) {
	for i, n := range u {
		t[i] += n
	}
}

// unevenness says how unequally frequent the values of n bytes are: chi-squared less what chance makes of it, which is 255.
// It grows by 11.1 (16 times the natural logarithm of 2) for each byte that shorter codes for the frequent values could
// save. It is a whole number, so that every machine decides alike.
func (t *byteCounts) unevenness(n int) int {
	var squares uint64
	for _, c := range t {
		squares += uint64(c) * uint64(c)
	}
	return int(squares*256/uint64(n)) - n - 255
}

func (t *byteCounts) mostFrequent() byte {
	best := 0
	for i, c := range t {
		if c > t[best] {
			best = i
		}
	}
	return byte(best)
}

// hasRepeats reports whether data with about equally frequent bytes repeats
// itself within deflate's reach: a picture that is there twice, or the white of
// a scanned page. It looks at the places after one byte value, which are the
// same places in equal data. By chance the next four bytes are found again at
// none of them. If they are found at one in 200, half a percent and more can be
// saved.
func hasRepeats(data []byte, mark byte) bool {
	const reach = 32 << 10
	// For each hash the place + 1 where it was seen last.
	var last [1 << 10]int32
	places, again := 0, 0
	for at := 0; ; {
		next := bytes.IndexByte(data[at:], mark)
		if at += next + 1; next < 0 || at+4 > len(data) {
			return again*200 > places
		}
		here := binary.LittleEndian.Uint32(data[at:])
		seen := &last[here*0x9e3779b1>>22]
		if before := int(*seen) - 1; before >= 0 && at-before <= reach && binary.LittleEndian.Uint32(data[before:]) == here {
			again++
		}
		*seen = int32(at + 1)
		places++
	}
}
