package boltledger

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// ApplyArrival applies events to one arrival and waits until they are durable,
// in one transaction with their journal lines. It returns the arrival as a
// restart would find it. A change that was decided on another revision is
// refused with a [*ledger.StaleError], a second arrival for one item with a
// [*ledger.TakenError], an event that is not allowed with [ledger.ErrIllegal]:
// each refusal is of this change alone.
func (l *Ledger) ApplyArrival(ctx context.Context, c arrival.Change) (a arrival.Arrival, err error) {
	// The committer writes made before it answers. If the caller stopped
	// waiting, nobody reads it.
	made := &arrival.Arrival{}
	// The commit is that of the committer (commitDurably). A crash before it
	// leaves the arrival as it was; a crash after it leaves the change although
	// nobody was told, and what is due then goes on from it.
	err = l.askCommitter(ctx, func(g *groupCommit) (refused, err error) { return g.applyArrival(c, made) })
	if err != nil {
		return a, err
	}
	return *made, nil
}

// applyArrival makes one change in the transaction of the commit. Nothing is
// written where it is refused.
func (g *groupCommit) applyArrival(c arrival.Change, made *arrival.Arrival) (refused, err error) {
	stored, known, err := readArrival(g.tx, c.Key)
	switch {
	case err != nil:
		return nil, err
	case c.Key.IsZero() || len(c.Events) == 0:
		return fmt.Errorf("change arrival %s: no key or no event: %w", c.Key, ledger.ErrIllegal), nil
	case c.Rev != stored.Rev:
		return &ledger.StaleError{Key: c.Key, Have: stored.Rev, Saw: c.Rev}, nil
	case !known && hasEntry(g.tx, c.Key):
		return &ledger.TakenError{What: "key", By: c.Key}, nil
	}
	stored.Key = c.Key
	at := c.At
	at.Wall = at.Wall.Round(0).UTC()
	next, noted := stored, uint32(0)
	var lines [][]byte
	for _, ev := range c.Events {
		after, err := arrival.Transition(next, ev, at)
		if err != nil {
			return err, nil // the event is refused
		}
		// Each new revision has its line in the same transaction: a crash
		// leaves both or neither.
		if after.Rev != next.Rev {
			line := arrival.NewLine(g.Head.N+uint64(len(lines))+1, after, ev, at).Encode()
			lines = append(lines, line)
		}
		if by, ok := arrival.ActorOf(ev); ok && c.Note != nil && by.Reason == c.Note.Digest() {
			noted = after.Rev
		}
		next = after
	}
	if c.Note != nil && noted == 0 {
		return fmt.Errorf("change arrival %s: a note comes with the act whose reason it is: %w", c.Key, ledger.ErrIllegal), nil
	}
	if by := g.tx.Bucket(indexBucket).Get(itemKey(next)); by != nil && !bytes.Equal(by, c.Key[:]) {
		return &ledger.TakenError{What: "number at the service", By: archive.Key(by)}, nil
	}
	if noted != 0 {
		if err := putValue(g.tx, docBucket, noteKey(c.Key, noted), noteForm.encode(c.Note)); err != nil {
			return nil, err
		}
	}
	g.addLines(at.Wall, lines...)
	*made, err = g.storeArrival(stored, next)
	return nil, err
}

// storeArrival writes one arrival and what is derived from it, and returns it
// as it is read back.
func (g *groupCommit) storeArrival(before, after arrival.Arrival) (arrival.Arrival, error) {
	record := arrivalForm.encode(&after)
	a, err := decodeArrival(after.Key[:], record)
	if err != nil {
		return a, err
	}
	if err := g.moveDue(dueArrivalKey(before), dueArrivalKey(after)); err != nil {
		return a, err
	}
	index := g.tx.Bucket(indexBucket)
	if before.State != arrival.None && before.State != after.State {
		if err := index.Delete(arrivalStateKey(before)); err != nil {
			return a, err
		}
	}
	for _, key := range indexKeys(after) {
		value := after.Key[:]
		if key[0] == arrivalsByState {
			value = nil
		}
		if err := index.Put(key, value); err != nil {
			return a, err
		}
	}
	g.Arrivals.CountChange(before.State, after.State)
	return a, putValue(g.tx, arrivalBucket, after.Key[:], record)
}

// Kinds of keys of the index: of an arrival one for the state, one for the
// number at the service, and of a received document one for its identity in the
// archive; one for a notice that waits for an operator.
const (
	arrivalsByState = 's'
	arrivalsByItem  = 'i'
	receivedByID    = 'd'
	askingNotice    = 'n'
)

// indexKeys are the keys under which an arrival is in the index.
func indexKeys(a arrival.Arrival) [][]byte {
	keys := [][]byte{arrivalStateKey(a), itemKey(a)}
	if a.Kind == arrival.Received {
		keys = append(keys, receivedName(archive.DeriveReceivedID(a.Document())))
	}
	return keys
}

func arrivalStateKey(a arrival.Arrival) []byte {
	return append([]byte{arrivalsByState, byte(a.State)}, a.Key[:]...)
}

func receivedName(id archive.ID) []byte { return append([]byte{receivedByID}, id[:]...) }

func itemKey(a arrival.Arrival) []byte { return itemName(a.Kind, a.Item) }

func itemName(k arrival.Kind, item archive.ExtractID) []byte {
	return append(append(append([]byte{arrivalsByItem}, k...), 0), item...)
}

// The due index has a third part, behind all steps and before the classes:
// every arrival of which something may be due, by the stage of its way, by
// kind, and by the time before which nothing of it is. Settings decide which
// step is due then. They are no part of the ledger: the reader applies them.

