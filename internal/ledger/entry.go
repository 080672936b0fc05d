package ledger

import (
	"math"
	"slices"
	"time"

	"vaultd/internal/archive"
)

// Entry is everything that the ledger knows of one claimed folder, except for the
// erasable part (see [Document]).
type Entry struct {
	Key    archive.Key `stored:"1"`
	Rev    uint32      `stored:"2"` // events so far
	State  State       `stored:"3"`
	Source Source      `stored:"4"`

	Route  Route           `stored:"5"`
	Vault  archive.VaultID `stored:"6"`
	Drop   string          `stored:"7"`  // the drop's configured name
	Folder string          `stored:"8"`  // the folder's name as it was dropped
	Owner  uint32          `stored:"9"`  // uid of the folder's owner at the claim
	Node   Node            `stored:"10"` // the folder's identity on disk at the claim

	Fingerprint   archive.Digest       `stored:"11"` // at the last scan while discovered
	ID            archive.ID           `stored:"12"` // toward the service; of the current generation
	FirstID       archive.ID           `stored:"13"` // of the first generation
	Generation    uint8                `stored:"14"`
	IDFromSidecar bool                 `stored:"15"` // the sidecar named the identity
	Content       archive.Digest       `stored:"16"` // of the list of files
	Metadata      archive.Digest       `stored:"17"` // of the canonical metadata
	Number        archive.NumberDigest `stored:"48"`
	Package       archive.Package      `stored:"18"`

	Registrations []Registration      `stored:"19"` // the last is current, the others are orphans
	Pruned        RegistrationsPruned `stored:"46"` // earlier ones that are no longer listed
	Posts         uint16              `stored:"20"` // POSTs that were announced
	Answers       uint16              `stored:"21"` // of them with a known outcome
	Acts          uint32              `stored:"66"` // intents and outcomes of all calls so far, see [Act]
	LostAnswers   uint16              `stored:"22"` // unanswered ones of earlier generations
	Failures      uint8               `stored:"23"` // packages that the store took and the service failed or lost
	BatchLimit    uint16              `stored:"24"` // documents it may be registered with, after a refused batch; 0: any number

	Attempt   uint16      `stored:"25"` // postponements of the step that is due
	NotBefore time.Time   `stored:"26"`
	WaitsFor  archive.Key `stored:"27"` // no step is tried before this entry has ended
	Cause     Cause       `stored:"28"` // of the state, or of the last postponement

	Hold               bool `stored:"29"` // no further step, no disposal
	InDoubt            bool `stored:"30"` // closed by an operator though content is possible
	PossibleDouble     bool `stored:"31"` // more than one registration may hold archivable content
	DuplicateConfirmed bool `stored:"47"` // PossibleDouble stays, whatever the service answers: a person released it, or a receipt says so
	Contradicted       bool `stored:"32"` // the service contradicted a final state
	Resolved           bool `stored:"33"` // a rejection or a contradiction that nobody needs to look at any more
	NeedsReconcile     bool `stored:"45"` // the ledger was restored or rebuilt: what happened to the entry meanwhile is not known
	StrangeDate        bool `stored:"50"` // its date is hardly possible, see [archive.Document.HasStrangeDate]
	Reviewed           bool `stored:"51"` // a person has reviewed its date, or the other one with its number
	PackedAnew         bool `stored:"52"` // it had another identity before, see [Unsealed]

	CutOff CutOffState `stored:"63"` // whether a file of it looked cut off; it never returns to NotCutOff

	DuplicateOf archive.Key `stored:"34"` // the archived entry with the same identity
	SameContent archive.Key `stored:"35"` // same files, other metadata
	SameNumber  archive.Key `stored:"49"` // same invoice number, see [archive.NumberDigest]; perhaps the same entry as SameContent
	Supersedes  archive.Key `stored:"36"` // the rejected entry that this one repeats

	// Of a document that goes to the business network.
	StoredFiles   []archive.FileID `stored:"53"` // the network's numbers of its files that are stored there, in their order
	FilesUnderWay uint32           `stored:"54"` // files whose POSTs are announced, without an answer so far
	LostFiles     uint32           `stored:"55"` // files that the network may have under numbers that nobody knows
	Body          archive.Digest   `stored:"56"` // of the body of its POST, from the first intent on
	Recipient     RecipientWord    `stored:"57"` // what its recipient said
	Asks          string           `stored:"62"` // the last word about early payment or a discount upon which a person must act, as [archive.Notification.Pair]
	Means         string           `stored:"58"` // how it was delivered, in the network's word; empty: unknown
	Copied        bool             `stored:"59"` // a copy of what was sent was put into a drop folder of the archive, see [CopyPut]

	ValidationFile archive.FileID `stored:"61"` // the network's number of a file with what its check of the document found; empty: it named none

	ArchivedRemote archive.RemoteID `stored:"37"` // the registration that succeeded
	SuccessRecord  []byte           `stored:"38"` // the service's success as it came
	Dest           string           `stored:"39"` // where the source goes or lies, relative to the drop; absolute once moved out

	SentRequest  archive.RequestID `stored:"64"` // of the last upload that was taken, or of the last file or document that the network took
	AskedRequest archive.RequestID `stored:"65"` // of the last question that was answered

	SeenAt       time.Time `stored:"40"`
	RegisteredAt time.Time `stored:"41"` // of the current registration
	UploadedAt   time.Time `stored:"42"` // of the store's 2xx; of a delivered entry: when it was delivered
	ArchivedAt   time.Time `stored:"43"` // the service's own time of success
	DisposeAt    time.Time `stored:"44"` // zero: the source stays
}

