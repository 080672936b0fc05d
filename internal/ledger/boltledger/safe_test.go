package boltledger

import (
	"testing"
	"time"

	"vaultd/internal/ledger"
)

// I15: a second alarm joins the first: nothing is known from the earliest moment on, and what is under way may be so
// since the latest.
func TestSafe_I15_ASecondAlarmJoinsTheFirst(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	mark := func(word string, after time.Duration) ledger.Safe {
		t.Helper()
		if err := l.Mark(t.Context(), ledger.Mark{Word: word, By: ledger.Human{UID: 1}, At: began.Add(after), Cause: word}, nil); err != nil {
			t.Fatal(err)
		}
		s, _ := l.Safe()
		return s
	}
	first := mark(ledger.MarkRestored, time.Hour)
	second := mark(ledger.MarkRolledBack, 72*time.Hour)
	if !second.Since.Equal(began.Add(72*time.Hour)) || !second.From.Equal(first.From) || second.Word != ledger.MarkRolledBack {
		t.Errorf("after a second one: %+v", second)
	}
	if s := mark(ledger.MarkDamaged, 73*time.Hour); s.Word != ledger.MarkDamaged || !s.From.IsZero() {
		t.Errorf("found damaged: %+v", s)
	}
	if s := mark(ledger.MarkRestored, 74*time.Hour); s.Word != ledger.MarkDamaged || !s.From.IsZero() || !s.Since.Equal(began.Add(74*time.Hour)) {
		t.Errorf("and once more: %+v", s)
	}
}
