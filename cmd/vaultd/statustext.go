package main

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"
	"time"

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

// settling is how long a pause may last before it needs a person: most end by themselves.
const transientPause = time.Minute

// longestText is how many characters of a message are shown. The longest that vaultd makes itself are shorter.
const longestText = 1000

// faulty are the reasons for not taking something that no waiting mends.
var needsMending = map[string]bool{
	string(watch.NoRight): true, string(watch.ReadOnly): true, string(watch.OtherDevice): true, string(watch.NoRoom): true, string(watch.Failed): true,
}

// addNeeds says what a person must see to, the most urgent first.
func (s *StatusSummary) addNeeds(t *entryCounts) {
	add := func(when, what string, n int, text, do string, names []string) {
		if n > 0 {
			s.Needs = append(s.Needs, Need{when, what, n, text, do, names})
		}
	}
	s.addSafetyNeeds(t, add)
	add("now", "contradicted", t.contradicted.count, present.FormatCount(t.contradicted.count, "document", "documents")+" contradicted by the archive",
		"see vaultd why X; ask the provider", t.contradicted.names)
	add("now", "archived-twice", t.archivedTwice.count, present.FormatCount(t.archivedTwice.count, "document", "documents")+" archived more than once",
		"see vaultd why X; ask the provider to remove what is too many, then vaultd close X", t.archivedTwice.names)
	for _, p := range s.Pauses {
		if s.isNeed(p) {
			add("now", "paused", 1, fmt.Sprintf("%s paused since %s: %s; %d wait, none lost", p.Route, t.Brief(p.Since), p.Text, p.Wait),
				p.Do+describeNextTry(t.Clock, p.Next), nil)
		}
	}
	s.addDropNeeds(add)
	if s.ClockAhead != nil && math.Abs(*s.ClockAhead) > clockTolerance.Seconds() {
		way, off := "ahead of", time.Duration(*s.ClockAhead*float64(time.Second))
		if off < 0 {
			way, off = "behind", -off
		}
		add("soon", "clock", 1, "the clock of this machine was "+present.FormatAge(off)+" "+way+" the archive service's at the last registration",
			"set the time (timedatectl; chronyc makestep); uploads are reckoned by the service's clock meanwhile, but the times in reports are wrong", nil)
	}
	full := s.addDiskNeed(add)
	for _, n := range s.NotTaken {
		if s.Safe == nil && needsMending[n.Reason] && !(full && n.Reason == string(watch.NoRoom)) {
			add("now", "not-taken", n.Count, fmt.Sprintf("drop %s: %d not taken: %s", n.Drop, n.Count, n.Reason),
				adviseOnReason(n.Reason), n.Names)
		}
	}
	add("now", "unreadable", t.unreadable.count, present.FormatCount(t.unreadable.count, "taken folder", "taken folders")+" cannot be read",
		"give the share's group the right to read what is named (docs/samba.md); it is tried again by itself", t.unreadable.names)
	add("now", "overdue", t.overdue.count, present.FormatCount(t.overdue.count, "document", "documents")+" open for longer than "+present.FormatAge(t.alertAfter),
		"see vaultd why X; ask the provider about them", t.overdue.names)
	add("soon", "kept-differs", t.keptDiffers.count, present.FormatCount(t.keptDiffers.count, "kept folder is", "kept folders are")+" not what was archived",
		"see vaultd why X; compare it with vaultd fetch X; drop a corrected invoice or tidy it away, then vaultd close X", t.keptDiffers.names)
	add("soon", "rejected", t.rejected.count, fmt.Sprintf("%d rejected", t.rejected.count),
		"put them right as _REASON.txt says and drop them again", t.rejected.names)
	s.Needs = append(s.Needs, s.longNotTaken...)
	add("soon", "quarantined", t.quarantined.count, fmt.Sprintf("%d quarantined", t.quarantined.count),
		"see vaultd why X, then decide", t.quarantined.names)
	add("soon", "undecided", t.undecided.count, fmt.Sprintf("%d held: same files or same number as another, or a date that can hardly be right", t.undecided.count),
		"see vaultd why X, then decide", t.undecided.names)
	add("soon", "same-number", t.sameNumber.count, present.FormatCount(t.sameNumber.count, "document has", "documents have")+" the invoice number of another one",
		"see vaultd why X and compare the two; if both are right: vaultd close X", t.sameNumber.names)
	add("soon", "strange-date", t.strangeDate.count, present.FormatCount(t.strangeDate.count, "document has", "documents have")+" a date that can hardly be right",
		"see vaultd why X and look into the invoice; if it is to stay: vaultd close X", t.strangeDate.names)
}

