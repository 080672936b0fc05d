package present

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// StatusSummary is what "status" shows, and the object of "status --json". Sizes are bytes; -1 is unknown.
type StatusSummary struct {
	Version       string         `json:"version"`
	Host          string         `json:"host"`
	Environment   string         `json:"environment"`
	Service       string         `json:"service"` // its host
	At            time.Time      `json:"at"`
	Running       bool           `json:"running"` // a daemon works
	Since         *time.Time     `json:"since"`
	LastSuccess   *time.Time     `json:"lastSuccess"`
	LastDelivered *time.Time     `json:"lastDelivered"`
	Safe          *SafeMode      `json:"safeMode"` // null: it is not in safe mode
	Needs         []Need         `json:"needs"`
	Pauses        []PausedTarget `json:"pauses"`
	Balance       Balance        `json:"balance"`
	NotTaken      []NotTaken     `json:"notTaken"` // as vaultd saw it last
	Open          OpenCounts     `json:"open"`
	Drops         []DropStatus   `json:"drops"`
	Disk          DiskStatus     `json:"disk"`
	ClockAhead    *float64       `json:"clockAhead"`  // seconds that this clock was ahead of the service's at the newest registration
	Billing       []Bill         `json:"billing"`     // of this calendar year
	Downloads     DownloadCounts `json:"downloads"`   // of archived documents, for which the provider may charge
	ReloadFault   string         `json:"reloadFault"` // why a running daemon goes on with an older configuration
	Check         *LedgerCheck   `json:"check"`       // of the whole ledger; null: none ended since vaultd was started
	Advice        []string       `json:"advice"`      // what to change, though it is no need; known to a running daemon only

	Head    string `json:"head"`    // the journal's last line and its hash, for "vaultd verify --head"
	Catalog string `json:"catalog"` // what find, list and show may lack; empty: nothing, or no daemon runs
	Figures string `json:"figures"` // why what was archived and delivered today, the last delivery and the bills are not known, or not all of them; empty: they are

	ListsIgnored bool            `json:"-"` // the text lists the ignored names
	Attention    EntryCounts     `json:"-"` // the entries that need attention
	StalledDrops []string        `json:"-"` // in words: which drop folders were not scanned for too long
	LastScan     time.Time       `json:"-"` // the earliest last scan of the drops; zero: none was scanned
	LongNotTaken []Need          `json:"-"` // what was not taken for too long
	ExtractNeeds []string        `json:"-"` // extracts that need a person, with what to do
	IndexNeeds   []string        `json:"-"` // vaults whose index at the archive differed at the last comparison, with when and how much
	SpoolWaits   []SpoolWait     `json:"-"` // queues whose share of the spool is full
	Incoming     []IncomingFault `json:"-"` // why what the services tell does not come in
	Asked        ArrivalNeeds    `json:"-"` // notifications about no sent document upon which a person must act
	Received     ArrivalNeeds    `json:"-"` // documents that came in over the business network and need a person

	TakenOverEpoch uint64 `json:"-"` // epoch of the vaultd that has taken over the drop folders; zero: none has
	LostLedger     string `json:"-"` // why the ledger that is open is not the one in state_dir; empty: it is
	Damage         string `json:"-"` // what was met of it while the ledger was read; what is shown is not all then
}

// SpoolWait is a vault, or a service, whose packing waits until packages leave
// the spool. Sizes are bytes.
type SpoolWait struct {
	Queue             string
	Since             time.Time
	Used, Share, Next int64 // of its packages, of its share, and those that the next one takes at most
}

// IncomingFault says why something does not come in by itself: what the business network tells, or extracts. Documents on their way out are
// not kept up by it.
type IncomingFault struct {
	What     string    // a stable word: notices, extracts-paused
	Since    time.Time // zero: it does not pass by itself
	Text, Do string
}

// ArrivalNeeds are things that came in and need a person.
type ArrivalNeeds struct {
	Count int
	Names []string // of the first, at most NamedAtMost, each with what to do
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
	Unread []string  `json:"unread"` // packages and folders that could not be read: nothing is known of them
	Failed string    `json:"failed"` // why the ledger could not be checked
}

