package boltledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// DueInQueue returns up to limit entries of one queue, as [ledger.QueueOf] names it, whose step s
// is due at now, in the order of their due times. It leaves out those for which busy or skip
// returns true (nil: none); an entry that is busy is not even read. next is when the earliest of
// those that are not ready yet becomes due; zero: there is none.
func (l *Ledger) DueInQueue(s ledger.Step, queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(ledger.Entry) bool) (ready []ledger.Entry, next time.Time, err error) {
	ready, next, err = dueIn(l, queuePrefix(s, queue), now, limit, readDueEntry, busy, skip)
	if err != nil {
		err = fmt.Errorf("read what is due to %s in %q: %w", s, queue, err)
	}
	return ready, next, err
}

// dueIn returns what a part of the due index leads to, as [Ledger.DueInQueue]
// says.
func dueIn[J any](l *Ledger, prefix []byte, now time.Time, limit int, read func(*bbolt.Tx, archive.Key) (J, error), busy func(archive.Key) bool, skip func(J) bool) (ready []J, next time.Time, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(dueBucket).Cursor()
		late := dueKeyPrefix(prefix, now.Add(1)) // the first that is not ready
		for k, _ := c.Seek(prefix); len(ready) < limit && k != nil && bytes.Compare(k, late) < 0; k, _ = c.Next() {
			_, _, key, err := decodeDueKey(k)
			if err != nil {
				return err
			}
			// Asked before the record is read: a worker that holds thousands
			// would read them all each time.
			if busy != nil && busy(key) {
				continue
			}
			j, err := read(tx, key)
			if err != nil {
				return err
			}
			if skip == nil || !skip(j) {
				ready = append(ready, j)
			}
		}
		// The engine sleeps until then. Nothing is lost by a crash: the index
		// is stored, and the next start reads it again.
		if k, _ := c.Seek(late); bytes.HasPrefix(k, prefix) {
			_, next, _, err = decodeDueKey(k)
		}
		return err
	})
	return ready, next, err
}

// readDueEntry reads an entry that the due index leads to.
func readDueEntry(tx *bbolt.Tx, key archive.Key) (ledger.Entry, error) {
	e, ok, err := readEntry(tx, key)
	if err == nil && !ok {
		err = damage("due entry %s does not exist", key)
	}
	return e, err
}

// decodeDueKey reads a key of the due index: its queue with the step and the length before
// it, the time, and the entry.
func decodeDueKey(k []byte) (queue []byte, at time.Time, key archive.Key, err error) {
	if len(k) < 2 || len(k) != 2+int(k[1])+8+len(key) {
		return nil, at, key, damage("due a key of %d bytes", len(k))
	}
	queue, k = k[:2+int(k[1])], k[2+int(k[1]):]
	return queue, time.Unix(0, int64(binary.BigEndian.Uint64(k))).UTC(), archive.Key(k[8:]), nil
}

// Queues returns the queues in which step s waits for some entry, now or later. It reads
// one key of each.
func (l *Ledger) Queues(s ledger.Step) (queues []string, err error) {
	err = l.view(func(tx *bbolt.Tx) (err error) { queues, err = queuesOf(tx, s); return err })
	if err != nil {
		return nil, fmt.Errorf("read the queues of %s: %w", s, err)
	}
	return queues, nil
}

func queuesOf(tx *bbolt.Tx, s ledger.Step) (queues []string, err error) {
	c := tx.Bucket(dueBucket).Cursor()
	for k, _ := c.Seek([]byte{byte(s)}); k != nil && k[0] == byte(s); {
		queue, _, _, err := decodeDueKey(k)
		if err != nil {
			return nil, err
		}
		queues = append(queues, string(queue[2:]))
		behind := append(bytes.Clone(queue), bytes.Repeat([]byte{0xff}, 8+len(archive.Key{})+1)...)
		k, _ = c.Seek(behind)
	}
	return queues, nil
}
