package ledger

import (
	"cmp"
	"time"

	"vaultd/internal/archive"
)

// ReconcileRequired says that the ledger was restored from a copy, or that the folder was found
// without an entry: what happened to the entry since is not known. Nothing of it is sent, moved
// or removed until the service was asked. An address in the copy is thrown away, and its
// registration counts as one that may hold content. Answers that were counted as evidence of
// absence count no longer.
type ReconcileRequired struct{}

// JournalName implements Event.
func (ReconcileRequired) JournalName() string { return "reconcile-required" }

func (ReconcileRequired) apply(e *Entry, at archive.Instant) error {
	if e.State == None || e.NeedsReconcile {
		return ErrIllegal
	}
	e.NeedsReconcile = true
	// The copy tells how things stood when it was made. Each intent in it may have been carried out since.
	e.evidence().restore(e, at)
	for i := range e.Registrations { // the same number may have been given out and used again since
		if r := &e.Registrations[i]; r.Fate == MaybeStored || r.Fate == Stored {
			r.ClosedAt, r.EqualAnswers = at.Wall, 0
		}
	}
	return nil
}

// IsUnidentified reports whether the entry waits for a decision whether its document was delivered, and was never packed as far as this ledger
// knows. Without the identity of what lies in its folder, the same document would pass for a new one when somebody drops it again.
func (e Entry) IsUnidentified() bool {
	return e.State == Quarantined && e.NeedsReconcile && e.evidence().doubtStays() && e.Source == Claimed && !e.WasSealed()
}

// RegistrationFound says that the service knows a registration of this document
// that the entry does not list. If the entry needs to be reconciled, the
// registration may hold content, and the next answers about it decide. By a
// route that is notified nobody can be asked: there it says that the lost part
// may have sent the document under this number. Else it comes from a POST whose
// answer was lost: nobody ever had an address for it.
type RegistrationFound struct {
	Remote      archive.RemoteID
	ID          archive.ID // the clientUUID that the service tells: of any generation of the entry
	Date        time.Time  // the service's own, of the registration; zero where it does not tell
	ServiceTime time.Time  // its clock when it told; zero where it does not say
}

// JournalName implements Event.
func (RegistrationFound) JournalName() string { return "registration-found" }

// GenerationOf returns which generation of the entry's identity id is. It also knows later
// generations than the entry has: the part of its life that the ledger lost may have used them.
func (e Entry) GenerationOf(id archive.ID) (n uint8, ok bool) {
	if e.FirstID.IsZero() {
		return 0, false
	}
	return e.FirstID.GenerationOf(id)
}

// ArchivedID returns the identity under which the registration that succeeded was
// made: that of an earlier generation where it came through late.
func (e Entry) ArchivedID() archive.ID {
	for _, r := range e.Registrations {
		if r.Ticket.Remote == e.ArchivedRemote && r.Generation < e.Generation {
			return e.FirstID.Generation(int(r.Generation))
		}
	}
	return e.ID
}

func (ev RegistrationFound) apply(e *Entry, at archive.Instant) error {
	n, ours := e.GenerationOf(ev.ID)
	if !ours || ev.Remote == "" {
		return ErrIllegal
	}
	if e.findRegistration(ev.Remote) != nil {
		return nil // it was found before
	}
	if e.NeedsReconcile && (e.State == Registering || e.State == Registered || e.State == Sending) {
		return ErrIllegal // no entry that needs to be reconciled is in these states
	}
	found := Registration{
		Ticket: archive.Ticket{Remote: ev.Remote, Sent: archive.Instant{Wall: at.Wall}, Date: ev.Date}, Generation: n, ClosedAt: at.Wall,
	}
	if ev.ServiceTime.After(found.ClosedAt) { // our clock may be behind, and be set later
		// The grace counts from the later of both clocks, so that a wrong one can only make it longer.
		found.ClosedAt = ev.ServiceTime
	}
	if n > e.Generation {
		e.Generation, e.ID, e.LostAnswers = n, ev.ID, e.Posts-e.Answers
	}
	// The ledger is complete, so it would list any registration with an address: this one was never used.
	if !e.NeedsReconcile {
		e.listBeforeCurrent(found)
		return nil
	}
	// Its address may have been used in the lost part. It counts as holding content until the service says otherwise.
	found.Fate = MaybeStored
	e.evidence().find(&found)
	e.Registrations = append(e.Registrations, found)
	e.pruneRegistrations()
	e.PossibleDouble = e.PossibleDouble || e.countHolders() > 1
	if e.State.IsOpen() {
		e.enterState(Unclear)
		e.Cause = Cause{Code: "registration-found"}
	}
	return nil
}

