package present

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
	"vaultd/internal/watch"
)

// longestText is how many characters of a message are shown. The longest that vaultd makes itself are shorter.
const longestText = 1000

// WriteText writes what "status" shows on a terminal.
func (s *StatusSummary) WriteText(w io.Writer, c Clock) error {
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
	s.writeIgnored(w)
	fmt.Fprintf(w, "DISK     ledger %s free; spool %s of %s\n", FormatSize(s.Disk.LedgerFree), FormatSize(s.Disk.SpoolUsed), FormatSize(s.Disk.SpoolMax))
	if s.Catalog != "" {
		fmt.Fprintf(w, "CATALOG  %s; until then find, list and show say what they may lack\n", sanitize.FirstLine(s.Catalog, longestText))
	}
	if k := s.Check; k != nil && k.OK {
		fmt.Fprintf(w, "CHECK    %s: the whole ledger, nothing differs\n", c.Brief(k.At))
	}
	if s.ClockAhead != nil {
		fmt.Fprintf(w, "CLOCK    %s\n", describeClock(*s.ClockAhead))
	}
	s.writeBills(w)
	return nil
}

// describeClock says how far the machine's clock is ahead of the service's, in seconds.
func describeClock(ahead float64) string {
	side, off := "ahead of", math.Abs(ahead)
	if ahead < 0 {
		side = "behind"
	}
	if off < 60 {
		return fmt.Sprintf("%.1f s %s the service's", off, side)
	}
	return fmt.Sprintf("%s %s the service's", FormatAge(time.Duration(min(off, math.MaxInt32)*float64(time.Second))), side)
}

func (s *StatusSummary) writeNeeds(w io.Writer, c Clock) {
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
	if s.LastDelivered != nil {
		last += "; last delivered " + c.Brief(*s.LastDelivered)
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
		fmt.Fprintf(w, "PAUSED   %s since %s%s: %s\n", sanitize.Text(p.Route), c.Brief(p.Since), strings.Replace(DescribeNextTry(c, p.Next), ";", ",", 1), sanitize.FirstLine(p.Text, longestText))
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

func (s *StatusSummary) writeNotTaken(w io.Writer, c Clock) {
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

// DescribeOpen says in a few words how many entries are on their way.
func (b Balance) DescribeOpen() string {
	var parts []string
	for _, k := range openKinds {
		if n := b.sum(k.states); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.Replace(k.words, "being sent", "uploading", 1)))
		}
	}
	if len(parts) == 0 {
		return "nothing on its way"
	}
	return strings.Join(parts, ", ")
}

func (s *StatusSummary) writeOpen(w io.Writer, c Clock) {
	fmt.Fprintf(w, "OPEN %d", s.Open.Total)
	between := "  "
	for _, k := range openKinds {
		if n := s.Balance.sum(k.states); n > 0 {
			fmt.Fprintf(w, "%s%s %d", between, k.words, n)
			between = ", "
		}
	}
	if s.Open.Oldest != nil {
		fmt.Fprintf(w, "; oldest %s (limit %s)", c.Ago(*s.Open.Oldest), FormatAge(s.Open.alertAfter()))
	}
	fmt.Fprintln(w)
}

func (s *StatusSummary) writeDrops(w io.Writer, c Clock) {
	t := NewTable(w, "DROP", "MODE", "FREE", "TODAY", "OPEN", "OLDEST", "")
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
		t.AppendRow(TableRow(sanitize.Text(d.Name), sanitize.Text(d.Mode), FormatSize(d.Free), d.describeToday(), fmt.Sprint(d.Open), oldest, note))
	}
	t.Render()
}

// writeIgnored lists what is left alone in the drop folders.
func (s *StatusSummary) writeIgnored(w io.Writer) {
	for _, d := range s.Drops {
		if s.ListsIgnored {
			d.IgnoredByRule.writeTo(w, d.Name, "by its rule")
			d.IgnoredBySystem.writeTo(w, d.Name, "that systems make")
		}
	}
}

func (s *StatusSummary) writeBills(w io.Writer) {
	switch {
	case s.Figures != "":
		fmt.Fprintf(w, "BILLING  being counted; this and what was archived today may lack something: %s\n", sanitize.FirstLine(s.Figures, longestText))
	case len(s.Billing) == 0:
		fmt.Fprintln(w, "BILLING  nothing archived this year")
	}
	for _, b := range s.Billing {
		b.WriteText(w)
	}
	if d := s.Downloads; d.Month > 0 {
		fmt.Fprintf(w, "BILLING  %s this month; billing.downloads_per_month allows %d\n", FormatCount(int(d.Month), "download", "downloads"), d.Allowed)
	}
}
