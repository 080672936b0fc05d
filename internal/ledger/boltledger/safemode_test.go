package boltledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// I15: a second alarm joins the first: the past is unknown from the earliest
// moment on, and entries may be on their way since the latest.
func TestSafeMode_I15_ASecondAlarmJoinsTheFirst(t *testing.T) { eachStore(t, joinsAlarms) }

func joinsAlarms(t *testing.T, open opener) {
	l := open()
	mark := func(word string, after time.Duration) ledger.SafeMode {
		t.Helper()
		kit.Must(t, l.CommitMark(t.Context(), ledger.Mark{Name: word, By: ledger.Operator{UID: 1}, At: began.Add(after), Cause: word}, nil))
		s, _ := l.SafeMode()
		return s
	}
	first := mark(ledger.MarkRestored, time.Hour)
	second := mark(ledger.MarkRolledBack, 72*time.Hour)
	kit.Check(t, second.Since.Equal(began.Add(72*time.Hour)) && second.KnownUntil.Equal(first.KnownUntil) && second.Mark == ledger.MarkRolledBack,
		"safe mode after a second alarm = %+v, want it since then, and known until %v", second, first.KnownUntil)
	if s := mark(ledger.MarkDamaged, 73*time.Hour); s.Mark != ledger.MarkDamaged || !s.KnownUntil.IsZero() {
		t.Errorf("safe mode of a damaged ledger = %+v, want it known at no time", s)
	}
	if s := mark(ledger.MarkRestored, 74*time.Hour); s.Mark != ledger.MarkDamaged || !s.KnownUntil.IsZero() || !s.Since.Equal(began.Add(74*time.Hour)) {
		t.Errorf("safe mode of a damaged ledger that was restored = %+v, want it damaged, since the restore", s)
	}
}

// I15: the ledger keeps the time of the latest alarm, whatever the clock said
// later on. It outlasts safe mode and a restart, and the check finds that it
// was changed.
func TestLastAlarm_I15_RememberedWhateverTheClockSaid(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	mark := func(word string, at time.Time) {
		t.Helper()
		kit.Must(t, l.CommitMark(t.Context(), ledger.Mark{Name: word, By: ledger.Operator{UID: 1}, At: at}, nil))
	}
	kit.Want(t, "the last alarm before any", l.LastAlarm(), time.Time{})
	mark(ledger.MarkRestored, began.Add(time.Hour))
	mark(ledger.MarkReconciled, began.Add(2*time.Hour))
	mark(ledger.MarkRolledBack, began.AddDate(-50, 0, 0)) // a dead clock
	for range 2 {
		kit.Want(t, "the last alarm", l.LastAlarm(), began.Add(time.Hour))
		sound(t, l)
		kit.Must(t, l.Close())
		l = open(t, boltledger.Config{Dir: dir})
	}
	kit.Must(t, l.Close())
	edit(t, dir, func(tx *bbolt.Tx) error {
		return setField(t, tx, metaBucket, summaryKey, "Summary.Alarmed", number(uint64(began.AddDate(-50, 0, 0).UnixNano())))
	})
	if l = open(t, boltledger.Config{Dir: dir}); !found(t, l, "remembers") {
		t.Error("the check found no lost alarm, want it found")
	}
}

// I15, I26: a difference that a comparison with the archive's index found
// outlasts a restart, and the check finds that it was forgotten or made up.
func TestDiffering_I15_I26_FollowsTheJournal(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	compare := func(v archive.VaultID, outcome string) {
		t.Helper()
		kit.Must(t, l.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkCompared, Vault: v, By: ledger.Operator{UID: 1}, At: began, Cause: ledger.ComparedCause(outcome, "5 of 5", 1)}, nil))
	}
	compare("A", ledger.CompareDiffers)
	compare("B", ledger.CompareMissing)
	compare("A", ledger.CompareSame)
	compare("B", ledger.CompareIncomplete)
	for range 2 {
		lines := kit.Value(l.DifferingIndexes())(t)
		kit.Need(t, len(lines) == 1, "lines = %+v, want one", lines)
		kit.Want(t, "vault and cause", lines[0].Vault+": "+lines[0].Cause, "B: missing: 5 of 5, differences 1")
		sound(t, l)
		kit.Must(t, l.Close())
		l = open(t, boltledger.Config{Dir: dir})
	}
	for field, value := range map[string]func([]byte) []byte{"Vault": text("A"), "Line": oneMore} {
		kit.Must(t, l.Close())
		edit(t, dir, func(tx *bbolt.Tx) error {
			return setField(t, tx, metaBucket, summaryKey, "Summary.Differing."+field, value)
		})
		l = open(t, boltledger.Config{Dir: dir})
		kit.Check(t, found(t, l, "the vaults whose index differed are kept as"), "the check did not find another %s", field)
	}
	kit.Must(t, l.Close())
}

