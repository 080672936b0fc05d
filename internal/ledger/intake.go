package ledger

import (
	"cmp"
	"time"

	"vaultd/internal/archive"
)

// ClaimedFolder opens an entry: the folder lies in the claimed area under Key.
type ClaimedFolder struct {
	Route       Route
	Vault       archive.VaultID
	Drop        string
	Folder      string
	Owner       uint32
	Node        Node
	Fingerprint archive.Digest // fingerprint at the claim
	NotBefore   time.Time      // the second scan is due then
	Supersedes  archive.Key
	// PossibleDouble: a person sends again what was closed in doubt, and nobody can be asked. It is flagged before anything is sent.
	PossibleDouble bool
}

// JournalName implements Event.
func (ClaimedFolder) JournalName() string { return "claimed" }

func (ev ClaimedFolder) apply(e *Entry, at archive.Instant) error {
	if e.Key.IsZero() {
		return ErrIllegal
	}
	// The folder was renamed and synced before this event. A crash between the two leaves a claimed folder without an entry,
	// which the next start adopts under the key in its path.
	e.State, e.Source = Discovered, Claimed
	e.Route, e.Vault, e.Drop, e.Folder, e.Owner, e.Node = cmp.Or(ev.Route, Vault), ev.Vault, ev.Drop, ev.Folder, ev.Owner, ev.Node
	e.Fingerprint, e.NotBefore, e.Supersedes = ev.Fingerprint, ev.NotBefore, ev.Supersedes
	e.PossibleDouble, e.DuplicateConfirmed = ev.PossibleDouble, ev.PossibleDouble
	e.SeenAt = at.Wall
	return nil
}

// StillChanging says that the claimed folder differs from the last scan.
type StillChanging struct {
	Fingerprint archive.Digest
	NotBefore   time.Time
}

// JournalName implements Event.
func (StillChanging) JournalName() string { return "still-changing" }

func (ev StillChanging) apply(e *Entry, _ archive.Instant) error {
	// Packing starts only after two scans with one fingerprint; a crash in between costs one more wait.
	e.Fingerprint, e.WaitsFor = ev.Fingerprint, archive.Key{} // it may be another invoice now
	e.postpone(ev.NotBefore, Cause{Code: "still-changing"})
	return nil
}

// Postponed says that the step which is due could not be done now. It changes
// no state: nothing new is known about the document.
type Postponed struct {
	NotBefore time.Time
	Cause     Cause
	WaitsFor  archive.Key // where it waits for another entry's end
}

// JournalName implements Event.
func (Postponed) JournalName() string { return "postponed" }

func (ev Postponed) apply(e *Entry, at archive.Instant) error {
	step, _, due := Due(*e)
	if !due {
		return ErrIllegal
	}
	// Why it ended, or stopped, stays: a question that waits says nothing about that, and nor does what is in the way of its source, which comes
	// back with that reason.
	if step == Ask && !e.State.IsOpen() || step == Place && (e.State == Rejected || e.Contradicted) {
		ev.Cause = Cause{}
	}
	if step == Ask && len(e.OpenQuestions()) == 0 {
		ev.NotBefore = LaterOf(ev.NotBefore, e.recordSilence(at.Wall))
	}
	// The time is stored, so a restart does not retry everything at once.
	e.postpone(ev.NotBefore, ev.Cause)
	e.WaitsFor = ev.WaitsFor
	return nil
}

// Sealed says that the ZIP exists, was read back, and that the request is frozen.
// Its [Document] is committed with it.
//
// Of an entry that was put into quarantine before its folder was packed (see [Entry.IsUnidentified]) it says what the folder holds. The entry
// stays in quarantine, and there need be no package: one that is missing is made before anything is sent.
type Sealed struct {
	ID            archive.ID
	IDFromSidecar bool
	Content       archive.Digest
	Metadata      archive.Digest
	Package       archive.Package
	Seal          archive.Digest // Document.Seal of the package
	Number        archive.NumberDigest
	SameContent   archive.Key
	SameNumber    archive.Key // must be what the ledger finds in the transaction that seals
	StrangeDate   bool
	LooksCutOff   bool        // a file of it does
	Supersedes    archive.Key // the entry whose identity this one takes over
}

// JournalName implements Event.
func (Sealed) JournalName() string { return "sealed" }

