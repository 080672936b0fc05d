package report

import (
	"cmp"
	"html/template"
	"math"
	"strconv"
	"time"

	"vaultd/internal/billing"
	"vaultd/internal/chart"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// shareChartsAtMost bounds the drawings of a page: that of all vaults, and those of the first ones.
const shareChartsAtMost = 10

// vaultShares is which share of what is included a vault used in the course of a year. It is for the drawing alone: the exact figures are
// those of the bill.
type vaultShares struct {
	Vault    string // empty: all vaults
	Year     int
	Months   []billing.MonthShare // of the year up to the end of each
	Forecast *shareForecast       // at the end of the year; may be nil
}

type shareForecast struct{ Share, Lowest, Highest float64 }

// listShares gives the shares of the selected year, else of the current one.
func (a *Audit) listShares(bills []billing.Bill, totals []ledger.Total) (all []vaultShares) {
	now, rule := a.c.Made.In(a.c.Location), a.c.Rule
	year, until := cmp.Or(a.c.Select.Year, now.Year()), 12
	if year == now.Year() {
		until = int(now.Month())
	}
	for _, b := range bills {
		one := vaultShares{Vault: string(b.Vault), Year: year, Months: rule.MonthShares(totals, b.Vault, year, until)}
		if b.Year != year || len(one.Months) == 0 {
			continue
		}
		if f := b.Forecast; b.HasForecast {
			one.Forecast = &shareForecast{rule.ShareOf(f.Average), rule.ShareOf(f.Lowest), rule.ShareOf(f.Highest)}
		}
		all = append(all, one)
	}
	if len(all) == 2 { // all vaults and the only one
		all = all[1:]
	}
	return all[:min(len(all), shareChartsAtMost)]
}

// ShareCharts gives the shares that are drawn.
func (s Summary) ShareCharts() []vaultShares { return s.shares }

// Draw draws the share at the end of each month, and where it will be at the end of the year.
func (v vaultShares) Draw() template.HTML {
	var labels []string
	for m := range 12 {
		labels = append(labels, strconv.Itoa(m+1))
	}
	used := chart.Line{Class: "used"}
	for _, m := range v.Months {
		used.Points = append(used.Points, chart.Point{Label: m.Month - 1, Value: m.Share})
	}
	lines := []chart.Line{used}
	if f := v.Forecast; f != nil {
		last := used.Points[len(used.Points)-1]
		for _, end := range []struct {
			class string
			value float64
		}{{"forecast", f.Share}, {"bound", f.Lowest}, {"bound", f.Highest}} {
			lines = append(lines, chart.Line{Class: end.class, IsDashed: true, Points: []chart.Point{last, {Label: 11, Value: end.value}}})
		}
	}
	return chart.Lines("Share of the included volume by month of "+strconv.Itoa(v.Year)+". The table below has the figures.", labels, lines, 1, formatShare)
}

// Of names what the shares are of.
func (v vaultShares) Of() string {
	if v.Vault == "" {
		return "all vaults, " + strconv.Itoa(v.Year)
	}
	return "vault " + sanitize.Text(v.Vault) + ", " + strconv.Itoa(v.Year)
}

// MonthName names a month of the drawing.
func (v vaultShares) MonthName(m int) string { return time.Month(m).String() }

// formatShare writes a share in percent as a bill does: what is beyond a tenth is left out.
func formatShare(share float64) string {
	const noise = 1e-6 // of a tenth: 0.29 is no number that a computer has
	return strconv.FormatFloat(math.Floor(share*1000+noise)/10, 'f', 1, 64) + " %"
}
