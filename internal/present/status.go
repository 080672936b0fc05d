package present

import (
	"fmt"
	"strconv"
	"time"

	"vaultd/internal/ledger"
)

// StatusSummary is what "status" shows, and the object of "status --json". Sizes are bytes; -1 is unknown.
type StatusSummary struct {
	Version     string         `json:"version"`
	Host        string         `json:"host"`
	Environment string         `json:"environment"`
	Service     string         `json:"service"` // its host
	At          time.Time      `json:"at"`
	Running     bool           `json:"running"` // a daemon works
	Since       *time.Time     `json:"since"`
	LastSuccess *time.Time     `json:"lastSuccess"`
	Safe        *SafeMode      `json:"safeMode"` // null: it is not in safe mode
	Needs       []Need         `json:"needs"`
	Pauses      []PausedTarget `json:"pauses"`
	Balance     Balance        `json:"balance"`
	NotTaken    []NotTaken     `json:"notTaken"` // as vaultd saw it last
	Open        OpenCounts     `json:"open"`
	Drops       []DropStatus   `json:"drops"`
	Disk        DiskStatus     `json:"disk"`
	ClockAhead  *float64       `json:"clockAhead"`  // seconds that this clock was ahead of the service's at the newest registration
	Billing     []Bill         `json:"billing"`     // of this calendar year
	Downloads   DownloadCounts `json:"downloads"`   // of archived documents, for which the provider may charge
	ReloadFault string         `json:"reloadFault"` // why a running daemon goes on with an older configuration
	Check       *LedgerCheck   `json:"check"`       // of the whole ledger; null: none ended since vaultd was started
	Advice      []string       `json:"advice"`      // which vaults the archive does not list; known to a running daemon only

	Catalog string `json:"catalog"` // why find and show take longer; empty: they do not, or no daemon runs

	Attention    AttentionCounts `json:"-"`
	StalledDrops []string        `json:"-"` // in words: which drop folders were not scanned for too long
	LastScan     time.Time       `json:"-"` // the earliest last scan of the drops; zero: none was scanned
	LongNotTaken []Need          `json:"-"` // what was not taken for too long

	TakenOverEpoch uint64 `json:"-"` // epoch of the vaultd that has taken over the drop folders; zero: none has
	Damage         string `json:"-"` // what was met of it while the ledger was read; what is shown is not all then
}

// DownloadCounts is how many downloads were asked for in a month, and how many it may have.
type DownloadCounts struct {
	Month   uint64 `json:"thisMonth"` // one that was never answered counts
	Allowed uint64 `json:"allowed"`   // billing.downloads_per_month
}

// SafeMode says why nothing is taken, sent, moved or removed.
type SafeMode struct {
	Word  string     `json:"word"`
	Since time.Time  `json:"since"`
	From  *time.Time `json:"knownUntil"` // what was done after it is not known; null: nothing is sure
	Text  string     `json:"text"`
}

// LedgerCheck is what the last full check in the background found.
type LedgerCheck struct {
	At     time.Time `json:"at"`
	OK     bool      `json:"ok"`
	Ledger []string  `json:"ledger"` // what is wrong with it
	Files  []string  `json:"files"`  // packages and receipts that are not what the ledger says
	Unread []string  `json:"unread"` // receipts that could not be read: nothing is known of them
	Failed string    `json:"failed"` // why it could not be made
}

// Need is one kind of thing that a person must see to.
type Need struct {
	When  string   `json:"when"` // now or soon
	What  string   `json:"what"` // a stable word
	Count int      `json:"count"`
	Text  string   `json:"text"`
	Do    string   `json:"do"`
	Names []string `json:"names"` // the newest few
}

// PausedTarget is a target whose circuit breaker is open.
type PausedTarget struct {
	Route string     `json:"route"`
	Since time.Time  `json:"since"`
	Next  *time.Time `json:"next"` // null: not before a person acts
	Code  string     `json:"code"`
	Text  string     `json:"text"`
	Do    string     `json:"do"`
	Wait  int        `json:"waiting"` // documents behind it

	NeedsPerson bool `json:"-"` // no waiting ends it
}

// Balance says in which states the entries are.
type Balance struct {
	Seen   uint64            `json:"seen"`
	States map[string]uint64 `json:"states"`
	Open   uint64            `json:"open"`
	Agrees bool              `json:"agrees"`
	Text   string            `json:"text"`
}

// NotTaken counts the things in a drop folder that were not taken for one reason.
type NotTaken struct {
	Drop   string   `json:"drop"`
	Reason string   `json:"reason"`
	Count  int      `json:"count"`
	Names  []string `json:"names"` // the longest waiting
}

