package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/billing"
	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/watch"
)

func (a *app) statusCommand() *cobra.Command {
	var watch time.Duration
	c := &cobra.Command{
		Use:   "status",
		Short: "what needs you, what is on its way, and what it costs",
		Long: `Shows what needs a person first, then the balance, what is not taken yet and why,
what is on its way, the drops, the disk and the bill. Exit code 3 means that
something needs a person; that vaultd does not run is one such thing while folders
wait in the drops or are half-way.

With --watch it shows the page anew every five seconds, or as often as --watch=1m says,
until Ctrl-C, and then ends with 0. On a terminal each page takes the place of the one
before; elsewhere it follows it, after an empty line, and with --json each is one line.`,
		Example: `  vaultd status
  vaultd status --watch
  vaultd status --json | jq .needs
  vaultd status > /dev/null || echo "look at vaultd"`,
		Args: takes(),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("watch") {
				return a.watchStatus(c, watch)
			}
			return a.withLedger(c, args, a.status)
		},
	}
	c.Flags().DurationVar(&watch, "watch", 0, "show it anew at this `interval`, until Ctrl-C")
	c.Flags().Lookup("watch").NoOptDefVal = watchEvery.String()
	return c
}

func (a *app) status(ctx context.Context, v view) error {
	s, err := v.collectStatus(ctx)
	if err != nil {
		return err
	}
	if s.Damage != "" && a.inside != nil {
		a.inside.CheckNow()
	}
	if a.json {
		err = writeJSON(a.stdout, s)
	} else {
		err = s.writeText(a.stdout, v.Clock)
	}
	if err == nil && len(s.Needs) > 0 {
		err = quiet(exitPerson)
	}
	return err
}

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

	LastScan     time.Time `json:"-"` // the earliest of the last looks into the drops; zero: none was looked into
	longNotTaken []Need    // what was not taken for too long

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

type Balance struct {
	Seen   uint64            `json:"seen"`
	States map[string]uint64 `json:"states"`
	Open   uint64            `json:"open"`
	Agrees bool              `json:"agrees"`
	Text   string            `json:"text"`
}

type NotTaken struct {
	Drop   string   `json:"drop"`
	Reason string   `json:"reason"`
	Count  int      `json:"count"`
	Names  []string `json:"names"` // the longest waiting
}

type OpenCounts struct {
	Total   int            `json:"total"`
	States  map[string]int `json:"states"`
	Oldest  *time.Time     `json:"oldest"`
	Limit   float64        `json:"limitSeconds"` // after it a person is told
	Overdue int            `json:"overdue"`
}

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

	Do string `json:"-"` // about the pause, where more is known than that it must be mended
}

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

type Bill struct {
	Year         int    `json:"year"`
	Vault        string `json:"vault"` // empty: all vaults of the customer
	Documents    uint64 `json:"documents"`
	Unsized      uint64 `json:"unsized"` // of them: their size is not known, and they are left out of what follows
	AverageMB    string `json:"averageMB"`
	Percent      string `json:"percent"` // of what is included
	Level        int    `json:"level"`   // 0, 80, 90 or 100
	Headroom     uint64 `json:"headroom"`
	Transactions string `json:"transactions"` // beyond what is included
	Money        string `json:"money"`
	Currency     string `json:"currency"`

	Forecast *billing.Forecast `json:"forecast"` // to 31 December; null: too early to say
}