// addDiskNeed says that the disk of state_dir is full, and reports whether it is.
func (s *StatusSummary) addDiskNeed(add func(when, what string, n int, text, do string, names []string)) (full bool) {
	d := s.Disk
	full = d.StandsStill || d.NothingNew || d.LedgerFree >= 0 && d.LedgerFree < d.MinFree
	if full {
		what := "nothing new is taken, uploads go on"
		switch {
		case d.StandsStill:
			what = "not even the ledger has room, so that nothing is taken, sent or asked"
		case d.Reserve < d.Wanted:
			what += fmt.Sprintf("; for their outcomes %s of %s are set aside", present.FormatSize(d.Reserve), present.FormatSize(d.Wanted))
		}
		add("now", "disk", 1, fmt.Sprintf("the disk of state_dir has %s left, below spool.min_free (%s): %s",
			present.FormatSize(d.LedgerFree), present.FormatSize(d.MinFree), what), "free space there; it goes on by itself", nil)
	}
	return full
}

// addDropNeeds names the drop folders that cannot be worked in.
func (s *StatusSummary) addDropNeeds(add func(when, what string, n int, text, do string, names []string)) {
	for _, d := range s.Drops {
		if d.Paused != "" {
			do := "its documents are safe; it goes on by itself once this is mended"
			switch {
			case s.TakenOverEpoch > 0:
				do = takenOverWords(s.TakenOverEpoch)
			case d.Do != "":
				do = d.Do
			case strings.HasSuffix(d.Paused, fs.ErrPermission.Error()):
				do = "give the drop folder to the user vaultd runs as (docs/samba.md); " + do
			}
			add("now", "drop-paused", 1, "drop "+d.Name+" paused: "+d.Paused, do, nil)
		}
	}
}

// describeNextTry says when a pause is tried again, where it ends by itself.
func describeNextTry(c present.Clock, next *time.Time) string {
	if next == nil {
		return ""
	}
	return "; next try " + c.Zoned(*next)
}

// isNeed reports whether a pause stands among what needs a person: because it lasts, or because no waiting ends it.
func (s *StatusSummary) isNeed(p PausedTarget) bool {
	return p.NeedsPerson || s.At.Sub(p.Since) >= transientPause
}

// describePause says why a route is paused: first how long the service asks to wait, or what its answer means, then what was wrong.
func describePause(c present.Clock, p ingest.Pause) string {
	switch meaning := p.Meaning(); {
	case c.Now.Before(p.Asked):
		return "the service asks us to slow down until " + c.Brief(p.Asked) + ": " + p.Cause.Text
	case meaning != "":
		return meaning + ": " + p.Cause.Text
	}
	return p.Cause.Text
}

// adviseOnPause says what to do about a pause. Where the archive does not list the vault, that goes first: it is the likeliest cause.
func adviseOnPause(p ingest.Pause, unlisted []daemon.UnlistedVault) string {
	for _, u := range unlisted {
		if p.Target == ingest.RegisterTarget(u.Vault) && (p.NeedsPerson() || p.Cause.Code == "http-404") {
			return u.Text + " Correct it, then systemctl reload vaultd"
		}
	}
	return p.Advice()
}

func (s *StatusSummary) writeText(w io.Writer, c present.Clock) error {
	if s.Safe != nil {
		fmt.Fprintf(w, "SAFE MODE since %s: nothing is taken, sent, moved or removed before \"vaultd reconcile\"\n", c.Brief(s.Safe.Since))
	}
	fmt.Fprintf(w, "vaultd %s %s  %s %s  %s\n", s.Version, sanitize.Text(s.Host), strings.ToUpper(s.Environment), sanitize.Text(s.Service),
		s.At.In(c.Location).Format("2 Jan 15:04 MST"))
	if s.Environment != "production" {
		fmt.Fprintln(w, "TEST, NO EVIDENCE: what a test environment archives proves nothing")
	}
	if !s.Running {
		fmt.Fprintln(w, "vaultd is not running: nothing is taken or sent; what is open goes on with the next run")
	}
	s.writeNeeds(w, c)
	for _, advice := range s.Advice {
		fmt.Fprintf(w, "ADVICE   %s\n", sanitize.Text(advice))
	}
	s.writeBalance(w)
	s.writeNotTaken(w, c)
	s.writeOpen(w, c)
	s.writeDrops(w, c)
	fmt.Fprintf(w, "DISK     ledger %s free; spool %s of %s\n", present.FormatSize(s.Disk.LedgerFree), present.FormatSize(s.Disk.SpoolUsed), present.FormatSize(s.Disk.SpoolMax))
	if k := s.Check; k != nil && k.OK {
		fmt.Fprintf(w, "CHECK    %s: the whole ledger, nothing differs\n", c.Brief(k.At))
	}
	if s.ClockAhead != nil {
		fmt.Fprintf(w, "CLOCK    %.1f s off service\n", math.Abs(*s.ClockAhead))
	}
	s.writeBills(w)
	return nil
}

