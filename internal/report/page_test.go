package report

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// pageLimit is what the page promises to stay under.
const pageLimit = 3_000_000

// crowd is a flood of hostile folders: each name, sender, recipient, date and amount is as bad as it gets, and no two are alike.
type crowd struct {
	flood
	state ledger.State // zero: archived
}

func (c crowd) spoil(e ledger.Entry) ledger.Entry {
	e.Folder = strings.Repeat("<\u202e&\"", 36) + fmt.Sprint(e.Key)
	if c.state != ledger.None {
		e.State, e.Cause.Text = c.state, strings.Repeat("<\u202e>", 200)
	}
	return e
}

func (c crowd) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	return c.flood.EntriesOldestFirst(func(e ledger.Entry) error { return fn(c.spoil(e)) })
}

func (c crowd) EntriesNewestFirst(fn func(ledger.Entry) error) error {
	return c.flood.EntriesNewestFirst(func(e ledger.Entry) error { return fn(c.spoil(e)) })
}

func (c crowd) Document(k archive.Key) (ledger.Document, bool, error) {
	n := int(k[14])<<8 | int(k[15])
	m := c.meta(n)
	m.SenderName = fmt.Sprint(n, strings.Repeat("<&", 200))
	m.RecipientName = strings.Repeat("\u202e", 300)
	m.Date = fmt.Sprintf("%04d-%02d-01T00:00:00Z", 1985+n%50, 1+n%12)
	m.Currency = string([]byte{'A' + byte(n%26), 'A' + byte(n/26%26), 'A' + byte(n/676%26)})
	return ledger.Document{Metadata: m.Metadata()}, true, nil
}

// The page stays under three megabytes whatever the ledger holds, and says what it leaves out.
func TestHTML_I21_PageHasABoundedSize(t *testing.T) {
	kit.Rows(t, map[string]crowd{
		"HostileArchived":    {flood{5000}, ledger.None},
		"HostileRejected":    {flood{5000}, ledger.Rejected},
		"HostileQuarantined": {flood{1900}, ledger.Quarantined},
	}, func(t *testing.T, c crowd) {
		conf := c.config(t)
		conf.Ledger = c
		conf.Drops = manyNotTaken(40)
		a := examine(t, conf)
		for i := range 20_000 {
			a.Summary.Unclear = append(a.Summary.Unclear, fill.Key(noon, i).String())
			a.Summary.Bills = append(a.Summary.Bills, billLine{Vault: fmt.Sprint("vault ", i)})
		}
		page, end := written(t, a, "html")
		kit.Check(t, len(page) <= pageLimit && end.Rows == uint64(c.count),
			"%d bytes, %d rows", len(page), end.Rows)
		kit.Holds(t, "the page", page, "The newest ", "vaultd audit --format csv -o FILE", " more in the JSON form", "</html>")
		kit.Check(t, c.state == ledger.None || strings.Contains(page, "in the column <code>needs</code>"),
			"the page does not say where the other exceptions are")
	})
}

func manyNotTaken(drops int) (all []present.DropScan) {
	for i := range drops {
		d := present.DropScan{Name: fmt.Sprint("drop ", i), Configured: true}
		d.Scan.LastScan = noon
		for j := range 1000 {
			d.Scan.Pending = append(d.Scan.Pending, ledger.PendingItem{Name: fmt.Sprint(strings.Repeat("<", 200), j), Reason: string(watch.LooseFile), Since: noon})
		}
		all = append(all, d)
	}
	return all
}

