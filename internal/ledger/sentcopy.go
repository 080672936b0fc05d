package ledger

import (
	"time"

	"vaultd/internal/archive"
)

// A copy of what was sent over the business network may go to the archive: it is put into a drop folder of the archive, and becomes an entry of its
// own there. It is made out of the entry's package before its source is placed, because the package is removed then.

// CauseCopyWaits is the code of the cause of an entry whose copy could not be made yet.
const CauseCopyWaits = "copy-waits"

// CopyState is what became of the copy of a sent document.
type CopyState uint8

// The states. Their numbers are stored and never change.
const (
	NoCopy       CopyState = iota // none was made, so far
	CopyIsWanted                  // one is made as soon as the network has taken the document, see [CopyWanted]
	CopyIsMade                    // one was put into a drop folder, see [CopyPut]
)

// WasTaken reports whether the network said that it has the document under its present number, whatever it told of it since.
func (e Entry) WasTaken() bool {
	r := e.underPresentNumber()
	return r != nil && e.evidence().tookCopy(r.Fate)
}

// MayBeCopied reports whether a copy of the document may be made: the network took it, there is none, and the package is not removed yet.
func (e Entry) MayBeCopied() bool {
	return e.WasTaken() && e.Copy != CopyIsMade && e.Source == Claimed && !e.NeedsReconcile && (e.State == Uploaded || e.State == Delivered || e.State == Rejected)
}

// CopyWanted says that a copy is to be made as soon as the network has taken the document, and not only once it is delivered. It is committed with
// the intent to send, so that no crash loses it.
type CopyWanted struct{}

// JournalName implements Event.
func (CopyWanted) JournalName() string { return "copy-wanted" }

func (CopyWanted) apply(e *Entry, _ archive.Instant) error {
	if e.Copy != NoCopy {
		return ErrIllegal
	}
	e.Copy = CopyIsWanted
	return nil
}

// CopyPut says that a copy of the document lies in a drop folder of the archive, or was taken from there. Its identity there follows from its
// number, see [archive.DeriveSentID].
type CopyPut struct{}

// JournalName implements Event.
func (CopyPut) JournalName() string { return "copy-put" }

func (CopyPut) apply(e *Entry, _ archive.Instant) error {
	if !e.MayBeCopied() {
		return ErrIllegal
	}
	// A crash before this commit leaves a copy that no line tells of. The next start makes it again: it is found there, or it ends as a
	// duplicate of the first, because both have one identity.
	e.Copy = CopyIsMade
	e.Attempt, e.NotBefore = 0, time.Time{} // the next step begins its own retries
	if e.Cause.Code == CauseCopyWaits {
		e.Cause = Cause{}
	}
	return nil
}
