package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// notTaken tells what is in the selected drop folders and was not taken.
type notTaken struct {
	Running bool           `json:"running"` // vaultd works: it is so now; false: it was so when vaultd last looked
	Count   uint64         `json:"count"`
	Overdue uint64         `json:"overdue"` // for longer than remind_after, and may belong to the selected year or month
	Ignored uint64         `json:"ignoredByRule"`
	System  uint64         `json:"ignoredBySystem"`
	Drops   []notTakenDrop `json:"drops"`

	unknown []string  // drops that were not looked at as they should be, and why
	asOf    time.Time // the earliest scan that is not of just now; zero: all are of just now
}

// notTakenDrop is one drop folder of the report.
type notTakenDrop struct {
	Drop       string         `json:"drop"`
	Configured bool           `json:"configured"`
	Scanned    *time.Time     `json:"scannedAt"`  // when vaultd last read the whole drop folder; null: never
	Fault      string         `json:"fault"`      // why it cannot be read; empty: it can
	Failed     *time.Time     `json:"faultSince"` // null: it can be read
	Count      uint64         `json:"count"`
	Overdue    uint64         `json:"overdue"`
	Unnamed    uint64         `json:"unnamed"` // of count: those beyond a thousand, of which no name is kept
	Items      []notTakenItem `json:"items"`
}

// notTakenItem is one thing that was not taken.
type notTakenItem struct {
	Name    string    `json:"name"`
	Reason  string    `json:"reason"`
	Detail  string    `json:"detail"`
	Since   time.Time `json:"since"` // first seen
	Overdue bool      `json:"overdue"`
	Later   bool      `json:"afterTheYear"` // first seen so long after the selected year or month that it cannot belong to it

	person bool // a person must act before it can be taken
}

// selectsDrop reports whether the audit is about what is in a drop folder.
func (s Selection) selectsDrop(d present.DropScan) bool {
	return (s.Drop == "" || s.Drop == d.Name) && (s.Vault == "" || s.Vault == d.Vault)
}

// periodName names the kind of time that is selected.
func (s Selection) periodName() string {
	if s.Month != 0 {
		return "month"
	}
	return "year"
}

// beginOfPeriod returns when the selected year or month began.
func (s Selection) beginOfPeriod(loc *time.Location) time.Time {
	return time.Date(s.Year, max(s.Month, time.January), 1, 0, 0, 0, 0, loc)
}

// lastOfPeriod returns from when on nothing that comes without a date belongs to
// the selected year or month; zero: none is selected.
func (s Selection) lastOfPeriod(loc *time.Location) time.Time {
	switch {
	case s.Year == 0:
		return time.Time{}
	case s.Month != 0:
		return s.beginOfPeriod(loc).AddDate(0, 1+monthsLate, 0)
	}
	return s.beginOfPeriod(loc).AddDate(1, monthsLate, 0)
}

// collectNotTaken counts what was not taken.
func (a *Audit) collectNotTaken() notTaken {
	p := notTaken{Running: a.c.Running, Drops: []notTakenDrop{}}
	for _, d := range a.c.Drops {
		if !a.c.Select.selectsDrop(d) || !d.Configured && d.Scan.CountPending() == 0 && d.Scan.Fault == "" {
			continue
		}
		one := a.collectDrop(d)
		p.Drops = append(p.Drops, one)
		p.Count, p.Overdue = p.Count+one.Count, p.Overdue+one.Overdue
		p.Ignored, p.System = p.Ignored+d.Scan.IgnoredByRule.Count, p.System+d.Scan.IgnoredBySystem.Count
		p.unknown = append(p.unknown, a.findUnscanned(d)...)
		fresh := a.c.Running && a.c.Made.Sub(d.Scan.LastScan) <= 2*d.Rescan+scanAllowance
		if looked := d.Scan.LastScan; d.Configured && !fresh && !looked.IsZero() && (p.asOf.IsZero() || looked.Before(p.asOf)) {
			p.asOf = looked
		}
	}
	return p
}

// scanAllowance is how long a look may take, beside the time between two of them, before what it found is not of just now.
const scanAllowance = time.Minute

func (a *Audit) collectDrop(d present.DropScan) notTakenDrop {
	s, end := d.Scan, a.c.Select.lastOfPeriod(a.c.Location)
	one := notTakenDrop{
		Drop: d.Name, Configured: d.Configured, Scanned: present.TimeOrNil(s.LastScan), Fault: s.Fault, Failed: present.TimeOrNil(s.FaultSince),
		Count: s.CountPending(), Unnamed: s.Unnamed, Items: []notTakenItem{},
	}
	later := func(since time.Time) bool { return !end.IsZero() && !since.Before(end) }
	_, more := s.OverdueItems(a.c.Made, d.RemindAfter)
	if !later(s.UnnamedSince) {
		one.Overdue = more
	}
	for _, i := range s.Pending {
		item := notTakenItem{Name: i.Name, Reason: i.Reason, Detail: i.Detail, Since: i.Since.UTC(),
			Overdue: ledger.IsOverdue(i.Since, a.c.Made, d.RemindAfter), Later: later(i.Since), person: i.NeedsPerson}
		if item.Overdue && !item.Later {
			one.Overdue++
		}
		one.Items = append(one.Items, item)
	}
	return one
}

