package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// What the first page says of the ledger that filled makes, reckoned by hand: 3 of 7 are
// archived; 250,000 + 1,900,000 + 1,350,000 bytes are 3.5 MB; the German vault's 2
// documents may have 2,000,000 bytes, 1,250,000 are beyond: 1.25 transactions of 0.35.
func TestExamine_ByHand(t *testing.T) {
	s := examine(t, filled(t, "production").config()).Summary
	kit.Want(t, "notice, check agrees, result", []any{s.Notice, s.Check.Agrees, s.Result.Code}, []any{"", true, "not-complete"})
	want := "Of 7 folders, 3 are archived and 4 not: 2 on the way, 1 rejected, 1 quarantined. " + asDropped
	kit.Want(t, "the result", s.Result.Text, want)
	bills := map[string]billLine{}
	for _, b := range s.Bills {
		bills[b.Vault] = b
	}
	de, all := bills["DE"], bills[""]
	if de.Documents != 2 || de.Bytes != 3_250_000 || de.AverageMB != "1.625" || de.Percent != "162.5" || de.Transactions != "1.25" ||
		de.Money != "0.4375" || de.Whole != 2 || de.MoneyWhole != "0.70" || de.LevelText != "LIMIT REACHED" {
		t.Errorf(`%+v, want de.Documents = 2, de.Bytes = 3_250_000, de.AverageMB = "1.625", de.Percent = "162.5", de.Transactions = "1.25", de.Money = "0.4375", de.Whole = 2, de.MoneyWhole = "0.70", de.LevelText = "LIMIT REACHED"`, de)
	}
	if all.Documents != 3 || all.AverageMB != "1.166667" || all.Percent != "116.6" || all.Transactions != "0.5" || bills["FR"].Headroom != 750_000 {
		t.Errorf(`%+v, want all.Documents = 3, all.AverageMB = "1.166667", all.Percent = "116.6", all.Transactions = "0.5", bills["FR"].Headroom = 750_000`, bills)
	}
	sums := []sumLine{{"CreditNote", "EUR", 1, "-75.105"}, {"Invoice", "EUR", 1, "119.00"}}
	kit.Check(t, slices.Equal(s.Sums, sums) && s.NoAmount == 1, "%+v, %d without", s.Sums, s.NoAmount)
	kit.Want(t, "times", s.OnTime, (onTime{3, 41 * 60, 9 * 3600, "Alt 1", 0, 0}))
	needs := map[string]uint64{}
	for _, n := range s.Needs {
		needs[n.What] = n.Count
	}
	kit.Check(t, len(needs) == 3 && needs["rejected"] == 1 && needs["quarantined"] == 1 && needs["overdue"] == 2,
		`%+v, want len(needs) = 3, needs["rejected"] = 1, needs["quarantined"] = 1, needs["overdue"] = 2`, s.Needs)
	if s.ManualActions != 1 || s.Acts[0].UID != 1001 || s.Acts[0].Event != "held" || s.Acts[0].Reason == "" || len(s.Unclear) != 1 {
		t.Errorf(`%+v %v, want s.ManualActions = 1, s.Acts[0].UID = 1001, s.Acts[0].Event = "held", s.Acts[0].Reason other than "", len(s.Unclear) = 1`, s.Acts, s.Unclear)
	}
}

// Everything that the promises say must be printed in every audit, is.
func TestSummary_SaysWhatIsNotProven(t *testing.T) {
	s := newShelf(t, "production")
	s.Add(fill.Item{Name: "Otto 19", Remote: "bum-1"}).Send(noon.Add(-time.Hour))
	s.Item("Otto 19").Apply(noon.Add(-30*time.Minute), ledger.UploadNotSent{}, ledger.WindowClosed{}) // an unused registration
	s.Item("Otto 19").Apply(noon, ledger.RegisterIntended{}, ledger.RegisterUnanswered{})
	a := examine(t, s.config())
	want := map[string]uint64{"not-dropped": 0, "quiet-time": 1, "not-downloaded": 0, "lost-answers": 1, "unused": 1, "unclear": 0, "deduplication": 0, "index": 0}
	for _, d := range a.Summary.NotProven {
		n, is := want[d.What]
		kit.Check(t, is && n == d.Count && d.Text != "", `%+v, want is, n = %v, d.Text other than ""`, d, d.Count)
		delete(want, d.What)
	}
	kit.Check(t, len(want) <= 0, "not said: %v", want)
	kit.Check(t, len(a.Summary.Unused) == 1 && a.Summary.Unused[0].BumID == "bum-1",
		`%+v, want len(a.Summary.Unused) = 1, a.Summary.Unused[0].BumID = "bum-1"`, a.Summary.Unused)
}