// listBeforeCurrent lists a registration that nothing goes to, before the current one.
func (e *Entry) listBeforeCurrent(r Registration) {
	e.Registrations = append(e.Registrations, r)
	if last := len(e.Registrations) - 1; last > 0 {
		e.Registrations[last], e.Registrations[last-1] = e.Registrations[last-1], e.Registrations[last]
	}
	e.pruneRegistrations()
}

// Reconciled says that the service was asked in a way that shows every registration made since
// the copy. The entry goes on by the usual steps.
type Reconciled struct{}

// JournalName implements Event.
func (Reconciled) JournalName() string { return "reconciled" }

func (Reconciled) apply(e *Entry, _ archive.Instant) error {
	// An entry that rests on a receipt alone becomes archived by the service's
	// status, or is quarantined first.
	if !e.NeedsReconcile || e.RestsOnReceipt() && e.State.IsOpen() {
		return ErrIllegal
	}
	// From this commit on the usual steps go on. A crash before it repeats the questions, which change nothing at the service.
	e.NeedsReconcile = false
	return nil
}

// SourceFound says where the source of an entry lies that needs to be reconciled: it was placed
// or disposed of in the part of its life that the ledger lost. It stays there until a person
// decides otherwise.
type SourceFound struct {
	Source Source // Kept, Moved or Gone where archived or delivered; Returned or Gone where rejected or a duplicate; any where quarantined
	Dest   string // where; empty with Gone
}

// JournalName implements Event.
func (SourceFound) JournalName() string { return "source-found" }

func (ev SourceFound) apply(e *Entry, _ archive.Instant) error {
	if !e.NeedsReconcile || e.Source == ev.Source || e.Source == Returned || e.Source > Disposing || (ev.Dest == "") != (ev.Source == Gone) {
		return ErrIllegal
	}
	// No time to dispose: what happened to the folder is not known, so nothing removes it by itself.
	e.Source, e.Dest, e.DisposeAt = ev.Source, ev.Dest, time.Time{}
	return nil
}

// CauseByReceiptAlone is the code of the cause of an entry that an unsigned
// receipt opened. The receipt says what the folder holds; the archive's
// confirmation is missing.
const CauseByReceiptAlone = "by-receipt-alone"

// RestsOnReceipt reports whether a receipt alone says that the document is
// archived. It ends with the archive's own answer, or with an operator's
// decision.
func (e Entry) RestsOnReceipt() bool {
	return (e.State.IsOpen() || e.State == Quarantined) && e.Cause.Code == CauseByReceiptAlone
}

// Recovered opens an entry from evidence where the ledger is lost: a receipt, the archive's index
// or its list, or a folder that was returned. The entry needs to be reconciled.
type Recovered struct {
	Route          Route
	Vault          archive.VaultID
	Drop           string
	Folder         string
	Owner          uint32
	Node           Node
	State          State                // Archived, Delivered, Uploaded, Rejected; by an unsigned receipt Packaged or Quarantined
	Source         Source               // Kept or Gone; Gone; Returned; Kept
	Dest           string               // where the source lies
	ID             archive.ID           // zero where nothing tells it
	FirstID        archive.ID           // of its first generation; zero: ID is the first
	Generation     uint8                // of ID, counted from FirstID
	Content        archive.Digest       // not zero: the change brings a Document
	Metadata       archive.Digest       //
	Package        archive.Package      //
	Seal           archive.Digest       // Document.Seal of the package, with a Document
	Number         archive.NumberDigest // zero: not all of the metadata is known
	SameNumber     archive.Key          // set by the ledger itself
	StrangeDate    bool
	LooksCutOff    bool
	Remote         archive.RemoteID // of the registration that succeeded, or is being archived
	SuccessRecord  []byte           // the service's own word of success, as it is kept
	PossibleDouble bool             // the receipt says so
	Body           archive.Digest   // of a document of the business network, with StoredFiles and Means
	StoredFiles    []archive.FileID //
	Means          string           //
	Supersedes     archive.Key      // the entry whose identity this one takes over
	InDoubt        bool             // of a rejection whose service cannot be asked: its note says that it was closed in doubt
	Cause          Cause

	SeenAt, RegisteredAt, UploadedAt time.Time
	ArchivedAt                       time.Time // the service's own time of success
}

// JournalName implements Event.
func (Recovered) JournalName() string { return "recovered" }

