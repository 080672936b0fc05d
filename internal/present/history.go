package present

import (
	"slices"
	"time"
)

// The spans of a History.
const (
	HistoryDays   = 30
	HistoryMonths = 24
)

// The bounds of what a History reads, so that it costs the same whatever the ledger holds.
const (
	DelaysAtMost   = 1_000
	RejectedAtMost = 20_000
)

// DelayLimits part the times from taken to archived, here and in the audit.
var DelayLimits = [...]time.Duration{10 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour}

// DelayPart returns the part of DelayLimits that a delay belongs to: 0 below the first limit, len(DelayLimits) from the last one on.
func DelayPart(d time.Duration) int {
	part := 0
	for part < len(DelayLimits) && d >= DelayLimits[part] {
		part++
	}
	return part
}

// History tells what was archived and rejected lately, how long archiving took, and which share of the included volume is used. Days
// and months are those of the configured time zone.
//
// Everything about the archive's successes comes from the ledger. The rejected folders and the delays come by way of the catalog: they
// can lack what was committed in the last seconds.
type History struct {
	Days   []DayCounts   // HistoryDays of them, the oldest first; the last is today
	Months []MonthCounts // HistoryMonths of them, the oldest first; the last is the current month

	Delays      []DelayCounts // from the shortest on; empty where Missing says why
	DelaysOf    int           // how many documents Delays counts: of the newest DelaysAtMost archived ones those whose delay is known
	DeliveredOf int           // how many of the newest DelaysAtMost delivered ones Delays counts beside them

	Shares []VaultShare // by vault; with several vaults the customer as a whole comes first

	IsRejectedCut bool   // more folders were rejected than are counted: the oldest days and months tell fewer than there were
	Missing       string // why Rejected and Delays are not known; empty: they are known
}

// DayCounts is what came to its end on one calendar day.
type DayCounts struct {
	Year  int
	Month time.Month
	Day   int

	Archived uint64 // documents that the archive archived on this day, by its own time; each counts once
	Rejected uint64 // folders that were taken on this day and are rejected, whether corrected since or not; 0 where History.Missing says why

	Delivered uint64 // PDFs that were delivered on this day, by this machine's time; none of them is archived
}

// MonthCounts is what came to its end in one calendar month.
type MonthCounts struct {
	Year  int
	Month time.Month

	Archived uint64 // successes of the archive in this month, as the bill counts them: a document that it archived twice counts twice
	Rejected uint64 // folders that were taken in this month and are rejected, whether corrected since or not; 0 where History.Missing says why

	Delivered uint64 // PDFs that were delivered in this month, by this machine's time; none of them is archived
}

// DelayCounts is how many documents took at least From and less than Below from taken to archived, and how many from taken to delivered.
type DelayCounts struct {
	From, Below time.Duration // Below is 0 for the last one, which has no end
	Documents   uint64        // archived
	Delivered   uint64
}

// VaultShare is which share of the included volume of a year is used: the average document against the size that it may have.
type VaultShare struct {
	Vault    string // empty: all vaults of the customer
	Year     int
	Included int64 // bytes that the average document of the year may have

	Used     []MonthShare   // from the first month in which anything of known size was archived, up to the current one
	Forecast *ShareForecast // nil: too early to say
}

// MonthShare is the share that was used from the year's beginning to the end of a month, or until now.
type MonthShare struct {
	Month time.Month
	Share float64 // 1 is all that is included
}

// ShareForecast is the share on 31 December, if the rest of the year goes on as the last months did; the bounds are those of the bill.
type ShareForecast struct{ Share, Lowest, Highest float64 }

// NewHistory returns the history of today without any figure: all days and months, with zeros.
func NewHistory(c Clock) History {
	var h History
	year, month, day := c.Now.In(c.Location).Date()
	for i := range HistoryDays {
		y, m, d := calendarDay(year, month, day-HistoryDays+1+i).Date()
		h.Days = append(h.Days, DayCounts{Year: y, Month: m, Day: d})
	}
	for i := range HistoryMonths {
		y, m, _ := calendarDay(year, month-HistoryMonths+1+time.Month(i), 1).Date()
		h.Months = append(h.Months, MonthCounts{Year: y, Month: m})
	}
	return h
}

// AddRejected counts a folder that was taken at a time, which has the configured zone.
func (h *History) AddRejected(taken time.Time) {
	year, month, day := taken.Date()
	newest := h.Days[HistoryDays-1]
	back := calendarDay(newest.Year, newest.Month, newest.Day).Sub(calendarDay(year, month, day)) / (24 * time.Hour)
	if back >= 0 && back < HistoryDays {
		h.Days[HistoryDays-1-back].Rejected++
	}
	if of := h.MonthOf(year, month); of != nil {
		of.Rejected++
	}
}

// MonthOf returns a month of the history; nil: it is none of it.
func (h *History) MonthOf(year int, month time.Month) *MonthCounts {
	newest := h.Months[HistoryMonths-1]
	back := 12*(newest.Year-year) + int(newest.Month-month)
	if back < 0 || back >= HistoryMonths {
		return nil
	}
	return &h.Months[HistoryMonths-1-back]
}

// SetDelays counts delays: the known ones of the newest archived documents, and those of the newest delivered ones.
func (h *History) SetDelays(delays, delivered []time.Duration) {
	h.Delays, h.DelaysOf, h.DeliveredOf = make([]DelayCounts, len(DelayLimits)+1), len(delays), len(delivered)
	for i, limit := range DelayLimits {
		h.Delays[i].Below, h.Delays[i+1].From = limit, limit
	}
	for _, d := range delays {
		h.Delays[DelayPart(d)].Documents++
	}
	for _, d := range delivered {
		h.Delays[DelayPart(d)].Delivered++
	}
}

// DaysOfMonths returns the first and the last day of the months of the history, as [calendarDay] gives them. A clock that was set back leaves
// days after today.
func (h *History) DaysOfMonths() (first, last time.Time) {
	oldest, newest := h.Months[0], h.Months[HistoryMonths-1]
	return calendarDay(oldest.Year, oldest.Month, 1), calendarDay(newest.Year, newest.Month+1, 0)
}

// AddDelivered adds what was delivered on each of the days of its months.
func (h *History) AddDelivered(byDay []int) {
	first, _ := h.DaysOfMonths()
	newest := h.Days[HistoryDays-1]
	today := int(calendarDay(newest.Year, newest.Month, newest.Day).Sub(first) / (24 * time.Hour))
	for i, n := range byDay {
		day := first.AddDate(0, 0, i)
		h.MonthOf(day.Year(), day.Month()).Delivered += uint64(n)
		if back := today - i; back >= 0 && back < HistoryDays {
			h.Days[HistoryDays-1-back].Delivered += uint64(n)
		}
	}
}

// HasDelivered reports whether anything in the history was delivered.
func (h *History) HasDelivered() bool {
	return h.DeliveredOf > 0 || slices.ContainsFunc(h.Months, func(m MonthCounts) bool { return m.Delivered > 0 }) ||
		slices.ContainsFunc(h.Days, func(d DayCounts) bool { return d.Delivered > 0 })
}

// calendarDay stands for a day of a calendar, in any zone: to count days and to name them.
func calendarDay(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
