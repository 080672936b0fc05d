package report

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// I12, I32: a folder that is neither archived nor resolved is named in each
// period that it may belong to, and the balance counts it in one.
func TestExamine_I12_I32_UnsettledInEachPossiblePeriod(t *testing.T) {
	refused := func(at time.Time) func(*fill.Item) {
		return func(i *fill.Item) { i.Refuse(at, ledger.Cause{}) }
	}
	const all, claimed = "2025-10 2025-12 2026-01 2026-09 2026-10 2026-11", "2026-11"
	type row struct {
		read archive.AsRead
		date string // of the checked metadata
		live func(*fill.Item)
		want string // the periods among all that must not be complete
	}
	kit.Rows(t, map[string]row{
		"DateAsRead":        {read: archive.AsRead{Date: "2026-10-15"}, live: refused(noon), want: "2026-10 2026-11"},
		"GermanDate":        {read: archive.AsRead{Date: " 15.10.2026 "}, live: refused(noon), want: "2026-10 2026-11"},
		"TwoReadings":       {read: archive.AsRead{Date: "09/10/2026"}, live: refused(noon), want: "2026-09 2026-10 2026-11"},
		"TwoDays":           {read: archive.AsRead{Date: "2025-12-31T23:30:00Z"}, live: refused(noon), want: "2025-12 2026-01 2026-11"},
		"Undated":           {live: refused(noon), want: all},
		"NoDate":            {read: archive.AsRead{Date: "October"}, live: refused(noon), want: all},
		"ImpossibleDate":    {read: archive.AsRead{Date: "2062-10-15"}, live: refused(noon), want: all},
		"UndatedLongAgo":    {live: refused(noon.AddDate(0, -10, 0)), want: "2025-10 2025-12 2026-01"},
		"Quarantined":       {live: func(i *fill.Item) { i.Quarantine(noon, ledger.Cause{}) }, want: all},
		"OnlyClaimed":       {live: func(i *fill.Item) { i.Claim(noon) }, want: all},
		"SealedAndOpen":     {date: "2026-10-31T00:00:00Z", live: func(i *fill.Item) { i.Send(noon) }, want: "2026-10 2026-11"},
		"Archived":          {date: "2026-10-31T00:00:00Z", live: func(i *fill.Item) { i.Archive(noon, time.Hour) }},
		"RejectedAndClosed": {live: func(i *fill.Item) { i.Refuse(noon, ledger.Cause{}); i.Apply(noon, ledger.Closed{}) }},
	}, func(t *testing.T, row row) {
		s := newShelf(t, "production")
		row.live(s.Add(fill.Item{Name: "14 zu alt", AsRead: row.read, Document: archive.Document{Type: "Invoice", Number: "RE 14", Date: row.date, Amount: "1", Currency: "EUR"}}))
		var incomplete []string
		seen := uint64(0)
		for _, period := range strings.Fields(all) {
			first := kit.Value(time.Parse("2006-01", period))(t)
			c := s.config()
			c.Select = Selection{Year: first.Year(), Month: first.Month()}
			got := examine(t, c).Summary
			seen += got.Selected.Seen
			named := got.Selected.Seen == 1
			for _, n := range got.Needs {
				named = named || n.What == "elsewhere" && n.Count == 1 && strings.HasPrefix(n.Names[0], "14 zu alt (acme-in), ")
			}
			if got.IsIncomplete() {
				incomplete = append(incomplete, period)
			}
			kit.Check(t, !got.IsIncomplete() || named,
				"%s: needs %+v, want 14 zu alt among them", period, got.Needs)
		}
		kit.Want(t, "incomplete periods", strings.Join(incomplete, " "), row.want)
		kit.Check(t, seen <= 1, "%d periods count the folder, want one", seen)
	})
}

// I32: a choice of a drop or vault names what it chose and nothing else; what an
// earlier report of the same kind had stays named until it is resolved.
func TestExamine_I32_UnsettledOfOtherChoices(t *testing.T) {
	s := newShelf(t, "production")
	s.Item("Done 1").Archive(noon.Add(-20*time.Hour), time.Hour)
	s.Add(fill.Item{Name: "Paris 2", Vault: "FR"}).Refuse(noon.Add(-19*time.Hour), ledger.Cause{})
	c := s.config()
	c.Select = Selection{Year: 2026, Month: time.October, Vault: "DE"}
	got := examine(t, c).Summary
	kit.Check(t, got.Result.Code == "complete-as-dropped" && len(got.Needs) <= 0, "%+v, needs %+v, want complete-as-dropped", got.Result, got.Needs)
	s.reportSince(noon, true)
	a, folders := s.reportSince(noon, false)
	kit.Check(t, len(folders) <= 0 && a.Summary.Result.Code == "not-complete" && a.Summary.Needs[0].What == "elsewhere",
		"%q, %+v, needs %+v, want not-complete with Paris 2 named", folders, a.Summary.Result, a.Summary.Needs)
	s.Item("Paris 2").Apply(noon, ledger.Closed{})
	a, _ = s.reportSince(noon, false)
	kit.Check(t, a.Summary.Result.Code == "nothing", "%+v, needs %+v, want nothing", a.Summary.Result, a.Summary.Needs)
}