// found reports whether the check finds a problem with these words.
func found(t *testing.T, l *boltledger.Ledger, words string) bool {
	t.Helper()
	ps := kit.Value(l.Verify(t.Context()))(t)
	return slices.ContainsFunc(ps, func(p ledger.Problem) bool { return strings.Contains(p.What, words) })
}

func TestMark_I29_EntersAndLeavesSafeMode(t *testing.T) { eachStore(t, markEntersAndLeavesSafeMode) }

func markEntersAndLeavesSafeMode(t *testing.T, open opener) {
	l := open()
	mark := func(word string, note *ledger.Note, at time.Time) error {
		m := ledger.Mark{Name: word, By: ledger.Operator{UID: 7}, At: at, Cause: "because"}
		if note != nil {
			m.By.Reason = note.Digest()
		}
		return l.CommitMark(t.Context(), m, note)
	}
	for name, err := range map[string]error{
		"unknown":    mark("created", nil, began),
		"not in it":  mark(ledger.MarkReconciled, nil, began),
		"other note": l.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkDamaged, By: byAdmin, At: began}, &ledger.Note{Text: "x"}),
		"no vault":   l.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkIndex, By: ledger.Operator{UID: 7, Reason: ledger.Note{Text: "x"}.Digest()}, At: began}, &ledger.Note{Text: "x"}),
		"no reason":  l.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkIndex, Vault: "V", By: ledger.Operator{UID: 7}, At: began}, nil),
		"no note":    l.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkDamaged, By: byAdmin, At: began}, nil),
		"novel":      l.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkDamaged, Cause: strings.Repeat("x", 2000)}, nil),
	} {
		kit.Fails(t, "a mark, "+name, err, ledger.ErrIllegal)
	}
	kit.Want(t, "last line", l.Head().N, 1)
	steps := []struct {
		word string
		safe string
	}{
		{ledger.MarkDisposal, ""}, {ledger.MarkDamaged, ledger.MarkDamaged}, {ledger.MarkRestored, ledger.MarkDamaged},
		{ledger.MarkDisposal, ledger.MarkDamaged}, {ledger.MarkReconciled, ""}, {ledger.MarkRestored, ledger.MarkRestored},
	}
	for i, s := range steps {
		kit.Must(t, mark(s.word, &whyNote, began.Add(time.Duration(i)*time.Hour)))
		is, ok := l.SafeMode()
		kit.Check(t, ok == (s.safe != "") && is.Mark == s.safe, "safe mode after %s = %+v, %v, want %q", s.word, is, ok, s.safe)
	}
	is, _ := l.SafeMode()
	kit.Want(t, "safe mode", is, ledger.SafeMode{Mark: ledger.MarkRestored, Cause: "because", Since: began.Add(5 * time.Hour), KnownUntil: began.Add(4 * time.Hour)})
	d := newDoc(t, l, 1)
	d.do(d.claim()) // in one journal with the marks
	sound(t, l)
	l.Close()
	l = open()
	sound(t, l)
	again, _ := l.SafeMode()
	kit.Want(t, "safe mode after a restart", again, is)
	kit.Len(t, "len(ns)", kit.Value(l.Notes(archive.Key{}))(t), 6)
	var marks []string
	kit.Must(t, l.Lines(1, func(_ uint64, b []byte) error {
		line, err := ledger.ParseLine(b)
		marks = append(marks, fmt.Sprint(line.Event, line.Rev))
		return err
	}))
	kit.Want(t, "events of the journal", fmt.Sprint(marks), "[created0 disposal-approved1 damaged2 restored3 disposal-approved4 reconciled5 restored6 claimed1]")
}
