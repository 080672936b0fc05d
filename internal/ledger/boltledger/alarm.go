package boltledger

import (
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// Alarmed returns the latest time at which the ledger was put back, made anew or found
// damaged, by its marks; zero: it never was. It is as committed, and cheap to ask: of a clock
// that was wrong for a while no order of the journal's times may be expected.
func (l *Ledger) Alarmed() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alarmed
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// alarmOf returns when a line tells of an alarm; zero: it tells of none.
func alarmOf(l ledger.Line) (time.Time, error) {
	if l.Key != "" || !(ledger.Mark{Word: l.Event}).Alarming() {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, l.At)
	if err != nil {
		return time.Time{}, damage("journal line %d: %v", l.N, err)
	}
	return at.UTC(), nil
}

// lastAlarm looks through the whole journal for what Alarmed tells.
func lastAlarm(tx *bbolt.Tx) (last time.Time, err error) {
	c := tx.Bucket(journalBucket).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		_, b, err := openBlock(k, v)
		if err != nil {
			return last, err
		}
		for _, line := range b.lines {
			l, err := ledger.ParseLine(line)
			if err != nil {
				return last, damage("%v", err)
			}
			at, err := alarmOf(l)
			if err != nil {
				return last, err
			}
			last = later(last, at)
		}
	}
	return last, nil
}
