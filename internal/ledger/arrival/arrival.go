// Package arrival is the state machine of what comes in from a service, as an extract of the accounts-payable system or
// a document of the business network: the arrival, its states, the events that change it, what is due next, the journal line that tells of each change, and the balance over all
// arrivals.
//
// Everything here is pure: no clock, no disk, no network. State changes in one place: [Transition]. Recovery is one function: [Due]
// says what an arrival needs and when, and a restart asks it again. Nothing is acknowledged at a service before everything of it is
// held here, and that something is gone at the service is never concluded from a list alone.
//
// After a crash each arrival is as its last committed event left it. The intent of each download and of each acknowledgement is
// committed before the call leaves. So a count of downloads is never less than what the service counted because of us, and an
// acknowledgement that may have been done is done again.
package arrival

import (
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Kind is what arrives. It is stored and never changes.
type Kind string

// The kinds.
const (
	Extract  Kind = "extract"  // of the accounts-payable system
	Received Kind = "received" // a document that came in over the business network
)

// String returns the word that journal lines and people see.
func (k Kind) String() string { return string(k) }

// State says what is certain about one arrival.
type State uint8

// The states. Their numbers are stored and never change.
const (
	None         State = iota // no arrival yet
	Announced                 // the service listed it; nothing was asked about it
	Fetching                  // its files are known; some are not held
	Held                      // everything of it is durable and digested here
	Acknowledged              // held, and the service knows it
	GivenUp                   // it will not be taken in: a person decided so, or the service does not have it any more
)

var stateWords = []string{"none", "announced", "fetching", "held", "acknowledged", "given-up"}

// String returns the word that journal lines and people see.
func (s State) String() string { return stateWords[min(int(s), len(stateWords)-1)] }

// MarshalText writes the word, into JSON and logs alike.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// States lists every state that an arrival can be in, in the order of the life of one.
func States() []State { return []State{Announced, Fetching, Held, Acknowledged, GivenUp} }

// IsOpen reports whether something of it is still to be fetched.
func (s State) IsOpen() bool { return s == Announced || s == Fetching }

// Arrival is everything that the ledger knows of one thing that comes in.
type Arrival struct {
	Key   archive.Key `stored:"1"`
	Rev   uint32      `stored:"2"` // events so far
	Kind  Kind        `stored:"3"`
	State State       `stored:"4"`

	Item  archive.ExtractID `stored:"5"`  // its number at the service
	Type  string            `stored:"6"`  // what the service says of it, as it was announced
	Word  string            `stored:"34"` // whether it was exported, in the service's word; empty: unknown
	Name  string            `stored:"7"`
	Start time.Time         `stored:"8"` // of what it holds; zero: unknown
	End   time.Time         `stored:"9"`
	Made  time.Time         `stored:"10"` // when the service made it; zero: unknown
	Count int               `stored:"11"` // of its files, as announced; -1 if missing

	Files    []File         `stored:"12"`
	Manifest archive.Digest `stored:"13"` // of the manifest in custody; zero: it is not held

	AcknowledgeIntents uint16 `stored:"14"`
	Allowed            uint16 `stored:"15"` // downloads of one file that a person allowed beyond the limit
	UnknownPast        bool   `stored:"16"` // the ledger was put back or made anew: earlier downloads are not known
	Gone               bool   `stored:"17"` // a whole list left it out, and nobody here acknowledged it

	FetchRequest archive.RequestID `stored:"31"` // of the last file, or document, that came and is held
	TellRequest  archive.RequestID `stored:"32"` // of the last confirmation, acknowledgement or word that the service took

	Refused Refused `stored:"33"` // why no more of it is downloaded by the same way

	Attempt   uint16       `stored:"18"` // failures of what is due
	NotBefore time.Time    `stored:"19"`
	Cause     ledger.Cause `stored:"20"` // of the last failure, or of the end

	AnnouncedAt    time.Time `stored:"21"`
	HeldAt         time.Time `stored:"22"`
	AcknowledgedAt time.Time `stored:"23"`
	HandedOnAt     time.Time `stored:"25"` // when all its files were in the drop folder; zero: they are not, or nobody asks for it
	LostAt         time.Time `stored:"30"` // when custody was found to have lost it; zero: it did not, or has it again
	UnknownPastAt  time.Time `stored:"24"` // when UnknownPast was last set because the ledger was put back; zero: never

	// Of a received document. Item is its number at the network, and Type its kind; Files has the document itself, under [DocumentFile].
	Notice         archive.AcknowledgementID `stored:"26"` // of the notification that announced it
	ConfirmIntents uint16                    `stored:"27"`
	ConfirmedAt    time.Time                 `stored:"28"` // when the network took the confirmation of its receipt; zero: it did not, or nobody asks for it
	Said           []Said                    `stored:"29"` // what people said of it to the network, in that order
}

// Refused is a download that led to a host which the configuration does not
// allow. It may be one of the few that the service counts, so that none is made
// by the same way until the configuration allows other hosts.
type Refused struct {
	From  string `stored:"1"` // host of the link; empty: no download was refused
	Hosts string `stored:"2"` // digest of the hosts that were allowed
}

// File is one file of an arrival.
type File struct {
	Name      string         `stored:"1"` // the service's; one arrival has it once
	Table     string         `stored:"2"`
	Downloads uint16         `stored:"3"` // that were announced
	Stored    string         `stored:"4"` // its name in custody; empty: it is not held
	Size      int64          `stored:"5"`
	SHA256    archive.Digest `stored:"6"`
	Beside    bool           `stored:"7"` // other bytes have the place in custody that was meant for it
	Doubt     Doubt          `stored:"8"` // of a received document: what came for it and looks wrong

	Told archive.FileTold `stored:"9"` // of a received document: what the network says of it
}

// IsHeld reports whether the file is durable and digested here.
func (f File) IsHeld() bool { return f.Stored != "" }

// MostDownloads returns the downloads of the file that was downloaded most.
func (a Arrival) MostDownloads() (most uint16) {
	for _, f := range a.Files {
		most = max(most, f.Downloads)
	}
	return most
}

// Downloads returns the downloads of all files.
func (a Arrival) Downloads() (sum uint64) {
	for _, f := range a.Files {
		sum += uint64(f.Downloads)
	}
	return sum
}

// findFile returns the file of that name; nil: there is none.
func (a *Arrival) findFile(name string) *File {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i]
		}
	}
	return nil
}

// hasAllFiles reports whether every file is held, and as many as were announced.
func (a *Arrival) hasAllFiles() bool {
	for _, f := range a.Files {
		if !f.IsHeld() {
			return false
		}
	}
	return len(a.Files) >= a.Count
}

// Balance counts arrivals: how many were ever announced, and how many are in each state.
type Balance struct {
	Seen   uint64              `stored:"1"`
	States [GivenUp + 1]uint64 `stored:"2"`
}

// CountChange counts the change of one arrival from one state to another; None means that it is new.
func (b *Balance) CountChange(from, to State) {
	// Counted in the transaction that stores the arrival: after a crash the sum is right or the change is not there.
	if from == None {
		b.Seen++
	} else {
		b.States[from]--
	}
	b.States[to]++
}
