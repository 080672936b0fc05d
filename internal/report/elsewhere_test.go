package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
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

// delivering is a ledger with two archived documents, three delivered ones of which one was possibly processed twice, and a duplicate of one.
func delivering(t *testing.T) *shelf {
	s := newShelf(t, "production")
	s.Add(fill.Item{Name: "Müller 4711", Size: 1_900_000}).Archive(noon.Add(-20*time.Hour), 41*time.Minute)
	s.Add(fill.Item{Name: "Huber 88", Size: 100_000}).Archive(noon.Add(-19*time.Hour), 40*time.Minute)
	for i, file := range []string{"scan1.pdf", "scan2.pdf"} {
		s.Add(fill.Item{Name: file, Route: ledger.PDF, Size: 2_000_000}).Deliver(noon.Add(time.Duration(i-18)*time.Hour), 2*time.Second)
	}
	at := noon.Add(-10 * time.Hour)
	s.Add(fill.Item{Name: "scan3.pdf", Route: ledger.PDF, Size: 1_000_000}).Lose(at)
	again := fill.Ticket("again-scan3.pdf", at.Add(2*time.Hour), ledger.PDF)
	s.Item("scan3.pdf").Apply(at.Add(2*time.Hour), ledger.Released{By: ledger.Operator{UID: 1000}}, ledger.RegisterIntended{}, again, ledger.UploadIntended{})
	s.Item("scan3.pdf").Deliver(at.Add(3*time.Hour), 0)
	s.PDF("copy.pdf").Apply(noon.Add(-2*time.Hour), ledger.FoundDuplicate{First: s.Item("scan1.pdf").Key})
	return s
}

// I12: what became of delivered network documents is counted beside them, and what a person must see to of each has a word of its own, in which
// nothing speaks of the archive.
func TestDelivered_I12_NetworkNeedsAndMarks(t *testing.T) {
	var d deliveries
	at := noon
	base := ledger.Entry{Route: ledger.Network, State: ledger.Delivered, Source: ledger.Kept, Dest: "_delivered/x", SeenAt: at, UploadedAt: at, Posts: 1, Package: archive.Package{Size: 10}}
	for need, change := range map[string]func(e *ledger.Entry){
		"":                      func(e *ledger.Entry) { e.Recipient, e.Copied = ledger.RecipientAccepted, true },
		"rejected-late":         func(e *ledger.Entry) { e.Contradicted = true },
		"rejected-by-recipient": func(e *ledger.Entry) { e.Recipient = ledger.RecipientRejected },
		"sent-differs":          func(e *ledger.Entry) { e.Cause.Code = ledger.CauseSourceChanged },
		"rejected":              func(e *ledger.Entry) { e.State, e.Source = ledger.Rejected, ledger.Returned },
		"quarantined": func(e *ledger.Entry) {
			e.State, e.Source, e.FilesUnderWay, e.LostFiles = ledger.Quarantined, ledger.Claimed, 1, 1
		},
		"contradicted": func(e *ledger.Entry) { e.State, e.Source, e.Contradicted = ledger.Rejected, ledger.Returned, true },
		"copy-waits":   func(e *ledger.Entry) { e.Source, e.Cause.Code = ledger.Claimed, ledger.CauseCopyWaits },
	} {
		e := base
		e.Key = archive.NewKey(at)
		change(&e)
		d.countEntry(e)
		d.countSelected(e)
		kit.Want(t, "the need", (Config{Made: at}).findEntryNeed(e), need)
		w := present.KindOf(need)
		if text := w.One + w.More + w.Do; need != "copy-waits" && strings.Contains(strings.ToLower(text+strings.Join(flagNames(e), " ")), "archiv") {
			t.Errorf("%s: %q, %v", need, text, flagNames(e))
		}
	}
	if n := d.summarizeNetwork(); n == nil || *n != (networkDelivered{5, 50, 0, networkAnswers{1, 1, 1, 1}}) || d.strayFiles != 2 || d.byNote != 0 {
		t.Errorf("%+v, %d stray files, %d by their notes", n, d.strayFiles, d.byNote)
	}
}

