package arrival

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Event is something that happened to an arrival or is about to. The set is closed: every event is a type of this package, and how it
// changes an arrival is written beside it.
type Event interface {
	// apply changes a or says why it must not.
	apply(a *Arrival, at archive.Instant) error
	// JournalName is the event's name in journal lines. No event of an entry has it.
	JournalName() string
}

// Transition returns the arrival that ev makes of a at the given instant. a itself is not changed, and no other function changes a
// state. The error wraps [ledger.ErrIllegal] where the event is not allowed.
//
// Each new revision has a journal line. A failure for a reason that is known already leaves the revision as it is.
func Transition(a Arrival, ev Event, at archive.Instant) (Arrival, error) {
	// The slices are copied because an event changes files and words in place: a must stay as it is stored.
	next := a
	next.Files, next.Said = slices.Clone(a.Files), slices.Clone(a.Said)
	err := illegal("not in that state")
	if slices.Contains(statesFor(ev), a.State) {
		err = ev.apply(&next, at)
	}
	if err != nil {
		return a, fmt.Errorf("%s %s in %s: %w", ev.JournalName(), a.Key, a.State, err)
	}
	if !failsAgain(ev) || a.Cause.Code != next.Cause.Code {
		next.Rev++
	}
	return next, nil
}

// failsAgain reports whether an event says nothing but that something failed: a page in the place of a file may have other bytes each time.
func failsAgain(ev Event) bool {
	switch ev.(type) {
	case Postponed, FileDoubted:
		return true
	}
	return false
}

// illegal refuses an event.
func illegal(why string) error { return fmt.Errorf("%w: %s", ledger.ErrIllegal, why) }

// statesFor are the states in which an event is possible at all; each event has more to say.
func statesFor(ev Event) []State {
	switch ev.(type) {
	case Listed, DocumentAnnounced:
		return []State{None}
	case DocumentHeld:
		return []State{Announced}
	case FilesListed, LeftOut, ListedAgain, PastUnknown, Allowed:
		return []State{Announced, Fetching}
	case DownloadIntended, FileHeld, FileDoubted, DoubtOverruled, HeldWhole:
		return []State{Fetching}
	case Postponed, RetryAsked, Abandoned:
		return []State{Announced, Fetching, Held}
	case HandedOn, ConfirmIntended, ConfirmationTaken, AcknowledgeIntended, AcknowledgementTaken:
		return []State{Held}
	case CustodyLost:
		return []State{Held, Acknowledged}
	case Adopted:
		return []State{None, Announced, Fetching, GivenUp}
	}
	return append(States(), None) // a word has its own errors
}

// enter enters a state in which nothing failed yet.
func (a *Arrival) enter(s State) {
	a.State, a.Attempt, a.NotBefore, a.Cause = s, 0, time.Time{}, ledger.Cause{}
}

// Listed is the service's first word of an arrival. It is committed before anything is asked about it.
type Listed struct {
	Kind        Kind
	Extract     archive.Extract
	UnknownPast bool // earlier downloads are not known, because the ledger was made anew
}

// JournalName implements Event.
func (Listed) JournalName() string { return "arrival-announced" }

func (ev Listed) apply(a *Arrival, at archive.Instant) error {
	if ev.Kind == "" || ev.Extract.ID == "" {
		return illegal("it has no kind or no number")
	}
	a.setExtract(ev.Kind, ev.Extract)
	a.UnknownPast, a.AnnouncedAt = ev.UnknownPast, at.Wall
	a.enter(Announced)
	return nil
}

func (a *Arrival) setExtract(k Kind, e archive.Extract) {
	a.Kind, a.Item, a.Type, a.Word, a.Name, a.Start, a.End, a.Made, a.Count = k, e.ID, e.Type, e.Status, e.Name, e.Start, e.End, e.Made, e.Files
}

// FilesListed is the service's list of the files of an arrival. A later list may name more of them; one that it leaves out stays,
// because it may hold records.
type FilesListed struct{ Files []archive.ExtractFile }

// JournalName implements Event.
func (FilesListed) JournalName() string { return "arrival-listed" }

func (ev FilesListed) apply(a *Arrival, _ archive.Instant) error {
	if a.Kind == Received {
		return illegal("a document names its files itself")
	}
	seen := map[string]bool{}
	for _, f := range ev.Files {
		if f.Name == "" || seen[f.Name] {
			return illegal("two files have one name, or a file has none")
		}
		seen[f.Name] = true
		if a.findFile(f.Name) == nil {
			a.Files = append(a.Files, File{Name: f.Name, Table: f.Table})
			// A lost extract may have more files when it is fetched again than
			// were handed on and acknowledged.
			a.HandedOnAt, a.AcknowledgedAt = time.Time{}, time.Time{}
		}
	}
	a.enter(Fetching)
	return nil
}

