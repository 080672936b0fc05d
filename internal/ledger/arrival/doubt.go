package arrival

import (
	"math"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Doubt is what is known of bytes that came for a file of a received document and look wrong: like a part of the file, or like an answer of
// somebody else. It stays with a file that is taken all the same.
type Doubt struct {
	SHA256    archive.Digest `stored:"1"` // of the bytes; zero: nothing looks wrong
	Stored    string         `stored:"2"` // their name here, where a person can look at them
	Why       string         `stored:"3"` // what looks wrong
	Times     uint16         `stored:"4"` // they came so often in a row
	For       time.Duration  `stored:"5"` // at least so long it was from the first time to the last
	Last      time.Time      `stored:"6"` // when they came last
	Overruled bool           `stored:"7"` // a person takes them as they are
}

// IsSet reports whether bytes came that look wrong.
func (d Doubt) IsSet() bool { return !d.SHA256.IsZero() }

// After returns the doubt once these bytes came, at that time. Other bytes begin anew. A clock that is set ahead, and a machine that was off, count for no
// more than the longest wait between two tries.
func (d Doubt) After(ev FileDoubted, at time.Time) Doubt {
	next := Doubt{SHA256: ev.SHA256, Stored: ev.Stored, Why: ev.Why, Times: 1, Last: at}
	if d.SHA256 == ev.SHA256 {
		next.Times, next.Overruled = d.Times, d.Overruled
		next.For = d.For + min(max(at.Sub(d.Last), 0), longestWait)
		if d.Times < math.MaxUint16 {
			next.Times++
		}
	}
	return next
}

// FileDoubted says that what came for a file of a received document looks wrong, and when it is fetched again. The bytes are durable here, and are
// not held.
type FileDoubted struct {
	File, Stored string
	SHA256       archive.Digest
	Why          string
	Until        time.Time
	Cause        ledger.Cause
	Told         archive.FileTold // by the answer that brought the bytes
}

// JournalName implements Event.
func (FileDoubted) JournalName() string { return "file-doubted" }

func (ev FileDoubted) apply(a *Arrival, at archive.Instant) error {
	f := a.findFile(ev.File)
	switch {
	case a.Kind != Received:
		return illegal("an extract says itself whether it is whole")
	case f == nil || f.IsHeld():
		return illegal("it has no such file, or the file is held")
	case ev.SHA256.IsZero():
		return illegal("it has no digest")
	}
	f.Doubt, f.Told = f.Doubt.After(ev, at.Wall), ev.Told.Or(f.Told)
	return Postponed{Until: ev.Until, Cause: ev.Cause}.apply(a, at)
}

// DoubtOverruled says that a person takes a file as it is, although it looks wrong: the bytes that lie here are held, or the same bytes once they come
// again. Other bytes are not meant.
type DoubtOverruled struct {
	By     ledger.Operator
	File   string
	SHA256 archive.Digest // of the bytes that the person means
}

// JournalName implements Event.
func (DoubtOverruled) JournalName() string { return "doubt-overruled" }

func (ev DoubtOverruled) apply(a *Arrival, _ archive.Instant) error {
	f := a.findFile(ev.File)
	switch {
	case f == nil || f.IsHeld() || !f.Doubt.IsSet() || f.Doubt.SHA256 != ev.SHA256:
		return illegal("no bytes of that digest are in doubt")
	case f.Doubt.Overruled:
		return illegal("a person takes them already")
	}
	f.Doubt.Overruled = true
	a.enter(a.State) // what failed before counts no more: it is due at once
	return nil
}

// FindDoubted returns the file that looks wrong and is not held; ok is false where there is none.
func (a Arrival) FindDoubted() (f File, ok bool) {
	for _, f := range a.Files {
		if !f.IsHeld() && f.Doubt.IsSet() {
			return f, true
		}
	}
	return f, false
}
