package boltledger_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

func page(t *testing.T) string {
	t.Helper()
	b := kit.Value(os.ReadFile("../../../docs/ledger.md"))(t)
	return string(b)
}

// The worked example of the page is worked here.
func TestDocs_ChainExample(t *testing.T) {
	text := page(t)
	var h ledger.Head
	lines := regexp.MustCompile(`(?m)^    line \d+ +(.*)$`).FindAllStringSubmatch(text, -1)
	hashes := regexp.MustCompile(`(?m)^    h\d+ +(.*)$`).FindAllStringSubmatch(text, -1)
	kit.Need(t, len(lines) == 2 && len(hashes) == 3 && hashes[0][1] == h.Hash.String(),
		"the page has the lines %q and the hashes %q, want 2 and 3, from %s on", lines, hashes, h.Hash)
	kit.Want(t, "first line", lines[0][1], string(ledger.FirstLine(info.ID, info.Environment, began).Encode()))
	for i, line := range lines {
		h = h.Next([]byte(line[1]))
		kit.Want(t, fmt.Sprintf("h%d", i+1), hashes[i+1][1], h.Hash.String())
		l, err := ledger.ParseLine([]byte(line[1]))
		kit.Want(t, "the error", err, nil)
		kit.Want(t, fmt.Sprintf("line %d, written again", i+1), string(l.Encode()), line[1])
	}
}

// The table of the page has the fields of a line, all of them and in their
// order.
func TestDocs_FieldsOfALine(t *testing.T) {
	var want []string
	for i := range reflect.TypeFor[ledger.Line]().NumField() {
		tag, _, _ := strings.Cut(reflect.TypeFor[ledger.Line]().Field(i).Tag.Get("json"), ",")
		want = append(want, tag)
	}
	_, table, _ := strings.Cut(page(t), "| field | meaning |")
	table, _, _ = strings.Cut(table, "\n\n")
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` ").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	kit.Want(t, "described fields of a line", got, want)
	edit(t, newLedger(t), func(tx *bbolt.Tx) error {
		err := tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			describes(t, page(t), fmt.Sprintf("| `%s` |", name))
			return nil
		})
		return cmp.Or(err, errUnchanged)
	})
	for _, s := range ledger.States() {
		describes(t, table, s.String())
	}
	for s := ledger.Claimed; s <= ledger.Gone; s++ {
		describes(t, table, s.String())
	}
}

// describes fails the test unless docs/ledger.md, or a part of it, has the
// words.
func describes(t *testing.T, text, words string) {
	t.Helper()
	kit.Holds(t, "docs/ledger.md", text, words)
}

func TestDocs_EventsOfALine(t *testing.T) {
	text := page(t)
	for _, edges := range []string{"edges.txt", "arrivaledges.txt"} { // generated from the events
		for line := range strings.Lines(string(kit.Value(os.ReadFile("../../proof/" + edges))(t))) {
			if event, _, _ := strings.Cut(line, " "); event != "#" {
				describes(t, text, "`"+event+"`")
			}
		}
	}
	for _, s := range arrival.States() {
		describes(t, text, s.String())
	}
}

// Every mark is described in docs/ledger.md.
func TestDocs_MarksOfALine(t *testing.T) {
	for _, word := range append(ledger.MarkNames(), ledger.FetchOutcomes()...) {
		describes(t, page(t), "`"+word+"`")
	}
}

// The page's own program reads a ledger, and notices a changed one.
func TestDocs_I14_ProgramReadsALedger(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		kit.Missing(t, "python3, for the program in docs/ledger.md")
	}
	_, program, _ := strings.Cut(page(t), "```python\n")
	program, _, _ = strings.Cut(program, "```")
	dir, _ := filled(t)
	name := pathIn(dir, fileName)
	check := func() (string, error) {
		out, err := exec.CommandContext(t.Context(), python, "-c", program, name).CombinedOutput()
		return string(out), err
	}
	l := open(t, boltledger.Config{Dir: dir})
	want := fmt.Sprintf("%d lines, %s\n", l.Head().N, l.Head().Hash)
	l.Close()
	if out, err := check(); err != nil || !strings.HasSuffix(out, want) || strings.Count(out, "\n") != int(l.Head().N)+1 {
		t.Errorf("the program says (%v)\n%s\nwant %s", err, out, want)
	}
	last := func(tx *bbolt.Tx) (k, v []byte) {
		k, v = tx.Bucket(journalBucket).Cursor().Last()
		return bytes.Clone(k), v
	}
	edit(t, dir, func(tx *bbolt.Tx) error {
		k, v := last(tx)
		kit.Want(t, "codec of the last block", v[0], codecDeflated)
		return tx.Bucket(journalBucket).Put(k, flipped(v))
	})
	if out, err := check(); err == nil || !strings.Contains(out, "damaged record") {
		t.Errorf("the program says of a flipped bit (%v)\n%.300s\nwant a damaged record", err, out)
	}
	edit(t, dir, func(tx *bbolt.Tx) error {
		k, v := last(tx)
		if err := tx.Bucket(journalBucket).Put(k, flipped(v)); err != nil { // back again
			return err
		}
		return setField(t, tx, journalBucket, k, "Block.Lines", func(old []byte) []byte {
			line, _ := protowire.ConsumeBytes(old)
			return text(bytes.Replace(line, []byte(`"rev":`), []byte(`"rev":1`), 1))(nil)
		})
	})
	if out, err := check(); err == nil || !strings.Contains(out, "does not end where the ledger says") {
		t.Errorf("the program says of another line (%v)\n%.300s\nwant another end", err, out)
	}
}

// I15: whatever bytes are in the ledger file and its outside head: opening
// them is refused in words or succeeds, the check comes to an end, and nothing
// panics.
func FuzzOpen_I15(f *testing.F) {
	dir, _ := filled(f)
	whole := kit.Value(os.ReadFile(pathIn(dir, fileName)))(f)
	outside := kit.Value(os.ReadFile(pathIn(dir, headName)))(f)
	f.Add([]byte{0, 0, 0, 0, 1}, []byte{}, uint32(0))
	f.Add([]byte{0, 0, 0x10, 0x10, 3, 0, 0, 0x20, 9, 0x80}, []byte{0, 5, 1}, uint32(0))
	f.Add([]byte{0, 0, 0x30, 0, 7}, []byte{2, 0, 1}, uint32(5000))
	f.Add([]byte{0, 0, 0x10, 0x10, 1}, []byte{}, uint32(100)) // a meta page, and the end is cut off
	f.Fuzz(func(t *testing.T, flips, head []byte, cut uint32) {
		bad, badHead := bytes.Clone(whole), bytes.Clone(outside)
		for ; len(flips) >= 5; flips = flips[5:] {
			bad[int(binary.BigEndian.Uint32(flips))%len(bad)] ^= flips[4]
		}
		for ; len(head) >= 3; head = head[3:] {
			badHead[int(binary.BigEndian.Uint16(head))%len(badHead)] ^= head[2]
		}
		bad = bad[:len(bad)-int(cut)%len(bad)]
		at := t.TempDir()
		kit.Must(t, errors.Join(os.WriteFile(pathIn(at, fileName), bad, 0o600), os.WriteFile(pathIn(at, headName), badHead, 0o600)))
		l, err := boltledger.Open(boltledger.Config{Dir: at})
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = l.Verify(ctx)
		kit.Check(t, ctx.Err() == nil, "the check does not end: %v", err)
		_ = l.Close() // a damaged one may say so
	})
}
