package expected

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/archive"
)

// notation is how a list writes amounts and dates.
type notation struct {
	decimal byte // '.' or ','; zero: not known yet
	at      int  // the line that shows it

	monthFirst bool // of dates with slashes or hyphens
	orderKnown bool
}

// cleanAmount takes away what does not count: space, thousands apostrophes, and the currency. It returns the digits with their
// separators, the currency where one stands there, and whether the amount is below zero. Other letters stay: "H" and "CR" mean a sign.
func cleanAmount(s string) (digits, currency string, negative bool) {
	s = strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\u00a0', '\u202f', '\'', '\u2019', '+':
			return -1
		case '\u2212':
			return '-'
		}
		return r
	}, s)
	s, currency = cutCurrency(s)
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		if rest, inner := cutCurrency(rest); currency == "" { // -€100
			return rest, inner, true
		}
		return rest, currency, true
	}
	if rest, ok := strings.CutSuffix(s, "-"); ok { // as some bookkeeping programs write it
		return rest, currency, true
	}
	if strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") {
		return s[1 : len(s)-1], currency, true
	}
	return s, currency, false
}

// symbols are the signs of currencies.
var symbols = map[string]string{"€": "EUR", "£": "GBP", "$": "USD"}

// cutCurrency takes a currency off the beginning or the end of an amount.
func cutCurrency(s string) (rest, currency string) {
	for symbol, code := range symbols {
		if rest, ok := strings.CutPrefix(s, symbol); ok {
			return rest, code
		}
		if rest, ok := strings.CutSuffix(s, symbol); ok {
			return rest, code
		}
	}
	isCode := func(s string) bool { return len(strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) == 0 }
	switch {
	case len(s) <= 3:
	case isCode(s[:3]):
		return s[3:], s[:3]
	case isCode(s[len(s)-3:]):
		return s[:len(s)-3], s[len(s)-3:]
	}
	return s, ""
}

// decimalOf tells which character is the decimal one of an amount: '.', ',', or zero where it has none or may be either.
func decimalOf(digits string) byte {
	point, comma := strings.LastIndexByte(digits, '.'), strings.LastIndexByte(digits, ',')
	switch {
	case point < 0 && comma < 0:
		return 0
	case point >= 0 && comma >= 0:
		if point > comma {
			return '.'
		}
		return ','
	}
	one, other := byte('.'), byte(',')
	if comma >= 0 {
		one, other = ',', '.'
	}
	whole, rest, _ := strings.Cut(digits, string(one))
	switch {
	case strings.Contains(rest, string(one)): // more than one: they part thousands
		return other
	case len(rest) != 3 || len(whole) > 3 || whole == "0" || whole == "":
		return one
	}
	return 0
}

// parseAmount gives the plain decimal of an amount that is written with a decimal character; zero: with none.
func parseAmount(s string, decimal byte) (string, error) {
	digits, _, negative := cleanAmount(s)
	thousands := ","
	if decimal == ',' {
		thousands = "."
	}
	whole, rest, _ := strings.Cut(digits, string(max(decimal, ' ')))
	groups := strings.Split(whole, thousands)
	for i, g := range groups {
		if i > 0 && len(g) != 3 || i == 0 && len(groups) > 1 && (len(g) == 0 || len(g) > 3) {
			return "", fmt.Errorf("%q is not an amount", s)
		}
	}
	plain := strings.TrimLeft(strings.Join(groups, ""), "0")
	if plain == "" {
		plain = "0"
	}
	if rest != "" {
		plain += "." + rest
	}
	if negative {
		plain = "-" + plain
	}
	if _, err := archive.ParseDecimal(plain); err != nil || strings.Trim(plain, "-.0123456789") != "" || strings.Trim(digits, ".,") == "" {
		return "", fmt.Errorf("%q is not an amount", s)
	}
	return plain, nil
}

// plainNumber gives the decimal of a number of a spreadsheet, which keeps fifteen digits.
func plainNumber(s string) (string, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return "", fmt.Errorf("%q is not a number", s)
	}
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', 14, 64))
	if !ok {
		return "", fmt.Errorf("%q is not a number", s)
	}
	n, _ := r.FloatPrec()
	return r.FloatString(n), nil
}

// serialDay is the first day of the serial numbers of a spreadsheet.
var serialDay = time.Date(1899, time.December, 30, 0, 0, 0, 0, time.UTC)

// parseDate gives the day like 2026-10-31.
func parseDate(s string, n notation) (string, error) {
	layouts := []string{time.DateOnly, time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2.1.2006", "2.1.06", "2.1.2006 15:04", "2.1.2006 15:04:05", "20060102", "2-Jan-2006", "2 Jan 2006", "2006/1/2"}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Format(time.DateOnly), nil
		}
	}
	switch parts := dayParts(s); {
	case parts != nil && !n.orderKnown:
		return "", fmt.Errorf("%q may be of two months", s)
	case n.monthFirst:
		layouts = []string{"1/2/2006", "1/2/06", "1-2-2006", "1-2-06"}
	default:
		layouts = []string{"2/1/2006", "2/1/06", "2-1-2006", "2-1-06"}
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Format(time.DateOnly), nil
		}
	}
	return "", fmt.Errorf("%q is not a date", s)
}

// PossibleDays returns the days that a date of a sidecar may mean, in whatever
// notation it is; none where it is not a date. A time of day may be of two days.
func PossibleDays(s string, loc *time.Location) (days []time.Time) {
	s = strings.TrimSpace(s)
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return []time.Time{t, t.UTC(), t.In(loc)}
	}
	for _, monthFirst := range []bool{false, true} {
		if day, err := parseDate(s, notation{monthFirst: monthFirst, orderKnown: true}); err == nil {
			t, _ := time.Parse(time.DateOnly, day) // parseDate wrote it
			days = append(days, t)
		}
	}
	return days
}

// dayParts gives the two numbers before the year of a date with slashes or hyphens; nil: it is none.
func dayParts(s string) []int {
	for _, by := range []string{"/", "-"} {
		parts := strings.Split(s, by)
		if len(parts) != 3 || len(parts[0]) > 2 {
			continue
		}
		first, err1 := strconv.Atoi(parts[0])
		second, err2 := strconv.Atoi(parts[1])
		if err1 == nil && err2 == nil {
			return []int{first, second}
		}
	}
	return nil
}

// dayOrder tells which part of such a date is the month, where that can be told.
func dayOrder(s string) (monthFirst, known bool) {
	parts := dayParts(s)
	if parts == nil {
		return false, false
	}
	return parts[1] > 12, parts[0] > 12 || parts[1] > 12
}

// daysTo1904 is by how much a serial number is less in a workbook that counts days from 1904.
const daysTo1904 = 1462

// parseSerial gives the day of a serial number. more is added to it.
func parseSerial(s string, more int) (string, error) {
	days, err := strconv.ParseFloat(s, 64)
	if days += float64(more); err != nil || !(days >= 61 && days <= 2_958_465) {
		return "", fmt.Errorf("%q is not a date", s)
	}
	return serialDay.AddDate(0, 0, int(days)).Format(time.DateOnly), nil
}
