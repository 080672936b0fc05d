package report

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

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
		if sum.Result.Code != row.code || !strings.Contains(strings.ToLower(text), strings.ToLower(row.text)) || len(sum.Needs) != row.needs {
			t.Errorf("%s: %+v, needs %+v, not taken %+v", name, sum.Result, sum.Needs, sum.NotTaken)
		}
	}
}
