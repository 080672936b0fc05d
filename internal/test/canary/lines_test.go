package canary

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

const (
	pageSize  = 4096
	leafPage  = 2
	inBucket  = 1 // kind of an element that is a bucket
	deflated  = 2 // first byte of such a record
	mostLines = 64 << 20
)

// eachElement calls fn with the elements of a leaf page. What lies outside the file is left out: the file may be damaged.
func eachElement(page []byte, fn func(kind uint32, k, v []byte)) {
	n := binary.LittleEndian
	if len(page) < 16 || n.Uint16(page[8:]) != leafPage {
		return
	}
	for i := range int(n.Uint16(page[10:])) {
		at := 16 + 16*i
		if at+16 > len(page) {
			return
		}
		e := page[at:]
		from := uint64(at) + uint64(n.Uint32(e[4:]))
		middle := from + uint64(n.Uint32(e[8:]))
		if to := middle + uint64(n.Uint32(e[12:])); to <= uint64(len(page)) {
			fn(n.Uint32(e), page[from:middle], page[middle:to])
		}
	}
}

// journalOf returns the lines in the deflated blocks of a ledger, those on free pages too; nil: the file is none. It reads the form that
// docs/ledger.md describes, and follows nothing: a damaged file cannot end the search.
func journalOf(content []byte) (lines []byte) {
	if len(content) < 2*pageSize || !bytes.Equal(content[16:20], []byte{0xed, 0xda, 0x0c, 0xed}) {
		return nil
	}
	var blocks [][]byte
	var take func(kind uint32, k, v []byte)
	take = func(kind uint32, k, v []byte) {
		switch {
		case kind == inBucket && len(v) > 16 && binary.LittleEndian.Uint64(v) == 0:
			eachElement(v[16:], take)
		case len(v) > 5 && v[0] == deflated:
			blocks = append(blocks, v[1:len(v)-4])
		}
	}
	for at := 0; at+pageSize <= len(content); at += pageSize {
		eachElement(content[at:], take)
	}
	for _, b := range blocks {
		text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), mostLines))
		if err == nil || len(text) > 0 {
			lines = append(lines, text...)
		}
	}
	return lines
}

// A secret in a line of the journal is found, although the block that holds it is deflated: in a small ledger and in a larger one.
func TestJournalOf_I7_LooksIntoDeflatedBlocks(t *testing.T) {
	kit.Rows(t, map[string]int{"Small": 1, "Larger": 300}, func(t *testing.T, marks int) {
		dir := t.TempDir()
		err := boltledger.Create(dir, ledger.Info{ID: "L", Environment: "test", BaseURL: "https://archive.example", Created: time.Now()})
		kit.Must(t, err)
		l, err := boltledger.Open(boltledger.Config{Dir: dir})
		kit.Must(t, err)
		const bird = "CANARY-password-in-a-line"
		for i := range marks {
			cause := strings.Repeat("something else ", 20) // a short line is not deflated
			if i == 0 {
				cause += bird
			}
			err = errors.Join(err, l.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkDamaged, Cause: cause, At: time.Now()}, nil))
		}
		kit.Must(t, errors.Join(err, l.Close()))
		content := kit.Value(os.ReadFile(filepath.Join(dir, "ledger.db")))(t)
		lines := journalOf(content)
		kit.Check(t, bytes.Contains(lines, []byte(bird)) && bytes.Count(lines, []byte(`"event":"damaged"`)) >= marks,
			"%d bytes of lines do not hold it", len(lines))
		for _, b := range birds {
			kit.Check(t, b.what != "secret" || b.form.Match(lines), "the search does not see it")
		}
		for i := range 200 { // a damaged file ends nothing
			bad := bytes.Clone(content)
			for at := i; at < len(bad); at += 997 {
				bad[at] ^= byte(1 + i)
			}
			journalOf(bad)
		}
	})
}
