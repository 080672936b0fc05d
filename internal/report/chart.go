package report

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
)

// The charts are drawings of figures that stand in a table beside them: they name no figure that the table has not. They have no
// style of their own, because the page's policy forbids it: their classes are in audit.css.
const (
	chartWidth  = 720
	chartHeight = 170
	chartLeft   = 60 // room for the scale
	chartTop    = 12
	chartBottom = 140 // the base line
)

// monthsInChart is how many months the chart of months has: those up to the newest.
const monthsInChart = 24

// bar is one group of a chart: a value for each of the chart's classes.
type bar struct {
	label  string
	values []uint64
}

// drawBars draws groups of bars. title says what is drawn, for those who cannot see it; classes are those of the bars in each group.
func drawBars(title string, classes []string, bars []bar) template.HTML {
	highest := uint64(1)
	for _, b := range bars {
		for _, v := range b.values {
			highest = max(highest, v)
		}
	}
	top := roundUp(highest)
	var w strings.Builder
	fmt.Fprintf(&w, `<svg class="chart" viewBox="0 0 %d %d" role="img" aria-label="%s">`, chartWidth, chartHeight, template.HTMLEscapeString(title))
	for _, line := range []uint64{0, top / 2, top} {
		if line == 0 || line != top/2 || top%2 == 0 {
			y := chartY(line, top)
			fmt.Fprintf(&w, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="scale" x="%d" y="%.1f">%s</text>`,
				chartLeft, chartWidth, y, y, chartLeft-6, y+4, formatNumber(line))
		}
	}
	slot := float64(chartWidth-chartLeft) / float64(max(len(bars), 1))
	width := slot * 0.7 / float64(len(classes))
	for i, b := range bars {
		left := chartLeft + slot*(float64(i)+0.15)
		for j, v := range b.values {
			if v > 0 { // one document in a million is still to be seen
				y := min(chartY(v, top), chartBottom-1)
				fmt.Fprintf(&w, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, classes[j], left+width*float64(j), y, width, chartBottom-y)
			}
		}
		fmt.Fprintf(&w, `<text class="label" x="%.1f" y="%d">%s</text>`, left+slot*0.35, chartBottom+16, template.HTMLEscapeString(b.label))
	}
	w.WriteString("</svg>")
	return template.HTML(w.String()) //nolint:gosec // numbers, and texts that are escaped
}

func chartY(v, top uint64) float64 {
	return chartBottom - (chartBottom-chartTop)*float64(v)/float64(top)
}

// roundUp gives the least of 1, 2, 5, 10, 20, 50, 100 … that is not less than n.
func roundUp(n uint64) uint64 {
	for unit := uint64(1); ; unit *= 10 {
		for _, of := range []uint64{1, 2, 5} {
			if of*unit >= n || unit > 1<<59 {
				return of * unit
			}
		}
	}
}

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
	var bars []bar
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
		bars = append(bars, bar{label, []uint64{by[name].Archived, by[name].Rejected}})
	}
	return drawBars("Archived and rejected documents by month. The table below has the figures.", []string{"archived", "rejected"}, bars)
}

// SpreadChart draws how long archiving took.
func (p *htmlPage) SpreadChart() template.HTML {
	var bars []bar
	for _, l := range p.Spread {
		bars = append(bars, bar{l.String(), []uint64{l.Documents}})
	}
	return drawBars("Archived documents by the time from taken to archived. The table below has the figures.", []string{"archived"}, bars)
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
