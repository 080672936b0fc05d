package ledger

import (
	"time"

	"vaultd/internal/archive"
)

// A copy of what was sent over the business network may go to the archive: it is put into a drop folder of the archive, and becomes an entry of its
// own there. It is made out of the entry's package before its source is placed, because the package is removed then.

// CauseCopyWaits is the code of the cause of an entry whose copy could not be made yet.
const CauseCopyWaits = "copy-waits"

// MayBeCopied reports whether a copy of the document may be made: it is
// delivered under a number of ours, by which the archive knows the copy, there is
// none, and the package is not removed yet.
func (e Entry) MayBeCopied() bool {
	return e.OwnNumber() != "" && e.State == Delivered && !e.Copied && e.Source == Claimed && !e.NeedsReconcile
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
	e.Copied = true
	e.Attempt, e.NotBefore = 0, time.Time{} // the next step begins its own retries
	if e.Cause.Code == CauseCopyWaits {
		e.Cause = Cause{}
	}
	return nil
}
