package boltledger

import (
	"time"

	"vaultd/internal/ledger"
)

// LastAlarm returns the latest time at which the ledger was put back, made anew or found
// damaged, by its marks; zero: it never was. It is as committed, and cheap to ask: of a clock
// that was wrong for a while no order of the journal's times may be expected.
func (l *Ledger) LastAlarm() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alarmed
}

// laterOf returns the later of two times.
func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// alarmOf returns when a line tells of an alarm; zero: it tells of none.
func alarmOf(l ledger.Line) (time.Time, error) {
	if l.Key != "" || !(ledger.Mark{Name: l.Event}).EntersSafeMode() {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, l.At)
	if err != nil {
		return time.Time{}, damage("journal line %d: %v", l.N, err)
	}
	return at.UTC(), nil
}