// Need is one kind of thing that a person must see to.
type Need struct {
	When  string   `json:"when"` // now or soon
	What  string   `json:"what"` // a stable word, see [NeedKind]
	Count int      `json:"count"`
	Text  string   `json:"text"`
	Do    string   `json:"do"`
	Names []string `json:"names"` // the newest few
	Turn  string   `json:"turn"`  // whose turn it is

	Brief string `json:"-"` // what the health pages say, which omits the name of a folder; empty: the text

	Entries []NamedEntry `json:"-"` // the entries behind the names, in their order; empty: they are no entries of the ledger
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
	Name    string     `json:"name"`
	Vault   string     `json:"vault"`
	Mode    string     `json:"mode"`
	Why     string     `json:"modeReason"`
	Paused  string     `json:"paused"`
	Free    int64      `json:"free"`
	Today   int        `json:"archivedToday"`
	Open    int        `json:"open"`
	Oldest  *time.Time `json:"oldest"`
	Scanned *time.Time `json:"scannedAt"` // when vaultd last read the whole drop folder; null: never

	Route     string `json:"route"`          // vault, pdf or network; empty: it is not configured any more
	Delivered int    `json:"deliveredToday"` // they are no part of Today

	IgnoredByRule   IgnoredNames `json:"ignoredByRule"`   // names left alone by the drop's rules
	IgnoredBySystem IgnoredNames `json:"ignoredBySystem"` // names that systems made, left alone

	Foreign  []ForeignPlace `json:"-"` // of somebody else, where vaultd puts things for people
	IsPaused bool           `json:"-"` // it is not worked in
	Do       string         `json:"-"` // about the pause, where more is known than that it needs a fix
	Listed   time.Time      `json:"-"` // when it was last scanned as a whole
}

// leastDropFree is below how many free bytes the file system of a drop folder
// counts as full: notes, receipts and _STATUS.txt must fit.
const leastDropFree = 1 << 20

// isDropFull reports whether a running vaultd has no room in a drop folder.
func (s *StatusSummary) isDropFull(d DropStatus) bool {
	return s.Running && d.Free >= 0 && d.Free < leastDropFree
}

// ForeignPlace is something of somebody else in a drop folder where vaultd puts things for people.
type ForeignPlace struct{ Text, Do string }

// IgnoredNames are names directly in a drop folder that are left alone.
type IgnoredNames struct {
	Count uint64   `json:"count"`
	Names []string `json:"names"` // the first hundred
}

func newIgnoredNames(n ledger.IgnoredNames) IgnoredNames {
	return IgnoredNames{n.Count, append([]string{}, n.Names...)}
}

// writeTo writes a line for the drop d; nothing where no name is ignored.
func (n IgnoredNames) writeTo(w io.Writer, d, why string) {
	if n.Count == 0 {
		return
	}
	names := make([]string, len(n.Names))
	for i, name := range n.Names {
		names[i] = sanitize.Name(name, longestIgnored)
	}
	more := ""
	if rest := n.Count - uint64(len(names)); rest > 0 {
		more = fmt.Sprintf(" and %d more", rest)
	}
	fmt.Fprintf(w, "IGNORED  %s: %s %s: %s%s\n", sanitize.Text(d), FormatCount(int(n.Count), "name", "names"), why, strings.Join(names, ", "), more)
}

// longestIgnored is how many characters of an ignored name are shown.
const longestIgnored = 60

// Delivers reports whether what the drop takes is delivered, and never archived. One that is not configured any more is taken for one of a vault.
func (d DropStatus) Delivers() bool { return d.Route != "" && d.Vault == "" }

// describeToday says how many were archived today, or delivered: two numbers that are never added up.
func (d DropStatus) describeToday() string {
	switch {
	case d.Today < 0:
		return "not known"
	case d.Delivered == 0 && !d.Delivers():
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

// EntryCounts are the entries that need attention, by the stable word of their
// kind of need.
type EntryCounts map[string]*NamedCount

// Of returns the count of a kind, which it begins if it is missing.
func (a EntryCounts) Of(what string) *NamedCount {
	if a[what] == nil {
		a[what] = &NamedCount{}
	}
	return a[what]
}

// NamedCount counts entries and names the latest few.
type NamedCount struct {
	Count   int
	Entries []NamedEntry
}

// NamedEntry names one entry to people.
type NamedEntry struct {
	Key          archive.Key
	Folder, Drop string
	Why          string // it needs a person; empty: its class says it
}

const NamedAtMost = 5

// Add notes the name of one of them, and why it is one.
func (s *NamedCount) Add(e ledger.Entry, why string) {
	s.Entries = append(s.Entries, NamedEntry{e.Key, e.Folder, e.Drop, why})
}

func (e NamedEntry) String() string {
	name := e.Folder + " (" + e.Drop + ")"
	if e.Why != "" {
		name += ": " + e.Why
	}
	return name
}

// names returns the names as texts.
func (s NamedCount) names() (all []string) {
	for _, e := range s.Entries {
		all = append(all, e.String())
	}
	return all
}