func (ev Sealed) apply(e *Entry, _ archive.Instant) error {
	if ev.ID.IsZero() || ev.Package.IsZero() || e.State != Discovered && !e.IsUnidentified() {
		return ErrIllegal
	}
	if e.State == Discovered {
		// The ZIP lay synced in the spool before this event. A crash before the commit leaves a ZIP that no entry names; the next
		// start seals again, and the same input gives the same bytes.
		e.enterState(Packaged)
	}
	e.Fingerprint = archive.Digest{} // it served to see whether the folder was still changing
	e.ID, e.FirstID, e.IDFromSidecar, e.Content, e.Metadata, e.Package = ev.ID, ev.ID, ev.IDFromSidecar, ev.Content, ev.Metadata, ev.Package
	e.Number, e.SameContent, e.SameNumber, e.StrangeDate = ev.Number, ev.SameContent, ev.SameNumber, ev.StrangeDate
	if ev.LooksCutOff && e.CutOff == NotCutOff {
		e.CutOff = CutOffFound
	}
	if !ev.Supersedes.IsZero() {
		e.Supersedes = ev.Supersedes
	}
	return nil
}

// Unsealed says that a document is to be packaged anew, because whom it goes to has changed before any byte of it was sent. Its package and
// its identity, which rests on that, are given up. Only a route that cannot be asked allows it: nothing at the service knows the identity.
type Unsealed struct{}

// JournalName implements Event.
func (Unsealed) JournalName() string { return "unsealed" }

func (Unsealed) apply(e *Entry, _ archive.Instant) error {
	if e.Source != Claimed || e.NeedsReconcile || e.Pruned.Lapsed > 0 {
		return ErrIllegal
	}
	for _, r := range e.Registrations {
		if r.Fate != Unsent {
			return ErrIllegal
		}
	}
	// The package in the spool is replaced when it is made again. A crash before that leaves one that no entry names, which the next start
	// removes.
	e.enterState(Discovered)
	e.ID, e.FirstID, e.Content, e.Metadata, e.Package = archive.ID{}, archive.ID{}, archive.Digest{}, archive.Digest{}, archive.Package{}
	e.PackedAnew = true
	return nil
}

// Resealed says that a lost or damaged ZIP was made again. Once a byte of it was
// sent it must be the identical one.
type Resealed struct {
	Package archive.Package
	Seal    archive.Digest
}

// JournalName implements Event.
func (Resealed) JournalName() string { return "resealed" }

func (ev Resealed) apply(e *Entry, _ archive.Instant) error {
	// Bytes may have reached the store for one of them. Other bytes would be a second document under the same identity.
	if ev.Package.SHA256 != e.Package.SHA256 && e.evidence().mayHavePackage(e) {
		return ErrIllegal
	}
	e.Package = ev.Package
	return nil
}

// Refused says that vaultd itself refuses the folder: nothing was sent, and
// nothing will be. If the entry needs to be reconciled, or a person sends again
// what may be delivered already, that is not certain, and it goes to
// quarantine.
type Refused struct{ Cause Cause }

// JournalName implements Event.
func (Refused) JournalName() string { return "refused" }

func (ev Refused) apply(e *Entry, _ archive.Instant) error {
	if e.State == Discovered && (e.NeedsReconcile || e.repeatsWhatMayBeDelivered()) {
		e.enterQuarantine(ev.Cause)
		return nil
	}
	// Rejected promises that nothing is at the service. If that is not certain,
	// the entry goes to quarantine by another event.
	if !e.HasNothingAtService() {
		return ErrIllegal
	}
	e.enterState(Rejected)
	e.Cause = ev.Cause
	return nil
}

// FoundDuplicate says that the same identity is archived already.
type FoundDuplicate struct{ First archive.Key }

// JournalName implements Event.
func (FoundDuplicate) JournalName() string { return "duplicate" }

func (ev FoundDuplicate) apply(e *Entry, _ archive.Instant) error {
	if ev.First.IsZero() {
		return ErrIllegal
	}
	// Final at once: nothing was registered for this entry, so nothing has to be undone after a crash.
	e.enterState(Duplicate)
	e.DuplicateOf = ev.First
	return nil
}

// SentToQuarantine says that the entry cannot go on by itself, and that content at the service or a mix-up is possible.
type SentToQuarantine struct{ Cause Cause }

// JournalName implements Event.
func (SentToQuarantine) JournalName() string { return "quarantined" }

func (ev SentToQuarantine) apply(e *Entry, _ archive.Instant) error {
	if !e.State.IsOpen() {
		return ErrIllegal
	}
	e.enterQuarantine(ev.Cause)
	return nil
}

func (e *Entry) enterQuarantine(c Cause) {
	e.closeTicket(time.Time{})
	e.enterState(Quarantined)
	e.Cause = c
}
