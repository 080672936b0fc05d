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

	monthFirst   bool // of dates with slashes
	slashesKnown bool
}

// cleanAmount takes away what does not count: space, currency, thousands apostrophes. It returns the digits with their separators
// and whether the amount is below zero.
func cleanAmount(s string) (digits string, negative bool) {
	s = strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\u00a0', '\u202f', '\'', '\u2019', '€', '$', '£', '+':
			return -1
		case '\u2212':
			return '-'
		}
		return r
	}, s)
	s = strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		return rest, true
	}
	if rest, ok := strings.CutSuffix(s, "-"); ok { // as some bookkeeping programs write it
		return rest, true
	}
	if strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") {
		return s[1 : len(s)-1], true
	}
	return s, false
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
	digits, negative := cleanAmount(s)
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
	layouts := []string{time.DateOnly, time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2.1.2006", "2.1.06", "2.1.2006 15:04", "2.1.2006 15:04:05", "20060102", "2-1-2006", "2-Jan-2006", "2 Jan 2006"}
	switch {
	case strings.Contains(s, "/") && !n.slashesKnown:
		return "", fmt.Errorf("%q may be of two months", s)
	case n.monthFirst:
		layouts = append(layouts, "1/2/2006", "1/2/06")
	default:
		layouts = append(layouts, "2/1/2006", "2/1/06", "2006/1/2")
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Format(time.DateOnly), nil
		}
	}
	return "", fmt.Errorf("%q is not a date", s)
}

// slashOrder tells which part of a date with slashes is the month, where that can be told.
func slashOrder(s string) (monthFirst, known bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return false, false
	}
	first, err1 := strconv.Atoi(parts[0])
	second, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return false, false
	}
	return second > 12, first > 12 || second > 12
}

// parseSerial gives the day of a serial number.
func parseSerial(s string) (string, error) {
	days, err := strconv.ParseFloat(s, 64)
	if err != nil || days < 61 || days > 2_958_465 {
		return "", fmt.Errorf("%q is not a date", s)
	}
	return serialDay.AddDate(0, 0, int(days)).Format(time.DateOnly), nil
}
