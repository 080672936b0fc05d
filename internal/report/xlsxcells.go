package report

import (
	"strconv"
	"strings"
	"time"

	"vaultd/internal/archive"
)

// amountCell is a number only where a spreadsheet keeps all of its digits.
func amountCell(s string) xlsxCell {
	digits := strings.TrimLeft(strings.Replace(s, ".", "", 1), "-0")
	if _, err := archive.ParseDecimal(s); err != nil || len(digits) > exactDigits || strings.Trim(s, "-.0123456789") != "" {
		return xlsxCell{textStyle, s}
	}
	return xlsxCell{amountStyle, s}
}

// firstSerial is the earliest day on which all spreadsheets agree how days are counted.
var firstSerial = time.Date(1900, time.March, 1, 0, 0, 0, 0, time.UTC)

// serialOf gives days since the end of 1899, with the time of the day as a fraction.
func serialOf(t time.Time) string {
	seconds := t.Unix() - time.Date(1899, time.December, 30, 0, 0, 0, 0, time.UTC).Unix()
	if seconds%86400 == 0 {
		return strconv.FormatInt(seconds/86400, 10)
	}
	return strconv.FormatFloat(float64(seconds)/86400, 'f', 9, 64)
}

// dateCell is a date where s is one that a spreadsheet knows, with its time of the day where it has one; else s as it is.
func dateCell(s string) xlsxCell {
	t, err := time.Parse(time.RFC3339, s)
	switch {
	case err != nil || t.Before(firstSerial) || t.Nanosecond() != 0:
		return xlsxCell{textStyle, s}
	case t.Unix()%86400 == 0:
		return xlsxCell{dateStyle, serialOf(t)}
	}
	return xlsxCell{timeStyle, serialOf(t)}
}

func timeCell(t *time.Time) xlsxCell {
	if t == nil {
		return xlsxCell{}
	}
	if t.Before(firstSerial) {
		return xlsxCell{textStyle, formatTimestamp(t)}
	}
	return xlsxCell{timeStyle, serialOf(*t)}
}
