package proof

import (
	"fmt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Finding is one broken promise.
type Finding struct {
	Promise string      // "I1" to "I32"
	Key     archive.Key // zero: it concerns no single entry
	Text    string      // one sentence; holds no name, amount or address
}

// String returns the finding on one line.
func (f Finding) String() string {
	if f.Key.IsZero() {
		return f.Promise + ": " + f.Text
	}
	return fmt.Sprintf("%s %s: %s", f.Promise, f.Key, f.Text)
}

// Orphan is a registration that never got content.
type Orphan struct {
	Key    archive.Key
	Remote archive.RemoteID
}

// AcceptedIndex is the index of a vault that was not read to its end. A person let it count as complete.
type AcceptedIndex struct {
	Vault archive.VaultID
	Gave  string // in words: how many documents of how many
	At    string // RFC 3339
	UID   uint32
}

// maxAccepted is how many accepted indexes a report names.
const maxAccepted = 20

// addAcceptedIndex notes an accepted index; the latest ones are named.
func (t *Told) addAcceptedIndex(a AcceptedIndex) {
	t.Accepted++
	if t.Indexes = append(t.Indexes, a); len(t.Indexes) > maxAccepted {
		t.Indexes = t.Indexes[1:]
	}
}

// maxFindings limits the list: otherwise a broken chain gives a finding for every line.
const maxFindings = 1000

// Report is what a check found. Without findings, and without omitted ones, every promise holds that can be checked with what
// was given.
type Report struct {
	Told
	Lines  uint64 // of the journal
	Safe   bool   // it ends in safe mode
	Sample Sample // of the entries that are stored

	Entries uint64         // that are stored
	Head    ledger.Head    // as recomputed from the lines
	Balance ledger.Balance // as recounted from the lines

	Findings []Finding // at most a thousand
	Omitted  uint64    // findings beyond those

	GivenUp []string // numbers of the extracts that nobody has or will have: what they told is not known

	Uncertain
}

// Told is what the lines tell of the ledger as a whole.
type Told struct {
	Marks   uint64 // lines about the ledger as a whole
	PutBack uint64 // times that it was restored, rebuilt or rolled back: what it lost was read again from the service and the folders

	Indexes  []AcceptedIndex // the latest of the indexes that were not read to their end and that a person let count as complete
	Accepted uint64          // how many they are in all

	Downloads Downloads // from the archive
	Acts      Acts      // of people
}

// Uncertain is what cannot be guaranteed about entries.
type Uncertain struct {
	LostPosts     uint64        // POSTs without an answer: at most so many registrations are unknown to the ledger
	Orphans       []Orphan      // known registrations without content
	Pruned        uint64        // more of those, that their entries no longer list
	NeedReconcile []archive.Key // what happened to them since the ledger was put back is not known
	Unclear       []archive.Key // bytes may be stored, nobody knows
	Double        []archive.Key // more than one registration may hold archivable content
	InDoubt       []archive.Key // closed by a person though content is possible
}

// OK reports whether nothing was found.
func (r Report) OK() bool { return len(r.Findings) == 0 && r.Omitted == 0 }

func (r *Report) addFinding(promise string, key archive.Key, format string, a ...any) {
	if len(r.Findings) >= maxFindings {
		r.Omitted++
		return
	}
	r.Findings = append(r.Findings, Finding{promise, key, fmt.Sprintf(format, a...)})
}

// require adds a finding unless something holds.
func (r *Report) require(holds bool, promise string, key archive.Key, format string, a ...any) {
	if !holds {
		r.addFinding(promise, key, format, a...)
	}
}
