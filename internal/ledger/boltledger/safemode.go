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

// maxCause bounds what a mark may put into the journal, in bytes.
const maxCause = 1000

// markRequest is a mark and what goes with it in one transaction.
type markRequest struct {
	mark      ledger.Mark
	note      *ledger.Note
	also      func(*summary) // changes more of what the ledger says of itself; may be nil
	isCounted bool           // against the budget: of a download that is announced
}

// lacks says what a mark needs and does not have; empty: nothing.
func (m markRequest) lacks(g *groupCommit) string {
	name, cause, by := m.mark.Name, m.mark.Cause, m.mark.By
	line, isLine := ledger.ParseReportedCause(cause)
	_, _, isComparison := ledger.ParseComparedCause(cause)
	switch {
	case !slices.Contains(ledger.MarkNames(), name) || len(cause) > maxCause:
		return "a name that is known, and a short cause"
	case (m.note == nil) != by.Reason.IsZero() || m.note != nil && m.note.Digest() != by.Reason:
		return "the note that is its reason"
	case name == ledger.MarkReconciled && g.Safe.Mark == "":
		return "a ledger in safe mode"
	case name == ledger.MarkIndex && (m.mark.Vault == "" || by.Reason.IsZero()):
		return "a vault and a reason"
	case name == ledger.MarkReported && (!isLine || line > g.Head.N):
		return "a line of the journal"
	case name == ledger.MarkCompared && (m.mark.Vault == "" || !isComparison):
		return "a vault and an outcome"
	case (name == ledger.MarkFetchIntended || name == ledger.MarkFetched) && (m.mark.Vault == "" || m.mark.Remote == ""):
		return "a vault and a bumId"
	case name == ledger.MarkFetched && !slices.Contains(ledger.FetchOutcomes(), cause):
		return "an outcome"
	case name == ledger.MarkFetchIntended && !m.isCounted:
		return "a place in the budget"
	}
	return ""
}

func (m markRequest) apply(g *groupCommit) (refused, err error) {
	if what := m.lacks(g); what != "" {
		return fmt.Errorf("mark the ledger as %q: it needs %s: %w", m.mark.Name, what, ledger.ErrIllegal), nil
	}
	m.mark.At = m.mark.At.Round(0).UTC()
	last := g.At // the mark itself is not a thing that the ledger was sure of
	g.Marks++
	// The line and what it means are one commit: no crash leaves safe mode without its reason in the journal.
	told := ledger.MarkLine(g.Head.N+1, uint32(g.Marks), m.mark)
	g.addLines(m.mark.At, told.Encode())
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
		g.Safe, g.Alarmed = s, ledger.LaterOf(g.Alarmed, m.mark.At)
	}
	if m.also != nil {
		m.also(&g.summary)
	}
}

// beginIncarnation has the ledger go on as another incarnation, whose outside
// head is made after the commit. A crash in between leaves the ledger without
// a head, which the start accepts for as long as nothing more is committed.
func (s *summary) beginIncarnation(n uint64) { s.This = incarnation{N: n, From: s.Head.N} }

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

// requireReconcile marks every entry that is not at rest as one that must be
// reconciled, in commits of bounded size, and then records that this is done.
// No committer works yet.
func (l *Ledger) requireReconcile() error {
	// The time of the mark, also when a crash spread the work over two starts.
	at := archive.Instant{Wall: l.state.Safe.Since}
	err := readingOf(openBucket).inParts(l, func(part []ledger.Entry) error {
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
