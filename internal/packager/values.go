package packager

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/strictjson"
)

var (
	dateOnly  = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	inUTC     = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z$`)
	withTime  = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})[Tt ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?\s*([zZ]|[+-]\d{2}:?\d{2})?$`)
	germanDay = regexp.MustCompile(`^(\d{1,2})\.(\d{1,2})\.(\d{4})$`)
	compact   = regexp.MustCompile(`^(\d{4})(\d{2})(\d{2})$`)
)

// readDate takes a day, which becomes its first instant in UTC, or an instant in UTC,
// which stays as it was written. Nothing is ever shifted to another zone.
func (f *sidecarReader) readDate(field string, v *strictjson.Value, to *string) {
	var s string
	if v.Kind == strictjson.Number {
		f.refuseDate(field, v, v.Text)
		return
	}
	if !f.readText(field, v, &s) || s == "" {
		return
	}
	full := s
	if dateOnly.MatchString(s) {
		full = s + "T00:00:00Z"
	}
	if !inUTC.MatchString(full) {
		f.refuseDate(field, v, s)
		return
	}
	t, err := time.Parse(time.RFC3339, full)
	if err != nil {
		f.addFault(v.At, field, field+" not understood", showName(s)+" is not a valid date: there is no such day or time", "Write the date of issue, like 2026-10-31")
		return
	}
	if t.Year() < 1900 || t.Year() > 2199 {
		f.addFault(v.At, field, field+" not understood", fmt.Sprintf("%s is not a likely date: the year is %d", showName(s), t.Year()), "Write the date of issue, like 2026-10-31")
		return
	}
	*to = full
}

// refuseDate says how the day that was probably meant would be written.
func (f *sidecarReader) refuseDate(field string, v *strictjson.Value, s string) {
	said, advice := showName(s)+" is not a valid date", "Write the date of issue as year-month-day, like 2026-10-31"
	day := ""
	if trimmed := strings.TrimSpace(s); trimmed != s {
		said = fmt.Sprintf("%q has a space before or behind the date", showName(s))
		s = trimmed
	}
	if dateOnly.MatchString(s) {
		day = s
	} else if m := germanDay.FindStringSubmatch(s); m != nil {
		day = fmt.Sprintf("%s-%02s-%02s", m[3], m[2], m[1])
	} else if m := compact.FindStringSubmatch(s); m != nil {
		day = m[1] + "-" + m[2] + "-" + m[3]
	} else if m := withTime.FindStringSubmatch(s); m != nil {
		day = m[1]
		switch {
		case m[4] == "":
			said = showName(s) + " does not say its time zone"
		case strings.EqualFold(m[4], "Z"):
			said = showName(s) + " is not written as a date and time must be, like 2026-10-31T14:30:00Z"
		default:
			said = showName(s) + " is not in UTC, and is not converted because that could change the day"
		}
	}
	if _, err := time.Parse(time.DateOnly, day); err == nil {
		advice = "Write " + day
		if v.Kind == strictjson.Number {
			advice = fmt.Sprintf("Write %q in quotes", day)
		}
	}
	f.addFault(v.At, field, field+" not understood", said, advice)
}

// readAmount takes a JSON number without an exponent, digit for digit.
func (f *sidecarReader) readAmount(field string, v *strictjson.Value, to *archive.Decimal) {
	switch v.Kind {
	case strictjson.Text:
		if v.Text != "" {
			f.quotedAmount(field, v, to)
		}
		return
	case strictjson.Number:
	default:
		f.addWrongKind(field, v, "a number", "Write it like 1234.56")
		return
	}
	d, err := archive.ParseDecimal(v.Text)
	switch {
	case err == nil:
		*to = d
	case strings.ContainsAny(v.Text, "eE"):
		f.addFault(v.At, field, "amount not understood", showName(v.Text)+" has an exponent", "Write all its digits, like 1234.56")
	default:
		f.addFault(v.At, field, "amount not understood", fmt.Sprintf("has %d characters; an amount has at most %d", len(v.Text), archive.MaxAmountDigit), "Write it like 1234.56")
	}
}

var (
	pointDecimal = regexp.MustCompile(`^-?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?$`)
	commaDecimal = regexp.MustCompile(`^-?(\d{1,3}([. ']\d{3})+|\d+)(,\d+)?$`)
)

// quotedAmount takes a quoted amount that can be read in one way only, as "1234.56"; the same value without quotes is sent in the
// same bytes. Of any other it says which number is probably meant, if only one.
func (f *sidecarReader) quotedAmount(field string, v *strictjson.Value, to *archive.Decimal) {
	s := strings.Join(strings.Fields(strings.ReplaceAll(v.Text, "\u00a0", " ")), " ")
	s = strings.TrimSpace(strings.Trim(s, "€$"))
	var read []string
	if _, err := archive.ParseDecimal(s); err == nil {
		read = append(read, s)
	} else if pointDecimal.MatchString(s) {
		read = append(read, strings.ReplaceAll(s, ",", ""))
	}
	if commaDecimal.MatchString(s) {
		n := strings.NewReplacer(".", "", " ", "", "'", "", ",", ".").Replace(s)
		if _, err := archive.ParseDecimal(n); err == nil && !slices.Contains(read, n) { // 0.500 is no 0500
			read = append(read, n)
		}
	}
	if len(read) == 1 && read[0] == strings.TrimSpace(v.Text) {
		*to = archive.Decimal(read[0])
		return
	}
	said, advice := "is ambiguous", "Write the number alone, like 1234.56"
	switch currency := strings.Trim(s, "-.,0123456789 '"); {
	case len(read) == 2:
		advice = fmt.Sprintf("Write %s or %s without quotes, whichever is meant", read[0], read[1])
	case len(read) == 1:
		advice = "Write " + read[0]
	case len(currency) == archive.MaxCurrency && currency != s:
		said, advice = "has more in it than a number", advice+`; the currency belongs to "currencyCode"`
	}
	f.addFault(v.At, field, "amount not understood", fmt.Sprintf(`"%s" %s`, showName(v.Text), said), advice)
}
