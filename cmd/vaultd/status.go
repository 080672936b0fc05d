package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"vaultd/internal/catalog"
	"vaultd/internal/config"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/watch"
)

func (a *app) statusCommand() *cobra.Command {
	var watch time.Duration
	var verbose bool
	c := &cobra.Command{
		Use:   "status",
		Short: "what needs you, what is on its way, and what it costs",
		Long: `Shows what needs a person first, then the balance, what is not taken yet and why,
what is on its way, the drops, the disk and the bill. Exit code 3 means that
something needs a person; that vaultd does not run is one such thing while folders
wait in the drops or are half-way.

With -v it lists the names in the drops that are ignored: by a rule of the drop, or
because a system makes them, as lost+found.

With --watch it shows the page anew every five seconds, or as often as --watch=1m says,
until Ctrl-C, and then ends with 0. On a terminal each page takes the place of the one
before; elsewhere it follows it, after an empty line, and with --json each is one line.`,
		Example: `  vaultd status
  vaultd status --watch
  vaultd status --json | jq .needs
  vaultd status > /dev/null || echo "look at vaultd"`,
		Args: expectArgs(),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("watch") {
				return a.watchStatus(c, watch, verbose)
			}
			return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.runStatus(ctx, v, verbose) })
		},
	}
	c.Flags().DurationVar(&watch, "watch", 0, "show it anew at this `interval`, until Ctrl-C")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "list the names in the drops that are ignored")
	c.Flags().Lookup("watch").NoOptDefVal = watchEvery.String()
	return c
}

func (a *app) runStatus(ctx context.Context, v view, verbose bool) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s, err := v.collectStatus(ctx)
	if err != nil {
		return err
	}
	if s.Damage != "" && a.inside != nil {
		a.inside.CheckNow()
	}
	s.ListsIgnored = verbose
	if a.json {
		err = writeJSON(a.stdout, s)
	} else {
		err = s.WriteText(a.stdout, v.Clock)
	}
	if err == nil && len(s.Needs) > 0 {
		err = failSilently(exitPerson)
	}
	return err
}

// newSummary gives what is known without counting.
func (v view) newSummary() present.StatusSummary {
	c := v.cfg
	s := present.StatusSummary{
		Version: buildVersion(), Environment: c.Service.Environment, At: v.Now.UTC().Truncate(time.Second), Running: v.state != nil,
		Needs: []present.Need{}, Pauses: []present.PausedTarget{}, NotTaken: []present.NotTaken{}, Advice: []string{}, Service: c.Service.BaseURL,
		ReloadFault: v.reloadFault, Head: v.ledger.Head().String(), Balance: present.NewBalance(v.ledger.Balance()),
		Disk: present.DiskStatus{LedgerFree: diskFree(c.StateDir), SpoolMax: c.Spool.Max, MinFree: c.Spool.MinFree},
	}
	s.Host, _ = os.Hostname() // for people only
	if u, err := url.Parse(c.Service.BaseURL); err == nil {
		s.Service = u.Host
	}
	if safe, is := v.ledger.SafeMode(); is {
		s.Safe = &present.SafeMode{Word: safe.Mark, Since: safe.Since.UTC(), From: present.TimeOrNil(safe.KnownUntil), Text: present.DescribeSafeMode(safe)}
	}
	return s
}

// collectFacts gathers what every surface shows, and whatever more counts.
// Damage in the ledger is noted, and the readable part is shown. Without more
// it costs the same with ten entries and with a million, and while vaultd runs
// it leaves the drop folders alone.
func (v view) collectFacts(t *entryCounts, more ...func(*boltledger.Ledger) error) (s present.StatusSummary, err error) {
	s = v.newSummary()
	scans, err := v.readScans()
	if noteDamage(&s, err) != nil {
		return s, err
	}
	t.missing = missingFolders(scans)
	for _, count := range append([]func(*boltledger.Ledger) error{t.countAttention, t.countOpen, t.compareClocks}, more...) {
		if err := noteDamage(&s, count(v.ledger)); err != nil {
			return s, err
		}
	}
	s.Attention, s.Open = t.needs, t.summarizeOpen()
	if !t.clockComparedAt.IsZero() {
		ahead := t.clockAhead.Seconds()
		s.ClockAhead = &ahead
	}
	v.addDrops(&s, t)
	v.addLiveState(&s, t)
	s.AddScans(scans, v.Clock) // after addDrops, whose drops it completes
	if s.ExtractNeeds, err = v.findExtractNeeds(); noteDamage(&s, err) != nil {
		return s, err
	}
	if s.Received, err = v.findReceivedNeeds(); noteDamage(&s, err) != nil {
		return s, err
	}
	if s.Asked, err = v.findAskingNotices(); noteDamage(&s, err) != nil {
		return s, err
	}
	if s.IndexNeeds, err = v.findDifferingIndexes(); noteDamage(&s, err) != nil {
		return s, err
	}
	s.Billing, s.Figures = t.bills, t.figuresLack
	return s, nil
}