// How the network says that it delivered a document.
const (
	ElectronicDelivery = "ElectronicDelivery"
	EmailDelivery      = "EmailDelivery"
	MailDelivery       = "MailDelivery"
)

// Node is a folder's identity on its file system.
type Node struct {
	Dev uint64 `stored:"1"`
	Ino uint64 `stored:"2"`
}

// Cause is why an entry is where it is: a stable code for machines and journal
// lines, and words for a person, which may name people and stay out of the journal.
type Cause struct {
	Code string `stored:"1"`
	Text string `stored:"2"`
	File string `stored:"3"` // of the dropped folder, that it is about; empty: not one file. Stays out of the journal like Text
}

// Fate is what is known about the content of one registration.
type Fate uint8

// The fates. Their numbers are stored and never change.
const (
	Unsent      Fate = iota // no byte was ever sent to it
	MaybeStored             // bytes may be at the store
	Stored                  // the store or the service said so
	Succeeded               // archived, or delivered where the service says no more
	Lapsed                  // the service failed it, or never got a package
	Declined                // the store refused every attempt; it may have kept the bytes all the same
)

// Registration is one ticket and what became of it.
type Registration struct {
	Ticket        archive.Ticket `stored:"1"` // its URL is wiped when it is spent
	Generation    uint8          `stored:"2"`
	UploadIntents uint16         `stored:"3"` // uploads that were announced
	WithoutEffect uint16         `stored:"4"` // of them certainly without effect
	Fate          Fate           `stored:"5"`
	Sent          archive.Digest `stored:"10"` // of the bytes that left in the upload that the store accepted; zero if missing
	ClosedAt      time.Time      `stored:"6"`  // when its upload ended, or it was found, or it was given up, whichever is the latest; zero: it may be uploaded

	LastStatus   archive.ServiceStatus `stored:"7"` // the service's last answer about it
	EqualAnswers uint8                 `stored:"8"` // equal answers, each a twenty-fourth of the grace after the one before
	LastAnswer   time.Time             `stored:"9"` // of the last counted answer; once it was given up: of the last answer

	// Unproven says that an upload without Content-MD5 got no 2xx and may have
	// stored bytes: some stores keep a body that was cut off as a whole one.
	Unproven bool `stored:"13"`
	Shared   bool `stored:"15"` // the service gave its number, or its upload address, to another document too
	Differs  bool `stored:"14"` // the last download of it that was compared differs from what was sent

	SucceededAt time.Time `stored:"11"` // the service's own time of its success; zero: it has none, or it is Entry.ArchivedAt

	// FromLostPart says that the document may have been sent under this number in a part of the entry's life that the ledger lost. Which
	// bytes that were is not known.
	FromLostPart bool `stored:"12"`
}

