package boltledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// SafeMode says why the ledger is in safe mode; ok is false where it is not. It is as
// committed, and cheap to ask.
func (l *Ledger) SafeMode() (s ledger.SafeMode, ok bool) {
	s = l.committed().Safe.SafeMode
	return s, s.Mark != ""
}

// CommitMark commits a journal line about the ledger as a whole. An alarming one enters safe
// mode in the same transaction, [ledger.MarkReconciled] leaves it; where the ledger is
// in safe mode already, the new cause joins the old one. note is the reason that a person gave,
// or nil. The error wraps [ledger.ErrIllegal] where the mark makes no sense.
func (l *Ledger) CommitMark(ctx context.Context, m ledger.Mark, note *ledger.Note) error {
	return l.askCommitter(ctx, markRequest{mark: m, note: note}.apply)
}

// askCommitter has the committer do something about the ledger as a whole, and waits for it.
func (l *Ledger) askCommitter(ctx context.Context, do func(*groupCommit) (refused, err error)) error {
	// Room for one answer: a caller that stops waiting holds up nobody. What it asked for may still be done.
	answer := make(chan error, 1)
	l.enqueue(request{do: do, then: func(rs []ledger.Result, err error) {
		if err == nil && len(rs) == 1 {
			err = rs[0].Err
		}
		answer <- err
	}})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for the ledger: %w", context.Cause(ctx))
	}
}

// maxCause bounds what a mark may put into the journal, in bytes.
const maxCause = 1000

// markRequest is a mark and what goes with it in one transaction.
type markRequest struct {
	mark        ledger.Mark
	note        *ledger.Note
	marking     bool     // the entries that are not at rest are to be marked
	epoch       uint64   // raises the ledger's; 0: leaves it
	receiptKeys []string // in place of the ledger's, with epoch; nil: leaves them
	incarnation uint64   // that begins with the mark; 0: leaves the ledger's
	budget      uint64   // downloads that the month may have; of a download alone
}

func (m markRequest) apply(g *groupCommit) (refused, err error) {
	switch {
	case !slices.Contains(ledger.MarkNames(), m.mark.Name) || len(m.mark.Cause) > maxCause:
		return fmt.Errorf("mark the ledger as %q: %w", m.mark.Name, ledger.ErrIllegal), nil
	case (m.note == nil) != m.mark.By.Reason.IsZero() || m.note != nil && m.note.Digest() != m.mark.By.Reason:
		return fmt.Errorf("mark the ledger as %s: the note is not the reason: %w", m.mark.Name, ledger.ErrIllegal), nil
	case m.mark.Name == ledger.MarkReconciled && g.Safe.Mark == "":
		return fmt.Errorf("mark the ledger as %s: it is not in safe mode: %w", m.mark.Name, ledger.ErrIllegal), nil
	case m.mark.Name == ledger.MarkIndex && (m.mark.Vault == "" || m.mark.By.Reason.IsZero()):
		return fmt.Errorf("mark the ledger as %s: it needs a vault and a reason: %w", m.mark.Name, ledger.ErrIllegal), nil
	case m.mark.Name == ledger.MarkReported:
		if line, ok := ledger.ParseReportedCause(m.mark.Cause); !ok || line > g.Head.N {
			return fmt.Errorf("mark the ledger as %s: it needs a line of the journal: %w", m.mark.Name, ledger.ErrIllegal), nil
		}
	case m.mark.Name == ledger.MarkCompared:
		if _, _, ok := ledger.ParseComparedCause(m.mark.Cause); m.mark.Vault == "" || !ok {
			return fmt.Errorf("mark the ledger as %s: it needs a vault and an outcome: %w", m.mark.Name, ledger.ErrIllegal), nil
		}
	}
	// The budget is read and counted in this transaction: two commands at once cannot both take the last download.
	if refused, err := g.countFetch(m); refused != nil || err != nil {
		return refused, err
	}
	at := m.mark.At.Round(0).UTC()
	// Read before the mark is written: the mark itself is not a thing that the ledger was sure of.
	last, err := g.lastLineTime()
	if err != nil {
		return nil, err
	}
	g.Marks++
	m.mark.At = at
	// The line and what it means are one commit: no crash leaves safe mode without its reason in the journal.
	told := ledger.MarkLine(g.Head.N+1, uint32(g.Marks), m.mark)
	g.addLines(told.Encode())
	if m.note != nil {
		err = putValue(g.tx, docBucket, noteKey(archive.Key{}, uint32(g.Marks)), noteForm.encode(m.note))
	}
	g.Differing = addComparison(g.Differing, told)
	m.changeState(g, last)
	return nil, err
}