// collectStatus gathers everything.
func (v view) collectStatus(ctx context.Context) (StatusSummary, error) {
	c := v.cfg
	s := StatusSummary{
		Version: buildVersion(), Environment: c.Service.Environment, At: v.Now.UTC().Truncate(time.Second), Running: v.state != nil,
		Needs: []Need{}, Pauses: []PausedTarget{}, NotTaken: []NotTaken{}, Advice: []string{}, Service: c.Service.BaseURL,
		ReloadFault: v.reloadFault,
	}
	s.Host, _ = os.Hostname() // for people only
	if u, err := url.Parse(c.Service.BaseURL); err == nil {
		s.Service = u.Host
	}
	if safe, is := v.ledger.SafeMode(); is {
		s.Safe = &SafeMode{safe.Mark, safe.Since.UTC(), present.TimeOrNil(safe.KnownUntil), daemon.SafeWords(safe)}
	}
	t := newEntryCounts(v)
	for _, count := range []func(*boltledger.Ledger) error{t.countAttention, t.nameLatest, t.countOpen, t.findLastSuccess, func(l *boltledger.Ledger) error { return t.readRecentJournal(ctx, l) }} {
		if err := s.noteDamage(count(v.ledger)); err != nil {
			return s, err
		}
	}
	s.Open, s.LastSuccess = t.summarizeOpen(), present.TimeOrNil(t.lastSuccess)
	if !t.clockComparedAt.IsZero() {
		ahead := t.clockAhead.Seconds()
		s.ClockAhead = &ahead
	}
	s.setBalance(v.ledger.Balance())
	s.setDisk(c)
	s.addDrops(v, t)
	if v.state != nil {
		s.addLiveState(v.state(), t)
	}
	pending, err := v.readScans()
	if err := s.noteDamage(err); err != nil {
		return s, err
	}
	s.addPending(pending, v.Clock)
	if n, waits := s.needToStart(c); waits {
		s.Needs = append(s.Needs, n)
	}
	if text, do := bindingTrouble(v.ledger.Info(), c); v.state == nil && text != "" {
		s.Needs = append(s.Needs, Need{"now", "binding", 1, text, do, []string{}})
	}
	bills, err := calculateBills(v.ledger, c, v.Now)
	err = s.noteDamage(err)
	s.addNeeds(t)
	for _, b := range bills {
		if b.Year == v.Now.In(v.Location).Year() {
			s.Billing = append(s.Billing, NewBill(b))
		}
	}
	s.Downloads.Allowed = c.Billing.DownloadsPerMonth
	if err == nil {
		s.Downloads.Month, err = v.ledger.CountFetches(v.Now)
		err = s.noteDamage(err)
	}
	return s, err
}

// noteDamage takes damage in the ledger down, the first that is met, and returns any other error.
func (s *StatusSummary) noteDamage(err error) error {
	broken, ok := errors.AsType[*ledger.DamageError](err)
	if !ok {
		return err
	}
	s.Damage = cmp.Or(s.Damage, broken.Error())
	return nil
}

func (s *StatusSummary) setBalance(b ledger.Balance) {
	s.Balance = Balance{Seen: b.Seen, States: map[string]uint64{}, Open: b.OpenEntries(), Agrees: b.IsBalanced(), Text: b.String()}
	for _, state := range ledger.States() {
		s.Balance.States[state.String()] = b.States[state]
	}
}

func (s *StatusSummary) setDisk(c config.Config) {
	s.Disk = DiskStatus{LedgerFree: diskFree(c.StateDir), SpoolUsed: spoolUsed(filepath.Join(c.StateDir, "spool")), SpoolMax: c.Spool.Max, MinFree: c.Spool.MinFree}
}

// diskFree returns what may still be written at path; -1 where that cannot be told.
func diskFree(path string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // of other widths on some machines
}

// spoolUsed adds up what waits in the spool, which need not exist before the first run.
func spoolUsed(dir string) int64 {
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return -1
	}
	var sum int64
	for _, n := range names {
		if info, err := n.Info(); err == nil { // else it has just left
			sum += info.Size()
		}
	}
	return sum
}

