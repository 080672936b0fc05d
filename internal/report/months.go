package report

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// month is a month by which documents count. The zero one stands for dates that can hardly be right.
type month struct {
	year int
	of   time.Month
}

// String gives a month as 2026-10; empty: the zero one.
func (m month) String() string {
	if m == (month{}) {
		return ""
	}
	return fmt.Sprintf("%04d-%02d", m.year, m.of)
}

// monthSumsAtMost bounds how many sums of a month, a type and a currency are counted: the page has all of them.
const monthSumsAtMost = 3000

// months counts the selected documents by month.
type months struct {
	states map[month]*monthLine
	sums   map[monthGroup]*sum
	cut    bool // there were more sums than that: none is shown
}

type monthGroup struct {
	month
	group
}

// monthLine is one month in figures.
type monthLine struct {
	Month    string    `json:"month"` // 2026-10; empty: dates before 1990 or after the next year
	Seen     uint64    `json:"seen"`
	Archived uint64    `json:"archived"`
	Rejected uint64    `json:"rejected"`
	Others   uint64    `json:"others"` // seen, and neither archived, delivered nor rejected
	Sums     []sumLine `json:"sums"`   // of what is archived

	Delivered uint64 `json:"delivered,omitempty"` // absent: none is
}

func newMonths() months { return months{states: map[month]*monthLine{}, sums: map[monthGroup]*sum{}} }

// monthOf returns the month by which a document counts.
func (c Config) monthOf(e ledger.Entry, m archive.Document) month {
	day := dayOf(e, m, c.Location)
	if day.Year() < 1990 || day.Year() > c.Made.Year()+1 {
		return month{}
	}
	return month{day.Year(), day.Month()}
}

func (m months) countState(in month, s ledger.State) {
	l := m.states[in]
	if l == nil {
		l = &monthLine{}
		m.states[in] = l
	}
	l.Seen++
	switch s {
	case ledger.Archived:
		l.Archived++
	case ledger.Delivered:
		l.Delivered++
	case ledger.Rejected:
		l.Rejected++
	default:
		l.Others++
	}
}

// addAmount adds an archived document to the sums of its month.
func (m *months) addAmount(in month, g group, amount *big.Rat) {
	if m.cut {
		return
	}
	addAmount(m.sums, monthGroup{in, g}, amount)
	if len(m.sums) > monthSumsAtMost {
		m.cut, m.sums = true, nil
	}
}

// list gives the months, the newest first. cut tells that their sums are left out.
func (m months) list() (lines []monthLine, cut bool) {
	sums := map[month][]sumLine{}
	for k, s := range m.sums {
		sums[k.month] = append(sums[k.month], newSumLine(k.group, s))
	}
	lines = []monthLine{}
	for k, l := range m.states {
		one := *l
		one.Month, one.Sums = k.String(), sortSums(sums[k])
		lines = append(lines, one)
	}
	slices.SortFunc(lines, func(a, b monthLine) int { return cmp.Compare(b.Month, a.Month) })
	return lines, m.cut
}

// yearOfMonths is the months of one year and their total, as the page shows them.
type yearOfMonths struct {
	Total  monthLine
	Months []monthLine
}

// Years groups the months by year, the newest first.
func (s Summary) Years() []yearOfMonths {
	var years []yearOfMonths
	for _, l := range s.Months {
		name := ""
		if l.Month != "" {
			name = l.Month[:4]
		}
		if n := len(years); n == 0 || years[n-1].Total.Month != name {
			years = append(years, yearOfMonths{Total: monthLine{Month: name}})
		}
		y := &years[len(years)-1]
		y.Months = append(y.Months, l)
		y.Total.Seen, y.Total.Archived = y.Total.Seen+l.Seen, y.Total.Archived+l.Archived
		y.Total.Rejected, y.Total.Others = y.Total.Rejected+l.Rejected, y.Total.Others+l.Others
		y.Total.Delivered += l.Delivered
	}
	for i := range years {
		years[i].Total.Sums = addSums(years[i].Months)
	}
	return years
}

// addSums adds the sums of several months.
func addSums(lines []monthLine) []sumLine {
	sums := map[group]*sum{}
	for _, l := range lines {
		for _, one := range l.Sums {
			k := group{one.Type, one.Currency}
			if sums[k] == nil {
				sums[k] = &sum{}
			}
			sums[k].count += one.Documents
			sums[k].total.Add(&sums[k].total, archive.Decimal(one.Total).Rat())
		}
	}
	return listSums(sums)
}

func listSums(sums map[group]*sum) []sumLine {
	var lines []sumLine
	for k, s := range sums {
		lines = append(lines, newSumLine(k, s))
	}
	return sortSums(lines)
}

func newSumLine(k group, s *sum) sumLine {
	return sumLine{Type: k.kind, Currency: k.currency, Documents: s.count, Total: formatDecimal(&s.total)}
}

// sortSums gives the sums in a fixed order; never nil.
func sortSums(lines []sumLine) []sumLine {
	if lines == nil {
		return []sumLine{}
	}
	slices.SortFunc(lines, func(a, b sumLine) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Currency, b.Currency))
	})
	return lines
}
