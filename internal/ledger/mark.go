package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/archive"
)

// Mark is something that happened to the ledger as a whole, told by a journal line
// that belongs to no entry.
type Mark struct {
	Name        string          // one of the words below
	Vault       archive.VaultID // that it is about; empty: all of them
	By          Operator
	Cause       string // what a reader of the journal should know; names nobody
	At          time.Time
	ServiceTime time.Time // the service's clock, where it was asked; zero: it was not, or did not say

	Remote archive.RemoteID // of a download: what is downloaded
	Bytes  int64            // of MarkFetched: how many came
}

// The words of marks. The first four enter safe mode, MarkReconciled leaves it.
const (
	MarkRestored       = "restored"          // put back from a backup
	MarkRebuilt        = "rebuilt"           // made anew from receipts, folders and the archive's index
	MarkRolledBack     = "rolled-back"       // found older than its outside head
	MarkDamaged        = "damaged"           // the check of a running ledger found damage
	MarkReconciled     = "reconciled"        // the service was asked for everything since
	MarkDisposal       = "disposal-approved" // a person lets more be removed than the disposal limit
	MarkIndex          = "index-accepted"    // a person lets an index of a vault count as complete that was not read to its end; Cause says how much was
	MarkUploadsResumed = "uploads-resumed"   // a person lets uploads go on after some of which nobody knows what became; Cause names the store

	MarkNoticeClosed = "notice-closed" // a person has acted upon a notification about no sent document; Remote is the document that it names

	MarkCompared = "compared" // the ledger was held against the archive's index of a vault; Cause begins with one of the outcomes below, then says how much was read

	MarkReported = "reported" // a report was written that the next one goes on from; Cause says up to which line it went

	MarkFetchIntended = "fetch-intended" // a person downloads from the archive: committed before the call, and counted against the month's budget
	MarkFetched       = "fetched"        // what came of it; Cause is one of the outcomes below
)

// The outcomes of a download. After a crash in the middle of one there is none.
const (
	FetchSame        = "same"              // the bytes that were sent
	FetchRepacked    = "container-differs" // another ZIP; every file in it has the recorded content
	FetchDiffers     = "differs"           // a file differs, is missing or is too many
	FetchNotCompared = "not-compared"      // it came, and the ledger has nothing to compare it with
	FetchFailed      = "failed"            // it did not come, or not whole
)

// FetchOutcomes lists the outcomes of a download.
func FetchOutcomes() []string {
	return []string{FetchSame, FetchRepacked, FetchDiffers, FetchNotCompared, FetchFailed}
}

// The outcomes of a comparison with the index of a vault, the worst first.
const (
	CompareMissing    = "missing"      // the index has not every document that the ledger calls archived
	CompareDiffers    = "differs"      // something else differs
	CompareIncomplete = "not-complete" // the index was not read to its end: nothing is concluded
	CompareSame       = "same"         // nothing differs
)

// CompareOutcomes lists the outcomes of a comparison.
func CompareOutcomes() []string {
	return []string{CompareMissing, CompareDiffers, CompareIncomplete, CompareSame}
}

// IsDifference reports whether an outcome of a comparison calls a person.
func IsDifference(outcome string) bool { return outcome == CompareMissing || outcome == CompareDiffers }

// ComparedCause is the cause of a MarkCompared: its outcome, and in words how much was read and how much differs.
func ComparedCause(outcome, read string, differences int) string {
	return fmt.Sprintf("%s: %s, differences %d", outcome, read, differences)
}

// ParseComparedCause returns the outcome of a MarkCompared's cause, and the text behind it. ok is false where the cause has none.
func ParseComparedCause(cause string) (outcome, words string, ok bool) {
	outcome, words, ok = strings.Cut(cause, ": ")
	return outcome, words, ok && slices.Contains(CompareOutcomes(), outcome)
}

// ReportedCause is the cause of a MarkReported.
func ReportedCause(line uint64) string { return reportedWords + strconv.FormatUint(line, 10) }

const reportedWords = "up to line "

// ParseReportedCause returns the line up to which the report went. ok is false where the cause has none.
func ParseReportedCause(cause string) (line uint64, ok bool) {
	number, ok := strings.CutPrefix(cause, reportedWords)
	line, err := strconv.ParseUint(number, 10, 64)
	return line, ok && err == nil && line > 0
}

// MarkNames lists the words of marks.
func MarkNames() []string {
	return []string{MarkRestored, MarkRebuilt, MarkRolledBack, MarkDamaged, MarkReconciled, MarkDisposal, MarkIndex, MarkUploadsResumed, MarkNoticeClosed, MarkCompared, MarkReported, MarkFetchIntended, MarkFetched}
}

// EntersSafeMode reports whether the mark enters safe mode.
func (m Mark) EntersSafeMode() bool {
	switch m.Name {
	case MarkRestored, MarkRebuilt, MarkRolledBack, MarkDamaged:
		return true
	}
	return false
}

// SafeMode is why a ledger is in safe mode: it may not know everything that was done, so
// nothing is sent or disposed of until the service was asked.
type SafeMode struct {
	Mark       string    `stored:"1"` // of the mark that entered it
	Cause      string    `stored:"2"`
	Since      time.Time `stored:"3"`
	KnownUntil time.Time `stored:"4"` // of the last thing the ledger is sure of: what happened after it is unknown; zero: nothing is sure
}

// MarkLine returns the line that tells of the ordinal-th mark of a ledger.
func MarkLine(n uint64, ordinal uint32, m Mark) Line {
	l := Line{N: n, At: formatTime(m.At), Event: m.Name, Rev: ordinal, Vault: string(m.Vault), Remote: string(m.Remote), Size: m.Bytes, Cause: m.Cause, UID: uidPointer(m.By.UID)}
	if !m.ServiceTime.IsZero() {
		l.Time = formatTime(m.ServiceTime)
	}
	if !m.By.Reason.IsZero() {
		l.Reason = m.By.Reason.String()
	}
	return l
}