// I12: what is delivered is in no count, no sum and no bill of what is archived, in no form of the report, and the business network's documents are
// counted apart from the PDFs.
func TestDelivered_I12_NeverCountedAsArchived(t *testing.T) {
	world := delivering(t)
	world.Add(fill.Item{Name: "Otto 9", Route: ledger.Network, Size: 3_000_000}).Deliver(noon.Add(-6*time.Hour), time.Hour)
	a := examine(t, world.config())
	s := a.Summary
	kit.Want(t, "the result", s.Result.Code, "complete-as-dropped")
	kit.Holds(t, "the result", s.Result.Text, "Nothing that was dropped is missing. Of 7 folders, 2 are archived, 4 are delivered; 1 is the same as a delivered one. ")
	kit.Want(t, "PDFs", s.Delivered, &delivered{Documents: 3, Bytes: 5_000_000, Twice: 1})
	kit.Want(t, "network documents", s.Network, &networkDelivered{Documents: 1, Bytes: 3_000_000})
	kit.Want(t, "sums, possibly double, sent twice", []int{len(s.Sums), len(s.Twice), len(s.SentTwice)}, []int{1, 1, 0})
	kit.Want(t, "summed, timed, without amount, archived", []uint64{s.Sums[0].Documents, s.OnTime.Count, s.NoAmount, s.Unchanged.Archived}, []uint64{2, 2, 0, 2})
	kit.Want(t, "PDFs and network documents not proven", []uint64{doubtOf(s, "delivered").Count, doubtOf(s, "delivered-network").Count}, []uint64{3, 1})
	kit.Want(t, "bills", len(s.Bills), 2) // all vaults, and the only one
	for _, b := range s.Bills {
		kit.Want(t, "bill of "+b.Vault, []any{b.Year, b.Documents, b.Bytes}, []any{2026, uint64(2), uint64(2_000_000)})
	}
	var archived, sent uint64
	for _, m := range s.Months {
		archived, sent = archived+m.Archived, sent+m.Delivered
	}
	kit.Want(t, "archived and delivered in all months", []uint64{archived, sent}, []uint64{2, 4})
	for _, one := range s.Senders {
		kit.Check(t, one.Name != "", "a delivered document counts among the senders: %+v", one)
	}
	page, closing := written(t, a, "html")
	kit.Holds(t, "the page", page, "<p>3 PDFs were delivered to the accounts-payable system, 5.000 MB. That is no archiving:", ">_delivered/2026-11/scan1.pdf/_DELIVERED.txt<",
		`<b class="good">delivered</b> 2026-11-19 20:32`, "<h2>Possibly processed twice (1)</h2>", "3 PDFs were delivered, which is no archiving",
		"<p>1 document was delivered over the business network, 3.000 MB. That is no archiving:", "1 network document was delivered, which is no archiving")
	kit.Lacks(t, "the page", page, "<h2>Possibly double", "possibly double")
	kit.Want(t, "the page agrees", closing.Agrees, true)
	table, _ := written(t, a, "csv")
	kit.Holds(t, "the table", table, `,"network",`)
}

