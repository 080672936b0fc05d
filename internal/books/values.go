package books

import (
	"fmt"
	"math/big"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
)

// exactNumber is the form in which numbers of invoices are compared: without space around it, in one Unicode form.
func exactNumber(s string) string { return norm.NFC.String(strings.TrimSpace(s)) }

// similarNumber is the same for numbers that differ only in blanks, in case or in zeros before the first other character. Numbers with
// one form may be one invoice, and nothing counts because of it.
func similarNumber(s string) string {
	if isASCII(s) { // as nearly all are: there the same takes a tenth of the time
		return strings.TrimLeft(strings.ToLower(blanks.Replace(s)), "0")
	}
	bare := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, norm.NFC.String(s))
	return strings.TrimLeft(cases.Fold().String(bare), "0")
}

// blanks removes the spaces of ASCII.
var blanks = strings.NewReplacer(" ", "", "\t", "", "\n", "", "\v", "", "\f", "", "\r", "")

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// longestAmount bounds the digits of an amount, so that no text of an extract makes a number of a million digits.
const longestAmount = 60

// parseAmount returns the plain decimal of an amount without zeros at its end, so that amounts of one value have one text. The decimal
// character is '.' or ','. An empty text gives an empty one.
func parseAmount(s string, decimal byte) (archive.Decimal, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return "", nil
	}
	wrong := fmt.Errorf("%q is not an amount", shorten(s))
	digits, isNegative := strings.CutPrefix(strings.TrimPrefix(s, "+"), "-")
	whole, fraction, _ := strings.Cut(digits, string(decimal))
	if exponent := strings.ContainsAny(digits, "eE"); exponent && decimal == '.' {
		return parseExponent(s)
	}
	if whole+fraction == "" || len(whole)+len(fraction) > longestAmount || strings.Trim(whole+fraction, "0123456789") != "" {
		return "", wrong
	}
	return plainAmount(isNegative, whole, fraction), nil
}

func plainAmount(isNegative bool, whole, fraction string) archive.Decimal {
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if isNegative && whole != "0" {
		whole = "-" + whole
	}
	return archive.Decimal(whole)
}

// parseExponent reads a number of JSON that has an exponent, without rounding it.
func parseExponent(s string) (archive.Decimal, error) {
	_, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	r, ok := (*big.Rat)(nil), false
	if len(s) <= longestAmount && len(strings.TrimLeft(exponent, "+-0")) <= 2 {
		r, ok = new(big.Rat).SetString(s)
	}
	if !ok {
		return "", fmt.Errorf("%q is not an amount", shorten(s))
	}
	digits, _ := r.FloatPrec() // a decimal fraction always ends
	whole, fraction, _ := strings.Cut(new(big.Rat).Abs(r).FloatString(digits), ".")
	return plainAmount(r.Sign() < 0, whole, fraction), nil
}

// dayForms are the forms of days and times without a zone. The day comes first where nothing else is told, as in the service's own times.
var dayForms = []string{time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04:05.999999999", time.DateTime, "2006-01-02 15:04:05.999999999",
	"02/01/2006", "02/01/2006, 15:04:05", "02/01/2006 15:04:05", "02.01.2006", "02.01.2006 15:04:05", "20060102"}

// parseDay returns the day of a date; an empty text gives none. A time with a zone is of the day in loc, but midnight in its own zone is
// how programs write a day alone.
func parseDay(s string, loc *time.Location) (Day, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return "", nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		if hour, minute, second := t.Clock(); hour+minute+second == 0 {
			return dayOf(t, t.Location()), nil
		}
		return dayOf(t, loc), nil
	}
	for _, form := range dayForms {
		if t, err := time.Parse(form, s); err == nil {
			return dayOf(t, time.UTC), nil
		}
	}
	return "", fmt.Errorf("%q is not a date", shorten(s))
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