// changeState does what the mark means beside its line.
func (m markRequest) changeState(g *groupCommit, last time.Time) {
	switch {
	case m.mark.Name == ledger.MarkReconciled:
		// Safe mode ends with this commit. A crash before it repeats the questions to the service, and nothing else.
		g.Safe = safeRecord{}
	case m.mark.EntersSafeMode():
		if m.mark.Name == ledger.MarkRebuilt || m.mark.Name == ledger.MarkDamaged {
			last = time.Time{} // nothing is sure
		}
		s := safeRecord{SafeMode: ledger.SafeMode{Mark: m.mark.Name, Cause: m.mark.Cause, Since: m.mark.At, KnownUntil: last}}
		if g.Safe.Mark != "" {
			s = s.joinedWith(g.Safe)
		}
		// While this is set, whoever opens the ledger first finishes the marking of its entries.
		s.Marking = s.Marking || m.marking
		g.Safe, g.Alarmed = s, ledger.LaterOf(g.Alarmed, m.mark.At)
	}
	if m.incarnation != 0 {
		g.beginIncarnation(m.incarnation)
	}
	if m.epoch != 0 {
		g.Info.Epoch = m.epoch
		if m.receiptKeys != nil {
			g.Info.ReceiptKeys = m.receiptKeys
		}
	}
}

// beginIncarnation has the ledger go on as another incarnation, whose outside
// head is made after the commit. A crash in between leaves the ledger without
// a head, which the start accepts for as long as nothing more is committed.
func (g *groupCommit) beginIncarnation(n uint64) { g.This = incarnation{N: n, From: g.Head.N} }

// joinedWith joins a new cause of safe mode with the former one. The earlier of the two times
// counts: what happened after it is not known.
func (s safeRecord) joinedWith(old safeRecord) safeRecord {
	if old.KnownUntil.Before(s.KnownUntil) {
		s.KnownUntil = old.KnownUntil
	}
	// Damage must be looked for again before safe mode ends, so it is the cause that stays.
	if old.Mark == ledger.MarkDamaged {
		s.Mark, s.Cause = old.Mark, old.Cause
	}
	s.Marking = old.Marking
	return s
}

// lastLineTime returns the time of the journal's last line.
func (g *groupCommit) lastLineTime() (time.Time, error) {
	var l ledger.Line
	var err error
	if n := len(g.lines); n > 0 {
		l, err = ledger.ParseLine(g.lines[n-1])
	} else {
		l, err = lineAt(g.tx, g.Head.N)
	}
	if err != nil {
		return time.Time{}, damage("%v", err)
	}
	at, err := time.Parse(time.RFC3339, l.At)
	if err != nil {
		return time.Time{}, damage("journal line %d: %v", l.N, err)
	}
	return at.UTC(), nil
}

// requireReconcile marks every entry that is not at rest as one that must be
// reconciled, in commits of bounded size, and then records that this is done.
// No committer works yet.
func (l *Ledger) requireReconcile() error {
	// The time of the mark, also when a crash spread the work over two starts.
	at := archive.Instant{Wall: l.state.Safe.Since}
	err := readingOf(oldestFirst, openBucket).inParts(l.view, func(part []ledger.Entry) error {
		var cs []ledger.Change
		for _, e := range part {
			// A former start that crashed has marked it already.
			if !e.NeedsReconcile {
				cs = append(cs, ledger.Change{Key: e.Key, Rev: e.Rev, Events: []ledger.Event{ledger.ReconcileRequired{}}, At: at})
			}
		}
		return l.commitOne(request{changes: cs})
	})
	if err != nil {
		return err
	}
	// Last: a crash before this commit makes the next start look at all open entries once more.
	return l.commitOne(request{do: func(g *groupCommit) (refused, err error) { g.Safe.Marking = false; return nil, nil }})
}

// commitOne commits one request where no committer works. A refusal is an error.
func (l *Ledger) commitOne(r request) error {
	all, err := l.commitRequests([]request{r})
	if err != nil {
		return err
	}
	for _, one := range all[0] {
		err = cmp.Or(err, one.Err)
	}
	return err
}

// LastAlarm returns the latest time at which the ledger was put back, made anew or found
// damaged, by its marks; zero: it never was. It is as committed, and cheap to ask: of a clock
// that was wrong for a while no order of the journal's times may be expected.
func (l *Ledger) LastAlarm() time.Time { return l.committed().Alarmed }

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
