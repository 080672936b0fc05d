package boltledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// groupCommit is the work of one commit: the entries that it touches, as they were stored and
// as they are now, and their journal lines. Names are written at once, so that two entries of one
// commit cannot take the same one; the rest is written at the end.
type groupCommit struct {
	tx      *bbolt.Tx
	ledger  *Ledger // as it was committed last
	summary         // as this commit will leave it
	lines   [][]byte
	entries map[archive.Key]*changedEntry
	touched bool // there is something to commit besides changes of entries
}

// changedEntry is one entry of a group commit, before it and now. The state None means: not stored yet.
type changedEntry struct {
	stored, now ledger.Entry
}

// draft is what a change would make. It is dropped whole when one event is refused.
type draft struct {
	stored   ledger.Entry // before it
	entry    ledger.Entry
	lines    [][]byte
	bindings []nameBinding
	doc      *ledger.Document
	note     *ledger.Note
	noted    uint32          // the revision that the note is about
	clocks   clockComparison // zero: it tells nothing of the clocks
	at       time.Time
	notices  []ledger.Notice
}

// draftChange works out what a change would do. An error concerns this change alone, and
// nothing was written.
func (g *groupCommit) draftChange(c ledger.Change) (draft, error) {
	stored, err := g.loadEntry(c.Key)
	d := draft{stored: stored, entry: stored}
	switch {
	case err != nil:
		return d, err
	case c.Key.IsZero() || len(c.Events) == 0:
		return d, fmt.Errorf("change %s: no key or no event: %w", c.Key, ledger.ErrIllegal)
	}
	// Where the entry changed since the caller decided, its decision may be
	// wrong now, and it must decide again.
	events, err := c.EventsOn(stored)
	if err != nil {
		return d, err
	}
	at := c.At
	at.Wall = at.Wall.Round(0).UTC() // as it will be read again: no monotonic part
	d.at = at.Wall
	// The events of one change are made all or none: the draft is dropped when one of them is refused.
	for _, ev := range events {
		ev, err := g.complete(d.entry, ev)
		if err != nil {
			return d, err
		}
		after, err := ledger.Transition(d.entry, ev, at)
		if err == nil {
			err = g.acceptDocument(&d, after, ev, c.Document)
		}
		if err == nil {
			err = g.bindNames(&d, after, ev)
		}
		if err != nil {
			return d, err
		}
		// Every new revision has its line in the same transaction; the check counts both.
		if after.Rev != d.entry.Rev {
			n := g.Head.N + uint64(len(d.lines)) + 1
			d.lines = append(d.lines, ledger.NewLine(n, after, ev, at).Encode())
		}
		d.entry = after
		if got, ok := ev.(ledger.TicketReceived); ok && !got.Ticket.Date.IsZero() {
			d.clocks = clockComparison{got.Ticket.Sent.Wall, got.Ticket.Date}
		}
		if by, ok := ledger.ActorOf(ev); ok && c.Note != nil && by.Reason == c.Note.Digest() {
			d.note, d.noted = c.Note, after.Rev
		}
	}
	if c.Note != nil && d.note == nil {
		return d, fmt.Errorf("change %s: a note comes with the act whose reason it is: %w", c.Key, ledger.ErrIllegal)
	}
	if c.Document != nil && d.doc == nil {
		return d, fmt.Errorf("change %s: a document comes with its sealed event: %w", c.Key, ledger.ErrIllegal)
	}
	return d, nil
}

// acceptDraft makes the draft part of this commit. An error is the ledger's own.
func (g *groupCommit) acceptDraft(d draft) error {
	w, ok := g.entries[d.entry.Key]
	if !ok {
		w = &changedEntry{stored: d.stored}
		g.entries[d.entry.Key] = w
	}
	w.now = d.entry
	g.addLines(d.at, d.lines...)
	if d.clocks != (clockComparison{}) {
		g.Clocks = d.clocks
	}
	if at := lastSuccess(d.entry); !at.Equal(lastSuccess(d.stored)) {
		if at.After(d.at) { // the service's clock is ahead
			at = d.at
		}
		g.Success = ledger.LaterOf(g.Success, at)
	}
	// Visible at once to the next change of this commit: two entries of one commit cannot take one identity.
	for _, b := range d.bindings {
		if err := g.bindName(b); err != nil {
			return err
		}
	}
	for _, n := range d.notices {
		if err := g.storeNotice(n, false); err != nil { // its entry says whether it asks
			return err
		}
	}
	if d.note != nil {
		if err := putValue(g.tx, docBucket, noteKey(d.entry.Key, d.noted), noteForm.encode(d.note)); err != nil {
			return err
		}
	}
	if d.doc == nil {
		return nil
	}
	return putValue(g.tx, docBucket, d.entry.Key[:], documentForm.encode(d.doc))
}

// addLines adds lines of one time to the end of the journal.
func (g *groupCommit) addLines(at time.Time, lines ...[]byte) {
	for _, line := range lines {
		g.Head, g.At = g.Head.Next(line), at.Truncate(time.Millisecond)
	}
	g.lines = append(g.lines, lines...)
}

