package ledger

import (
	"time"

	"vaultd/internal/archive"
)

// MaxPending is how many things of one drop folder a [Scan] names.
const MaxPending = 1000

// Scan lists what the last scan of a drop folder found that vaultd has not taken. It is a light record: it replaces the one
// before, no journal line tells of it, and a name leaves the ledger once the thing has left the drop folder. Over a restart
// it keeps since when each thing is there, and when the last scan was. Path, vault and limit are those of the last
// configuration that had the drop: after the drop is removed from the configuration, only this record has them.
type Scan struct {
	Drop        string          `stored:"1"`
	Path        string          `stored:"8"` // of the drop folder; a drop of another name with the same path is the same one
	Vault       archive.VaultID `stored:"9"`
	RemindAfter time.Duration   `stored:"10"` // remind_after
	LastScan    time.Time       `stored:"2"`  // when the drop folder was last read as a whole; zero: never
	Fault       string          `stored:"3"`  // why it cannot be read now; empty: it can
	FaultSince  time.Time       `stored:"4"`  // since when; zero: it can be read

	Pending      []PendingItem `stored:"5"` // the longest waiting, at most MaxPending
	Unnamed      uint64        `stored:"6"` // those that are not named
	UnnamedSince time.Time     `stored:"7"` // when there were first more than are named; zero: there are none

	Missing []MissingFolder `stored:"13"` // unresolved rejections whose returned folders are not where they were put; at most MaxPending

	KeptScan   time.Time `stored:"14"` // when the last look at all kept folders of the drop began; zero if missing
	KeptUnread uint64    `stored:"15"` // of them, those that could not be read then
	KeptSince  time.Time `stored:"16"` // when the last look began that compared all of them: the next one reads what changed since

	IgnoredByRule   IgnoredNames `stored:"11"` // by the drop's own rules
	IgnoredBySystem IgnoredNames `stored:"12"` // made by file systems, file servers and the like
}

// IgnoredNames are names directly in a drop folder that are left alone.
type IgnoredNames struct {
	Count uint64   `stored:"1"`
	Names []string `stored:"2"` // the first, at most MaxIgnored
}

// MaxIgnored is how many of the names that are left alone a [Scan] keeps.
const MaxIgnored = 100

// MissingFolder is the returned folder of an unresolved rejection that is not in its
// place any more: somebody removed, renamed or moved it. The rejection stays open.
type MissingFolder struct {
	Key   archive.Key `stored:"1"`
	Since time.Time   `stored:"2"` // when it was first missed
}

// MissingSince returns since when the returned folder of an entry is missed; zero: it
// is not, as far as is known.
func (s Scan) MissingSince(k archive.Key) time.Time {
	for _, m := range s.Missing {
		if m.Key == k {
			return m.Since
		}
	}
	return time.Time{}
}

// PendingItem is one thing in a drop folder that has no entry.
type PendingItem struct {
	Name        string    `stored:"1"`
	Reason      string    `stored:"2"` // the watcher's word for why it is not taken
	Detail      string    `stored:"3"` // more words; may be empty
	Since       time.Time `stored:"4"` // when it was first seen
	NeedsPerson bool      `stored:"5"` // a person must act before it can be taken
}

// CountPending returns how many things are not taken.
func (s Scan) CountPending() uint64 { return uint64(len(s.Pending)) + s.Unnamed }

// OverdueItems returns what has not been taken for longer than limit at now, and how many things are not named beside it.
func (s Scan) OverdueItems(now time.Time, limit time.Duration) (named []PendingItem, more uint64) {
	for _, p := range s.Pending {
		if IsOverdue(p.Since, now, limit) {
			named = append(named, p)
		}
	}
	if s.Unnamed > 0 && IsOverdue(s.UnnamedSince, now, limit) {
		more = s.Unnamed
	}
	return named, more
}

// IsOverdue reports whether a thing that was first seen at since is there for longer than limit. A time in the future means
// that a clock was set back: the real age is not known then, and the thing counts as overdue.
func IsOverdue(since, now time.Time, limit time.Duration) bool {
	age := now.Sub(since)
	return age > limit || age < -clocksDiffer
}

// clocksDiffer is by how much two readings of one clock may differ without its having been set.
const clocksDiffer = time.Minute

// ItemsForPerson returns what of the overdue things waits for a person, and how many are not named beside it. Of those that
// have no name nobody knows what they wait for: they count where any named one needs a person.
func (s Scan) ItemsForPerson(now time.Time, limit time.Duration) (named []PendingItem, more uint64) {
	overdue, more := s.OverdueItems(now, limit)
	for _, p := range overdue {
		if p.NeedsPerson {
			named = append(named, p)
		}
	}
	if len(named) == 0 {
		more = 0
	}
	return named, more
}