// Tables and JSON say of each row by which route it goes and when it was delivered; a vault's row has no time of delivery.
func TestDelivered_FormsSayTheRoute(t *testing.T) {
	s := delivering(t)
	a := examine(t, s.config())
	table, _ := written(t, a, "csv")
	comma := kit.Value(csv.NewReader(strings.NewReader(strings.TrimPrefix(table, "\ufeff"))).ReadAll())(t)
	book, _ := written(t, a, "xlsx")
	sheet, _, _ := readBook(t, []byte(book))
	object, _ := written(t, a, "json")
	var all struct {
		Documents []struct{ Route, DeliveredAt, ArchivedAt, State string }
		Twice     []string `json:"possiblyProcessedTwice"`
		Double    []string `json:"possiblyDouble"`
	}
	kit.Must(t, json.Unmarshal([]byte(object), &all))
	kit.Check(t, slices.Equal(all.Twice, []string{s.Item("scan3.pdf").Key.String()}) && len(all.Double) == 0,
		"twice %v, double %v", all.Twice, all.Double)
	route := slices.Index(comma[0], "route")
	at := slices.Index(comma[0], "deliveredAt")
	flags := slices.Index(comma[0], "flags")
	if route != len(csvHeader) || at != route+1 || !slices.Equal(comma[0], sheet[0]) {
		t.Fatalf("comma[0] = %v, sheet[0] = %v, want route = %v, at = %v, comma[0] = %v", comma[0], sheet[0], len(csvHeader), route+1, sheet[0])
	}
	for i, d := range all.Documents {
		row := comma[i+1]
		is := row[slices.Index(comma[0], "state")] == "delivered"
		if is != (row[at] != "") || is != (d.DeliveredAt != "") || row[at] != d.DeliveredAt || is && (row[route] != "pdf" || d.Route != "pdf" || d.ArchivedAt != "") || d.State == "archived" && (row[route] != "vault" || d.Route != "") {
			t.Errorf("%v, %+v", row, d)
		}
		kit.Want(t, fmt.Sprintf("%s: flags %q", row[1], row[flags]),
			strings.Contains(row[flags], "possibly processed twice"), strings.HasPrefix(row[1], "scan3"))
		kit.Want(t, fmt.Sprintf("sheet: %q, table", sheet[i+1][route]),
			strings.TrimSpace(sheet[i+1][route]), row[route])
	}
	// Where all goes to the archive, nothing of that is there.
	plain, _ := written(t, examine(t, filled(t, "production").config()), "csv")
	if first, _, _ := strings.Cut(plain, "\r\n"); strings.Contains(first, "route") || strings.Contains(first, "deliveredAt") {
		t.Errorf(`first = %v, want first without "route", first without "deliveredAt"`, first)
	}
}

// I32: an upload whose fate nobody can tell keeps the audit from being complete, and the report says what to do.
func TestDelivered_I32_UnknownDeliveryIsNotComplete(t *testing.T) {
	s := newShelf(t, "production")
	s.PDF("scan1.pdf").Deliver(noon.Add(-18*time.Hour), 2*time.Second)
	s.PDF("scan2.pdf").Lose(noon.Add(-17 * time.Hour))
	a := examine(t, s.config())
	if r := a.Summary.Result; r.Code != "not-complete" || !strings.Contains(r.Text, "Of 2 folders, 0 are archived, 1 is delivered and 1 neither: 1 quarantined.") {
		t.Errorf(`%+v, want r.Code = "not-complete", r.Text with "Of 2 folders, 0 are archived, 1 is delivered and 1 neither: 1 quarantined."`, r)
	}
	if n := a.Summary.Needs; len(n) != 1 || n[0].What != "quarantined" || !strings.Contains(n[0].Text, "may have arrived") || strings.Contains(n[0].Text+n[0].Do, "archive") {
		t.Errorf(`%+v, want len(n) = 1, n[0].What = "quarantined", n[0].Text with "may have arrived", n[0].Text+n[0].Do without "archive"`, n)
	}
	kit.Want(t, "bills", len(a.Summary.Bills), 0)
	// A person closes it: the doubt stays, and is none about the archive.
	s.Item("scan2.pdf").Apply(noon.Add(-time.Hour), ledger.Closed{By: ledger.Operator{UID: 1000}})
	a = examine(t, s.config())
	kit.Want(t, "the result", a.Summary.Result.Code, "not-complete")
	if !slices.ContainsFunc(a.Summary.NotProven, func(d doubt) bool { return d.What == "in-doubt-pdf" && d.Count == 1 }) ||
		slices.ContainsFunc(a.Summary.NotProven, func(d doubt) bool { return d.What == "in-doubt" }) {
		t.Errorf("%+v", a.Summary.NotProven)
	}
}

