package report

import (
	"fmt"
	"html/template"
	"strconv"
	"time"

	"vaultd/internal/chart"
)

// monthsInChart is how many months the chart of months has: those up to the newest.
const monthsInChart = 24

// MonthsChart draws archived and rejected documents of the newest months, months without any included; empty: there is
// nothing to draw.
func (p *htmlPage) MonthsChart() template.HTML {
	if len(p.Months) == 0 || p.Months[0].Month == "" {
		return ""
	}
	by := map[string]monthLine{}
	oldest := p.Months[0].Month
	for _, l := range p.Months {
		if by[l.Month] = l; l.Month != "" {
			oldest = l.Month
		}
	}
	newest, err := time.Parse("2006-01", p.Months[0].Month)
	if err != nil {
		return ""
	}
	var bars []chart.Bar
	for i := monthsInChart - 1; i >= 0; i-- {
		day := newest.AddDate(0, -i, 0)
		name := day.Format("2006-01")
		if name < oldest {
			continue
		}
		label := strconv.Itoa(int(day.Month()))
		if day.Month() == time.January || len(bars) == 0 && day.Month() < time.November { // else it would touch the next one
			label = day.Format("1/06")
		}
		bars = append(bars, chart.Bar{Label: label, Values: []uint64{by[name].Archived, by[name].Rejected, by[name].Delivered}})
	}
	title, classes := "Archived and rejected documents by month. The table below has the figures.", []string{"archived", "rejected"}
	if p.HasDelivered() { // bars of its own: it is in no count of what is archived
		title, classes = "Archived, rejected and delivered documents by month. The table below has the figures.", append(classes, "delivered")
	}
	return chart.Bars(title, classes, bars, formatNumber)
}

// SpreadChart draws how long archiving took.
func (p *htmlPage) SpreadChart() template.HTML {
	var bars []chart.Bar
	for _, l := range p.Spread {
		bars = append(bars, chart.Bar{Label: l.String(), Values: []uint64{l.Documents, l.Delivered}})
	}
	title, classes := "Archived documents by the time from taken to archived. The table below has the figures.", []string{"archived"}
	if p.HasDelivered() {
		title, classes = "Documents by the time from taken to archived, and to delivered. The table below has the figures.", append(classes, "delivered")
	}
	return chart.Bars(title, classes, bars, formatNumber)
}

// String says in words how long.
func (l spreadLine) String() string {
	switch {
	case l.Below == nil:
		return formatLimit(l.From) + " or more"
	case l.From == 0:
		return "under " + formatLimit(*l.Below)
	}
	return formatLimit(l.From) + " to " + formatLimit(*l.Below)
}

func formatLimit(seconds float64) string {
	switch d := time.Duration(seconds) * time.Second; {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
}
