package boltledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// totalKey is the vault, a zero byte, and the year.
func totalKey(t ledger.Total) []byte {
	return binary.BigEndian.AppendUint32(append([]byte(t.Vault), 0), uint32(t.Year))
}

func openTotal(k, v []byte) (ledger.Total, error) {
	t, err := totalForm.open(v)
	if err == nil && string(totalKey(t)) != string(k) {
		err = errors.New("it lies under the key of another one")
	}
	if err != nil {
		return t, damage("totals %s: %v", bytes.ToValidUTF8(k[:max(len(k)-5, 0)], nil), err)
	}
	return t, nil
}

// addTotal adds to what its vault archived in its year.
func addTotal(tx *bbolt.Tx, more ledger.Total) error {
	k := totalKey(more)
	t := ledger.Total{Vault: more.Vault, Year: more.Year}
	if v := tx.Bucket(totalsBucket).Get(k); v != nil {
		var err error
		if t, err = openTotal(k, v); err != nil {
			return err
		}
	}
	t.Documents += more.Documents
	t.Bytes += more.Bytes
	t.Last = newer(t.Last, more.Last)
	return put(tx, totalsBucket, k, totalForm.seal(&t))
}

// Totals returns what each vault archived in each year, by vault and year.
func (l *Ledger) Totals() (ts []ledger.Total, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(totalsBucket).ForEach(func(k, v []byte) error {
			t, err := openTotal(k, v)
			ts = append(ts, t)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read totals: %w", err)
	}
	return ts, nil
}

// recount is what all entries add up to.
type recount struct {
	balance ledger.Balance
	revs    uint64 // each of them has a journal line
	totals  map[string]ledger.Total
}

func (r *recount) add(e ledger.Entry, year int) {
	r.balance.Count(ledger.None, e.State)
	r.revs += uint64(e.Rev)
	if e.State != ledger.Archived {
		return
	}
	t := ledger.Total{Vault: e.Vault, Year: year}
	k := string(totalKey(t))
	if had, ok := r.totals[k]; ok {
		t = had
	}
	t.Documents++
	t.Bytes += uint64(e.Package.Size)
	t.Last = newer(t.Last, e.ArchivedAt)
	r.totals[k] = t
}

func newer(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// count goes through all entries of one transaction. After each of them next is told
// how reading it went, and says whether to go on.
func (l *Ledger) count(tx *bbolt.Tx, next func(error) error) (*recount, error) {
	r := &recount{totals: map[string]ledger.Total{}}
	for _, bucket := range [][]byte{openBucket, doneBucket} {
		c := tx.Bucket(bucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			e, err := entryAt(bucket, k, v)
			if err == nil {
				r.add(e, l.year(e))
			}
			if err := next(err); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// rebuildTotals reckons the totals, and the downloads of each month, anew: years and months begin elsewhere than before.
func (l *Ledger) rebuildTotals(tx *bbolt.Tx) error {
	r, err := l.count(tx, func(err error) error { return err })
	if err != nil {
		return err
	}
	if err := tx.DeleteBucket(totalsBucket); err != nil {
		return err
	}
	if _, err := tx.CreateBucket(totalsBucket); err != nil {
		return err
	}
	for _, t := range r.totals {
		if err := put(tx, totalsBucket, totalKey(t), totalForm.seal(&t)); err != nil {
			return err
		}
	}
	if err := l.recountFetches(tx); err != nil {
		return err
	}
	s := newStanding(l.end, l.balance, l.marks, l.alarmed, l.loc)
	return put(tx, metaBucket, standingKey, standingForm.seal(&s))
}
