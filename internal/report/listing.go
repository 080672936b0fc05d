package report

import (
	"cmp"
	"html/template"
	"slices"

	"vaultd/internal/sanitize"
)

// What the page has room for. With everything else it stays under three megabytes, which every browser opens, whatever the
// ledger holds and whatever people wrote into names.
const (
	rowsOnPage  = 2000      // above that the table has the newest only
	newestRows  = 200       // of a longer table
	tableBudget = 1_200_000 // bytes of rows
	listBudget  = 1_200_000 // bytes of all lists together
)

// listing is what the page shows of a list.
type listing[T any] struct {
	Items []T
	More  uint64 // how many are not shown
}

// listItems takes items from the front of a list for as long as the page has room. markup is the bytes that the page
// adds to each, texts gives what each of them shows.
func listItems[T any](p *htmlPage, all []T, markup int, texts func(T) []string) listing[T] {
	for i, one := range all {
		size := markup
		for _, text := range texts(one) {
			size += len(sanitize.HTML(text))
		}
		if p.room -= size; p.room < 0 {
			p.room += size
			return listing[T]{all[:i], uint64(len(all) - i)}
		}
	}
	return listing[T]{Items: all}
}

// The lists of the page, in the order in which it shows them: the first ones get the room.

func (p *htmlPage) ListFindings() listing[finding] {
	return listItems(p, p.Check.Findings, 80, func(f finding) []string { return []string{f.Key, f.Text} })
}

func (p *htmlPage) ListMissing() listing[missingRow] {
	l := listItems(p, p.Expected.MissingRows, 200, func(r missingRow) []string {
		return []string{r.Number, r.Sender, r.Date, r.Amount, r.Currency, r.Found}
	})
	l.More += p.Expected.Missing - uint64(len(p.Expected.MissingRows))
	return l
}

// ListBooked takes the booked invoices that are not archived.
func (p *htmlPage) ListBooked() listing[bookedRow] {
	l := listItems(p, p.Booked.MissingRows, 200, func(r bookedRow) []string {
		return []string{r.Number, r.Supplier, r.Amount, r.Currency, r.Found}
	})
	l.More += p.Booked.NotArchived - uint64(len(p.Booked.MissingRows))
	return l
}

// ListTexts takes the texts of a list that has count of them.
func (p *htmlPage) ListTexts(texts []string, count uint64) listing[string] {
	l := listItems(p, texts, 30, func(s string) []string { return []string{s} })
	l.More += count - uint64(len(texts))
	return l
}

func (p *htmlPage) ListNames(n need) listing[string] { return p.ListTexts(n.Names, n.Count) }

func (p *htmlPage) ListNotTaken(d notTakenDrop) listing[notTakenItem] {
	l := listItems(p, d.Items, 120, func(i notTakenItem) []string { return []string{i.Name, p.DescribeItem(i)} })
	l.More += d.Unnamed
	return l
}

func (p *htmlPage) ListLate() listing[string] { return p.ListTexts(p.Since.Names, p.Since.Late) }

func (p *htmlPage) ListSums() listing[sumLine] {
	return listItems(p, p.Sums, 120, func(s sumLine) []string { return []string{s.Type, s.Currency, s.Total} })
}

func (p *htmlPage) ListBills() listing[billLine] {
	return listItems(p, p.Bills, 1200, func(b billLine) []string { return []string{b.Vault, b.Vault} })
}

func (p *htmlPage) ListNotProven() listing[doubt] {
	return listItems(p, p.NotProven, 20, func(d doubt) []string { return []string{d.Text} })
}

func (p *htmlPage) ListActs() listing[act] {
	return listItems(p, p.Acts, 800, func(a act) []string { return []string{a.BumID, a.Reason} })
}

func (p *htmlPage) ListUnused() listing[unused] {
	return listItems(p, p.Unused, 800, func(u unused) []string { return []string{u.BumID} })
}

// ListKeys takes keys, with the folder of each.
func (p *htmlPage) ListKeys(keys []string) listing[string] {
	return listItems(p, keys, 800, func(k string) []string { return []string{k} })
}

// pageTable is the table as far as the page has it.
type pageTable struct {
	Rows    []pageRow
	Closing Closing

	bytes int
	full  bool // only the newest are on the page
}

// pageRow is a row of the table.
type pageRow struct {
	month month
	html  template.HTML
}

// add takes the next row; render is not called for one that is not shown.
func (t *pageTable) add(in month, render func() template.HTML) {
	if t.full {
		return
	}
	h := render()
	t.bytes += len(h)
	if len(t.Rows) == rowsOnPage || t.bytes > tableBudget {
		t.full = true
		t.Rows = append([]pageRow(nil), t.Rows[:min(len(t.Rows), newestRows)]...)
		return
	}
	t.Rows = append(t.Rows, pageRow{in, h})
}

// IsNewestOnly reports whether the page leaves rows out.
func (t *pageTable) IsNewestOnly() bool { return t.full }

// monthRows are the rows of one month, with what it sums up to.
type monthRows struct {
	Month *monthLine // nil: rows of any month
	Rows  []template.HTML
}

// GroupRows gives the rows by month, the newest month first, and in it the
// newest folder first. If the page leaves rows out they stand together: a sum
// over a part of a month would be taken for its sum.
func (p *htmlPage) GroupRows(t *pageTable) []monthRows {
	rows := slices.Clone(t.Rows)
	if !t.full {
		slices.SortStableFunc(rows, func(a, b pageRow) int { return cmp.Compare(b.month.String(), a.month.String()) })
	}
	var groups []monthRows
	for i, r := range rows {
		if i == 0 || !t.full && r.month != rows[i-1].month {
			groups = append(groups, monthRows{})
		}
		g := &groups[len(groups)-1]
		if g.Rows = append(g.Rows, r.html); g.Month == nil && !t.full {
			g.Month = p.monthLine(r.month)
		}
	}
	return groups
}

// monthLine returns what a month sums up to. One that came after the summary was made has no figures.
func (p *htmlPage) monthLine(m month) *monthLine {
	for i := range p.Months {
		if p.Months[i].Month == m.String() {
			return &p.Months[i]
		}
	}
	return &monthLine{Month: m.String()}
}
