package boltledger

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// Due is DueInQueue for all queues together: the whole index, as the tests look at it.
func (l *Ledger) Due(s ledger.Step, now time.Time, limit int, skip func(ledger.Entry) bool) (ready []ledger.Entry, next time.Time, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		queues, err := queuesOf(tx, s)
		if err != nil {
			return err
		}
		for _, queue := range queues {
			some, at, err := readDue(tx, s, queue, now, limit, nil, skip)
			if err != nil {
				return err
			}
			ready = append(ready, some...)
			if !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
		return nil
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read what is due to %s: %w", s, err)
	}
	slices.SortStableFunc(ready, func(a, b ledger.Entry) int { return bytes.Compare(dueTime(a), dueTime(b)) })
	return ready[:min(len(ready), limit)], next, nil
}

// dueTime is by what entries of several queues are put in order.
func dueTime(e ledger.Entry) []byte {
	k := dueKey(e)
	return k[2+int(k[1]):]
}
