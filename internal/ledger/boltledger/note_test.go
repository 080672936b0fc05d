package boltledger_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

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
	if err := held(&note, ledger.Operator{UID: 7, Reason: archive.Sum([]byte("another"))}); !errors.Is(err, ledger.ErrIllegal) {
		t.Errorf("a note that is not the act's: %v, want %v", err, ledger.ErrIllegal)
	}
	kit.Must(t, held(&note, ledger.Operator{UID: 7, Reason: note.Digest()}))
	kit.Must(t, held(nil, ledger.Operator{UID: 7}))
	e, _, err := l.Entry(key)
	kit.Must(t, err)
	notes, err := l.Notes(key)
	if err != nil {
		t.Error(err)
	}
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
			return setField(t, tx, docBucket, noteKey, "Note.text", text("no one asked"))
		},
		"is missing": func(tx *bbolt.Tx) error { return tx.Bucket(docBucket).Delete(noteKey) },
	} {
		harmed := copyLedger(t, dir, fileName, headName)
		edit(t, harmed, harm)
		l := open(t, boltledger.Config{Dir: harmed})
		kit.Check(t, found(t, l, what), "the check found no reason that %s, want it found", what)
	}
}

func TestInspectFile_ABackup(t *testing.T) {
	dir, _ := filled(t)
	l := open(t, boltledger.Config{Dir: dir})
	name := filepath.Join(t.TempDir(), "copy.db")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	kit.Must(t, err)
	kit.Value(l.Backup(f))(t)
	size, err := f.Seek(0, io.SeekEnd)
	kit.Must(t, errors.Join(err, f.Close()))
	if i, head, err := boltledger.InspectFile(name); err != nil || head != l.Head() || i.ID != info.ID {
		t.Errorf("a backup is %+v at %+v (%v), want %s at %+v", i, head, err, info.ID, l.Head())
	}
	kit.Must(t, os.Truncate(name, size/2))
	if _, _, err := boltledger.InspectFile(name); err == nil {
		t.Error("half a copy was accepted, want an error")
	}
}
