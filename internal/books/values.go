package books

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
	"vaultd/internal/expected"
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

// trimZeros returns an amount without zeros at its end, so that amounts of one
// value have one text.
func trimZeros(amount archive.Decimal) archive.Decimal {
	if whole, fraction, ok := strings.Cut(string(amount), "."); ok {
		if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
			whole += "." + fraction
		}
		amount = archive.Decimal(whole)
	}
	if amount == "-0" {
		return "0"
	}
	return amount
}

// values are the amount, the date and the currency of a record.
type values struct {
	value
	currency           string
	wrong              string // what cannot be read
	rawAmount, rawDate string // what can be read in two ways
}

// readValues reads the amount, the date and the currency. What the amount and the
// date show of the column is noted.
func (f *folding) readValues(r record) (v values) {
	var wrong []string
	amount, day := strings.TrimSpace(r.values[amountField]), strings.TrimSpace(r.values[dateField])
	v.currency = strings.ToUpper(strings.TrimSpace(r.values[currencyField]))
	var err error
	switch {
	case amount == "":
	case r.isNumber[amountField]:
		v.amount, err = expected.ParseNumber(amount)
	default:
		var named string
		f.shown.decimal.Add(expected.DecimalOf(amount))
		v.amount, named, err = expected.ParseAmount(amount, f.settings.Decimal)
		if v.currency = cmp.Or(v.currency, named); named != "" && v.currency != named {
			wrong = append(wrong, fmt.Sprintf("amount %q names another currency than %s", amount, v.currency))
		}
	}
	v.amount = trimZeros(v.amount)
	if errors.Is(err, expected.ErrTwoWays) {
		v.rawAmount = amount
	} else if err != nil {
		wrong = append(wrong, "amount "+err.Error())
	}
	if day != "" {
		f.shown.order.Add(expected.OrderOf(day))
		text, err := expected.ParseDay(day, 0, f.settings.Location)
		if v.date = Day(text); errors.Is(err, expected.ErrTwoWays) {
			v.rawDate = day
		} else if err != nil {
			wrong = append(wrong, "date "+err.Error())
		}
	}
	v.wrong = strings.Join(wrong, ", ")
	v.unclear = f.settings.readUnsettled(v.rawAmount, v.rawDate, shown{}).unclear // until it is settled
	return v
}
