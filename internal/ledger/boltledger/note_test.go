package boltledger

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// The text of a reason stands beside the document, its digest in the journal; erased,
// the chain still verifies; exchanged, it does not.
func TestNote_I29_TextBesideTheJournal(t *testing.T) {
	dir, keys := filled(t)
	l := open(t, Config{Dir: dir})
	note := ledger.Note{Salt: [16]byte{7}, Text: "Müller asked for it"}
	held := func(n *ledger.Note, by ledger.Operator) error {
		e, _, err := l.Entry(keys[2])
		if err != nil {
			t.Fatal(err)
		}
		var ev ledger.Event = ledger.Held{By: by}
		if e.Hold {
			ev = ledger.Unheld{By: by}
		}
		rs, err := l.Apply(t.Context(), ledger.Change{Key: e.Key, Rev: e.Rev, Events: []ledger.Event{ev}, Note: n, At: archive.Instant{Wall: began}})
		if err != nil {
			t.Fatal(err)
		}
		return rs[0].Err
	}
	if err := held(&note, ledger.Operator{UID: 7, Reason: archive.Sum([]byte("another"))}); !errors.Is(err, ledger.ErrIllegal) {
		t.Errorf("a note that is not the act's: %v", err)
	}
	if err := held(&note, ledger.Operator{UID: 7, Reason: note.Digest()}); err != nil {
		t.Fatal(err)
	}
	if err := held(nil, ledger.Operator{UID: 7}); err != nil {
		t.Fatal(err)
	}
	e, _, _ := l.Entry(keys[2])
	if notes, err := l.Notes(e.Key); err != nil || len(notes) != 1 || notes[e.Rev-1] != note {
		t.Errorf("notes %v, %v", notes, err)
	}
	if d, ok, err := l.Document(e.Key); err != nil || !ok || len(d.Metadata) == 0 {
		t.Errorf("document %v, %v, %v", d, ok, err)
	}
	if err := l.Lines(1, func(_ uint64, line []byte) error {
		if strings.Contains(string(line), "asked for it") {
			t.Errorf("the text stands in the journal: %s", line)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	verifies := func(what string, want bool) {
		t.Helper()
		if found, err := l.Verify(t.Context()); err != nil || (len(found) == 0) != want {
			t.Errorf("%s: %v, %v", what, found, err)
		}
	}
	verifies("as written", true)
	change := func(fn func(*bbolt.Bucket) error) {
		t.Helper()
		if err := l.db.Update(func(tx *bbolt.Tx) error { return fn(tx.Bucket(docBucket)) }); err != nil {
			t.Fatal(err)
		}
	}
	other := ledger.Note{Salt: note.Salt, Text: "nobody asked"}
	change(func(doc *bbolt.Bucket) error { return doc.Put(noteKey(e.Key, e.Rev-1), noteForm.encode(&other)) })
	verifies("exchanged", false)
	change(func(doc *bbolt.Bucket) error { return doc.Delete(noteKey(e.Key, e.Rev-1)) })
	verifies("lost", false)
}

func TestInspectFile_ABackup(t *testing.T) {
	dir, _ := filled(t)
	l := open(t, Config{Dir: dir})
	name := filepath.Join(t.TempDir(), "copy.db")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Backup(f); err != nil {
		t.Fatal(err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if i, head, err := InspectFile(name); err != nil || head != l.Head() || i.ID != info.ID {
		t.Errorf("%+v %+v %v", i, head, err)
	}
	if err := os.Truncate(name, size/2); err != nil {
		t.Fatal(err)
	}
	if _, _, err := InspectFile(name); err == nil {
		t.Error("half a copy passed")
	}
}