func (ev Recovered) apply(e *Entry, at archive.Instant) error {
	if e.Key.IsZero() || !ev.isComplete() {
		return ErrIllegal
	}
	// It needs to be reconciled like any restored entry: the evidence may be older than the end of its life.
	e.State, e.Source, e.Dest, e.NeedsReconcile = ev.State, ev.Source, ev.Dest, true
	e.Route, e.Vault, e.Drop, e.Folder, e.Owner, e.Node = cmp.Or(ev.Route, Vault), ev.Vault, ev.Drop, ev.Folder, ev.Owner, ev.Node
	e.ID, e.FirstID, e.Generation = ev.ID, ev.ID, ev.Generation
	if !ev.FirstID.IsZero() {
		e.FirstID = ev.FirstID
	}
	e.Body, e.StoredFiles, e.Means = ev.Body, ev.StoredFiles, ev.Means
	e.Content, e.Metadata, e.Package = ev.Content, ev.Metadata, ev.Package
	e.Number, e.SameNumber, e.StrangeDate, e.Supersedes = ev.Number, ev.SameNumber, ev.StrangeDate, ev.Supersedes
	if ev.LooksCutOff {
		e.CutOff = CutOffTaken
	}
	e.PossibleDouble, e.DuplicateConfirmed, e.InDoubt, e.Cause = ev.PossibleDouble, ev.PossibleDouble, ev.InDoubt, ev.Cause
	e.SeenAt, e.RegisteredAt, e.UploadedAt, e.ArchivedAt = ev.SeenAt, ev.RegisteredAt, ev.UploadedAt, ev.ArchivedAt
	if e.SeenAt.IsZero() {
		e.SeenAt = at.Wall
	}
	switch ev.State {
	case Archived:
		e.ArchivedRemote, e.SuccessRecord = ev.Remote, ev.SuccessRecord
		e.Registrations = []Registration{{Ticket: archive.Ticket{Remote: ev.Remote}, Fate: Succeeded, ClosedAt: at.Wall}}
	case Delivered:
		e.Registrations = []Registration{{Ticket: archive.Ticket{Remote: ev.Remote}, Generation: ev.Generation, Fate: Succeeded, ClosedAt: at.Wall}}
	case Uploaded:
		if e.UploadedAt.IsZero() {
			e.UploadedAt = at.Wall
		}
		e.Registrations = []Registration{{Ticket: archive.Ticket{Remote: ev.Remote}, Fate: Stored, ClosedAt: at.Wall}}
	}
	return nil
}

// isComplete reports whether the evidence has all that its state needs.
func (ev Recovered) isComplete() bool {
	kept, gone := ev.Source == Kept && ev.Dest != "", ev.Source == Gone && ev.Dest == ""
	by := ev.Route.row().evidence
	switch {
	case !by.recovers(ev.State):
		return false
	case ev.Generation > 0 && (ev.State != Delivered && ev.State != Quarantined || ev.FirstID.IsZero() || ev.FirstID.Generation(int(ev.Generation)) != ev.ID):
		return false
	case !ev.Content.IsZero() && (ev.ID.IsZero() || ev.Package.IsZero()):
		return false
	case ev.InDoubt && (ev.State != Rejected || !by.doubtStays()):
		return false
	case ev.State == Packaged: // by a receipt alone: its statements about the archive are ignored
		return kept && ev.Cause.Code == CauseByReceiptAlone && ev.Remote == "" && !ev.Content.IsZero() && len(ev.SuccessRecord) == 0 && ev.ArchivedAt.IsZero()
	case ev.State == Quarantined: // by a delivery note alone
		return kept && ev.Cause.Code == CauseDeliveryUnknown && ev.Remote == "" && !ev.Content.IsZero() && ev.UploadedAt.IsZero()
	case ev.State == Delivered:
		return (kept || gone) && ev.Remote != "" && !ev.Content.IsZero() && !ev.UploadedAt.IsZero()
	case ev.State == Archived:
		return (kept || gone) && ev.Remote != "" && len(ev.SuccessRecord) > 0 && !ev.ArchivedAt.IsZero()
	case ev.State == Uploaded: // the archive has it; the folder it came from is not here
		return gone && ev.Remote != "" && !ev.ID.IsZero() && len(ev.SuccessRecord) == 0 && ev.ArchivedAt.IsZero()
	}
	return ev.State == Rejected && ev.Source == Returned && ev.Dest != "" && ev.Remote == ""
}

func (l *Line) setRecovered(ev Recovered) {
	l.Vault, l.Route, l.Remote, l.Size, l.UID = string(ev.Vault), ev.Route.Noted(), string(ev.Remote), ev.Package.Size, uidPointer(ev.Owner)
	l.Other = keyText(ev.Supersedes)
	if !ev.Seal.IsZero() {
		l.Seal = ev.Seal.String()
	}
	if !ev.ArchivedAt.IsZero() {
		l.Time = formatTime(ev.ArchivedAt)
	}
}