// I12: a kept PDF that is not what was delivered is told in words of its own.
func TestDelivered_I12_KeptPDFThatDiffers(t *testing.T) {
	s := newShelf(t, "production")
	s.PDF("scan1.pdf").Deliver(noon.Add(-18*time.Hour), 2*time.Second)
	s.Item("scan1.pdf").Apply(noon.Add(-time.Hour), ledger.DisposalStopped{Cause: ledger.Cause{Code: ledger.CauseSourceChanged, Text: "it has another content"}})
	if n := examine(t, s.config()).Summary.Needs; len(n) != 1 || n[0].What != "delivered-differs" || strings.Contains(n[0].Text+n[0].Do, "archive") {
		t.Errorf(`%+v, want len(n) = 1, n[0].What = "delivered-differs", n[0].Text+n[0].Do without "archive"`, n)
	}
}

// I12: the drawings have bars of their own for what was delivered, with its figures beside those of what was archived; a report of documents
// of the archive alone has none.
func TestCharts_I12_DeliveredIsASeriesOfItsOwn(t *testing.T) {
	a := examine(t, delivering(t).config())
	var archived, delivered uint64
	for _, l := range a.Summary.Spread {
		archived, delivered = archived+l.Documents, delivered+l.Delivered
	}
	kit.Check(t, archived == 2 && delivered == 3 && a.Summary.Spread[0].Delivered == 2 && a.Summary.Spread[2].Delivered == 1,
		"%d archived, %d delivered: %+v", archived, delivered, a.Summary.Spread)
	page := &htmlPage{Summary: a.Summary}
	for name, drawn := range map[string]string{"months": string(page.MonthsChart()), "times": string(page.SpreadChart())} {
		kit.Check(t, strings.Contains(drawn, `<rect class="delivered"`) && strings.Count(drawn, `<rect class="archived"`) != 0,
			"%s: %s, want drawn with `<rect class=\"delivered\"`, strings.Count(drawn, `<rect class=\"archived\"`) other than 0", name, drawn)
	}
	s := newShelf(t, "production")
	s.Add(fill.Item{Name: "Müller 4711", Size: 1_900_000}).Archive(noon.Add(-20*time.Hour), 41*time.Minute)
	a = examine(t, s.config())
	page = &htmlPage{Summary: a.Summary}
	kit.Lacks(t, "the charts", string(page.MonthsChart()+page.SpreadChart()), "delivered")
}

// A ledger that was made anew knows a delivery by the note beside the PDF alone. The audit says of how many.
func TestDelivered_I12_ByItsNoteAlone(t *testing.T) {
	s := delivering(t)
	at, sum := noon.Add(-30*time.Hour), archive.Sum([]byte("old"))
	found := ledger.Recovered{State: ledger.Delivered, Source: ledger.Kept, Dest: "_delivered/2026-11/old.pdf", Route: ledger.PDF, Drop: "ap-scans", Folder: "old.pdf", Owner: 1000,
		ID: archive.DeriveID("pdf", sum, archive.Digest{}), Content: sum, Metadata: sum, Package: archive.Package{Path: "x.pdf", Size: 9, SHA256: sum},
		Remote: "slot-old", SeenAt: at, UploadedAt: at}
	doc := &ledger.Document{Metadata: []byte("{}"), Files: []archive.File{{Path: "old.pdf", Size: 9, SHA256: sum}}}
	found.Seal = doc.Seal(found.Package)
	s.Commit(ledger.Change{Key: fill.Key(at, 900), Document: doc, Events: []ledger.Event{found, ledger.Reconciled{}}, At: archive.Instant{Wall: at}})
	sumOf := func(what string) (n uint64) {
		for _, d := range examine(t, s.config()).Summary.NotProven {
			if d.What == what {
				n += d.Count
			}
		}
		return n
	}
	if all, alone := sumOf("delivered"), sumOf("delivered-by-note"); all != 4 || alone != 1 {
		t.Errorf("%d delivered, %d of them known by their notes alone; want 4 and 1", all, alone)
	}
}
