package boltledger_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// I15: a second alarm joins the first: the past is unknown from the earliest moment
// on, and entries may be on their way since the latest.
func TestSafeMode_I15_ASecondAlarmJoinsTheFirst(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
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
		t.Errorf("safe mode after a second alarm = %+v, want it since then, and known until %v", second, first.KnownUntil)
	}
	if s := mark(ledger.MarkDamaged, 73*time.Hour); s.Mark != ledger.MarkDamaged || !s.KnownUntil.IsZero() {
		t.Errorf("safe mode of a damaged ledger = %+v, want it known at no time", s)
	}
	if s := mark(ledger.MarkRestored, 74*time.Hour); s.Mark != ledger.MarkDamaged || !s.KnownUntil.IsZero() || !s.Since.Equal(began.Add(74*time.Hour)) {
		t.Errorf("safe mode of a damaged ledger that was restored = %+v, want it damaged, since the restore", s)
	}
}

// I15: the ledger keeps the time of the latest alarm, whatever the clock said later
// on. It outlasts safe mode and a restart, and the check finds that it was changed.
func TestLastAlarm_I15_RememberedWhateverTheClockSaid(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	mark := func(word string, at time.Time) {
		t.Helper()
		if err := l.CommitMark(t.Context(), ledger.Mark{Name: word, By: ledger.Operator{UID: 1}, At: at}, nil); err != nil {
			t.Fatal(err)
		}
	}
	kit.Want(t, "the last alarm before any", l.LastAlarm(), time.Time{})
	mark(ledger.MarkRestored, began.Add(time.Hour))
	mark(ledger.MarkReconciled, began.Add(2*time.Hour))
	mark(ledger.MarkRolledBack, began.AddDate(-50, 0, 0)) // a dead clock
	for range 2 {
		kit.Want(t, "the last alarm", l.LastAlarm(), began.Add(time.Hour))
		sound(t, l)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = open(t, boltledger.Config{Dir: dir})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, func(tx *bbolt.Tx) error {
		return setField(t, tx, metaBucket, summaryKey, "Summary.alarmed", number(uint64(began.AddDate(-50, 0, 0).UnixNano())))
	})
	if l = open(t, boltledger.Config{Dir: dir}); !found(t, l, "remembers") {
		t.Error("the check found no lost alarm, want it found")
	}
}

// found reports whether the check finds a problem with these words.
func found(t *testing.T, l *boltledger.Ledger, words string) bool {
	t.Helper()
	ps, err := l.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(ps, func(p ledger.Problem) bool { return strings.Contains(p.What, words) })
}
