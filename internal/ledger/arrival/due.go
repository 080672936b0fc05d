package arrival

import "time"

// Step is one kind of work that an arrival can need next.
type Step uint8

// The steps.
const (
	NoStep        Step = iota
	ListFiles          // ask for the list of its files
	Download           // download the next file that is not held
	Conclude           // ask for the list once more, keep the table definition, write the manifest
	FetchDocument      // fetch a received document, which names its files
	HandOn             // put each file into the drop folder, to be archived
	Confirm            // tell the network that the document was received
	Acknowledge        // tell the service that it is held
	Person             // a person must look at it: nothing is done by itself
)

// String returns the step's word.
func (s Step) String() string {
	return [...]string{"none", "list files", "download", "conclude", "fetch the document", "hand on", "confirm", "acknowledge", "person"}[min(s, Person)]
}

// The waits after a fault. Rights take five minutes to come into effect.
const (
	shortestWait = time.Minute
	longestWait  = 30 * time.Minute
)

// DelayAfter returns how long to wait after so many failures in a row.
func DelayAfter(failures int) time.Duration {
	return min(shortestWait<<min(failures, 10), longestWait)
}

// ServiceLimit is how many downloads of one thing the service allows.
const ServiceLimit = 50

// Stage is the part of its way at which an arrival is, and in which something
// may be due, whatever the settings are. An index by stages stays right where
// they change.
type Stage uint8

// The stages. Their numbers are stored and never change.
const (
	NoStage    Stage = iota // its way is over
	ToFetch                 // its files, or their list, are to come
	WasRefused              // the same, and a download of it led to a host that was refused
	ToHandOn                // it is held, and not in a drop folder
	ToTell                  // it is in a drop folder, and the service may be to be told
)

// Stage returns the stage at which a is. Before NotBefore nothing of it is due.
func (a Arrival) Stage() Stage {
	switch {
	case a.State.IsOpen() && a.Refused.From != "":
		return WasRefused
	case a.State.IsOpen():
		return ToFetch
	case a.State == Held && a.HandedOnAt.IsZero():
		return ToHandOn
	case a.State == Held:
		return ToTell
	}
	return NoStage
}

// Stages returns the stages at which [Due] may name a step under the rules. The
// stage that is nearest to the end comes first.
func (r Rules) Stages(k Kind) []Stage {
	stages := []Stage{ToTell, ToHandOn, WasRefused, ToFetch}
	switch {
	case k == Received || r.Acknowledge:
		return stages
	case r.HandOn:
		return stages[1:]
	}
	return stages[2:]
}

// Rules are the settings that decide what is due. A received document is always
// handed on, and acknowledged after that.
type Rules struct {
	Acknowledge  bool   // tell the service; it then hides the arrival from others
	HandOn       bool   // put what is held into a drop folder, before the service is told
	Confirm      bool   // tell the network of each received document that it was received
	MaxDownloads uint16 // of one file, before a person must look; at most ServiceLimit
}

// Due says what a needs next and from when on; file is what is to be
// downloaded. Step is NoStep where nothing is left to do. Recovery is this
// function: after a restart it is called again, and an arrival whose intent was
// committed gets the same step again.
func Due(a Arrival, r Rules) (step Step, file string, at time.Time) {
	if a.Kind == Received {
		return dueReceived(a, r)
	}
	switch a.State {
	case Announced:
		return ListFiles, "", a.NotBefore
	case Fetching:
		return dueFetching(a, r)
	case Held:
		switch {
		case r.HandOn && a.HandedOnAt.IsZero():
			return HandOn, "", a.NotBefore
		case r.Acknowledge:
			return Acknowledge, "", a.NotBefore
		}
	}
	return NoStep, "", time.Time{}
}

// dueFetching downloads the file with the fewest downloads first: one file that
// never comes whole keeps none of the others back.
func dueFetching(a Arrival, r Rules) (Step, string, time.Time) {
	var next *File
	for i := range a.Files {
		if f := &a.Files[i]; !f.IsHeld() && (next == nil || f.Downloads < next.Downloads) {
			next = f
		}
	}
	switch {
	case next == nil && len(a.Files) < a.Count:
		return ListFiles, "", a.NotBefore // the list named too few: it may name more later
	case next == nil:
		return Conclude, "", a.NotBefore
	case next.Downloads >= a.limit(r):
		return Person, next.Name, time.Time{}
	}
	return Download, next.Name, a.NotBefore
}

// limit is how many downloads of one file are made without a person. If earlier
// ones are not known, one is: the rest may be used up.
func (a Arrival) limit(r Rules) uint16 {
	own := r.MaxDownloads
	if a.UnknownPast {
		own = 1
	}
	return min(min(own, ServiceLimit)+min(a.Allowed, ServiceLimit), ServiceLimit)
}

// yearEnds is how long the service keeps an extract.
const yearEnds = 1

// EndsAt returns when the service removes what it made, one year later; zero:
// nobody told when it was made.
func (a Arrival) EndsAt() time.Time {
	if a.Made.IsZero() {
		return time.Time{}
	}
	return a.Made.AddDate(yearEnds, 0, 0)
}