// RegistrationsPruned counts registrations without content that an entry no longer lists. Their
// numbers stay bound to the entry, and the journal has them.
type RegistrationsPruned struct {
	Unsent uint32 `stored:"1"`
	Lapsed uint32 `stored:"2"`
}

// Total returns how many there are.
func (f RegistrationsPruned) Total() uint64 { return uint64(f.Unsent) + uint64(f.Lapsed) }

// Document is the erasable part of an entry, written once: when it is sealed, or when it ends before that. Then it has
// nothing but AsRead, Files and FileOwners.
type Document struct {
	Salt         [16]byte       `stored:"1"` // joins the package's digest in journal lines
	Metadata     []byte         `stored:"2"` // canonical, as frozen
	Files        []archive.File `stored:"3"` // what the ZIP holds; of a folder that was refused, what was in it but for its sidecar
	ControlFiles []archive.File `stored:"4"` // sidecar, manifest, marker: ours to remove with the folder
	Junk         []string       `stored:"5"` // ignored, listed at the claim
	Remarks      []string       `stored:"7"` // what is unusual about its files, for people
	FileOwners   []uint32       `stored:"8"` // see OtherOwners
	AsRead       archive.AsRead `stored:"6"` // the sidecar of a folder that was never sealed; nothing but what resolves a rejection is decided by it
}

// MaxFileOwners is how many owners of files a document names at most.
const MaxFileOwners = 8

// OtherOwners returns which of all owners of a folder's files, in their order,
// are not the owner of the folder; of many the first MaxFileOwners.
func OtherOwners(all []uint32, folder uint32) []uint32 {
	others := slices.DeleteFunc(slices.Clone(all), func(uid uint32) bool { return uid == folder })
	if len(others) == 0 {
		return nil
	}
	return others[:min(len(others), MaxFileOwners)]
}

// CutOffState says whether a file of an entry looked cut off.
type CutOffState uint8

// The states. Their numbers are stored and never change.
const (
	NotCutOff   CutOffState = iota
	CutOffFound             // one does, and no operator has decided
	CutOffTaken             // an operator takes it as it is
)

// Seal returns the digest that stands for the package in the journal.
func (d Document) Seal(p archive.Package) archive.Digest {
	return archive.Sum(slices.Concat(d.Salt[:], p.SHA256[:]))
}

// IsOnlyAsRead reports whether the document is that of a folder that was never
// sealed: it has AsRead, Files and FileOwners at most.
func (d Document) IsOnlyAsRead() bool {
	return d.Salt == [16]byte{} && len(d.Metadata) == 0 && len(d.ControlFiles) == 0 && len(d.Junk) == 0
}

// WasSealed reports whether the entry was ever sealed, so that its document is that of its package.
func (e Entry) WasSealed() bool { return !e.Content.IsZero() || !e.FirstID.IsZero() }

// Current returns the registration that is uploaded or asked about next; nil: there is none.
func (e *Entry) Current() *Registration {
	if len(e.Registrations) == 0 {
		return nil
	}
	return &e.Registrations[len(e.Registrations)-1]
}

// Request is the last call of one kind that succeeded.
type Request struct {
	Call string            `json:"call"` // in a word
	ID   archive.RequestID `json:"id"`
}

// Requests returns the last calls about the entry that succeeded, of each kind
// whose id is known.
func (e *Entry) Requests() (all []Request) {
	r := e.findRegistration(e.ArchivedRemote)
	if r == nil {
		r = e.Current()
	}
	if r == nil {
		r = &Registration{}
	}
	return KnownRequests(Request{"registration", r.Ticket.Request}, Request{"upload", e.SentRequest}, Request{"status", e.AskedRequest})
}

// KnownRequests returns those of all whose id is known.
func KnownRequests(all ...Request) []Request {
	return slices.DeleteFunc(all, func(r Request) bool { return r.ID == "" })
}

