package page

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"time"

	"vaultd/internal/chart"
	"vaultd/internal/present"
)

// charts are the drawings of the first page. Each one comes with its figures, for those who cannot see it.
type charts struct {
	Days, Months, Delays countChart
	Shares               []shareChart
	SharesLeftOut        int  // vaults without a drawing
	HasDelivered         bool // anything was delivered
	History              present.History
}

// countChart is a drawing of counts.
type countChart struct {
	Drawing template.HTML
	Rows    []countRow
}

// countRow is one row of its table.
type countRow struct {
	Name                          string
	Archived, Rejected, Delivered uint64
}

// shareChart is a drawing of how much of the included volume is used.
type shareChart struct {
	present.VaultShare
	Drawing template.HTML
}

// drawCharts draws a history. What was delivered has bars of its own, and none where there is nothing of it.
func drawCharts(f *frame, h present.History) charts {
	c := charts{History: h, HasDelivered: h.HasDelivered()}
	classes := []string{"archived", "rejected"}
	if c.HasDelivered {
		classes = append(classes, "delivered")
	}
	var bars []chart.Bar
	for _, d := range h.Days {
		day := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
		c.Days.Rows = append(c.Days.Rows, countRow{f.dateText(day), d.Archived, d.Rejected, d.Delivered})
		bars = append(bars, chart.Bar{Label: f.shortDay(day), Values: []uint64{d.Archived, d.Rejected, d.Delivered}})
	}
	c.Days.Drawing = chart.Bars(f.T("Documents by day and by what became of them. The table below has the figures."), classes, bars, f.scaleNumber)
	bars = nil
	for _, m := range h.Months {
		c.Months.Rows = append(c.Months.Rows, countRow{f.MonthName(int(m.Month)) + " " + strconv.Itoa(m.Year), m.Archived, m.Rejected, m.Delivered})
		bars = append(bars, chart.Bar{Label: fmt.Sprintf("%d/%02d", m.Month, m.Year%100), Values: []uint64{m.Archived, m.Rejected, m.Delivered}})
	}
	c.Months.Drawing = chart.Bars(f.T("Documents by month and by what became of them. The table below has the figures."), classes, bars, f.scaleNumber)
	bars = nil
	for _, d := range h.Delays {
		name := f.delayName(d)
		c.Delays.Rows = append(c.Delays.Rows, countRow{Name: name, Archived: d.Documents, Delivered: d.Delivered})
		bars = append(bars, chart.Bar{Label: name, Values: []uint64{d.Documents, d.Delivered}})
	}
	if len(bars) > 0 {
		c.Delays.Drawing = chart.Bars(f.T("Documents by the time from taken to their end. The table below has the figures."),
			slices.DeleteFunc(slices.Clone(classes), func(class string) bool { return class == "rejected" }), bars, f.scaleNumber)
	}
	drawn := fullestShares(h.Shares)
	for _, s := range drawn {
		c.Shares = append(c.Shares, shareChart{s, f.drawShare(s)})
	}
	c.SharesLeftOut = len(h.Shares) - len(drawn)
	return c
}

// mostShares is how many vaults are drawn: every open page asks for the drawings again every few seconds.
const mostShares = 12

// fullestShares returns the shares that are drawn, in their order: those that are used up the furthest.
func fullestShares(all []present.VaultShare) []present.VaultShare {
	used := func(s present.VaultShare) float64 {
		if s.Vault == "" { // the customer as a whole
			return math.Inf(1)
		}
		if len(s.Used) == 0 {
			return 0
		}
		return s.Used[len(s.Used)-1].Share
	}
	if len(all) <= mostShares {
		return all
	}
	byUse := slices.SortedStableFunc(slices.Values(all), func(a, b present.VaultShare) int { return cmp.Compare(used(b), used(a)) })[:mostShares]
	return slices.DeleteFunc(slices.Clone(all), func(s present.VaultShare) bool {
		return !slices.ContainsFunc(byUse, func(d present.VaultShare) bool { return d.Vault == s.Vault })
	})
}

// drawShare draws the share that was used up to each month, and where it will be at the end of the year.
func (f *frame) drawShare(s present.VaultShare) template.HTML {
	var labels []string
	for m := range 12 {
		labels = append(labels, strconv.Itoa(m+1))
	}
	used := chart.Line{Class: "used"}
	for _, m := range s.Used {
		used.Points = append(used.Points, chart.Point{Label: int(m.Month) - 1, Value: m.Share})
	}
	lines := []chart.Line{used}
	if n := len(used.Points); n > 0 && s.Forecast != nil {
		last := used.Points[n-1]
		for _, end := range []struct {
			class string
			value float64
		}{{"forecast", s.Forecast.Share}, {"bound", s.Forecast.Lowest}, {"bound", s.Forecast.Highest}} {
			lines = append(lines, chart.Line{Class: end.class, IsDashed: true, Points: []chart.Point{last, {Label: 11, Value: end.value}}})
		}
	}
	title := f.T("Share of the included volume by month of %s, with its forecast. The table below has the figures.", strconv.Itoa(s.Year))
	return chart.Lines(title, labels, lines, 1, f.FormatShare)
}

// FormatShare writes a share as a percentage.
func (f *frame) FormatShare(share float64) string {
	return f.FormatDecimal(strconv.FormatFloat(share*100, 'f', 1, 64)) + "\u00a0%"
}

func (f *frame) scaleNumber(n uint64) string { return f.FormatNumber(n) }

func (f *frame) shortDay(day time.Time) string {
	if f.Lang() == "de" {
		return day.Format("2.1.")
	}
	return day.Format("2 Jan")
}

// delayName says how long a delay is.
func (f *frame) delayName(d present.DelayCounts) string {
	switch {
	case d.Below == 0:
		return f.T("%s or more", f.formatLimit(d.From))
	case d.From == 0:
		return f.T("under %s", f.formatLimit(d.Below))
	}
	return f.T("%s to %s", f.formatLimit(d.From), f.formatLimit(d.Below))
}

// formatLimit writes a whole number of minutes, hours or days.
func (f *frame) formatLimit(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return f.T("%d days", int(d/(24*time.Hour)))
	case d >= time.Hour:
		return f.T("%d h", int(d/time.Hour))
	}
	return f.T("%d min", int(d/time.Minute))
}

// chartView is a chart of counts with its words, for the template that shows it.
type chartView struct {
	Frame                     *frame
	Title, Of                 string // Of is what each row is about
	Chart                     countChart
	HasRejected, HasDelivered bool
	IsSeries                  bool // its bars go from old to new
}

// Highest returns the highest number that is drawn.
func (v chartView) Highest() (highest uint64) {
	for _, row := range v.Chart.Rows {
		highest = max(highest, row.Archived, row.Rejected, row.Delivered)
	}
	return highest
}

// ViewCounts joins the chart of how long it took with its words.
func (f *frame) ViewCounts(title, of string, c charts) chartView {
	return chartView{Frame: f, Title: title, Of: of, Chart: c.Delays, HasDelivered: c.HasDelivered}
}

// ViewEnded joins a chart of what came to its end with its words.
func (f *frame) ViewEnded(title, of string, c countChart, hasDelivered bool) chartView {
	return chartView{Frame: f, Title: title, Of: of, Chart: c, HasRejected: true, HasDelivered: hasDelivered, IsSeries: true}
}

// MonthOf names a month.
func (f *frame) MonthOf(m time.Month) string { return f.MonthName(int(m)) }