// addDrops lists the configured ones, and after them those that only the ledger knows.
func (s *StatusSummary) addDrops(v view, t *entryCounts) {
	c := v.cfg
	line := func(name string) DropStatus {
		d := t.drops[name]
		return DropStatus{Name: name, Today: d.today, Open: d.open, Oldest: present.TimeOrNil(d.oldest), Free: -1}
	}
	configured := map[string]bool{}
	for _, d := range c.Drops {
		configured[d.Name] = true
		l := line(d.Name)
		if l.Vault, l.Mode = d.Vault, d.Mode; v.state == nil { // a running daemon knows it without touching a share, which may hang
			l.Free = diskFree(d.Path)
		}
		s.Drops = append(s.Drops, l)
	}
	for name, d := range t.drops {
		if l := line(name); !configured[name] && d.open > 0 {
			l.Paused = "not configured any more; put it back, or its folders stay claimed"
			s.Drops = append(s.Drops, l)
		}
	}
	slices.SortStableFunc(s.Drops[len(c.Drops):], func(a, b DropStatus) int { return cmp.Compare(a.Name, b.Name) })
}

// addLiveState adds what only a running daemon knows.
func (s *StatusSummary) addLiveState(d daemon.State, t *entryCounts) {
	s.Since, s.TakenOverEpoch = present.TimeOrNil(d.Since), d.Taken
	for _, u := range d.Advice {
		s.Advice = append(s.Advice, u.Text)
	}
	if c := d.Check; !c.At.IsZero() {
		s.Check = &LedgerCheck{c.At.UTC(), c.OK(), append([]string{}, c.Ledger...), append([]string{}, c.Files...), append([]string{}, c.Unread...), c.Failed}
	}
	for _, p := range d.Pauses {
		l := PausedTarget{Route: p.Target.String(), Since: p.Since.UTC(), Next: present.TimeOrNil(p.Next), Code: p.Cause.Code, Text: describePause(t.Clock, p),
			Do: sanitize.Text(adviseOnPause(p, d.Advice)), Wait: s.Open.Total, NeedsPerson: p.NeedsPerson()}
		for v, n := range t.byVault {
			if p.Target.Vault == v {
				l.Wait = n
			}
		}
		for name, n := range t.drops {
			if p.Target == ingest.DropTarget(name) {
				l.Wait = n.open
			} else if p.Target.Place != "" && p.Target.Drop == name { // those behind it are at their end, and are not counted one by one
				l.Wait = max(n.open, 1)
			}
		}
		if !p.Target.Entry.IsZero() { // one entry alone
			l.Wait = 1
		}
		s.Pauses = append(s.Pauses, l)
	}
	s.Disk.Reserve, s.Disk.Wanted = d.Spool.Reserve, d.Spool.ReserveWanted
	s.Disk.NothingNew, s.Disk.StandsStill = !d.Spool.Full.IsZero(), d.Spool.Stands
	for _, ds := range d.Drops {
		i := slices.IndexFunc(s.Drops, func(l DropStatus) bool { return l.Name == ds.Name })
		if i < 0 {
			continue
		}
		l := &s.Drops[i]
		l.Mode, l.Why, l.Free, l.Paused, l.Do = cmp.Or(string(ds.Watch.Mode), l.Mode), ds.Watch.ModeReason, ds.Free, ds.Paused, ds.Do
		for _, w := range ds.Watch.NotTaken {
			s.NotTaken = append(s.NotTaken, NotTaken{ds.Name, string(w.Reason), w.Count, describeWaiting(w)})
		}
	}
}

func describeWaiting(w watch.NotTakenGroup) []string {
	var names []string
	for _, n := range w.Items[:min(len(w.Items), namedAtMost)] {
		name := n.Name
		if n.Detail != "" {
			name += ": " + n.Detail
		}
		names = append(names, name)
	}
	return names
}

// calculateBills applies the price rule to what each vault archived in each year, as it stands at now.
func calculateBills(l *boltledger.Ledger, c config.Config, now time.Time) ([]billing.Bill, error) {
	totals, err := l.Totals()
	if err != nil {
		return nil, err
	}
	return billing.Bills(totals, billing.Rule{
		Included: c.Billing.Included, Price: archive.Decimal(c.Billing.PricePerTransaction), Currency: c.Billing.Currency,
	}, now.In(c.Location))
}