// OpenCounts are the entries that are on their way.
type OpenCounts struct {
	Total   int            `json:"total"`
	States  map[string]int `json:"states"`
	Oldest  *time.Time     `json:"oldest"`
	Limit   float64        `json:"limitSeconds"` // after it a person is told
	Overdue int            `json:"overdue"`
}

// DropStatus is one drop folder.
type DropStatus struct {
	Name   string     `json:"name"`
	Vault  string     `json:"vault"`
	Mode   string     `json:"mode"`
	Why    string     `json:"modeReason"`
	Paused string     `json:"paused"`
	Free   int64      `json:"free"`
	Today  int        `json:"archivedToday"`
	Open   int        `json:"open"`
	Oldest *time.Time `json:"oldest"`
	Looked *time.Time `json:"lookedAt"` // when vaultd last read the whole drop folder; null: never

	Route     string `json:"route"`          // vault or pdf; empty: it is not configured any more
	Delivered int    `json:"deliveredToday"` // they are no part of Today

	Do       string    `json:"-"` // about the pause, where more is known than that it must be mended
	IsPaused bool      `json:"-"` // it is not worked in
	Listed   time.Time `json:"-"` // when it was last scanned as a whole
}

// IsPDF reports whether the drop takes single PDFs, which are delivered and never archived.
func (d DropStatus) IsPDF() bool { return d.Route == string(ledger.PDF) }

// describeToday says how many were archived today, or delivered: two numbers that are never added up.
func (d DropStatus) describeToday() string {
	switch {
	case d.Delivered == 0 && !d.IsPDF():
		return strconv.Itoa(d.Today)
	case d.Today == 0:
		return strconv.Itoa(d.Delivered) + " delivered"
	}
	return fmt.Sprintf("%d, %d delivered", d.Today, d.Delivered)
}

// DiskStatus is the disk of state_dir. Sizes are bytes.
type DiskStatus struct {
	LedgerFree int64 `json:"ledgerFree"`
	SpoolUsed  int64 `json:"spoolUsed"`
	SpoolMax   int64 `json:"spoolMax"`
	MinFree    int64 `json:"minFree"`
	Reserve    int64 `json:"reserve"`       // set aside for the ledger; known to a running daemon only
	Wanted     int64 `json:"reserveWanted"` // what should be

	NothingNew  bool `json:"-"` // nothing new is taken
	StandsStill bool `json:"-"` // nothing is begun at all
}

// NewBalance makes the balance of a summary.
func NewBalance(b ledger.Balance) Balance {
	all := Balance{Seen: b.Seen, States: map[string]uint64{}, Open: b.OpenEntries(), Agrees: b.IsBalanced(), Text: b.String()}
	for _, state := range ledger.States() {
		all.States[state.String()] = b.States[state]
	}
	return all
}

func (o OpenCounts) alertAfter() time.Duration { return time.Duration(o.Limit * float64(time.Second)) }

// sum adds up the entries in some states.
func (b Balance) sum(states []ledger.State) (n uint64) {
	for _, state := range states {
		n += b.States[state.String()]
	}
	return n
}

// AttentionCounts are the entries that a person must see to, by what for.
type AttentionCounts struct {
	Contradicted, ArchivedTwice, KeptDiffers, Overdue, Quarantined, Rejected, Undecided, SameNumber, StrangeDate, Unreadable NamedCount

	DeliveredDiffers NamedCount // kept PDFs that are not what was delivered; KeptDiffers has none of them
}

// ByName gives the counts by the stable words of the metrics.
func (a AttentionCounts) ByName() map[string]int {
	return map[string]int{
		"rejected": a.Rejected.Count, "quarantined": a.Quarantined.Count, "undecided": a.Undecided.Count, "unreadable": a.Unreadable.Count,
		"contradicted": a.Contradicted.Count, "archived-twice": a.ArchivedTwice.Count, "kept-differs": a.KeptDiffers.Count, "delivered-differs": a.DeliveredDiffers.Count,
		"overdue": a.Overdue.Count, "same-number": a.SameNumber.Count, "strange-date": a.StrangeDate.Count,
	}
}

// NamedCount counts entries and names the latest few.
type NamedCount struct {
	Count int
	Names []string
}

const NamedAtMost = 5

// Add notes the name of one of them, and why it is one.
func (s *NamedCount) Add(e ledger.Entry, why string) {
	name := e.Folder + " (" + e.Drop + ")"
	if why != "" {
		name += ": " + why
	}
	s.Names = append(s.Names, name)
}