func (s *StatusSummary) writeNeeds(w io.Writer, c present.Clock) {
	counts := map[string]int{}
	for _, n := range s.Needs {
		counts[n.When] += n.Count
	}
	head := "NEEDS YOU: nothing"
	if len(s.Needs) > 0 {
		head = fmt.Sprintf("NEEDS YOU: %d now, %d soon", counts["now"], counts["soon"])
	}
	last := "no success yet"
	if s.LastSuccess != nil {
		last = "last success " + c.Brief(*s.LastSuccess) + ", " + c.Ago(*s.LastSuccess) + " ago"
	}
	fmt.Fprintf(w, "%s     %s\n", head, last)
	for _, n := range s.Needs {
		fmt.Fprintf(w, "%-8s %s\n", strings.ToUpper(n.When), sanitize.FirstLine(n.Text, longestText))
		for _, name := range n.Names {
			fmt.Fprintf(w, "           %s\n", sanitize.FirstLine(name, 160))
		}
		if n.Count > len(n.Names) && len(n.Names) > 0 {
			fmt.Fprintf(w, "           and %d more\n", n.Count-len(n.Names))
		}
		fmt.Fprintf(w, "         %s\n", n.Do)
	}
	for _, p := range s.Pauses {
		if s.isNeed(p) {
			continue // stands among what needs a person
		}
		fmt.Fprintf(w, "PAUSED   %s since %s%s: %s\n", sanitize.Text(p.Route), c.Brief(p.Since), strings.Replace(describeNextTry(c, p.Next), ";", ",", 1), sanitize.FirstLine(p.Text, longestText))
		fmt.Fprintf(w, "         %s\n", p.Do)
	}
}

func (s *StatusSummary) writeBalance(w io.Writer) {
	at, parts := " = ", []string{fmt.Sprintf("BALANCE  seen %d", s.Balance.Seen)}
	for _, state := range []ledger.State{ledger.Archived, ledger.Delivered, ledger.Rejected, ledger.Quarantined, ledger.Duplicate} {
		parts = append(parts, fmt.Sprintf("%s%s %d", at, state, s.Balance.States[state.String()]))
		at = " + "
	}
	verdict := "agrees"
	if !s.Balance.Agrees {
		verdict = "DOES NOT AGREE"
	}
	fmt.Fprintf(w, "%s + open %d  %s\n", strings.Join(parts, ""), s.Balance.Open, verdict)
}

func (s *StatusSummary) writeNotTaken(w io.Writer, c present.Clock) {
	total := 0
	for _, n := range s.NotTaken {
		total += n.Count
	}
	switch {
	case s.Running:
		fmt.Fprintf(w, "NOT TAKEN YET %d\n", total)
	case s.LastScan.IsZero():
		fmt.Fprintln(w, "NOT TAKEN YET not known: vaultd has not looked into the drops yet")
	default:
		fmt.Fprintf(w, "NOT TAKEN YET %d, as of %s\n", total, c.Brief(s.LastScan))
	}
	for _, n := range s.NotTaken {
		fmt.Fprintf(w, "  %s: %s %d\n", sanitize.Text(n.Drop), sanitize.Text(n.Reason), n.Count)
		for _, name := range n.Names {
			fmt.Fprintf(w, "    %s\n", sanitize.FirstLine(name, 160))
		}
	}
}

// openKinds groups the open states as people think of them.
var openKinds = []struct {
	words  string
	states []ledger.State
}{
	{"waiting", []ledger.State{ledger.Discovered, ledger.Packaged, ledger.Registering, ledger.Registered}},
	{"being sent", []ledger.State{ledger.Sending}},
	{"at service", []ledger.State{ledger.Uploaded}},
	{"being clarified", []ledger.State{ledger.Unclear}},
}

func (s *StatusSummary) writeOpen(w io.Writer, c present.Clock) {
	fmt.Fprintf(w, "OPEN %d", s.Open.Total)
	between := "  "
	for _, k := range openKinds {
		n := 0
		for _, state := range k.states {
			n += s.Open.States[state.String()]
		}
		if n > 0 {
			fmt.Fprintf(w, "%s%s %d", between, k.words, n)
			between = ", "
		}
	}
	if s.Open.Oldest != nil {
		fmt.Fprintf(w, "; oldest %s (limit %s)", c.Ago(*s.Open.Oldest), present.FormatAge(time.Duration(s.Open.Limit)*time.Second))
	}
	fmt.Fprintln(w)
}

