package boltledger_test

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// These helpers read and write the stored records as docs/ledger.md and
// docs/ledger.proto describe them, and share nothing with the package.

const (
	fileName = "ledger.db"
	headName = "ledger.head.1"

	codecPlain, codecDeflated = 1, 2
)

var (
	metaBucket    = []byte("meta")
	openBucket    = []byte("open")
	doneBucket    = []byte("done")
	docBucket     = []byte("doc")
	dueBucket     = []byte("due")
	journalBucket = []byte("journal")
	fetchesBucket = []byte("fetches")
	namesBucket   = []byte("names")
	arrivalBucket = []byte("arrivals")
	indexBucket   = []byte("index")

	summaryKey = []byte("summary")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// described returns the messages of docs/ledger.proto: the number and the type
// of each field by its name.
func described(t testing.TB) map[string]map[string]describedField {
	t.Helper()
	b := kit.Value(os.ReadFile("../../../docs/ledger.proto"))(t)
	text := regexp.MustCompile(`//[^\n]*`).ReplaceAllString(string(b), "")
	all := map[string]map[string]describedField{}
	for _, m := range regexp.MustCompile(`message (\w+) \{([^}]*)\}`).FindAllStringSubmatch(text, -1) {
		all[m[1]] = map[string]describedField{}
		for _, f := range regexp.MustCompile(`(\w+) (\w+) = (\d+);`).FindAllStringSubmatch(m[2], -1) {
			var n protowire.Number
			fmt.Sscan(f[3], &n)
			all[m[1]][f[2]] = describedField{n, f[1]}
		}
	}
	return all
}

type describedField struct {
	number protowire.Number
	kind   string
}

// sealed puts a payload into the frame of a record.
func sealed(codec byte, payload []byte) []byte {
	b := append([]byte{codec}, payload...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// payloadOf returns what a record holds, inflated by the standard library.
func payloadOf(t testing.TB, record []byte) []byte {
	t.Helper()
	kit.Need(t, len(record) >= 5 && bytes.Equal(record, sealed(record[0], record[1:len(record)-4])),
		"record %x has no codec or another checksum", record)
	payload := bytes.Clone(record[1 : len(record)-4])
	if record[0] == codecDeflated {
		var err error
		if payload, err = io.ReadAll(flate.NewReader(bytes.NewReader(payload))); err != nil {
			t.Fatal(err)
		}
	}
	return payload
}

// setField puts a value into one field of the record under a key, or takes it
// away, and leaves the record well formed. The field is named as in
// docs/ledger.proto, "Entry.Registrations.Ticket.Remote"; of a repeated one it
// is the first.
func setField(t testing.TB, tx *bbolt.Tx, bucket, key []byte, field string, value func(old []byte) []byte) error {
	t.Helper()
	message, path, _ := strings.Cut(field, ".")
	record := withField(t, payloadOf(t, tx.Bucket(bucket).Get(key)), described(t), message, strings.Split(path, "."), value)
	return tx.Bucket(bucket).Put(bytes.Clone(key), sealed(codecPlain, record))
}

// withField returns a message with one field changed. Fields stay in the order
// of their numbers.
func withField(t testing.TB, b []byte, all map[string]map[string]describedField, message string, path []string, value func(old []byte) []byte) []byte {
	t.Helper()
	f, ok := all[message][path[0]]
	if !ok {
		t.Fatalf("docs/ledger.proto has no field %s.%s", message, path[0])
	}
	typ := protowire.BytesType
	if slices.Contains([]string{"bool", "uint32", "uint64", "int64"}, f.kind) {
		typ = protowire.VarintType
	}
	before, old, after := cutField(t, b, f.number)
	if len(path) > 1 {
		inner, _ := protowire.ConsumeBytes(old)
		old = protowire.AppendBytes(nil, withField(t, inner, all, f.kind, path[1:], value))
	} else if old = value(old); old == nil {
		return slices.Concat(before, after)
	}
	return slices.Concat(before, protowire.AppendTag(nil, f.number, typ), old, after)
}

// cutField divides a message around the first field of a number, which may be
// missing; old is its value without the tag.
func cutField(t testing.TB, b []byte, number protowire.Number) (before, old, after []byte) {
	t.Helper()
	for at := 0; at < len(b); {
		num, typ, n := protowire.ConsumeTag(b[at:])
		m := protowire.ConsumeFieldValue(num, typ, b[at+max(n, 0):])
		kit.Need(t, n >= 0 && m >= 0, "%x is no message", b)
		if num > number {
			return b[:at], nil, b[at:]
		}
		if num == number {
			return b[:at], b[at+n : at+n+m], b[at+n+m:]
		}
		at += n + m
	}
	return b, nil, nil
}

// number is a value for setField: that number, of a field that has one.
func number(n uint64) func([]byte) []byte {
	return func([]byte) []byte { return protowire.AppendVarint(nil, n) }
}

// oneMore is a value for setField: the number that is there, and one more.
func oneMore(old []byte) []byte {
	n, _ := protowire.ConsumeVarint(old)
	return protowire.AppendVarint(nil, n+1)
}

// text is a value for setField: those bytes, of a field that has bytes.
func text[T ~string | ~[]byte](s T) func([]byte) []byte {
	return func([]byte) []byte { return protowire.AppendBytes(nil, []byte(s)) }
}

// another is a value for setField: the bytes that are there, the last of them
// another one.
func another(old []byte) []byte {
	old = bytes.Clone(old)
	old[len(old)-1] ^= 1
	return old
}

func flipped(v []byte) []byte {
	v = bytes.Clone(v)
	v[len(v)/2] ^= 4
	return v
}

// first returns a copy of the first pair of a bucket.
func first(tx *bbolt.Tx, bucket []byte) (k, v []byte) {
	k, v = tx.Bucket(bucket).Cursor().First()
	return bytes.Clone(k), bytes.Clone(v)
}

// The text of a reason is stored with the document, and its digest in the
// journal. The check finds that the text was exchanged or lost.
func TestNote_I29_TextBesideTheJournal(t *testing.T) {
	dir, keys := filled(t)
	l := open(t, boltledger.Config{Dir: dir})
	key := keys[2]
	note := ledger.Note{Salt: [16]byte{7}, Text: "Müller asked for it"}
	held := func(n *ledger.Note, by ledger.Operator) error {
		e, _, err := l.Entry(key)
		kit.Must(t, err)
		var ev ledger.Event = ledger.Held{By: by}
		if e.Hold {
			ev = ledger.Unheld{By: by}
		}
		rs, err := l.Apply(t.Context(), ledger.Change{Key: e.Key, Rev: e.Rev, Events: []ledger.Event{ev}, Note: n, At: archive.Instant{Wall: began}})
		kit.Must(t, err)
		return rs[0].Err
	}
	kit.Fails(t, "a note that is not the act's",
		held(&note, ledger.Operator{UID: 7, Reason: archive.Sum([]byte("another"))}), ledger.ErrIllegal)
	kit.Must(t, held(&note, ledger.Operator{UID: 7, Reason: note.Digest()}))
	kit.Must(t, held(nil, ledger.Operator{UID: 7}))
	e, _, err := l.Entry(key)
	kit.Must(t, err)
	notes, err := l.Notes(key)
	kit.Want(t, "the error", err, nil)
	kit.Want(t, "notes", notes, map[uint32]ledger.Note{e.Rev - 1: note})
	if d, ok, err := l.Document(key); err != nil || !ok || len(d.Metadata) == 0 {
		t.Errorf("document = %v, %v (%v), want one with metadata", d, ok, err)
	}
	kit.Must(t, l.Lines(1, func(_ uint64, line []byte) error {
		kit.Lacks(t, "line", string(line), "asked for it")
		return nil
	}))
	sound(t, l)
	kit.Must(t, l.Close())
	noteKey := binary.BigEndian.AppendUint32(bytes.Clone(key[:]), e.Rev-1)
	for what, harm := range map[string]func(tx *bbolt.Tx) error{
		"is not the one": func(tx *bbolt.Tx) error {
			return setField(t, tx, docBucket, noteKey, "Note.Text", text("no one asked"))
		},
		"is missing": func(tx *bbolt.Tx) error { return tx.Bucket(docBucket).Delete(noteKey) },
	} {
		harmed := copyLedger(t, dir, fileName, headName)
		edit(t, harmed, harm)
		l := open(t, boltledger.Config{Dir: harmed})
		kit.Check(t, found(t, l, what), "the check found no reason that %s, want it found", what)
	}
}

func TestInspectOpenFile_ABackup(t *testing.T) {
	dir, _ := filled(t)
	l := open(t, boltledger.Config{Dir: dir})
	name := filepath.Join(t.TempDir(), "copy.db")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	kit.Must(t, err)
	kit.Value(l.Backup(t.Context(), f, nil))(t)
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	kit.Must(t, err)
	if i, head, err := boltledger.InspectOpenFile(f); err != nil || head != l.Head() || i.ID != info.ID {
		t.Errorf("a backup is %+v at %+v (%v), want %s at %+v", i, head, err, info.ID, l.Head())
	}
	kit.Must(t, os.Truncate(name, size/2))
	_, _, err = boltledger.InspectOpenFile(f)
	kit.Check(t, err != nil, "half a copy was accepted, want an error")
}
