package recovery

import (
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Report is what a comparison found and did.
type Report struct {
	Folders FolderReport
	Vaults  []VaultReport // in the order in which they were asked
	Waiting []Waiting     // entries that stay in doubt
	Waits   int           // how many they are; Waiting names the first thousand
	Heard   int           // registrations with content that entries were told of
	Cleared int           // entries that are not in doubt any more
	Told    time.Time     // the archive's clock when it was asked; zero: it did not say

	Unpacked int      // claimed folders in doubt that are not packed yet, so that their invoice is not known
	Unread   Findings // taken folders in doubt, of services that cannot be asked, that cannot be read now: dropped again they would not be recognised
	Withheld int      // archived documents that got no entry, because they may belong to folders that could not be read
}

// FolderReport is about what lies in the drop folders.
type FolderReport struct {
	Receipts   Findings // archived folders that the ledger did not know as such, and now does by their receipts
	Alone      Findings // archived or delivered folders whose receipts lack a signature of this ledger: each has an entry that waits for the service's status
	Differ     Findings // archived folders that are not what their receipts list
	Unbelieved Findings // archived folders without a receipt that can be believed

	Claimed  Findings // claimed folders that are not archived: they go on
	Returned Findings // folders that were returned
	Strange  Findings // other things in the places of vaultd's own folders
}

// VaultReport is about one vault. The lists hold the first thousand each; the numbers tell all.
type VaultReport struct {
	Vault   archive.VaultID
	Listed  int  // registrations in the status list
	Reaches bool // that list shows every registration since the ledger's last line, and enough time has passed to believe it
	Indexed int  // documents that the index gave, each counted once

	Index    archive.IndexResult // how far the walk through the index came
	Accepted bool                // it is not complete, and a person lets it count as complete

	Found   Findings // registrations that the ledger did not know, of entries that it knows
	TakenIn Findings // archived documents that the ledger did not know: it has an entry for each now
	Strange Findings // archived documents that the ledger does not know, and that were not taken in
	Missing Findings // entries that the ledger calls archived and the archive does not show
	Ended   int      // archived entries that the archive does not show any more, and whose retention is over

	Double    Findings // entries that the archive holds more than once, and nobody has closed
	Uncounted Findings // entries that had given up a registration under which the archive has content; they know now

	Differing   Findings // fields of the metadata that the index gives otherwise than they were sent
	Compared    int      // documents in the index whose metadata was compared
	NotCompared int      // those of entries whose metadata is not here: it was erased, or never known

	Added map[string]int // documents of which the index gives a field that was not sent, by field: no difference
}

// IsConclusive reports whether a document that the index does not show counts as missing.
func (v VaultReport) IsConclusive() bool { return v.Index.Complete || v.Accepted }

// DescribeIndex says how much of the index was read.
func (v VaultReport) DescribeIndex() string {
	read, found := v.Index.Read, v.Index.Found
	noun := "documents"
	if max(read, found) == 1 {
		noun = "document"
	}
	switch {
	case found < 0:
		return fmt.Sprintf("%d %s, and does not say how many there are", read, noun)
	case found < read:
		return fmt.Sprintf("%d %s, and says that there are %d", read, noun, found)
	}
	return fmt.Sprintf("%d of %d %s", read, found, noun)
}

// Findings are things of one kind.
type Findings struct {
	Count int
	Named []Finding // the first thousand
}

// Finding is one document at the archive, or one entry.
type Finding struct {
	Key    archive.Key      // zero: no entry
	Remote archive.RemoteID // empty: unknown
	Number string           // the invoice's number, where it is known
	Text   string           // in words; holds no address

	Field        string // of the metadata, where that is what differs; else empty
	Ours, Theirs string // what was sent and what the index gives, at most 1000 characters of each; may be empty
}

// Waiting is an entry that stays in doubt.
type Waiting struct {
	Key    archive.Key
	Drop   string
	Folder string
	State  ledger.State
	Why    string
	Until  time.Time // zero: until something else happens
}

// Differences counts what the ledger and the archive do not agree about.
func (r Report) Differences() int {
	n := 0
	for _, v := range r.Vaults {
		n += v.Differences()
	}
	return n
}

// Differences counts what differs in one vault.
func (v VaultReport) Differences() int {
	return v.Strange.Count + v.Missing.Count + v.Double.Count + v.Uncounted.Count + v.Differing.Count
}

// Outcome returns the result of the comparison of one vault, in the journal's words.
func (v VaultReport) Outcome() string {
	switch {
	case v.Missing.Count > 0:
		return ledger.CompareMissing
	case v.Differences() > 0:
		return ledger.CompareDiffers
	case !v.Index.Complete && !v.Accepted:
		return ledger.CompareIncomplete
	}
	return ledger.CompareSame
}

func (f *Findings) add(one Finding) {
	if f.Count++; len(f.Named) < named {
		f.Named = append(f.Named, one)
	}
}

// addWaiting adds an entry that stays in doubt. An entry is named once, with its last reason.
func (r *Report) addWaiting(e ledger.Entry, until time.Time, why string) {
	for i := range r.Waiting {
		if w := &r.Waiting[i]; w.Key == e.Key {
			w.Why, w.Until = why, until
			return
		}
	}
	if r.Waits++; len(r.Waiting) < named {
		r.Waiting = append(r.Waiting, Waiting{Key: e.Key, Drop: e.Drop, Folder: e.Folder, State: e.State, Why: why, Until: until})
	}
}
