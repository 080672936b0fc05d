package boltledger

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Entry returns one entry; ok is false where there is none.
func (l *Ledger) Entry(key archive.Key) (e ledger.Entry, ok bool, err error) {
	err = l.view(func(tx *bbolt.Tx) error { e, ok, err = readEntry(tx, key); return err })
	return e, ok, err
}

func readEntry(tx *bbolt.Tx, key archive.Key) (e ledger.Entry, ok bool, err error) {
	// The open ones first: there are fewer of them, and most questions are about them.
	for _, bucket := range [][]byte{openBucket, doneBucket} {
		if record := tx.Bucket(bucket).Get(key[:]); record != nil {
			e, err = decodeEntryAt(bucket, key[:], record)
			return e, err == nil, err
		}
	}
	return e, false, nil
}

// hasEntry reports whether there is a record of an entry, whatever it holds.
func hasEntry(tx *bbolt.Tx, key archive.Key) bool {
	return tx.Bucket(openBucket).Get(key[:]) != nil || tx.Bucket(doneBucket).Get(key[:]) != nil
}

// decodeEntryAt reads a record that lies under key.
func decodeEntryAt(bucket, key, record []byte) (ledger.Entry, error) {
	e, err := decodeEntry(record)
	if err == nil && !bytes.Equal(e.Key[:], key) {
		err = fmt.Errorf("holds the entry %s", e.Key)
	}
	if err != nil {
		var under archive.Key
		copy(under[:], key)
		return e, damage("%s %s: %v", bucket, under, err)
	}
	return e, nil
}

// Document returns the erasable part of an entry; ok is false where there is none: before it is sealed or has ended, and
// where nothing could be read of a refused folder.
func (l *Ledger) Document(key archive.Key) (d ledger.Document, ok bool, err error) {
	err = l.view(func(tx *bbolt.Tx) error { d, ok, err = readDocument(tx, key); return err })
	return d, ok, err
}

// Notes returns what people gave as the reasons of their acts on an entry, by the
// revision that each act made.
func (l *Ledger) Notes(key archive.Key) (notes map[uint32]ledger.Note, err error) {
	notes = map[uint32]ledger.Note{}
	err = l.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(docBucket).Cursor()
		for k, v := c.Seek(noteKey(key, 0)); isNote(k) && bytes.HasPrefix(k, key[:]); k, v = c.Next() {
			n, err := noteForm.decode(v)
			if err != nil {
				return damage("doc %s: %v", key, err)
			}
			notes[binary.BigEndian.Uint32(k[len(key):])] = n
		}
		return nil
	})
	return notes, err
}

// isNote tells the keys of notes from those of documents.
func isNote(k []byte) bool { return len(k) == len(archive.Key{})+4 }

// FindByID returns the entry that last took the clientUUID, of any generation.
func (l *Ledger) FindByID(id archive.ID) (archive.Key, bool, error) { return l.lookUpName(idName(id)) }

// FindByRemote returns the entry that was given the service's number.
func (l *Ledger) FindByRemote(r archive.RemoteID) (archive.Key, bool, error) {
	return l.lookUpName(remoteName(r))
}

// FindByContent returns the first entry that was sealed with these files and not
// rejected without doubt before another one came.
func (l *Ledger) FindByContent(d archive.Digest) (archive.Key, bool, error) {
	return l.lookUpName(contentName(d))
}

func (l *Ledger) lookUpName(name []byte) (key archive.Key, ok bool, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		var h holder
		h, ok, err = findHolder(tx, name, entriesOf(tx))
		key = h.key
		return err
	})
	return key, ok, err
}

// EntriesOldestFirst calls fn with every entry, in the order of keys, and returns what fn
// returns first. It reads in parts: an entry that changes meanwhile is seen as before or as
// after the change.
func (l *Ledger) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	return readingOf(openBucket, doneBucket).each(l, fn)
}

// EntriesNewestFirst calls fn with every entry, the newest first, as EntriesOldestFirst does.
func (l *Ledger) EntriesNewestFirst(fn func(ledger.Entry) error) error {
	r := readingOf(openBucket, doneBucket)
	r.newestFirst = true
	return r.each(l, fn)
}

// OpenEntries calls fn with every entry that is not at rest: those on their way and those
// that need a person. It reads as EntriesOldestFirst does, and reads no other entry.
func (l *Ledger) OpenEntries(fn func(ledger.Entry) error) error {
	return readingOf(openBucket).each(l, fn)
}