// Up to two thousand folders stand in the table; of more the newest two hundred do, and the complete table is named.
func TestHTML_LongTableHasItsNewest(t *testing.T) {
	for count, shown := range map[int]int{1: 1, rowsOnPage: rowsOnPage, rowsOnPage + 1: newestRows} {
		a := examine(t, flood{count}.config(t))
		var b strings.Builder
		end := kit.Value(a.Page(t.Context(), &b, TableFile{"year 2026.csv", a.NewCSV(io.Discard, ',')}))(t)
		page := b.String()
		rows := strings.Count(page, `<tr><th scope="row"><bdi>Folder `)
		kit.Check(t, rows == shown && end.Rows == uint64(count) && a.HasLongTable() == (shown < count), "%d folders: %d rows, %+v", count, rows, end)
		if newest := fmt.Sprintf("<bdi>Folder %d</bdi>", count-1); !strings.Contains(page, newest) || !strings.Contains(page, `<a href="./year%202026.csv">year 2026.csv</a>`) {
			t.Errorf("%d folders: the newest or the table is not there", count)
		}
	}
}

// A table that the page has whole is sorted by month, with what each month sums up to: the same as the figures of the months. One of
// which it has a part has no sums, which would be taken for those of the month.
func TestHTML_TableByMonth(t *testing.T) {
	a := examine(t, filled(t, "test").config())
	page, _ := written(t, a, "html")
	_, table, _ := strings.Cut(page, `<table class="documents">`)
	table, _, _ = strings.Cut(table, "</table>")
	sections := strings.Split(table, "<tbody>")[1:]
	kit.Need(t, len(a.Summary.Months) >= 3 && len(sections) == len(a.Summary.Months),
		"%d sections, %d months", len(sections), len(a.Summary.Months))
	for i, m := range a.Summary.Months {
		head, rows, _ := strings.Cut(sections[i], "</tr>")
		name := m.Month
		if name == "" {
			name = "other dates"
		}
		want := []string{name + ": ", fmt.Sprintf(", %d archived", m.Archived)}
		for _, s := range m.Sums {
			want = append(want, fmt.Sprintf("<span>%s %s %s</span>", s.Type, s.Currency, groupThousands(s.Total)))
		}
		kit.Holds(t, "the head", head, want...)
		n := strings.Count(rows, `<th scope="row">`)
		kit.Check(t, n == int(m.Seen) && strings.Count(head, "<span>") == len(m.Sums), "%s: %d rows of %d, %s", name, n, m.Seen, head)
		dated := strings.Count(rows, "<td>"+m.Month)
		kit.Check(t, m.Archived <= 0 || m.Month == "" || dated >= int(m.Archived), "%s: %d rows have a date of it", name, dated)
	}
	var b strings.Builder
	kit.Value(examine(t, flood{rowsOnPage + 1}.config(t)).HTML(t.Context(), &b))(t)
	kit.Lacks(t, "the text", b.String(), `<tr class="month">`)
}

// A table that goes along with the page has the same rows as one that is written alone.
func TestPage_TablesHaveEveryRow(t *testing.T) {
	a := examine(t, flood{rowsOnPage + 50}.config(t))
	var page, along bytes.Buffer
	kit.Value(a.Page(t.Context(), &page, TableFile{"a.csv", a.NewCSV(&along, ';')}))(t)
	var alone bytes.Buffer
	kit.Value(a.CSV(t.Context(), &alone, ';'))(t)
	kit.Check(t, bytes.Equal(along.Bytes(), alone.Bytes()) && bytes.Count(alone.Bytes(), []byte("\r\n")) == rowsOnPage+51, "the tables differ")
	_, err := a.Page(t.Context(), &page, TableFile{"a.csv", a.NewCSV(&fullDisk{0}, ';')})
	kit.Check(t, err != nil, "a table that could not be written is no error")
}

