package boltledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// The due index has a second part, behind all steps: every entry that people are told
// of, by class, by drop folder, route and vault, and by the time at which it was taken. How
// many there are, and which of them is the oldest, is read from keys alone.

// classBit marks the part of the classes: no step has such a number.
const classBit = 0x80

// attentionKey returns the entry's place in the second part; nil: it has none.
func attentionKey(e ledger.Entry) []byte {
	class := e.Attention()
	if class == ledger.NoAttention {
		return nil
	}
	queue := e.Drop + "\x00" + string(e.Route) + "\x00" + string(e.Vault)
	return append(dueKeyPrefix(queuePrefix(classBit|ledger.Step(class), queue[:min(len(queue), 255)]), e.SeenAt), e.Key[:]...)
}

// CountAttention counts the entries of a class that were taken before a time; zero: all of them.
// It reads the keys of the index and no entry.
func (l *Ledger) CountAttention(class ledger.Attention, before time.Time) (counts []ledger.AttentionCount, err error) {
	last := ""
	err = l.visitClass(class, before, func(_ *bbolt.Tx, queue string, at time.Time, _ archive.Key) (bool, error) {
		if counts == nil || queue != last {
			last = queue
			of := append(strings.Split(queue, "\x00"), "", "") // a long name may have been cut
			counts = append(counts, ledger.AttentionCount{Drop: of[0], Route: ledger.Route(of[1]), Vault: archive.VaultID(of[2])})
		}
		c := &counts[len(counts)-1]
		c.Entries, c.Oldest = c.Entries+1, at
		return true, nil
	})
	return counts, err
}

// LatestAttention returns the last few entries of a class that were taken before a time (zero:
// at any), the latest first.
func (l *Ledger) LatestAttention(class ledger.Attention, before time.Time, limit int) (es []ledger.Entry, err error) {
	err = l.VisitAttention(class, before, limit, func(e ledger.Entry) { es = append(es, e) })
	slices.SortStableFunc(es, func(a, b ledger.Entry) int { return bytes.Compare(b.Key[:], a.Key[:]) })
	return es[:min(len(es), limit)], err
}

// VisitAttention calls fn with entries of a class that were taken before a time (zero: at any),
// of each drop folder and vault the latest first and no more than limit. It is one read
// transaction: fn must be quick.
func (l *Ledger) VisitAttention(class ledger.Attention, before time.Time, limit int, fn func(ledger.Entry)) error {
	n, last := 0, ""
	return l.visitClass(class, before, func(tx *bbolt.Tx, queue string, _ time.Time, key archive.Key) (bool, error) {
		if queue != last {
			n, last = 0, queue
		}
		if n++; n > limit {
			return false, nil
		}
		e, err := readDueEntry(tx, key)
		if err == nil {
			fn(e)
		}
		return true, err
	})
}

// visitClass calls fn with what a class has before a time, of each drop folder and vault the
// latest first, until fn says that these are enough of it.
func (l *Ledger) visitClass(class ledger.Attention, before time.Time, fn func(tx *bbolt.Tx, queue string, at time.Time, key archive.Key) (more bool, err error)) error {
	step := classBit | ledger.Step(class)
	err := l.view(func(tx *bbolt.Tx) error {
		queues, err := queuesOf(tx, step)
		for _, queue := range queues {
			cur, prefix := tx.Bucket(dueBucket).Cursor(), queuePrefix(step, queue)
			// Backwards from the first key that does not count: the latest come
			// first without reading the others.
			k, _ := cur.Seek(endOfCount(prefix, before))
			if k == nil {
				k, _ = cur.Last()
			} else {
				k, _ = cur.Prev()
			}
			for more := true; more && err == nil && bytes.HasPrefix(k, prefix); k, _ = cur.Prev() {
				var at time.Time
				var key archive.Key
				if _, at, key, err = decodeDueKey(k); err == nil {
					more, err = fn(tx, queue, at, key)
				}
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read what people are told of: %w", err)
	}
	return nil
}

// endOfCount is the first key of a queue that does not count: the one at that time, or with
// the zero time the one after the queue.
func endOfCount(prefix []byte, before time.Time) []byte {
	if before.IsZero() {
		return append(bytes.Clone(prefix), bytes.Repeat([]byte{0xff}, 8)...)
	}
	return binary.BigEndian.AppendUint64(bytes.Clone(prefix), uint64(max(nanosOf(before), 0)))
}