// findDifferingIndexes names the vaults whose index at the archive differed at
// the last comparison that concluded something.
func (v view) findDifferingIndexes() (names []string, err error) {
	lines, err := v.ledger.DifferingIndexes()
	for _, l := range lines {
		_, words, _ := ledger.ParseComparedCause(l.Cause)
		at, _ := time.Parse(time.RFC3339, l.At) // the journal's own form
		names = append(names, fmt.Sprintf("vault %s, compared %s: %s", l.Vault, v.Brief(at), words))
	}
	return names, err
}

// collectStatus gathers everything that "status" shows.
func (v view) collectStatus(ctx context.Context) (present.StatusSummary, error) {
	t := newEntryCounts(v)
	s, err := v.collectFacts(t, t.nameLatest, t.findLastSuccess, func(*boltledger.Ledger) error { return v.readFigures(ctx, t) })
	if err != nil {
		return s, err
	}
	s.LastSuccess, s.LastDelivered = present.TimeOrNil(t.lastSuccess), present.TimeOrNil(t.lastDelivery)
	s.Disk.SpoolUsed = v.spoolUsed()
	if need, isNeeded := v.needToStart(s.Open.Total); isNeeded {
		s.Needs = append(s.Needs, need)
	}
	if text, do := bindingTrouble(v.ledger.Info(), v.cfg); v.state == nil && text != "" {
		s.Needs = append(s.Needs, present.Need{What: "binding", Count: 1, Text: text, Do: do, Names: []string{}})
	}
	s.Downloads.Allowed = v.cfg.Billing.DownloadsPerMonth
	if s.Downloads.Month, err = v.ledger.CountFetches(v.Now); noteDamage(&s, err) != nil {
		return s, err
	}
	s.AddNeeds(v.Clock)
	return s, nil
}

// noteDamage notes the first damage that is met in the ledger, and returns any other error.
func noteDamage(s *present.StatusSummary, err error) error {
	broken, ok := errors.AsType[*ledger.DamageError](err)
	if !ok {
		return err
	}
	s.Damage = cmp.Or(s.Damage, broken.Error())
	return nil
}

// addDrops adds the configured drops, and after them those that only the ledger knows.
func (v view) addDrops(s *present.StatusSummary, t *entryCounts) {
	status := func(name string) present.DropStatus {
		d := t.drops[name]
		one := present.DropStatus{Name: name, Today: d.today, Delivered: d.delivered, Open: d.open, Oldest: present.TimeOrNil(d.oldest), Free: -1}
		if !t.knowsToday {
			one.Today, one.Delivered = -1, -1
		}
		return one
	}
	configured := map[string]bool{}
	for _, d := range v.cfg.Drops {
		configured[d.Name] = true
		one := status(d.Name)
		one.Route = d.Route
		if one.Vault, one.Mode = d.Vault, d.Mode; v.state == nil { // a running daemon knows it without touching a share, which may hang
			one.Free = diskFree(d.Path)
		}
		s.Drops = append(s.Drops, one)
	}
	for name, d := range t.drops {
		if one := status(name); !configured[name] && d.open > 0 {
			one.Paused = "not configured any more; put it back, or its folders stay claimed"
			s.Drops = append(s.Drops, one)
		}
	}
	slices.SortStableFunc(s.Drops[len(v.cfg.Drops):], func(a, b present.DropStatus) int { return cmp.Compare(a.Name, b.Name) })
}

