package boltledger

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// I15: a second alarm joins the first: nothing is known from the earliest moment on, and what is under way may be so
// since the latest.
func TestSafeMode_I15_ASecondAlarmJoinsTheFirst(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	mark := func(word string, after time.Duration) ledger.SafeMode {
		t.Helper()
		if err := l.CommitMark(t.Context(), ledger.Mark{Name: word, By: ledger.Operator{UID: 1}, At: began.Add(after), Cause: word}, nil); err != nil {
			t.Fatal(err)
		}
		s, _ := l.SafeMode()
		return s
	}
	first := mark(ledger.MarkRestored, time.Hour)
	second := mark(ledger.MarkRolledBack, 72*time.Hour)
	if !second.Since.Equal(began.Add(72*time.Hour)) || !second.KnownUntil.Equal(first.KnownUntil) || second.Mark != ledger.MarkRolledBack {
		t.Errorf("after a second one: %+v", second)
	}
	if s := mark(ledger.MarkDamaged, 73*time.Hour); s.Mark != ledger.MarkDamaged || !s.KnownUntil.IsZero() {
		t.Errorf("found damaged: %+v", s)
	}
	if s := mark(ledger.MarkRestored, 74*time.Hour); s.Mark != ledger.MarkDamaged || !s.KnownUntil.IsZero() || !s.Since.Equal(began.Add(74*time.Hour)) {
		t.Errorf("and once more: %+v", s)
	}
}

// I15: the latest alarm is remembered by its time, whatever the clock said later on; it outlasts safe mode and a restart,
// and the check misses one that the ledger forgot.
func TestLastAlarm_I15_RememberedWhateverTheClockSaid(t *testing.T) {
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	mark := func(word string, at time.Time) {
		t.Helper()
		if err := l.CommitMark(t.Context(), ledger.Mark{Name: word, By: ledger.Operator{UID: 1}, At: at}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !l.LastAlarm().IsZero() {
		t.Errorf("an alarm at %v before any", l.LastAlarm())
	}
	mark(ledger.MarkRestored, began.Add(time.Hour))
	mark(ledger.MarkReconciled, began.Add(2*time.Hour))
	mark(ledger.MarkRolledBack, began.AddDate(-50, 0, 0)) // a dead clock
	for range 2 {
		if !l.LastAlarm().Equal(began.Add(time.Hour)) {
			t.Errorf("the latest alarm was at %v", l.LastAlarm())
		}
		sound(t, l)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = open(t, Config{Dir: dir})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, func(tx *bbolt.Tx) error {
		kept, err := lastAlarm(tx)
		if !kept.Equal(began.Add(time.Hour)) {
			t.Errorf("by the journal it was at %v", kept)
		}
		s, openErr := summaryForm.decode(tx.Bucket(metaBucket).Get(summaryKey))
		s.alarmed = began.AddDate(-50, 0, 0)
		return errors.Join(err, openErr, putValue(tx, metaBucket, summaryKey, summaryForm.encode(&s)))
	})
	if l = open(t, Config{Dir: dir}); !found(t, l, "remembers") {
		t.Error("the check did not miss the alarm")
	}
}

// found reports whether the check tells of something in these words.
func found(t *testing.T, l *Ledger, words string) bool {
	t.Helper()
	ps, err := l.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(ps, func(p ledger.Problem) bool { return strings.Contains(p.What, words) })
}

// lastAlarm looks through the whole journal for what Alarmed remembers.
func lastAlarm(tx *bbolt.Tx) (last time.Time, err error) {
	c := tx.Bucket(journalBucket).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		_, b, err := decodeBlock(k, v)
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
			last = laterOf(last, at)
		}
	}
	return last, nil
}