func (s *StatusSummary) writeDrops(w io.Writer, c present.Clock) {
	t := present.NewTable(w, "DROP", "MODE", "FREE", "TODAY", "OPEN", "OLDEST", "")
	for _, d := range s.Drops {
		oldest, note := "-", ""
		if d.Oldest != nil {
			oldest = c.Ago(*d.Oldest)
		}
		switch {
		case d.Paused != "":
			note = "PAUSED"
		case d.Mode == string(watch.Poll) && d.Why != "":
			note = sanitize.FirstLine(d.Why, 60)
		}
		t.AppendRow(present.TableRow(sanitize.Text(d.Name), sanitize.Text(d.Mode), present.FormatSize(d.Free), fmt.Sprint(d.Today), fmt.Sprint(d.Open), oldest, note))
	}
	t.Render()
}

func (s *StatusSummary) writeBills(w io.Writer) {
	if len(s.Billing) == 0 {
		fmt.Fprintln(w, "BILLING  nothing archived this year")
	}
	for _, b := range s.Billing {
		b.writeText(w)
	}
	if d := s.Downloads; d.Month > 0 {
		fmt.Fprintf(w, "BILLING  %s this month; billing.downloads_per_month allows %d\n", present.FormatCount(int(d.Month), "download", "downloads"), d.Allowed)
	}
}

// writeText writes the bill, and the forecast if there is one on a line of its own.
func (b Bill) writeText(w io.Writer) {
	fmt.Fprintf(w, "BILLING  %s\n", b)
	if b.Forecast != nil {
		fmt.Fprintf(w, "BILLING  %d %s, forecast: %s\n", b.Year, b.customerOrVault(), b.describeForecast())
	}
}

// customerOrVault says whose bill it is.
func (b Bill) customerOrVault() string {
	if b.Vault == "" {
		return "all vaults"
	}
	return "vault " + sanitize.Text(b.Vault)
}

// describeForecast says what the bill will be on 31 December, and between what bounds.
func (b Bill) describeForecast() string {
	f := b.Forecast
	text := fmt.Sprintf("average %s MB on 31 December (%s to %s)", f.Average, f.Lowest, f.Highest)
	switch {
	case f.Most == 0:
		return text + "; nothing beyond what is included"
	case f.Money != "":
		return text + fmt.Sprintf("; %s beyond what is included (%d to %d), %s %s (%s to %s)", present.FormatCount(f.Whole, "transaction", "transactions"), f.Least, f.Most, b.Currency, f.Money, f.LeastMoney, f.MostMoney)
	}
	return text + fmt.Sprintf("; %s beyond what is included (%d to %d)", present.FormatCount(f.Whole, "transaction", "transactions"), f.Least, f.Most)
}

// String returns the bill as people read it: the average first, then how near the limit is.
func (b Bill) String() string {
	text := fmt.Sprintf("%d %s: %s", b.Year, b.customerOrVault(), present.FormatCount(b.Documents, "document", "documents"))
	if b.Unsized > 0 {
		text += fmt.Sprintf(" (%d of unknown size, left out of what follows)", b.Unsized)
	}
	if b.AverageMB == "" {
		return text + ", average not known"
	}
	text += fmt.Sprintf(", average %s MB, %s %% of what is included", b.AverageMB, b.Percent)
	switch billing.Level(b.Level) {
	case billing.Near:
		text += "; NEAR THE LIMIT"
	case billing.Nearer:
		text += "; VERY NEAR THE LIMIT"
	case billing.Over:
		text += "; LIMIT REACHED"
	}
	if b.Transactions == "0" {
		return text + fmt.Sprintf("; %s left", present.FormatSize(int64(min(b.Headroom, 1<<62))))
	}
	unit := "transactions" // of which there may be parts: 1.5
	if b.Transactions == "1" {
		unit = "transaction"
	}
	text += fmt.Sprintf("; %s %s beyond it", b.Transactions, unit)
	if b.Money != "" {
		text += fmt.Sprintf(", %s %s", b.Currency, b.Money)
	}
	return text
}

// billingLines writes the bills of every year.
func (a *app) billingLines(l *boltledger.Ledger, c config.Config) error {
	all, err := calculateBills(l, c, time.Now())
	for _, b := range all {
		NewBill(b).writeText(a.stdout)
	}
	return err
}

func NewBill(b billing.Bill) Bill {
	line := Bill{Year: b.Year, Vault: string(b.Vault), Documents: b.Documents, Unsized: b.Unsized, AverageMB: string(b.Average), Percent: string(b.Percent), Level: int(b.Level),
		Headroom: b.Headroom, Transactions: string(b.Transactions), Money: string(b.Money), Currency: b.Currency}
	if b.HasForecast {
		line.Forecast = &b.Forecast
	}
	return line
}
