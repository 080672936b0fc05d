package boltledger_test

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// blocks makes a ledger with blocks of one line, of a long one and of many, and
// returns its lines.
func blocks(t *testing.T) (dir string, lines []string) {
	t.Helper()
	dir = newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	first := newDoc(t, l, 1)
	first.do(first.claim())
	var cause strings.Builder
	for n := range 7 {
		fmt.Fprint(&cause, sum(fmt.Sprint(n)))
	}
	kit.Must(t, l.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkDamaged, At: began, Cause: cause.String()}, nil))
	var cs []ledger.Change
	for n := range 512 {
		d := newDoc(t, l, n+2)
		cs = append(cs, d.change(d.claim()))
	}
	applied(t, l, cs...)
	first.do(ledger.Held{})
	err := l.Lines(1, func(_ uint64, line []byte) error { lines = append(lines, string(line)); return nil })
	if err = errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	return dir, lines
}

// The lines of a block, short or long, repeated or random, are read as they
// were written, and no block becomes longer than its lines.
func TestDeflate_I14_EveryBlockComesBack(t *testing.T) {
	dir, lines := blocks(t)
	edit(t, dir, func(tx *bbolt.Tx) error {
		n := 0
		err := tx.Bucket(journalBucket).ForEach(func(k, v []byte) error {
			payload := payloadOf(t, v)
			kit.Check(t, len(v) <= len(payload)+5,
				"the block at %x has %d bytes, want at most %d", k, len(v), len(payload)+5)
			for _, line := range linesOf(payload) {
				if n++; line != lines[n-1] {
					t.Fatalf("line %d is stored as %s, read as %s", n, line, lines[n-1])
				}
			}
			return nil
		})
		kit.Want(t, "lines", n, len(lines))
		return errors.Join(err, errUnchanged)
	})
}

// linesOf returns the lines of the payload of a block.
func linesOf(payload []byte) (lines []string) {
	for len(payload) > 0 {
		number, typ, n := protowire.ConsumeTag(payload)
		m := protowire.ConsumeFieldValue(number, typ, payload[n:])
		if number == 3 {
			line, _ := protowire.ConsumeBytes(payload[n:])
			lines = append(lines, string(line))
		}
		payload = payload[n+m:]
	}
	return lines
}

// withBlock copies a ledger and replaces the block that begins at line n.
func withBlock(t *testing.T, dir string, n uint64, change func(record []byte) []byte) string {
	t.Helper()
	to := copyLedger(t, dir, fileName, headName)
	edit(t, to, func(tx *bbolt.Tx) error {
		key := binary.BigEndian.AppendUint64(nil, n)
		return tx.Bucket(journalBucket).Put(key, change(bytes.Clone(tx.Bucket(journalBucket).Get(key))))
	})
	return to
}

// deflated returns a payload as it is in a record of codec 2.
func deflated(t *testing.T, payload []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(payload)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// I14: each line is read alone; of a damaged block none is.
func TestLineAt_I14_IsThatLine(t *testing.T) {
	dir, lines := blocks(t)
	for n := uint64(2); n <= 4; n++ { // the others are read by the start
		l := open(t, boltledger.Config{Dir: dir})
		kit.Want(t, "line", string(kit.Value(l.LineAt(n))(t).Encode()), lines[n-1])
		kit.Fails(t, "a line behind the end", kit.Err(l.LineAt(l.Head().N+1)))
		kit.Must(t, l.Close())
		length := 0
		withBlock(t, dir, n, func(b []byte) []byte { length = len(b); return b })
		for _, at := range []int{1, length / 2, length - 1} {
			l := open(t, boltledger.Config{Dir: withBlock(t, dir, n, func(b []byte) []byte { b[at] ^= 4; return b })})
			kit.Fails(t, fmt.Sprintf("line %d with another byte %d in its block", n, at), kit.Err(l.LineAt(n)))
		}
	}
}

// A record that was made by hand, with a right checksum, neither fills the
// memory nor hides anything.
func TestDeflate_I21_MadeRecordsAreRefused(t *testing.T) {
	dir, _ := blocks(t)
	for name, made := range map[string]func(payload []byte) []byte{
		"Bomb":    func([]byte) []byte { return deflated(t, make([]byte, 64<<20+1)) },
		"Behind":  func(payload []byte) []byte { return append(deflated(t, payload), 0) },
		"CutOff":  func(payload []byte) []byte { b := deflated(t, payload); return b[:len(b)-2] },
		"Nothing": func([]byte) []byte { return nil },
	} {
		l := open(t, boltledger.Config{Dir: withBlock(t, dir, 4, func(b []byte) []byte {
			return sealed(codecDeflated, made(payloadOf(t, b)))
		})})
		read := 0
		err := l.Lines(4, func(uint64, []byte) error { read++; return nil })
		kit.Check(t, err != nil && strings.Contains(err.Error(), "inflate") && read <= 0,
			"%s: %d lines are read (%v), want an error of inflating and none", name, read, err)
	}
}