// An archived document whose retention is over is counted, and is no alarm.
func TestSummary_I32_CountsWhatHasEnded(t *testing.T) {
	s := newShelf(t, "production")
	s.Item("Otto 19").Archive(noon.AddDate(-16, 0, 0), time.Hour)
	s.Item("Kern 6").Archive(noon.Add(-2*time.Hour), time.Hour)
	c := s.config()
	c.Ended = func(e ledger.Entry) bool { return archive.Retention(10).Ended(e.ArchivedAt, noon) }
	a := examine(t, c)
	i := slices.IndexFunc(a.Summary.NotProven, func(d doubt) bool { return d.What == "retention-ended" })
	if a.Summary.Ended != 1 || i < 0 || a.Summary.NotProven[i].Count != 1 || !strings.HasPrefix(a.Summary.NotProven[i].Text, "The retention of 1 archived document is over") {
		t.Errorf("%d ended, %+v", a.Summary.Ended, a.Summary.NotProven)
	}
	kit.Want(t, "result, needs", []any{a.Summary.Result.Code, len(a.Summary.Needs)}, []any{"complete-as-dropped", 0})
}

func TestResult_InPlainWords(t *testing.T) {
	human := ledger.Operator{UID: 1000}
	type row struct {
		fill func(s *shelf)
		sel  Selection
		code string
		text string
	}
	kit.Rows(t, map[string]row{
		"Nothing": {func(*shelf) {}, Selection{}, "nothing", "No folder"},
		"AllArchived": {func(s *shelf) { s.Item("A").Archive(noon, time.Hour) }, Selection{}, "complete-as-dropped",
			"Nothing that was dropped is missing. Of 1 folder, 1 is archived. " + asDropped},
		"OneOpen": {func(s *shelf) { s.Item("A").Claim(noon) }, Selection{}, "not-complete", "1 on the way"},
		"RejectedAndClosed": {func(s *shelf) {
			s.Item("A").Archive(noon, time.Hour)
			s.Item("B").Refuse(noon, ledger.Cause{Code: "x"})
			s.Item("B").Apply(noon, ledger.Closed{By: human})
		}, Selection{}, "complete-as-dropped", "1 was rejected and resolved"},
		"ClosedInDoubtIsNotComplete": {func(s *shelf) {
			s.Item("A").Send(noon)
			s.Item("A").Apply(noon, ledger.WindowClosed{})
			s.Item("A").Apply(noon, ledger.Closed{By: human})
		}, Selection{}, "not-complete", "1 is in question"},
		"StatesAreAPart": {func(s *shelf) { s.Item("A").Archive(noon, time.Hour) },
			Selection{States: map[ledger.State]bool{ledger.Archived: true}}, "part", "says nothing about the others"},
	}, func(t *testing.T, row row) {
		s := newShelf(t, "production")
		row.fill(s)
		c := s.config()
		c.Select = row.sel
		r := examine(t, c).Summary.Result
		if r.Code != row.code || !strings.Contains(r.Text, row.text) || strings.HasPrefix(r.Title, "COMPLETE") && r.Title != "COMPLETE AS DROPPED" {
			t.Errorf("%+v", r)
		}
	})
}

func TestSelection_CountsAndRowsAlike(t *testing.T) {
	s := filled(t, "production")
	type row struct {
		sel  Selection
		want int
	}
	kit.Rows(t, map[string]row{
		"All":             {Selection{}, 7},
		"Year":            {Selection{Year: 2026}, 6}, // three have no date and were taken then
		"YearByDocument":  {Selection{Year: 2025}, 1},
		"Month":           {Selection{Year: 2025, Month: time.December}, 1},
		"OtherMonth":      {Selection{Year: 2025, Month: time.February}, 0},
		"Vault":           {Selection{Vault: "FR"}, 1},
		"OtherDrop":       {Selection{Drop: "beta-in"}, 0},
		"States":          {Selection{States: map[ledger.State]bool{ledger.Archived: true, ledger.Unclear: true}}, 4},
		"YearAndState":    {Selection{Year: 2026, States: map[ledger.State]bool{ledger.Archived: true}}, 2},
		"YearBeforeStart": {Selection{Year: 1999}, 0},
	}, func(t *testing.T, row row) {
		c := s.config()
		c.Select = row.sel
		a := examine(t, c)
		text, end := written(t, a, "json")
		var all struct{ Documents []row2 }
		kit.Must(t, json.Unmarshal([]byte(text), &all))
		kit.Check(t, len(all.Documents) == row.want && a.Summary.Selected.Seen == uint64(row.want) && end.Rows == uint64(row.want) && end.Agrees,
			"%d rows, %d counted, %+v", len(all.Documents), a.Summary.Selected.Seen, end)
		kit.Want(t, "folders, selection agrees", []any{a.Summary.Whole.Seen, a.Summary.Selected.Agrees}, []any{uint64(7), true})
	})
}