// readingOf reads the entries of buckets.
func readingOf(buckets ...[]byte) reading[ledger.Entry] {
	return reading[ledger.Entry]{what: "entries", buckets: buckets, decode: func(_ *bbolt.Tx, bucket, k, v []byte) (ledger.Entry, error) {
		return decodeEntryAt(bucket, k, v)
	}}
}

// Lines calls fn with every journal line from number from on, as stored, and returns
// what fn returns first. The chain is not checked here; see Verify.
func (l *Ledger) Lines(from uint64, fn func(n uint64, line []byte) error) error {
	next := max(from, 1)
	r := reading[foundBlock]{what: "journal", buckets: [][]byte{journalBucket}, decode: func(_ *bbolt.Tx, _, k, v []byte) (foundBlock, error) { return decodeBlock(k, v) }}
	err := l.view(func(tx *bbolt.Tx) error {
		k, _ := seekBlock(tx.Bucket(journalBucket).Cursor(), next)
		r.from = bytes.Clone(k)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	return r.each(l, func(b foundBlock) error {
		// A gap means that a block is gone. Skipping it would hide it from every reader.
		if b.start > next {
			return damage("journal line %d is missing", next)
		}
		for ; next < b.end(); next++ {
			if err := fn(next, b.Lines[next-b.start]); err != nil {
				return err
			}
		}
		return nil
	})
}

// LineAt returns one line of the journal. It reads one block.
func (l *Ledger) LineAt(n uint64) (line ledger.Line, err error) {
	err = l.view(func(tx *bbolt.Tx) error { line, err = lineAt(tx, n); return err })
	return line, err
}

func lineAt(tx *bbolt.Tx, n uint64) (line ledger.Line, err error) {
	b, err := blockOf(tx, n)
	if err == nil && n >= b.end() {
		err = damage("journal line %d is missing", n)
	}
	if err != nil {
		return line, err
	}
	if line, err = ledger.ParseLine(b.Lines[n-b.start]); err != nil {
		err = damage("journal line %d: %v", n, err)
	}
	return line, err
}

// seekBlock goes to the block that holds line n, or to the last one.
func seekBlock(c *bbolt.Cursor, n uint64) (k, v []byte) {
	k, v = c.Seek(lineKey(n))
	switch {
	case k == nil:
		return c.Last()
	case !bytes.Equal(k, lineKey(n)):
		return c.Prev()
	}
	return k, v
}

// foundBlock is a block with the number of its first line.
type foundBlock struct {
	block
	start uint64
}

// end is the number that follows its last line.
func (b foundBlock) end() uint64 { return b.start + uint64(len(b.Lines)) }

func decodeBlock(k, v []byte) (b foundBlock, err error) {
	if len(k) != 8 {
		return b, damage("journal a key of %d bytes", len(k))
	}
	b.start = binary.BigEndian.Uint64(k)
	if b.block, err = blockForm.decode(v); err != nil {
		return b, damage("journal block at line %d: %v", b.start, err)
	}
	if len(b.Lines) == 0 {
		return b, damage("journal block at line %d has none", b.start)
	}
	return b, nil
}

// HeadAt returns the head as it was after line n; ok is false where the journal ends before it. It reads one block and trusts the
// block's own previous hash.
func (l *Ledger) HeadAt(n uint64) (h ledger.Head, ok bool, err error) {
	if n == 0 || n > l.Head().N {
		return h, n == 0, nil
	}
	err = l.view(func(tx *bbolt.Tx) (err error) { h, err = headAt(tx, n); return err })
	return h, err == nil && h.N == n, err
}

// blockOf returns the block that holds line n, or the last one.
func blockOf(tx *bbolt.Tx, n uint64) (b foundBlock, err error) {
	k, v := seekBlock(tx.Bucket(journalBucket).Cursor(), n)
	if k == nil {
		return b, damage("journal line %d is missing", n)
	}
	return decodeBlock(k, v)
}

// headAt returns the head as it was after line n, or the last one where the journal
// ends before it. It trusts the block's own previous hash.
func headAt(tx *bbolt.Tx, n uint64) (h ledger.Head, err error) {
	b, err := blockOf(tx, n)
	if err != nil {
		return h, err
	}
	// The start of the chain is not read: a look at one block must not cost the whole journal.
	h = ledger.Head{N: b.start - 1, Hash: b.Prev}
	for _, line := range b.Lines {
		if h.N == n {
			break
		}
		h = h.Next(line)
	}
	return h, nil
}