// I32: an expected number is looked for in the whole ledger, and no number that
// could not be read is called absent.
func TestExpected_I32_LooksInTheWholeLedger(t *testing.T) {
	s := newShelf(t, "production")
	s.Add(fill.Item{Name: "27 leere PDF", AsRead: archive.AsRead{Number: "4737", Date: "2026-10-15"}}).Refuse(noon, ledger.Cause{})
	s.Add(fill.Item{Name: "29", Vault: "FR", AsRead: archive.AsRead{Number: "4736"}}).Refuse(noon, ledger.Cause{})
	s.Add(fill.Item{Name: "Ganz leer"}).Refuse(noon, ledger.Cause{})
	s.archivedAs("Alt", "4730", "Huber", "2026-09-01", "1.00")
	s.Add(fill.Item{Name: "Alt again", AsRead: archive.AsRead{Number: "4730"}}).Refuse(noon, ledger.Cause{})
	c := s.config()
	c.Select = Selection{Year: 2026, Month: time.October, Vault: "DE"}
	c.Expected = listOf(t, "4737;;;;\n4736;;;;\n4730;;;;\nNIX;;;;\n")
	a := examine(t, c)
	var found []string
	for _, m := range a.Summary.Expected.MissingRows {
		found = append(found, m.Number+": "+m.Found)
	}
	const elsewhere = ", but not in the choice of this report: vault "
	kit.Want(t, "found", strings.Join(found, "\n"), strings.Join([]string{
		"4737: 27 leere PDF (acme-in)" + elsewhere + "DE, rejected, dated 2026-10-15 as read, taken on 20 Nov 2026",
		"4736: 29 (acme-in)" + elsewhere + "FR, rejected, without a date, taken on 20 Nov 2026",
		"4730: archived" + elsewhere + "DE, drop acme-in, 2026-09-01",
		"NIX: ",
	}, "\n"))
	page, _ := written(t, a, "html")
	kit.Holds(t, "the page", page, "no folder that was taken has this number", "1 folder is not archived and has no number that could be read")
}