// DownloadIntended is committed before the download of a file leaves: the service may count it, however it ends.
type DownloadIntended struct{ File string }

// JournalName implements Event.
func (DownloadIntended) JournalName() string { return "download-intended" }

func (ev DownloadIntended) apply(a *Arrival, _ archive.Instant) error {
	f := a.findFile(ev.File)
	switch {
	case f == nil:
		return illegal("it has no such file")
	case a.Kind == Received:
		return illegal("nobody counts fetches of the network")
	case f.IsHeld():
		return illegal("the file is held")
	case f.Downloads == math.MaxUint16:
		return illegal("the file was downloaded too often")
	}
	f.Downloads++
	return nil
}

// FileHeld says that a file is durable and digested in custody.
type FileHeld struct {
	File, Stored string
	Size         int64
	SHA256       archive.Digest
	Beside       bool
	Told         archive.FileTold  // by the answer that brought it
	Request      archive.RequestID // of that call
}

// JournalName implements Event.
func (FileHeld) JournalName() string { return "file-held" }

func (ev FileHeld) apply(a *Arrival, _ archive.Instant) error {
	f := a.findFile(ev.File)
	switch {
	case f == nil || f.Downloads == 0 && a.Kind != Received:
		return illegal("no download of it was announced") // what came without an intent came from somewhere else
	case f.IsHeld():
		return illegal("the file is held")
	case ev.Stored == "" || ev.SHA256.IsZero():
		return illegal("it has no name in custody or no digest")
	}
	f.Stored, f.Size, f.SHA256, f.Beside = ev.Stored, ev.Size, ev.SHA256, ev.Beside
	f.Told, a.Refused = ev.Told.Or(f.Told), Refused{}
	a.FetchRequest = cmp.Or(ev.Request, a.FetchRequest)
	if f.Doubt.SHA256 != ev.SHA256 {
		f.Doubt = Doubt{} // other bytes came, and nothing is wrong with them
	}
	a.enter(Fetching) // what failed before is over
	return nil
}

// Postponed says that what is due failed, and when it is tried again. It never ends an arrival: no fault of the way is its fault.
type Postponed struct {
	Until   time.Time
	Cause   ledger.Cause
	Refused Refused // set: the download led to a refused host
}

// JournalName implements Event.
func (Postponed) JournalName() string { return "arrival-postponed" }

func (ev Postponed) apply(a *Arrival, _ archive.Instant) error {
	if a.Attempt < math.MaxUint16 {
		a.Attempt++
	}
	a.NotBefore, a.Cause = ev.Until, ev.Cause
	if ev.Refused.From != "" {
		a.Refused = ev.Refused
	}
	return nil
}

// HeldWhole says that everything of an arrival is held: its list of files, asked for once more after the last file came, names none
// that is missing here, and the manifest is durable.
type HeldWhole struct {
	Again    []archive.ExtractFile // the list, as it was asked for once more
	Manifest archive.Digest
}

// JournalName implements Event.
func (HeldWhole) JournalName() string { return "arrival-held" }

func (ev HeldWhole) apply(a *Arrival, at archive.Instant) error {
	for _, f := range ev.Again {
		if a.findFile(f.Name) == nil {
			return illegal("the list names a file that is not known")
		}
	}
	switch {
	case !a.hasAllFiles():
		return illegal("a file is missing")
	case len(ev.Again) < a.Count:
		return illegal("the list names fewer files than were announced")
	case ev.Manifest.IsZero():
		return illegal("it has no manifest")
	}
	a.Manifest, a.HeldAt = ev.Manifest, at.Wall
	a.enterHeld()
	return nil
}

// enterHeld enters the state of an arrival that is held. One that custody had
// lost is known to the service already.
func (a *Arrival) enterHeld() {
	a.LostAt = time.Time{}
	if a.enter(Held); !a.AcknowledgedAt.IsZero() {
		a.enter(Acknowledged)
	}
}

// CustodyLost says that the files of an extract that was held are not in
// custody any more. It is fetched again, as long as the service has it. What
// the service was told stays told, and no count of downloads goes back.
type CustodyLost struct{}

// JournalName implements Event.
func (CustodyLost) JournalName() string { return "custody-lost" }

func (CustodyLost) apply(a *Arrival, at archive.Instant) error {
	if a.Kind != Extract {
		return illegal("custody has extracts alone")
	}
	for i := range a.Files {
		f := &a.Files[i]
		f.Stored, f.Size, f.SHA256, f.Beside = "", 0, archive.Digest{}, false
	}
	a.Manifest, a.Gone, a.LostAt = archive.Digest{}, false, at.Wall
	a.enter(Fetching)
	return nil
}

