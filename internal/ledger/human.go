package ledger

import (
	"slices"
	"time"

	"vaultd/internal/archive"
)

// Human is who acted and why. Only the digest of the reason is journaled.
type Human struct {
	UID    uint32
	Reason archive.Digest // Note.Digest of what was said; zero: no reason was given
}

// Vaultd is the uid that stands for vaultd itself, where a rule of the configuration
// acts in a person's place.
const Vaultd uint32 = 1<<32 - 1

// Note is what a person gave as the reason of an act. It is kept beside the document,
// where it can be erased while the journal still verifies.
type Note struct {
	Salt [16]byte // joins the text in the journal's digest: a short text cannot be guessed from it
	Text string
}

// Digest returns what stands for the note in the journal.
func (n Note) Digest() archive.Digest {
	return archive.Sum(slices.Concat(n.Salt[:], []byte(n.Text)))
}

// Actor returns who did ev; ok is false where no person did.
func Actor(ev Event) (by Human, ok bool) {
	switch ev := ev.(type) {
	case Held:
		return ev.By, true
	case Unheld:
		return ev.By, true
	case Closed:
		return ev.By, true
	case Released:
		return ev.By, true
	}
	return Human{}, false
}

// Held stops every further step and the disposal.
type Held struct{ By Human }

// Word implements Event.
func (Held) Word() string { return "held" }

func (ev Held) apply(e *Entry, _ archive.Instant) error {
	if e.State == None || e.Hold {
		return ErrIllegal
	}
	e.Hold = true
	return nil
}

// Unheld lets the entry go on.
type Unheld struct{ By Human }

// Word implements Event.
func (Unheld) Word() string { return "unheld" }

func (ev Unheld) apply(e *Entry, _ archive.Instant) error {
	if !e.Hold {
		return ErrIllegal
	}
	e.Hold = false
	return nil
}

// Closed resolves a rejection, or what came up against an archived entry: the flag
// stays, and a disposal that was stopped halfway ends there, its rest kept for good. It
// ends an entry of which certainly nothing left as rejected; or one in doubt as
// rejected, flagged so for ever. A suspect one must be reconciled before.
type Closed struct{ By Human }

// Word implements Event.
func (Closed) Word() string { return "closed" }

func (ev Closed) apply(e *Entry, at archive.Instant) error {
	switch e.State {
	case Rejected:
	case Archived:
		if !e.NeedsPerson() {
			return ErrIllegal
		}
		if e.halfway() {
			e.Source, e.DisposeAt = Kept, time.Time{}
		}
	case Discovered, Packaged:
		if !e.NothingLeft() {
			return ErrIllegal
		}
		e.enter(Rejected)
		e.Cause = Cause{Code: "given-back", Text: "It was given back before anything was sent. Ask IT why, and drop it again where it belongs."}
	case Quarantined, Unclear:
		if e.Suspect {
			return ErrIllegal // nobody can decide about a life of which a part is lost
		}
		c := e.Cause
		e.close(at.Wall)
		e.enter(Rejected)
		e.InDoubt, e.Cause = true, c
	default:
		return ErrIllegal
	}
	e.Resolved = true
	return nil
}

// Released sends an entry in doubt to be registered again by decision; it is
// flagged as possibly double. One that the service archived meanwhile is archived. What
// has no folder here any more cannot be sent again.
type Released struct{ By Human }

// Word implements Event.
func (Released) Word() string { return "released" }

func (ev Released) apply(e *Entry, at archive.Instant) error {
	if err := e.in(Quarantined, Unclear); err != nil || e.Suspect {
		return ErrIllegal
	}
	e.close(at.Wall)
	for _, r := range e.Registrations {
		if r.Fate == Succeeded {
			e.Double = e.Double || e.holders() > 1
			e.enter(Archived)
			e.Archived, e.Contradicted = r.Ticket.Remote, false
			if e.ArchivedAt.IsZero() {
				e.ArchivedAt = at.Wall
			}
			return nil
		}
	}
	if e.Source != Claimed {
		return ErrIllegal
	}
	e.Double = e.Double || e.holders() > 0
	e.Sworn = e.Double
	if e.Package.IsZero() {
		e.enter(Discovered)
		return nil
	}
	e.enter(Packaged)
	e.Failures = 0
	return nil
}

// Superseded says that a rejection was dropped again and is resolved by that.
type Superseded struct{ By archive.Key }

// Word implements Event.
func (Superseded) Word() string { return "superseded" }

func (ev Superseded) apply(e *Entry, _ archive.Instant) error {
	if err := e.in(Rejected); err != nil {
		return err
	}
	e.Resolved = true
	return nil
}