// What drop folders hold, and what that makes of the result.
func TestPending_I32_Result(t *testing.T) {
	loose := func(since time.Time) []ledger.PendingItem {
		return []ledger.PendingItem{{Name: "scan7.pdf", Reason: "loose file", Since: since, NeedsPerson: true}}
	}
	week := noon.AddDate(0, 0, -7)
	for name, row := range map[string]struct {
		drop   present.DropScan
		change func(c *Config)
		code   string
		text   string // of result or doubts
		needs  int
	}{
		"Empty":           {drop: present.DropScan{Scan: ledger.Scan{LastScan: noon}}, code: "complete-as-dropped"},
		"Ignored":         {drop: present.DropScan{Scan: ledger.Scan{LastScan: noon, IgnoredByRule: ledger.IgnoredNames{Count: 3}, IgnoredBySystem: ledger.IgnoredNames{Count: 9}}}, code: "complete-as-dropped", text: "3 names ignored by your rule."},
		"Young":           {drop: present.DropScan{Scan: ledger.Scan{LastScan: noon, Pending: loose(noon.Add(-time.Minute))}}, code: "complete-as-dropped"},
		"Overdue":         {drop: present.DropScan{Scan: ledger.Scan{LastScan: noon, Pending: loose(week)}}, code: "not-complete", text: "1 thing in the drop folders was never taken.", needs: 1},
		"InTheFuture":     {drop: present.DropScan{Scan: ledger.Scan{LastScan: noon, Pending: loose(noon.AddDate(10, 0, 0))}}, code: "not-complete", needs: 1},
		"NotLooked":       {drop: present.DropScan{Scan: ledger.Scan{LastScan: noon.Add(-59 * time.Minute)}}, code: "not-complete", text: "drop acme-in was last looked into on"},
		"SlowRescan":      {drop: present.DropScan{Rescan: 2 * time.Hour, Scan: ledger.Scan{LastScan: noon.Add(-90 * time.Minute)}}, code: "complete-as-dropped"},
		"NeverLooked":     {drop: present.DropScan{}, code: "not-complete", text: "never looked into"},
		"Away":            {drop: present.DropScan{Scan: ledger.Scan{LastScan: week, Fault: "not mounted", FaultSince: week}}, code: "not-complete", text: "cannot be looked into since"},
		"NotRunning":      {drop: present.DropScan{Scan: ledger.Scan{LastScan: week}}, change: func(c *Config) { c.Running = false }, code: "complete-as-dropped", text: "AS OF 13 Nov 2026"},
		"CopyingForLong":  {drop: present.DropScan{Scan: ledger.Scan{LastScan: noon, Pending: []ledger.PendingItem{{Name: "Huber 9", Reason: "still copying", Since: week}}}}, code: "not-complete"},
		"LeftOut":         {drop: present.DropScan{Name: "left", Scan: ledger.Scan{LastScan: week, Pending: loose(week)}}, code: "not-complete", text: "Drop left is not configured any more", needs: 1},
		"LeftOutAndAway":  {drop: present.DropScan{Name: "left", Scan: ledger.Scan{LastScan: week, Fault: "not mounted", FaultSince: week}}, code: "not-complete", text: "cannot be looked into"},
		"LeftOutAndEmpty": {drop: present.DropScan{Name: "left", Scan: ledger.Scan{LastScan: week}}, code: "complete-as-dropped"},
		"OfAnotherDrop":   {drop: present.DropScan{Scan: ledger.Scan{LastScan: noon, Pending: loose(week)}}, change: func(c *Config) { c.Select.Vault = "FR" }, code: "nothing"},
		"AfterTheYear": {drop: present.DropScan{Scan: ledger.Scan{LastScan: noon.AddDate(1, 0, 0), Pending: loose(noon.AddDate(0, 11, 0))}},
			change: func(c *Config) { c.Select.Year, c.Made = 2026, noon.AddDate(1, 0, 0) }, code: "not-complete", needs: 1},
		"LongAfterTheYear": {drop: present.DropScan{Scan: ledger.Scan{LastScan: noon.AddDate(2, 0, 0), Pending: loose(noon.AddDate(1, 11, 0))}},
			change: func(c *Config) { c.Select.Year, c.Made = 2026, noon.AddDate(2, 0, 0) }, code: "complete-as-dropped", text: "first seen more than 13 months after the selected year"},
		"AwaySinceTheMonth": {drop: present.DropScan{Scan: ledger.Scan{LastScan: week, Fault: "not mounted", FaultSince: week}},
			change: func(c *Config) { c.Select.Year, c.Select.Month = 2026, time.October }, code: "not-complete", text: "cannot be looked into since"},
		"InTheYear": {drop: present.DropScan{Scan: ledger.Scan{LastScan: noon.AddDate(1, 0, 0), Pending: loose(week)}},
			change: func(c *Config) { c.Select.Year, c.Made = 2026, noon.AddDate(1, 0, 0) }, code: "not-complete", needs: 1},
		"NewDropAndOldYear": {drop: present.DropScan{}, change: func(c *Config) { c.Select.Year, c.Made = 2026, noon.AddDate(2, 0, 0) }, code: "complete-as-dropped"},
	} {
		s := newShelf(t, "production")
		s.Item("Huber 1").Archive(noon.Add(-20*time.Hour), time.Hour)
		row.drop.Configured = row.drop.Name == ""
		if row.drop.Name == "" {
			row.drop.Name = "acme-in"
		}
		row.drop.RemindAfter = 5 * time.Minute
		if row.drop.Rescan == 0 {
			row.drop.Rescan = time.Minute
		}
		c := s.config()
		c.Running, c.Drops = true, []present.DropScan{row.drop}
		if row.change != nil {
			row.change(&c)
		}
		sum := examine(t, c).Summary
		text := sum.Result.Title + sum.Result.Text
		for _, d := range sum.NotProven {
			text += d.Text
		}
		kit.Check(t, sum.Result.Code == row.code && strings.Contains(strings.ToLower(text), strings.ToLower(row.text)) && len(sum.Needs) == row.needs,
			"%s: %+v, needs %+v, not taken %+v", name, sum.Result, sum.Needs, sum.NotTaken)
	}
}
