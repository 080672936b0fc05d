package expected

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/archive"
)

// ErrTwoWays says that a value can be read in two ways. The other values of its
// column may show which one is right; nothing else does.
var ErrTwoWays = errors.New("can be read in two ways")

// Shown is how the values of a column are written, as those of them show it that
// can be read in one way only: the decimal character of amounts, or what comes
// first in a date. Zero: none of them shows it.
type Shown byte

// Mixed says that values of one column are written in two ways.
const Mixed Shown = '!'

// Add adds what one more value, or one more column, shows.
func (s *Shown) Add(one Shown) {
	switch {
	case one == 0 || *s == one:
	case *s == 0:
		*s = one
	default:
		*s = Mixed
	}
}

// The order of day and month in dates like 3/4/2026.
const (
	dayFirst   Shown = 'd'
	monthFirst Shown = 'm'
)

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

// DecimalOf returns the decimal character that an amount shows: '.', ',', or zero
// where it has none or may be either.
func DecimalOf(s string) Shown {
	digits, _, _ := cleanAmount(s)
	if isExponent(digits) {
		digits, _, _ = strings.Cut(strings.ToLower(digits), "e")
		if strings.Contains(digits, ".") {
			return '.'
		}
		return 0
	}
	point, comma := strings.LastIndexByte(digits, '.'), strings.LastIndexByte(digits, ',')
	switch {
	case strings.Trim(digits, ".,0123456789") != "":
		return 0 // it is no amount
	case point < 0 && comma < 0:
		return 0
	case point >= 0 && comma >= 0:
		if point > comma {
			return '.'
		}
		return ','
	}
	one, other := Shown('.'), Shown(',')
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

// longestAmount bounds the digits of an amount, so that no text makes a number of
// a million digits.
const longestAmount = 60

// ParseAmount returns the plain decimal of an amount as people and programs of
// bookkeeping write it, and the currency that it names. decimal is the decimal
// character of its column. If that is not known, an amount that shows it
// itself is read, and for others the error wraps ErrTwoWays.
func ParseAmount(s string, decimal Shown) (amount archive.Decimal, currency string, err error) {
	digits, currency, negative := cleanAmount(s)
	wrong := fmt.Errorf("%q is not an amount", shorten(s))
	if isExponent(digits) && decimal != ',' {
		if amount, err = ParseNumber(digits); err == nil && negative && amount != "0" {
			amount = "-" + amount
		}
		return amount, currency, err
	}
	if len(digits) > longestAmount || strings.Trim(digits, ".,0123456789") != "" || strings.Trim(digits, ".,") == "" {
		return "", "", wrong
	}
	if decimal != '.' && decimal != ',' {
		decimal = DecimalOf(s)
	}
	if decimal == 0 && strings.ContainsAny(digits, ".,") {
		return "", currency, fmt.Errorf("%q %w", shorten(s), ErrTwoWays)
	}
	thousands := ","
	if decimal == ',' {
		thousands = "."
	}
	whole, rest, _ := strings.Cut(digits, string(max(decimal, ' ')))
	groups := strings.Split(whole, thousands)
	for i, g := range groups {
		if i > 0 && len(g) != 3 || i == 0 && len(groups) > 1 && (len(g) == 0 || len(g) > 3) {
			return "", "", wrong
		}
	}
	if strings.ContainsAny(rest, ".,") {
		return "", "", wrong
	}
	plain := strings.TrimLeft(strings.Join(groups, ""), "0")
	if plain == "" {
		plain = "0"
	}
	if rest != "" {
		plain += "." + rest
	}
	if negative && strings.Trim(plain, "0.") != "" {
		plain = "-" + plain
	}
	return archive.Decimal(plain), currency, nil
}

// isExponent reports whether digits are a number with an exponent.
func isExponent(digits string) bool {
	mantissa, exponent, ok := strings.Cut(strings.ToLower(digits), "e")
	return ok && mantissa != "" && exponent != "" && strings.Trim(mantissa, ".0123456789") == "" && strings.Trim(exponent, "+-0123456789") == ""
}

// ParseNumber returns the plain decimal of a number as programs write it: with a
// decimal point, and perhaps an exponent. It rounds nothing.
func ParseNumber(s string) (archive.Decimal, error) {
	wrong := fmt.Errorf("%q is not an amount", shorten(s))
	_, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if len(s) > longestAmount || strings.Trim(s, "+-.0123456789eE") != "" || len(strings.TrimLeft(exponent, "+-0")) > 2 {
		return "", wrong
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return "", wrong
	}
	digits, _ := r.FloatPrec() // a decimal fraction always ends
	return archive.Decimal(r.FloatString(digits)), nil
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
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

// dateForms are the forms of days that can be read in one way only, and that a
// time of day may follow.
var dateForms = []string{time.DateOnly, "2006/1/2", "2.1.2006", "2.1.06", "20060102"}

// ParseDay returns the day of a date like 2026-10-31. order is what comes first
// in dates of its column like 3/4/2026. If that is not known, a date that
// shows it itself is read, and for others the error wraps ErrTwoWays.
//
// A time with a zone is of the day in loc, but midnight in its own zone is how
// programs write a day alone.
func ParseDay(s string, order Shown, loc *time.Location) (string, error) {
	s = strings.TrimSpace(s)
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		if hour, minute, second := t.Clock(); hour+minute+second != 0 {
			t = t.In(loc)
		}
		return t.Format(time.DateOnly), nil
	}
	if order != dayFirst && order != monthFirst {
		order = OrderOf(s)
	}
	day, clock := cutClock(s)
	forms := dateForms
	switch {
	case dayParts(day) == nil:
	case order == 0:
		return "", fmt.Errorf("%q may be of two months: it %w", shorten(s), ErrTwoWays)
	case order == monthFirst:
		forms, day = []string{"1/2/2006", "1/2/06"}, strings.ReplaceAll(day, "-", "/")
	default:
		forms, day = []string{"2/1/2006", "2/1/06"}, strings.ReplaceAll(day, "-", "/")
	}
	for _, form := range forms {
		if t, err := time.Parse(form, day); err == nil && isClock(clock) {
			return t.Format(time.DateOnly), nil
		}
	}
	for _, form := range []string{"2-Jan-2006", "2 Jan 2006"} {
		if t, err := time.Parse(form, s); err == nil {
			return t.Format(time.DateOnly), nil
		}
	}
	return "", fmt.Errorf("%q is not a date", shorten(s))
}

// PossibleDays returns the days that a date of a sidecar may mean, in whatever
// notation it is; none where it is not a date. A time of day may be of two days.
func PossibleDays(s string, loc *time.Location) (days []time.Time) {
	s = strings.TrimSpace(s)
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return []time.Time{t, t.UTC(), t.In(loc)}
	}
	for _, order := range []Shown{dayFirst, monthFirst} {
		if day, err := ParseDay(s, order, loc); err == nil {
			t, _ := time.Parse(time.DateOnly, day) // ParseDay wrote it
			days = append(days, t)
		}
	}
	return days
}

// cutClock parts a date from the time of day behind it.
func cutClock(s string) (day, clock string) {
	i := strings.IndexAny(s, " ,T")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " ,T")
}

// isClock reports whether a text is a time of day, or empty.
func isClock(s string) bool {
	for _, form := range []string{"15:04:05", "15:04", "3:04:05 PM", "3:04 PM"} {
		if _, err := time.Parse(form, s); err == nil {
			return true
		}
	}
	return s == ""
}

// dayParts returns the two numbers before the year of a date with slashes or
// hyphens; nil: it is none.
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

// OrderOf returns what comes first in a date, where the date shows it; else zero.
func OrderOf(s string) Shown {
	day, _ := cutClock(strings.TrimSpace(s))
	parts := dayParts(day)
	switch {
	case parts == nil:
		return 0
	case parts[1] > 12:
		return monthFirst
	case parts[0] > 12:
		return dayFirst
	}
	return 0
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
