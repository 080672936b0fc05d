package ledger

import (
	"strings"
	"time"

	"vaultd/internal/archive"
)

// PlaceIntended is committed before the source is moved to Dest: back to people
// when it was rejected or a duplicate, to the kept ones when it is archived.
type PlaceIntended struct{ Dest string }

// JournalName implements Event.
func (PlaceIntended) JournalName() string { return "place-intended" }

func (ev PlaceIntended) apply(e *Entry, _ archive.Instant) error {
	if !e.State.IsFinal() || e.NeedsReconcile || ev.Dest == "" {
		return ErrIllegal
	}
	// The intent may be repeated with another destination: a name that was free before a crash may be taken after it.
	switch {
	case (e.Source == Claimed || e.Source == Returning) && (e.State == Rejected || e.State == Duplicate):
		e.Source = Returning
	case (e.Source == Claimed || e.Source == Keeping) && (e.State == Archived || e.State == Delivered):
		e.Source = Keeping
	default:
		return ErrIllegal
	}
	e.Dest = ev.Dest
	return nil
}

// Placed says that the source lies at the intended place, with its receipt or reason.
type Placed struct{ DisposeAt time.Time } // zero: it stays

// JournalName implements Event.
func (Placed) JournalName() string { return "placed" }

func (ev Placed) apply(e *Entry, _ archive.Instant) error {
	switch e.Source {
	case Returning:
		e.Source = Returned
	case Keeping:
		e.Source, e.DisposeAt = Kept, ev.DisposeAt
	default:
		return ErrIllegal
	}
	e.endTries()
	return nil
}

// DisposeIntended is committed before the first file of a kept source is removed
// or moved. It needs the service's success, an elapsed grace and no contradiction.
type DisposeIntended struct{}

// JournalName implements Event.
func (DisposeIntended) JournalName() string { return "dispose-intended" }

func (ev DisposeIntended) apply(e *Entry, at archive.Instant) error {
	if e.Source != Kept && e.Source != Disposing || !e.mayDispose() || at.Wall.Before(e.DisposeAt) {
		return ErrIllegal // going on after a crash asks the same
	}
	// The first unlink follows this commit. A crash after it leaves part of the folder, and the next start removes the rest.
	e.Source = Disposing
	return nil
}

// Disposed says that the source is gone from the drop folder.
type Disposed struct{ Dest string } // where it went; empty: nowhere

// JournalName implements Event.
func (Disposed) JournalName() string { return "disposed" }

func (ev Disposed) apply(e *Entry, _ archive.Instant) error {
	if e.Source != Disposing {
		return ErrIllegal
	}
	// A crash before this commit leaves disposing; the next start finds nothing left to remove and commits this.
	e.Source, e.Dest = Gone, ""
	if ev.Dest != "" {
		e.Source, e.Dest = Moved, ev.Dest
	}
	e.endTries()
	return nil
}

// endTries ends the tries of a step with its source. The reason why a try failed
// ends with them; a reason for which an operator must act stays.
func (e *Entry) endTries() {
	if e.Attempt > 0 && e.State != Rejected && !e.NeedsPerson() {
		e.Cause = Cause{}
	}
	e.Attempt, e.NotBefore = 0, time.Time{}
}

// ContentCompared says that a download of what is archived has the content that
// was sent, where that was not sure. The line of the download says who asked for it.
type ContentCompared struct{ Remote archive.RemoteID }

// JournalName implements Event.
func (ContentCompared) JournalName() string { return "content-compared" }

func (ev ContentCompared) apply(e *Entry, _ archive.Instant) error {
	if ev.Remote != e.ArchivedRemote || !e.NeedsComparison() && !e.ContentDiffers() {
		return ErrIllegal
	}
	r := e.findRegistration(e.ArchivedRemote)
	r.Differs, r.Unproven = false, false
	return nil
}

// ContentDiffered says that a download of what is archived has other content than
// was sent.
type ContentDiffered struct{ Remote archive.RemoteID }

// JournalName implements Event.
func (ContentDiffered) JournalName() string { return "content-differs" }

func (ev ContentDiffered) apply(e *Entry, _ archive.Instant) error {
	r := e.findRegistration(e.ArchivedRemote)
	if ev.Remote != e.ArchivedRemote || e.State != Archived || r == nil || r.Differs {
		return ErrIllegal
	}
	r.Differs, e.Resolved = true, false // this is news since the last decision of an operator
	return nil
}

// SourceChecked says what a look at a kept source found, where that is not what
// the entry says already. A cause without a code: it is there again, as it was
// archived. The remark stays until a person closes it.
type SourceChecked struct{ Cause Cause }

// JournalName implements Event.
func (SourceChecked) JournalName() string { return "source-checked" }

func (ev SourceChecked) apply(e *Entry, _ archive.Instant) error {
	if e.Source != Kept || e.NeedsReconcile {
		return ErrIllegal
	}
	before := e.Cause
	switch {
	case ev.Cause.Code == CauseSourceChanged || ev.Cause.Code == CauseSourceMissing:
		if before.Text != "" && !e.SourceDiffers() {
			ev.Cause.Text += ". Before that: " + before.Text
		}
		// Only a person decides about what is not as it was archived: it is
		// never removed by itself.
		e.Cause, e.DisposeAt = ev.Cause, time.Time{}
		if !e.Contradicted && !e.IsArchivedTwice() {
			e.Resolved = false // what a person closed before was something else
		}
	case ev.Cause.Code != "" || !e.SourceDiffers() || before.Code == CauseSourceRestored:
		return ErrIllegal
	case e.Resolved:
		e.Cause = Cause{}
	default:
		e.Cause = Cause{Code: CauseSourceRestored, Text: before.Text + ". " + ev.Cause.Text}
	}
	return nil
}

// SaysOfSource reports whether e says of its kept source already what a look
// found; a cause without a code: that it is as it was archived.
func (e Entry) SaysOfSource(c Cause) bool {
	if c.Code == "" {
		return !e.SourceDiffers() || e.Cause.Code == CauseSourceRestored
	}
	return e.SourceDiffers() && e.Cause.Code == c.Code && (c.Code == CauseSourceMissing || strings.HasPrefix(e.Cause.Text, c.Text))
}

// DisposalStopped says that the disposal found something that it must not remove. The source
// stays where it is, and a person is told.
type DisposalStopped struct{ Cause Cause }

// JournalName implements Event.
func (DisposalStopped) JournalName() string { return "source-untouchable" }

func (ev DisposalStopped) apply(e *Entry, _ archive.Instant) error {
	if e.Source != Disposing && e.Source != Kept {
		return ErrIllegal
	}
	// Without a time the disposal never starts again by itself: only a person can decide about a file that is not ours.
	e.Source, e.DisposeAt, e.Cause = Kept, time.Time{}, ev.Cause
	if e.SourceDiffers() && !e.Contradicted && !e.IsArchivedTwice() {
		e.Resolved = false // what a person closed before was something else
	}
	return nil
}
