package boltledger

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"vaultd/internal/ledger"
)

// A block can be read with nothing but what the standard and the ledger itself tell, one that was written as it is today is read
// for ever, and what a block says does not depend on how it is stored.
func TestDeflate_I28_GoldenBlockByTheStandard(t *testing.T) {
	path := filepath.Join("testdata", "schema1", "dictionary.txt")
	if update {
		if err := os.WriteFile(path, []byte(dictionary), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := goldenBlock()
	record := readHex(t, filepath.Join("testdata", "schema1", "block-deflated.hex"), blockForm.encodeDeflated(want.room(), &want))
	if got, err := blockForm.decode(record); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read is %+v (%v), want %+v", got, err, want)
	}
	given, err := os.ReadFile(path)
	if err != nil || string(given) != dictionary {
		t.Errorf("the dictionary is not the one that blocks were written with (%v)", err)
	}
	plain := blockForm.encode(&want)
	if record[0] != codecDeflated || len(record) >= len(plain) {
		t.Errorf("codec %d, %d bytes instead of %d: vacuous", record[0], len(record), len(plain))
	}
	got, err := io.ReadAll(flate.NewReaderDict(bytes.NewReader(record[1:len(record)-4]), given))
	if err != nil || !bytes.Equal(got, plain[1:len(plain)-4]) {
		t.Errorf("inflated by the standard it is %q (%v), want %q", got, err, plain)
	}
}

// Whatever is in a block is there again, short or long, repeated or random, and nothing becomes longer.
func TestDeflate_I14_EveryBlockComesBack(t *testing.T) {
	long := func(n int, line string) (b block) {
		for range n {
			b.lines = append(b.lines, []byte(line))
		}
		b.count = uint64(n)
		return b
	}
	for name, b := range map[string]block{
		"First":  {count: 1, lines: [][]byte{ledger.FirstLine("ledger-1", "test", began).Encode()}},
		"Golden": goldenBlock(), "Long": long(maxChangesPerCommit, `{"n":1,"event":"`+strings.Repeat("ä", 900)+`"}`),
		"Empty": long(1, ""), "Random": {prev: sum("x"), count: 1, lines: [][]byte{bytes.Join([][]byte{[]byte("a"), sumBytes("b"), sumBytes("c")}, nil)}},
	} {
		plain, packed := blockForm.encode(&b), blockForm.encodeDeflated(b.room(), &b)
		got, err := blockForm.decode(packed)
		if err != nil || !reflect.DeepEqual(got, b) || len(packed) > len(plain) {
			t.Errorf("%s: %d bytes, %d deflated, read is %.200v (%v)", name, len(plain), len(packed), got, err)
		}
	}
}

// I14: the first line of a block is the one that the whole block begins with, short or long, and of a damaged block there is none.
func TestFirstLineOf_I14_IsThatOfTheBlock(t *testing.T) {
	golden := goldenBlock()
	for name, b := range map[string]block{
		"Golden": golden, "Empty": {count: 1, lines: [][]byte{{}}}, "Longer": {count: 2, lines: [][]byte{bytes.Repeat(sumBytes("x"), beginBytes/16), []byte("y")}},
		"Many": {prev: sum("x"), count: 3, lines: [][]byte{[]byte("a"), bytes.Repeat([]byte("b"), 3*beginBytes), []byte("c")}},
	} {
		for _, record := range [][]byte{blockForm.encode(&b), blockForm.encodeDeflated(b.room(), &b)} {
			if line, err := firstLineOf(record); err != nil || !bytes.Equal(line, b.lines[0]) {
				t.Errorf("%s: %.100q, %v", name, line, err)
			}
			for _, at := range []int{1, len(record) / 2, len(record) - 1} {
				spoilt := bytes.Clone(record)
				spoilt[at] ^= 4
				if line, err := firstLineOf(spoilt); err == nil {
					t.Errorf("%s with another byte %d: %.100q", name, at, line)
				}
			}
		}
	}
	none := blockForm.encode(&block{count: 1})
	if line, err := firstLineOf(none); err == nil {
		t.Errorf("no line: %q", line)
	}
}

func sumBytes(s string) []byte { d := sum(s); return d[:] }

// A record that somebody made, with a checksum that is right, neither fills the memory nor hides anything.
func TestDeflate_I21_MadeRecordsAreRefused(t *testing.T) {
	made := func(payload []byte) []byte {
		b := append([]byte{codecDeflated}, payload...)
		return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	}
	deflated := func(n int) []byte {
		b, err := appendDeflated(nil, make([]byte, n))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := goldenBlock()
	rest := blockForm.encodeDeflated(good.room(), &good)
	for name, record := range map[string][]byte{
		"Bomb": made(deflated(mostInflated + 1)), "Behind": made(append(bytes.Clone(rest[1:len(rest)-4]), 0)), "CutOff": made(rest[1 : len(rest)-6]), "Nothing": made(nil),
	} {
		if got, err := blockForm.decode(record); err == nil || !strings.Contains(err.Error(), "inflate") || len(got.lines) > 0 || errors.Is(err, errShort) {
			t.Errorf("%s: %.100v, %v", name, got, err)
		}
	}
}