// Months, senders and times are those of the ledger that filled makes, reckoned by hand.
func TestSummary_MonthsSendersAndTimes(t *testing.T) {
	s := examine(t, filled(t, "production").config()).Summary
	var got []string
	for _, y := range s.Years() {
		for _, l := range append(y.Months, y.Total) {
			got = append(got, fmt.Sprint(l.Month, " ", l.Seen, l.Archived, l.Rejected, l.Others, " ", l.Sums))
		}
	}
	kit.Want(t, "got", got, []string{
		"2026-11 3 0 1 2 []", "2026-10 3 2 0 1 [{CreditNote EUR 1 -75.105} {Invoice EUR 1 119.00}]",
		"2026 6 2 1 3 [{CreditNote EUR 1 -75.105} {Invoice EUR 1 119.00}]", "2025-12 1 1 0 0 []", "2025 1 1 0 0 []",
	})
	kit.Want(t, "the senders", []any{fmt.Sprint(s.Senders), s.Unranked}, []any{"[{Alt & Söhne 1 []} {Müller GmbH 1 [{EUR 119.00}]} {Otto KG 1 [{EUR -75.105}]}]", false})
	var spread []string
	for _, l := range s.Spread {
		spread = append(spread, fmt.Sprint(l, " ", l.Documents))
	}
	kit.Want(t, "the spread", spread, []string{"under 10 min 0", "10 min to 1 h 2", "1 h to 4 h 0", "4 h to 12 h 1", "12 h to 24 h 0", "24 h to 2 d 0", "2 d to 7 d 0", "7 d or more 0"})
}

// Where the senders do not fit into memory, none is ranked: the first ones are not the largest ones.
func TestSenders_I21_TooManyAreNotRanked(t *testing.T) {
	s := newSenders()
	for i := range sendersAtMost + 1 {
		s.countDocument(fmt.Sprint(i), "EUR", nil)
	}
	top, unranked := s.listTop()
	kit.Check(t, unranked && len(top) <= 0 && s.byName == nil, "%v, %t, want unranked, len(top) <= 0, s.byName = nil", top, unranked)
}

// Over random worlds, what the summary says of months adds up to the sums and counts of the whole.
func TestSummary_I12_MonthsAddUp(t *testing.T) {
	for seed := range uint64(5) {
		s := randomShelf(t, seed)
		sum := examine(t, s.config()).Summary
		var total monthLine
		var all []monthLine
		for _, y := range sum.Years() {
			total.Seen, total.Archived = total.Seen+y.Total.Seen, total.Archived+y.Total.Archived
			total.Rejected, total.Others = total.Rejected+y.Total.Rejected, total.Others+y.Total.Others
			all = append(all, y.Total)
		}
		if total.Seen != sum.Selected.Seen || total.Archived != sum.Selected.States["archived"] || total.Rejected != sum.Selected.States["rejected"] ||
			total.Seen != total.Archived+total.Rejected+total.Others {
			t.Errorf("seed %d: %+v, %+v", seed, total, sum.Selected)
		}
		kit.Want(t, fmt.Sprintf("seed %d: the months add up", seed), addSums(all), sum.Sums)
	}
}

// randomShelf has some dozens of folders of any kind, date, amount and currency.
func randomShelf(t *testing.T, seed uint64) *shelf {
	s := newShelf(t, "production")
	r := rand.New(rand.NewPCG(seed, 7))
	for i := range 20 + r.IntN(30) {
		folder := fmt.Sprintf("Folder %d =%d", i, r.IntN(9))
		at := noon.Add(-time.Duration(r.IntN(20_000)) * time.Hour / 10)
		amount := archive.Decimal(fmt.Sprintf("%d.%02d", r.IntN(2_000_000)-500_000, r.IntN(100)))
		if r.IntN(10) == 0 {
			amount = "9007199254740993.1"
		}
		document := archive.Document{Type: []string{"Invoice", "CreditNote"}[r.IntN(2)], Number: fmt.Sprintf("%05d", r.IntN(99_999)), SenderName: fmt.Sprint("Sender ", r.IntN(30)),
			Date: noon.AddDate(0, 0, -r.IntN(900)).Format(time.RFC3339), Amount: amount, Currency: []string{"EUR", "USD", "CHF"}[r.IntN(3)]}
		switch r.IntN(5) {
		case 0:
			s.Item(folder).Claim(at)
		case 1:
			s.Item(folder).Refuse(at, ledger.Cause{Code: "x", Text: "NOT ARCHIVED. line 9\n"})
		default:
			s.Add(fill.Item{Name: folder, Document: document, Size: int64(1 + r.IntN(3_000_000))}).Archive(at, time.Duration(1+r.IntN(100_000))*time.Second)
		}
	}
	return s
}
