package expected

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// stack is what the head line of a DATEV export says of the time of its rows,
// whose dates are a day and a month alone.
type stack struct{ yearBegins, first, last time.Time }

// readHead reads such a head line; nil: it is none.
func readHead(cells []string) *stack {
	if len(cells) < 16 || cells[0] != "EXTF" && cells[0] != "DTVF" {
		return nil
	}
	day := func(s string) time.Time {
		t, err := time.Parse("20060102", strings.TrimSpace(s))
		if err != nil {
			return time.Time{}
		}
		return t
	}
	return &stack{yearBegins: day(cells[12]), first: day(cells[14]), last: day(cells[15])}
}

// errNoYear says why a date of DATEV cannot be read without its head line.
var errNoYear = errors.New("is a day and a month without a year, which the first line of a DATEV export (EXTF) tells")

// isDayAndMonth reports whether a text is a date of DATEV without its year: a day
// of one or two digits, and a month of two.
func isDayAndMonth(s string) bool {
	return (len(s) == 3 || len(s) == 4) && strings.Trim(s, "0123456789") == ""
}

// parseDay returns the day of a date without its year: the one in the time of the
// rows, else the one in their business year.
func (h *stack) parseDay(s string) (string, error) {
	if h == nil {
		return "", fmt.Errorf("%q %w", s, errNoYear)
	}
	day, err1 := strconv.Atoi(s[:len(s)-2])
	month, err2 := strconv.Atoi(s[len(s)-2:])
	find := func(first, last time.Time) (found []string) {
		for year := first.Year(); !first.IsZero() && year <= last.Year() && year <= first.Year()+2; year++ {
			t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
			if t.Day() == day && t.Month() == time.Month(month) && !t.Before(first) && !t.After(last) {
				found = append(found, t.Format(time.DateOnly))
			}
		}
		return found
	}
	found := find(h.first, h.last)
	if len(found) == 0 && !h.yearBegins.IsZero() {
		found = find(h.yearBegins, h.yearBegins.AddDate(1, 0, -1))
	}
	switch {
	case err1 != nil || err2 != nil || len(found) == 0:
		return "", fmt.Errorf("%q is not a day and month in the time that row 1 names", s)
	case len(found) > 1:
		return "", fmt.Errorf("%q may be of two years: it %w", s, ErrTwoWays)
	}
	return found[0], nil
}