// addLiveState adds what only a running daemon knows.
func (v view) addLiveState(s *present.StatusSummary, t *entryCounts) {
	if v.state == nil {
		return
	}
	d := v.state()
	s.Since, s.TakenOverEpoch = present.TimeOrNil(d.Since), d.TakenOverBy
	s.LostLedger = d.LostLedger
	for _, stall := range d.Progress.Stalls {
		if stall.Drop {
			s.StalledDrops = append(s.StalledDrops, stall.What+" has not been looked through for "+present.FormatAge(v.Now.Sub(stall.Since)))
		}
	}
	s.Catalog = d.Catalog.Describe()
	s.Incoming = d.Incoming
	if v.daemonIsRoot {
		s.Advice = append(s.Advice, asRoot+": "+notAsRoot)
	}
	if c := d.Check; !c.At.IsZero() {
		s.Check = &present.LedgerCheck{
			At: c.At.UTC(), OK: c.OK(), Ledger: append([]string{}, c.Ledger...), Files: append([]string{}, c.Files...),
			Unread: append([]string{}, c.Unread...), Failed: c.Failed,
		}
	}
	for _, p := range d.Pauses {
		s.Pauses = append(s.Pauses, present.PausedTarget{
			Route: p.Target.String(), Since: p.Since.UTC(), Next: present.TimeOrNil(p.Next), Code: p.Cause.Code, Text: present.DescribePause(v.Clock, p),
			Do: sanitize.Text(present.AdviseOnPause(p)), Wait: t.countWaiting(p.Target, s.Open.Total), NeedsPerson: p.NeedsPerson(),
		})
	}
	for _, w := range d.Spool.Waiting {
		s.SpoolWaits = append(s.SpoolWaits, present.SpoolWait{Queue: w.Queue, Since: w.Since, Used: w.Used, Share: w.Share, Next: w.Next})
	}
	s.Disk.Reserve, s.Disk.Wanted = d.Spool.Reserve, d.Spool.ReserveWanted
	s.Disk.NothingNew, s.Disk.StandsStill = !d.Spool.Full.IsZero(), d.Spool.IsBlocked
	for _, ds := range d.Drops {
		i := slices.IndexFunc(s.Drops, func(one present.DropStatus) bool { return one.Name == ds.Name })
		if i < 0 {
			continue
		}
		one := &s.Drops[i]
		one.Mode, one.Why, one.Free, one.Paused, one.Do = cmp.Or(string(ds.Watch.Mode), one.Mode), ds.Watch.ModeReason, ds.Free, ds.Paused, ds.Do
		one.IsPaused, one.Listed = ds.Paused != "", ds.Watch.LastRescan
		for _, p := range ds.Foreign {
			one.Foreign = append(one.Foreign, present.ForeignPlace{Text: p.Text, Do: p.Do})
		}
		for _, w := range ds.Watch.NotTaken {
			s.NotTaken = append(s.NotTaken, present.NotTaken{Drop: ds.Name, Reason: string(w.Reason), Count: w.Count, Names: describeWaiting(w)})
		}
	}
}

// countWaiting counts the open entries that wait behind a paused target; total is all open entries.
func (t *entryCounts) countWaiting(target ingest.Target, total int) int {
	switch drop := t.drops[target.Drop]; {
	case !target.Entry.IsZero():
		return 1 // one entry alone
	case drop != nil && (target == ingest.DropTarget(target.Drop) || target == ingest.PDFTarget(target.Drop)):
		return drop.open
	case drop != nil && target.Place != "": // those behind it are at their end, and are not counted one by one
		return max(drop.open, 1)
	}
	if n, known := t.byVault[target.Vault]; known && (target.Vault != "" || target.Service == ingest.PDFService) { // what goes to no vault is a PDF
		return n
	}
	return total
}

// diskFree returns what may still be written at path; -1 where that cannot be told.
func diskFree(path string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize) // of other widths on some machines
}

// spoolUsed returns what waits in the spool. A running daemon knows it; without one every package is looked at.
func (v view) spoolUsed() int64 {
	if v.state != nil {
		if known := v.state().Spool; known.IsCounted {
			return known.Used
		}
	}
	return addUpFiles(filepath.Join(v.cfg.StateDir, "spool"))
}

// addUpFiles adds up the sizes of the files in a folder, which need not exist.
func addUpFiles(dir string) int64 {
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

func describeWaiting(w watch.NotTakenGroup) []string {
	var names []string
	for _, n := range w.Items[:min(len(w.Items), present.NamedAtMost)] {
		name := n.Name
		if n.Detail != "" {
			name += ": " + n.Detail
		}
		names = append(names, name)
	}
	return names
}

// billsOfThisYear are the bills of the current calendar year.
func (v view) billsOfThisYear(ctx context.Context, c *catalog.Catalog) (all []present.Bill, err error) {
	now := v.Now.In(v.Location)
	totals, err := c.Totals(ctx, time.Date(now.Year()-1, time.July, 1, 0, 0, 0, 0, v.Location)) // the forecast looks a few months back
	if err != nil {
		return nil, err
	}
	bills, err := calculateBills(totals, v.cfg, v.Now)
	for _, b := range bills {
		if b.Year == v.Now.In(v.Location).Year() {
			all = append(all, present.NewBill(b))
		}
	}
	return all, err
}

// calculateBills applies the price rule to what each vault archived in each year, as it stands at now.
func calculateBills(totals []ledger.Total, c config.Config, now time.Time) ([]billing.Bill, error) {
	return billing.Bills(totals, billing.Rule{
		Included: c.Billing.Included, Price: archive.Decimal(c.Billing.PricePerTransaction), Currency: c.Billing.Currency,
	}, now.In(c.Location))
}

// billingLines writes the bills of every year.
func (a *app) billingLines(ctx context.Context, of *catalog.Catalog, c config.Config) error {
	totals, err := of.Totals(ctx, time.Time{})
	if err != nil {
		return err
	}
	all, err := calculateBills(totals, c, time.Now())
	for _, b := range all {
		present.NewBill(b).WriteText(a.stdout)
	}
	return err
}