// findUnscanned says why nobody knows what is in a drop folder; empty: vaultd
// looked, as far as it was to. If vaultd does not run, it cannot look: that is
// said once for all drops. What keeps it from looking so long after the
// selected year or month that nothing of that time comes any more does not
// count against it.
func (a *Audit) findUnscanned(d present.DropScan) []string {
	s, end := d.Scan, a.c.Select.lastOfPeriod(a.c.Location)
	over := !end.IsZero() && a.c.Made.After(end)
	switch {
	case over && (s.LastScan.IsZero() || !s.LastScan.Before(end)):
		return nil
	case s.LastScan.IsZero():
		return []string{fmt.Sprintf("drop %s was never looked into", d.Name)}
	case s.Fault != "" && ledger.IsOverdue(s.FaultSince, a.c.Made, d.RemindAfter):
		return []string{fmt.Sprintf("drop %s cannot be looked into since %s: %s", d.Name, a.formatTime(s.FaultSince), s.Fault)}
	case a.c.Running && d.Configured && ledger.IsOverdue(s.LastScan, a.c.Made, d.RemindAfter+2*d.Rescan+scanAllowance):
		return []string{fmt.Sprintf("drop %s was last looked into on %s", d.Name, a.formatTime(s.LastScan))}
	}
	return nil
}

func (a *Audit) formatTime(t time.Time) string {
	return t.In(a.c.Location).Format("2 Jan 2006 15:04 MST")
}

// describeShortfall says in a sentence what of the drop folders keeps the result from being complete; empty: nothing.
func (p notTaken) describeShortfall() string {
	text := ""
	if p.Overdue > 0 {
		text = formatCount(p.Overdue, "thing", "things") + " in the drop folders " + oneOrMore(p.Overdue, "was", "were") + " never taken. "
	}
	for _, u := range p.unknown {
		text += capitalize(u) + ". What is in it is not known. "
	}
	return strings.TrimSpace(text)
}

// describeIgnored says how many names a rule of the drops keeps from being picked up; empty: none.
func (p notTaken) describeIgnored() string {
	if p.Ignored == 0 {
		return ""
	}
	return " In the drop folders " + formatCount(p.Ignored, "name", "names") + " ignored by your rule."
}

// findNeed asks a person to see to what was not taken for too long.
func (p notTaken) findNeed() need {
	n := need{What: "not-taken", Do: present.AdviceLongNotTaken}
	for _, d := range p.Drops {
		var here uint64
		for _, i := range d.Items {
			if !i.Overdue || i.Later || !i.person {
				continue
			}
			if here++; len(n.Names) < namedAtMost {
				n.Names = append(n.Names, i.Name+" ("+d.Drop+"): "+cmp.Or(i.Detail, i.Reason))
			}
		}
		if n.Count += here; here > 0 && d.Overdue > 0 {
			n.Count += d.Unnamed
		}
		if here > 0 && !d.Configured {
			n.Do += ". Drop " + d.Drop + " " + present.AdviceRemovedDrop
		}
	}
	n.Text = formatCount(n.Count, "thing in the drop folders was", "things in the drop folders were") + " never taken"
	return n
}

// listDropDoubts says what else is not known about the drop folders.
func (a *Audit) listDropDoubts(p notTaken) []doubt {
	var list []doubt
	for _, d := range p.Drops {
		last := "never"
		if d.Scanned != nil {
			last = "last on " + a.formatTime(*d.Scanned)
		}
		if !d.Configured {
			list = append(list, doubt{"drop-left", d.Count, fmt.Sprintf("Drop %s is not configured any more. When vaultd looked, %s, it had %s that had not been taken.",
				d.Drop, last, formatCount(d.Count, "thing", "things"))})
			continue
		}
		if !p.Running {
			list = append(list, doubt{"not-running", 0, fmt.Sprintf("vaultd does not run. It looked into drop %s %s: what was dropped since then is not in this report.", d.Drop, last)})
		}
		if d.Fault != "" {
			list = append(list, doubt{"drop-fault", 0, fmt.Sprintf("Drop %s cannot be looked into since %s: %s.", d.Drop, a.formatTime(*d.Failed), d.Fault)})
		}
		var later uint64
		for _, i := range d.Items {
			if i.Later {
				later++
			}
		}
		if later > 0 {
			list = append(list, doubt{"not-taken-later", later, fmt.Sprintf("%s in drop %s %s first seen more than %d months after the selected %s: %s named under \"Not taken\".",
				formatCount(later, "thing", "things"), d.Drop, oneOrMore(later, "was", "were"), monthsLate, a.c.Select.periodName(), oneOrMore(later, "it is", "they are"))})
		}
	}
	return list
}

func oneOrMore(n uint64, single, more string) string {
	if n == 1 {
		return single
	}
	return more
}

func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Describe says why a thing was not taken, and since when it is there.
func (i notTakenItem) describe(loc *time.Location) string {
	return fmt.Sprintf("%s; in the drop folder since %s", cmp.Or(i.Detail, i.Reason), i.Since.In(loc).Format("2 Jan 2006 15:04 MST"))
}