// findRegistration returns the latest one with the service's number r.
func (e *Entry) findRegistration(r archive.RemoteID) *Registration {
	for i := len(e.Registrations) - 1; i >= 0; i-- {
		if e.Registrations[i].Ticket.Remote == r {
			return &e.Registrations[i]
		}
	}
	return nil
}

// OpenQuestions returns the registrations whose end is not known yet and matters:
// those that content may have reached. It returns none where the service cannot be asked.
func (e Entry) OpenQuestions() []archive.RemoteID {
	var open []archive.RemoteID
	for i, r := range e.Listed() {
		if (r.Fate == MaybeStored || r.Fate == Stored) && e.isLatest(i) {
			open = append(open, r.Ticket.Remote)
		}
	}
	return open
}

// CompletedAt returns when the document was archived, by the service's own time, or delivered; zero: neither.
func (e Entry) CompletedAt() time.Time {
	if e.State == Delivered {
		return e.UploadedAt
	}
	return e.ArchivedAt
}

// ServiceAhead tells by how much the service's clock was ahead of ours when the registration that succeeded was made, to a second;
// known is false where the service did not tell its time then.
func (e Entry) ServiceAhead() (ahead time.Duration, known bool) {
	r := e.findRegistration(e.ArchivedRemote)
	if r == nil || r.Ticket.Date.IsZero() || r.Ticket.Sent.Wall.IsZero() {
		return 0, false
	}
	return r.Ticket.Date.Sub(r.Ticket.Sent.Wall), true
}

// ArchivingTime tells how long an archived entry took from the claim, by this machine's clock, to the archive's success, by the archive's
// clock less what that one was ahead when the document was registered. Less than nothing is nothing: the archive tells its clock in whole
// seconds. known is false where a time is missing, and where the archive's clock is not known and says more than a minute less than nothing.
func (e Entry) ArchivingTime() (took time.Duration, known bool) {
	if e.ArchivedAt.IsZero() || e.SeenAt.IsZero() {
		return 0, false
	}
	ahead, isCorrected := e.ServiceAhead()
	took = e.ArchivedAt.Sub(e.SeenAt) - ahead
	if took < -time.Minute && !isCorrected {
		return 0, false
	}
	return max(took, 0), true
}

// CompletionTime tells how long it took from taken to archived, as ArchivingTime does, or from taken to delivered. A delivery has both its
// times from this machine's clock, which may have been set between them.
func (e Entry) CompletionTime() (took time.Duration, known bool) {
	if e.State != Delivered {
		return e.ArchivingTime()
	}
	if e.UploadedAt.IsZero() || e.SeenAt.IsZero() {
		return 0, false
	}
	took = e.UploadedAt.Sub(e.SeenAt)
	return max(took, 0), took >= -time.Minute
}

// isLatest reports whether the i-th registration is the last with its number: a
// service may give the same one again, and its word is then about the last.
func (e *Entry) isLatest(i int) bool {
	return e.findRegistration(e.Registrations[i].Ticket.Remote) == &e.Registrations[i]
}

// countHolders counts the service's numbers that hold content, or may.
func (e *Entry) countHolders() int {
	var held []archive.RemoteID
	for _, r := range e.Registrations {
		if r.Fate != Unsent && !r.IsGivenUp() {
			held = appendIfNew(held, r.Ticket.Remote)
		}
	}
	return len(held)
}

// appendIfNew appends a number that is not in the list yet.
func appendIfNew(all []archive.RemoteID, r archive.RemoteID) []archive.RemoteID {
	if slices.Contains(all, r) {
		return all
	}
	return append(all, r)
}

// Orphans returns the registrations that never got content, as far as is known. For uploads
// that the store refused, only the store says so.
func (e Entry) Orphans() []archive.RemoteID {
	var none []archive.RemoteID
	for i, r := range e.Registrations {
		// The current ticket is about to be used; it becomes an orphan only when its window closes unused.
		current := i == len(e.Registrations)-1 && (e.State == Registered || e.State == Sending)
		sent := slices.ContainsFunc(e.Registrations, func(o Registration) bool {
			return o.Ticket.Remote == r.Ticket.Remote && o.Fate != Unsent && o.Fate != Declined
		})
		if e.isLatest(i) && !current && !sent {
			none = append(none, r.Ticket.Remote)
		}
	}
	return none
}