type row2 struct{ Folder, State string }

// lying is a ledger that says something else than its journal.
type lying struct{ Source }

func (l lying) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	return l.Source.EntriesOldestFirst(lie(fn))
}

func (l lying) EntriesNewestFirst(fn func(ledger.Entry) error) error {
	return l.Source.EntriesNewestFirst(lie(fn))
}

func lie(fn func(ledger.Entry) error) func(ledger.Entry) error {
	return func(e ledger.Entry) error {
		if e.State == ledger.Rejected {
			e.State = ledger.Archived
		}
		return fn(e)
	}
}

func TestExamine_I12_ContradictionStandsAtTheTop(t *testing.T) {
	s := filled(t, "production")
	c := s.config()
	c.Ledger = lying{s.Ledger}
	c.Examined = examined(t, c.Ledger, s.Head(), s.Balance())
	a := examine(t, c)
	kit.Check(t, a.Summary.Result.Code == "contradiction" && len(a.Summary.Check.Findings) >= 2,
		`%+v, want a.Summary.Result.Code = "contradiction", len(a.Summary.Check.Findings) >= 2`, a.Summary.Check)
	text, _ := written(t, a, "html")
	if at, balance := strings.Index(text, "I12"), strings.Index(text, "<h2>Balance"); at < 0 || at > balance {
		t.Errorf("the findings stand at %d, the balance at %d", at, balance)
	}
	b, head := s.Balance(), s.Head()
	b.Seen++
	c.Ledger, c.Examined = s.Ledger, examined(t, s.Ledger, s.Head(), b)
	kit.Check(t, !examine(t, c).Summary.Check.Agrees, "a wrong balance agrees")
	head.Hash[3] ^= 1
	c.Examined = examined(t, s.Ledger, head, s.Balance())
	kit.Check(t, !examine(t, c).Summary.Check.Agrees, "a broken chain agrees")
}

// What changes while the report is made is no contradiction, and is said.
func TestReport_ChangedMeanwhile(t *testing.T) {
	s := filled(t, "production")
	a := examine(t, s.config())
	s.Item("Braun 15").Claim(noon)
	for _, form := range []string{"html", "json", "csv"} {
		text, end := written(t, a, form)
		kit.Check(t, !end.Agrees && end.Rows == 8 && slices.Equal(end.Moved, []string{"discovered 1, now 2"}),
			"%s: %+v, want not end.Agrees, end.Rows = 8, end.Moved = %v", form, end, []string{"discovered 1, now 2"})
		kit.Check(t, form == "csv" || strings.Contains(text, "discovered 1, now 2"), "%s does not say it", form)
	}
}

var errFlaw = errors.New("the disk is gone")

// broken fails in the middle of the second walk.
type broken struct{ Source }

func (b broken) EntriesNewestFirst(fn func(ledger.Entry) error) error {
	n := 0
	return b.Source.EntriesNewestFirst(func(e ledger.Entry) error {
		if n++; n == 3 {
			return errFlaw
		}
		return fn(e)
	})
}

type fullDisk struct{ left int }

func (w *fullDisk) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errFlaw
	}
	return len(b), nil
}

func TestReport_ErrorsAreNotReports(t *testing.T) {
	s := filled(t, "production")
	c := s.config()
	c.Ledger = broken{s.Ledger}
	a, whole := examine(t, c), examine(t, s.config())
	var sink strings.Builder
	for name, write := range map[string]func(*Audit) error{
		"HTML": func(a *Audit) error { _, err := a.HTML(t.Context(), &sink); return err },
		"CSV":  func(a *Audit) error { _, err := a.CSV(t.Context(), &sink, ','); return err },
		"JSON": func(a *Audit) error { _, err := a.JSON(t.Context(), &sink); return err },
	} {
		kit.Fails(t, name+": a broken walk ended", write(a), errFlaw)
	}
	for _, left := range []int{0, 100} {
		_, err := whole.HTML(t.Context(), &fullDisk{left})
		_, err2 := whole.CSV(t.Context(), &fullDisk{left}, ';')
		_, err3 := whole.JSON(t.Context(), &fullDisk{left})
		for _, err := range []error{err, err2, err3} {
			kit.Fails(t, "a full disk ended", err, errFlaw)
		}
	}
}