// Adopted says that custody holds an arrival whole that this ledger does not know so, after a restore or when it was made anew. Its
// manifest proves what is held; how often it was downloaded is not known.
type Adopted struct {
	Kind     Kind
	Extract  archive.Extract
	Files    []File
	Manifest archive.Digest
	HeldAt   time.Time // as the manifest says
}

// JournalName implements Event.
func (Adopted) JournalName() string { return "arrival-adopted" }

func (ev Adopted) apply(a *Arrival, at archive.Instant) error {
	if ev.Manifest.IsZero() || ev.Kind != Extract || ev.Extract.ID == "" || a.State != None && (a.Item != ev.Extract.ID || a.Kind != ev.Kind) {
		return illegal("the manifest is not of this arrival")
	}
	had := a.Files
	a.setExtract(ev.Kind, ev.Extract)
	a.Files = slices.Clone(ev.Files)
	for i := range a.Files {
		if a.Files[i].Downloads = 1; !a.Files[i].IsHeld() {
			return illegal("the manifest has a file that is not held")
		}
		// A count never goes back: what was downloaded before still counts at the service.
		for _, f := range had {
			if f.Name == a.Files[i].Name {
				a.Files[i].Downloads = max(f.Downloads, 1)
			}
		}
	}
	if a.State == None {
		a.AnnouncedAt = at.Wall
	}
	a.UnknownPast, a.Manifest, a.HeldAt = true, ev.Manifest, ev.HeldAt
	a.enterHeld()
	return nil
}

// HandedOn says that every file of an arrival is durable in the drop folder, from where it is archived, or is archived already. It has no intent before it: a
// crash in between puts the files there again, each under the identity that it had, so that the archive gets none of them twice.
type HandedOn struct{}

// JournalName implements Event.
func (HandedOn) JournalName() string { return "handed-on" }

func (HandedOn) apply(a *Arrival, at archive.Instant) error {
	if !a.HandedOnAt.IsZero() {
		return illegal("it was handed on before")
	}
	a.HandedOnAt = at.Wall
	a.enter(Held) // what failed before is over
	return nil
}

// AcknowledgeIntended is committed before an acknowledgement leaves. It is possible only when everything is held.
type AcknowledgeIntended struct {
	OnlyHandedOn bool // files go to a drop folder: the acknowledgement waits until they are there
}

// JournalName implements Event.
func (AcknowledgeIntended) JournalName() string { return "acknowledge-intended" }

func (ev AcknowledgeIntended) apply(a *Arrival, _ archive.Instant) error {
	if (ev.OnlyHandedOn || a.Kind == Received) && a.HandedOnAt.IsZero() {
		return illegal("it is not in the drop folder")
	}
	if a.AcknowledgeIntents < math.MaxUint16 {
		a.AcknowledgeIntents++
	}
	return nil
}

// AcknowledgementTaken says that the service knows that the arrival is held.
type AcknowledgementTaken struct{ Request archive.RequestID }

// JournalName implements Event.
func (AcknowledgementTaken) JournalName() string { return "acknowledged" }

func (ev AcknowledgementTaken) apply(a *Arrival, at archive.Instant) error {
	if a.AcknowledgeIntents == 0 {
		return illegal("no acknowledgement was announced")
	}
	a.AcknowledgedAt, a.TellRequest = at.Wall, cmp.Or(ev.Request, a.TellRequest)
	a.enter(Acknowledged)
	return nil
}

// LeftOut says that a whole list of the service does not have the arrival. Somebody else may have acknowledged it: it is asked for by
// its number all the same.
type LeftOut struct{}

// JournalName implements Event.
func (LeftOut) JournalName() string { return "arrival-left-out" }

func (LeftOut) apply(a *Arrival, _ archive.Instant) error {
	if a.Gone {
		return illegal("it is known to be left out")
	}
	a.Gone = true
	return nil
}

// ListedAgain says that the list has the arrival again.
type ListedAgain struct{}

// JournalName implements Event.
func (ListedAgain) JournalName() string { return "arrival-listed-again" }

func (ListedAgain) apply(a *Arrival, _ archive.Instant) error {
	if !a.Gone {
		return illegal("it was not left out")
	}
	a.Gone = false
	return nil
}

// PastUnknown says that the ledger was put back: it may have lost downloads
// that the service counted. Its counts stay.
type PastUnknown struct{}

// JournalName implements Event.
func (PastUnknown) JournalName() string { return "arrival-past-unknown" }

func (PastUnknown) apply(a *Arrival, at archive.Instant) error {
	a.UnknownPast, a.UnknownPastAt = true, at.Wall
	return nil
}