// NeedsPackage reports whether the package of e stays in the spool: e has not
// ended, or its folder is not placed yet.
func (e Entry) NeedsPackage() bool { return !e.State.IsFinal() || e.Source == Claimed }

// IsAtRest reports whether nothing is left to do, for vaultd or for a person. The entry then
// moves to the done bucket and is rewritten only by an operator, a contradiction or an erasure.
func (e Entry) IsAtRest() bool {
	// An entry with a due step must stay among the open ones: the due index and the start look there alone.
	_, _, due := Due(e)
	return e.State.IsFinal() && !due && !e.Hold && !e.NeedsReconcile && !e.NeedsPerson()
}

// NeedsComparison reports whether the service's status alone says that what is
// archived is whole, see [Registration.Unproven]. The source is not disposed of
// before a download was compared with what was sent.
func (e Entry) NeedsComparison() bool {
	r := e.findRegistration(e.ArchivedRemote)
	return e.State == Archived && r != nil && r.Unproven
}

// ContentDiffers reports whether the last download of what is archived that was
// compared differs from what was sent. The source is kept then, also where an
// operator has closed the entry.
func (e Entry) ContentDiffers() bool {
	r := e.findRegistration(e.ArchivedRemote)
	return e.State == Archived && r != nil && r.Differs
}

// NeedsReview reports whether a person should check the document: it has the invoice number of another one, or a date
// that is hardly possible.
func (e Entry) NeedsReview() bool { return !e.SameNumber.IsZero() || e.StrangeDate }

// IsCertainlyRejected reports whether the entry has ended without any content at the service.
func (e Entry) IsCertainlyRejected() bool {
	return e.State == Rejected && !e.InDoubt && !e.Contradicted
}

// HasNothingAtService reports whether the service certainly never accepted anything of the
// entry: it is claimed or packed, and every POST of it was refused.
func (e Entry) HasNothingAtService() bool {
	return !e.NeedsReconcile && (e.State == Discovered || e.State == Packaged) && e.Posts == e.Answers && len(e.Registrations) == 0
}

// repeatsWhatMayBeDelivered reports whether a person has decided to send again what may be delivered already, and nobody can be asked. That it was not
// sent again does not make the first delivery certain.
func (e *Entry) repeatsWhatMayBeDelivered() bool {
	return e.DuplicateConfirmed && e.evidence().doubtStays()
}

// NeedsPerson reports whether a person must act: the entry was rejected and not corrected
// since, it cannot go on by itself, the service contradicts it or has archived it twice, or
// its disposal was stopped halfway.
func (e Entry) NeedsPerson() bool {
	return e.State == Quarantined || (e.State == Rejected || e.Contradicted || e.IsArchivedTwice() || e.Recipient == RecipientRejected || e.Asks != "") && !e.Resolved || e.ContentDiffers() && !e.Resolved || e.isHalfwayDisposed()
}

// isHalfwayDisposed reports whether a disposal had begun when a reason against it became known.
func (e *Entry) isHalfwayDisposed() bool {
	return e.Source == Disposing && (e.PossibleDouble || e.Contradicted || e.Recipient == RecipientRejected || e.ContentDiffers())
}

// postpone postpones the step that is due.
func (e *Entry) postpone(until time.Time, c Cause) {
	e.countAttempt()
	e.NotBefore = until
	if c.Code != "" {
		e.Cause = c
	}
}

// countAttempt counts one more attempt, as far as the counter goes.
func (e *Entry) countAttempt() {
	if e.Attempt < math.MaxUint16 {
		e.Attempt++
	}
}

// enterState changes the state and starts its step afresh.
func (e *Entry) enterState(s State) {
	e.State = s
	// Waits and causes belong to the state that is left: a new state starts its own retries.
	e.Attempt, e.NotBefore, e.WaitsFor, e.Cause = 0, time.Time{}, archive.Key{}, Cause{}
	// No other state may upload, so the secret address is wiped in the same commit.
	if r := e.Current(); r != nil && s != Registered && s != Sending {
		r.wipeTicket()
	}
}
