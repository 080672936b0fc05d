package present

import "time"

// Clock tells times to people.
type Clock struct {
	Now      time.Time
	Location *time.Location
}

// Brief gives the hour for today and the day besides for other days; "-" for none.
func (c Clock) Brief(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	t, now := t.In(c.Location), c.Now.In(c.Location)
	switch {
	case sameDay(t, now):
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006 15:04")
}

// Zoned is brief with the zone, for where no other time beside it tells that.
func (c Clock) Zoned(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return c.Brief(t) + t.In(c.Location).Format(" MST")
}

// Exact gives day and second with the zone.
func (c Clock) Exact(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.In(c.Location).Format("2006-01-02 15:04:05 MST")
}

// Ago gives the time that has passed since t.
func (c Clock) Ago(t time.Time) string { return FormatAge(c.Now.Sub(t)) }

// IsToday reports whether t is on this calendar day.
func (c Clock) IsToday(t time.Time) bool {
	return !t.IsZero() && sameDay(t.In(c.Location), c.Now.In(c.Location))
}

func sameDay(a, b time.Time) bool { return a.YearDay() == b.YearDay() && a.Year() == b.Year() }