// arrivalBit marks the part of the arrivals: no step has such a number.
const arrivalBit = 0x40

// dueArrivalKey returns the arrival's place in the third part; nil: it has
// none.
func dueArrivalKey(a arrival.Arrival) []byte {
	stage := a.Stage()
	if stage == arrival.NoStage {
		return nil
	}
	return append(dueKeyPrefix(stagePrefix(a.Kind, stage), a.NotBefore), a.Key[:]...)
}

func stagePrefix(kind arrival.Kind, s arrival.Stage) []byte {
	return queuePrefix(arrivalBit|ledger.Step(s), string(kind))
}

// DueArrivals returns up to limit arrivals of one kind at a stage of which
// something may be due at now, in the order of these times. It leaves out those
// for which busy or skip returns true (nil: none); one that is busy is not even
// read. next is when the earliest of those that wait may have something due;
// zero: there is none. It reads no arrival that waits.
func (l *Ledger) DueArrivals(kind arrival.Kind, stage arrival.Stage, now time.Time, limit int, busy func(archive.Key) bool, skip func(arrival.Arrival) bool) (ready []arrival.Arrival, next time.Time, err error) {
	ready, next, err = dueIn(l, stagePrefix(kind, stage), now, limit, readDueArrival, busy, skip)
	if err != nil {
		err = fmt.Errorf("read which arrivals are due: %w", err)
	}
	return ready, next, err
}

// readDueArrival reads an arrival that the due index leads to.
func readDueArrival(tx *bbolt.Tx, key archive.Key) (arrival.Arrival, error) {
	a, ok, err := readArrival(tx, key)
	if err == nil && !ok {
		err = damage("due arrival %s does not exist", key)
	}
	return a, err
}

func readArrival(tx *bbolt.Tx, key archive.Key) (a arrival.Arrival, ok bool, err error) {
	record := tx.Bucket(arrivalBucket).Get(key[:])
	if record == nil {
		return a, false, nil
	}
	a, err = decodeArrival(key[:], record)
	return a, err == nil, err
}

// decodeArrival reads a record that lies under key, and refuses states that
// this schema does not know.
func decodeArrival(key, record []byte) (arrival.Arrival, error) {
	a, err := arrivalForm.decode(record)
	switch {
	case err != nil:
	case !bytes.Equal(a.Key[:], key):
		err = fmt.Errorf("holds the arrival %s", a.Key)
	case a.State == arrival.None || a.State > arrival.GivenUp:
		err = fmt.Errorf("read Arrival: state %d", a.State)
	}
	if err != nil {
		return a, damage("%s %x: %v", arrivalBucket, key, err)
	}
	return a, nil
}

// Arrival returns one arrival; ok is false where there is none.
func (l *Ledger) Arrival(key archive.Key) (a arrival.Arrival, ok bool, err error) {
	err = l.view(func(tx *bbolt.Tx) error { a, ok, err = readArrival(tx, key); return err })
	return a, ok, err
}

// FindArrival returns the arrival that stands for an item of the service; ok is
// false where there is none.
func (l *Ledger) FindArrival(kind arrival.Kind, item archive.ExtractID) (a arrival.Arrival, ok bool, err error) {
	err = l.view(func(tx *bbolt.Tx) error { a, ok, err = findArrival(tx, itemName(kind, item)); return err })
	return a, ok, err
}

// FindReceived returns the number at the network of the received document that
// has an identity in the archive; ok is false where none has.
func (l *Ledger) FindReceived(id archive.ID) (number archive.RemoteID, ok bool, err error) {
	var a arrival.Arrival
	err = l.view(func(tx *bbolt.Tx) error { a, ok, err = findArrival(tx, receivedName(id)); return err })
	return a.Document(), ok, err
}

// findArrival returns the arrival that a key of the index leads to.
func findArrival(tx *bbolt.Tx, index []byte) (a arrival.Arrival, ok bool, err error) {
	k := tx.Bucket(indexBucket).Get(index)
	if k == nil {
		return a, false, nil
	}
	return readArrival(tx, archive.Key(k))
}

// Arrivals calls fn with every arrival that is in one of the states, the oldest
// of each state first. It reads in parts: one that changes meanwhile is seen as
// before or as after the change, and may be seen twice where it enters a later
// state.
func (l *Ledger) Arrivals(fn func(arrival.Arrival) error, states ...arrival.State) error {
	for _, s := range states {
		r := reading[arrival.Arrival]{what: "arrivals", buckets: [][]byte{indexBucket}, prefix: []byte{arrivalsByState, byte(s)}, decode: readIndexed}
		if err := r.each(l, fn); err != nil {
			return err
		}
	}
	return nil
}

// readIndexed reads the arrival that a key of the index by states leads to.
func readIndexed(tx *bbolt.Tx, _, k, _ []byte) (a arrival.Arrival, err error) {
	var key archive.Key
	if err := copyKey(&key, k[2:]); err != nil {
		return a, err
	}
	a, ok, err := readArrival(tx, key)
	if err == nil && !ok {
		err = damage("%s lists %s, which does not exist", indexBucket, key)
	}
	return a, err
}

// ArrivalsNewestFirst calls fn with every arrival, the newest first. It reads
// in parts, as Arrivals does; one that changes meanwhile is seen once, as
// before or as after the change.
func (l *Ledger) ArrivalsNewestFirst(fn func(arrival.Arrival) error) error {
	r := reading[arrival.Arrival]{what: "arrivals", buckets: [][]byte{arrivalBucket}, newestFirst: true, decode: func(_ *bbolt.Tx, _, k, v []byte) (arrival.Arrival, error) {
		return decodeArrival(k, v)
	}}
	return r.each(l, fn)
}
