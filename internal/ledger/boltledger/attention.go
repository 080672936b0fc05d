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
// of, by class, by drop folder and vault, and by the time at which it was taken. How
// many there are, and which of them is the oldest, is read from keys alone.

// classBit marks the part of the classes: no step has such a number.
const classBit = 0x80

// attentionKey returns the entry's place in the second part; nil: it has none.
func attentionKey(e ledger.Entry) []byte {
	class := e.Attention()
	if class == ledger.NoAttention {
		return nil
	}
	queue := e.Drop + "\x00" + string(e.Vault)
	return append(dueKeyPrefix(classBit|ledger.Step(class), queue[:min(len(queue), 255)], e.SeenAt), e.Key[:]...)
}

// CountAttention counts the entries of a class that were taken before a time; zero: all of them.
// It reads the keys of the index and no entry.
func (l *Ledger) CountAttention(class ledger.Attention, before time.Time) (counts []ledger.AttentionCount, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		queues, err := queuesOf(tx, classBit|ledger.Step(class))
		if err != nil {
			return err
		}
		for _, queue := range queues {
			c, err := countClass(tx, queuePrefix(classBit|ledger.Step(class), queue), before)
			if err != nil {
				return err
			}
			drop, vault, _ := strings.Cut(queue, "\x00")
			c.Drop, c.Vault = drop, archive.VaultID(vault)
			counts = append(counts, c)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count what people are told of: %w", err)
	}
	return counts, nil
}

// countClass counts the keys of one drop folder and vault; the oldest one is
// told of whatever its time.
func countClass(tx *bbolt.Tx, prefix []byte, before time.Time) (c ledger.AttentionCount, err error) {
	cur := tx.Bucket(dueBucket).Cursor()
	k, _ := cur.Seek(prefix)
	if _, c.Oldest, _, err = decodeDueKey(k); err != nil {
		return c, err
	}
	for end := endOfCount(prefix, before); k != nil && bytes.Compare(k, end) < 0; k, _ = cur.Next() {
		c.Entries++
	}
	return c, nil
}

// endOfCount is the first key of a queue that does not count: the one at that time, or with
// the zero time the one after the queue.
func endOfCount(prefix []byte, before time.Time) []byte {
	if before.IsZero() {
		return append(bytes.Clone(prefix), bytes.Repeat([]byte{0xff}, 8)...)
	}
	return binary.BigEndian.AppendUint64(bytes.Clone(prefix), uint64(max(nanosOf(before), 0)))
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
	err := l.view(func(tx *bbolt.Tx) error {
		queues, err := queuesOf(tx, classBit|ledger.Step(class))
		for _, queue := range queues {
			if err == nil {
				err = visitClass(tx, queuePrefix(classBit|ledger.Step(class), queue), before, limit, fn)
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read what people are told of: %w", err)
	}
	return nil
}

func visitClass(tx *bbolt.Tx, prefix []byte, before time.Time, limit int, fn func(ledger.Entry)) error {
	cur := tx.Bucket(dueBucket).Cursor()
	// Backwards from the first key that does not count: the latest come first without reading the others.
	k, _ := cur.Seek(endOfCount(prefix, before))
	if k == nil {
		k, _ = cur.Last()
	} else {
		k, _ = cur.Prev()
	}
	for n := 0; n < limit && bytes.HasPrefix(k, prefix); n++ {
		_, _, key, err := decodeDueKey(k)
		if err != nil {
			return err
		}
		e, err := readDueEntry(tx, key)
		if err != nil {
			return err
		}
		fn(e)
		k, _ = cur.Prev()
	}
	return nil
}