func TestSpans_MedianAndLongest(t *testing.T) {
	type row struct {
		spans           []time.Duration
		median, longest time.Duration
	}
	kit.Rows(t, map[string]row{
		"None":         {nil, 0, 0},
		"One":          {[]time.Duration{41 * time.Minute}, 41 * time.Minute, 41 * time.Minute},
		"LowerOfTwo":   {[]time.Duration{time.Hour, time.Minute}, time.Minute, time.Hour},
		"ClockBehind":  {[]time.Duration{-time.Minute, time.Second, time.Second}, time.Second, time.Second},
		"ThreeDigits":  {[]time.Duration{12345 * time.Second}, 12300 * time.Second, 12345 * time.Second},
		"OddAndSpread": {[]time.Duration{time.Second, 5 * time.Second, 1000 * time.Hour}, 5 * time.Second, 1000 * time.Hour},
	}, func(t *testing.T, row row) {
		s := durations{counts: map[time.Duration]uint64{}}
		for _, d := range row.spans {
			s.add(d)
		}
		if s.median() != row.median || s.longest != row.longest {
			t.Errorf("median %s, longest %s", s.median(), s.longest)
		}
	})
}

// Documents of unknown size are counted apart and said, each success counts, and the forecast of this year stands in both
// forms.
func TestSummary_BillingSaysWhatItDoesNotKnow(t *testing.T) {
	s := newShelf(t, "production")
	s.Add(fill.Item{Name: "Otto 19", Size: 600_000}).Archive(noon.AddDate(0, -1, 0), time.Hour)
	e := s.Item("Otto 19").Entry()
	s.Commit(ledger.Change{Key: fill.Key(noon, 77), At: archive.Instant{Wall: noon}, Events: []ledger.Event{
		ledger.Recovered{Route: ledger.Vault, Vault: e.Vault, Drop: "acme-in", Folder: "x", ID: archive.ID{15: 9}, Remote: "R9", SuccessRecord: []byte("{}"),
			State: ledger.Archived, Source: ledger.Gone, SeenAt: noon, ArchivedAt: noon}, ledger.Reconciled{}}})
	a := examine(t, s.config())
	for _, b := range a.Summary.Bills {
		if b.Documents != 2 || b.Unsized != 1 || b.Bytes != 600_000 || b.AverageMB != "0.6" || b.Percent != "60" || b.Forecast == nil || b.Forecast.Average != "0.6" || b.Forecast.Money != "0.00" {
			t.Errorf(`%+v, want b.Documents = 2, b.Unsized = 1, b.Bytes = 600_000, b.AverageMB = "0.6", b.Percent = "60", b.Forecast other than nil, b.Forecast.Average = "0.6", b.Forecast.Money = "0.00"`, b)
		}
	}
	if page, _ := written(t, a, "html"); !strings.Contains(page, "1 of unknown size") || !strings.Contains(page, "Forecast to 31 December 2026, vault DE: average 0.6 MB, between 0.6 and 0.6; 0 transactions beyond") {
		t.Error(page)
	}
	if text, _ := written(t, a, "json"); !strings.Contains(text, `"unsized":1`) || !strings.Contains(text, `"lowestMB":"0.6"`) {
		t.Errorf("text = %v, want text with `\"unsized\":1`, text with `\"lowestMB\":\"0.6\"`", text)
	}
}

// The drawing of a vault's share is next to a table with the same figures, and
// these are those of its bill.
func TestHTML_SharesAreThoseOfTheBills(t *testing.T) {
	a := examine(t, filled(t, "test").config())
	page, _ := written(t, a, "html")
	shown := 0
	for _, b := range a.Summary.Bills {
		if b.Year != a.Summary.About.Made.Year() {
			continue
		}
		of := "all vaults"
		if b.Vault != "" {
			of = "vault " + b.Vault
		}
		_, part, found := strings.Cut(page, fmt.Sprintf("<h3>Share of the included volume, %s, %d</h3>", of, b.Year))
		part, _, _ = strings.Cut(part, "</table>")
		percent := b.Percent
		if !strings.Contains(percent, ".") {
			percent += ".0"
		}
		if !found || strings.Count(part, "<svg") != 1 || !strings.Contains(part, `<tr><th scope="row">November</th><td>`+percent+" %</td></tr>") {
			t.Errorf("%s: %s %% is not in %s", of, percent, part)
		}
		if shown++; b.Forecast != nil && !strings.Contains(part, "December, forecast") {
			t.Errorf("%s: no forecast in %s", of, part)
		}
	}
	kit.Check(t, shown >= 3, "%d shares", shown)
	for share, want := range map[float64]string{0: "0.0 %", 0.29: "29.0 %", 1.1666667: "116.6 %", 0.9999: "99.9 %", 1: "100.0 %"} {
		kit.Want(t, fmt.Sprint(share), formatShare(share), want)
	}
}