// noteKey is the place of the note about an entry's revision, behind its document.
func noteKey(key archive.Key, rev uint32) []byte {
	return binary.BigEndian.AppendUint32(key[:], rev)
}

// loadEntry returns the entry as this commit has it so far, or as it is stored; a new one has
// nothing but its key.
func (g *groupCommit) loadEntry(key archive.Key) (ledger.Entry, error) {
	if w, ok := g.entries[key]; ok {
		return w.now, nil
	}
	e, _, err := readEntry(g.tx, key)
	e.Key = key
	return e, err
}

// writeAll writes entries, lines and summary, and returns the entries as a later read finds them.
func (g *groupCommit) writeAll() (map[archive.Key]ledger.Entry, error) {
	committed := make(map[archive.Key]ledger.Entry, len(g.entries))
	// Keys are written in their order: each page of the tree is touched once.
	for _, k := range slices.SortedFunc(maps.Keys(g.entries), func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) }) {
		e, err := g.storeEntry(*g.entries[k])
		if err != nil {
			return nil, err
		}
		committed[k] = e
	}
	// The block, the entries and the summary are written by one commit, so the chain never ends elsewhere than the head says.
	if first := g.ledger.state.Head; len(g.lines) > 0 {
		b := block{Prev: first.Hash, Lines: g.lines}
		if err := putValue(g.tx, journalBucket, lineKey(first.N+1), blockForm.encodeDeflated(&b)); err != nil {
			return nil, err
		}
	}
	return committed, putValue(g.tx, metaBucket, summaryKey, summaryForm.encode(&g.summary))
}

// storeEntry writes one entry, moves it between the open and the done ones, and brings
// everything that is derived from it up to date. The record is read back at once:
// what is handed on is what a restart would find.
func (g *groupCommit) storeEntry(w changedEntry) (ledger.Entry, error) {
	home := bucketOf(w.now)
	// The caller gets what was decoded from the record: a field that is not stored shows at once, and not after a restart.
	record := encodeEntry(w.now, home)
	e, err := decodeEntry(record)
	if err != nil {
		return e, err
	}
	isNew := w.stored.State == ledger.None
	// Moved within one transaction: after a crash the entry is in one of the two buckets, never in both or in none.
	if was := bucketOf(w.stored); !isNew && !bytes.Equal(was, home) {
		if err := g.tx.Bucket(was).Delete(e.Key[:]); err != nil {
			return e, err
		}
	}
	if err := putValue(g.tx, home, e.Key[:], record); err != nil {
		return e, err
	}
	if err := g.updateDerived(w.stored, e); err != nil {
		return e, err
	}
	g.Balance.CountChange(w.stored.State, e.State)
	return e, nil
}

// updateDerived brings the due index up to date.
func (g *groupCommit) updateDerived(before, after ledger.Entry) error {
	for _, keyOf := range []func(ledger.Entry) []byte{dueKey, attentionKey} {
		var was []byte
		if before.State != ledger.None {
			was = keyOf(before)
		}
		if err := g.moveDue(was, keyOf(after)); err != nil {
			return err
		}
	}
	return nil
}

// moveDue moves what is due from one place in the due index to another; nil: it
// has none.
func (g *groupCommit) moveDue(was, is []byte) error {
	if bytes.Equal(was, is) {
		return nil
	}
	due := g.tx.Bucket(dueBucket)
	// The old key goes with the commit that brings the new one: a crash
	// leaves nothing due twice, and nothing that is forgotten.
	if was != nil {
		if err := due.Delete(was); err != nil {
			return err
		}
	}
	if is == nil {
		return nil
	}
	return due.Put(is, []byte{})
}

// bucketOf returns where an entry lies.
func bucketOf(e ledger.Entry) []byte {
	if e.IsAtRest() {
		return doneBucket
	}
	return openBucket
}

// dueKey returns the entry's place in the due index; nil where nothing is due.
func dueKey(e ledger.Entry) []byte {
	step, at, ok := ledger.Due(e)
	if !ok {
		return nil
	}
	return append(dueKeyPrefix(queuePrefix(step, ledger.QueueOf(e)), at), e.Key[:]...)
}

// dueKeyPrefix is the part of a queue, and the time from which on something in
// it is due; 0 is at once.
func dueKeyPrefix(part []byte, at time.Time) []byte {
	var n uint64
	if !at.IsZero() {
		n = uint64(max(nanosOf(at), 0))
	}
	return binary.BigEndian.AppendUint64(part, n)
}

func queuePrefix(s ledger.Step, queue string) []byte {
	prefix := make([]byte, 0, 2+len(queue)+8+len(archive.Key{})) // room for the rest of a key
	return append(append(prefix, byte(s), byte(len(queue))), queue...)
}

func lineKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// putValue writes into a bucket. Those that only grow at their end get full pages.
func putValue(tx *bbolt.Tx, bucket, key, value []byte) error {
	b := tx.Bucket(bucket)
	switch &bucket[0] {
	case &journalBucket[0], &docBucket[0], &doneBucket[0]:
		b.FillPercent = 0.9
	}
	return b.Put(key, value)
}
