package archive

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// NumberDigest identifies an invoice number within one vault, one sender and one day of issue. Two documents with equal digests
// have the same invoice number. Zero: the document is not known.
type NumberDigest [16]byte

// IsZero reports whether no document is known.
func (d NumberDigest) IsZero() bool { return d == NumberDigest{} }

// NumberDigest returns the digest of the document's invoice number in a vault. The sender counts by its identifiers, in any
// order; where it has none, by its name. Of the date only the day counts. Spaces around a text, its case and its Unicode form do
// not count. Anything else makes another number: "RE 12" is not "RE-12", and "0012" is not "12".
func (d Document) NumberDigest(v VaultID) (n NumberDigest) {
	sender := []string{"name", PlainText(d.SenderName)}
	if len(d.SenderIDs) > 0 {
		var ids []string
		for _, id := range d.SenderIDs {
			ids = append(ids, PlainText(id))
		}
		slices.Sort(ids)
		sender = append([]string{"ids"}, ids...)
	}
	h := sha256.New()
	for _, s := range append(sender, string(v), PlainText(d.Number), d.day()) {
		fmt.Fprintf(h, "%d:%s", len(s), s) // with its length: no two lists of texts run into the same bytes
	}
	copy(n[:], h.Sum(nil))
	return n
}

// PlainText gives the same text for texts that differ only in surrounding space, case or Unicode form.
func PlainText(s string) string { return cases.Fold().String(norm.NFC.String(strings.TrimSpace(s))) }

// day returns the day of issue, like 2026-10-31; empty where the date is none.
func (d Document) day() string {
	t, err := time.Parse(time.RFC3339, d.Date)
	if err != nil {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

// earliestDay is the first day of issue that is not strange: hardly any invoice from before was made on a computer.
const earliestDay = "1990-01-01"

// HasStrangeDate reports whether the date of the document is hardly right:
// before 1990, later than tomorrow, or an instant that is another day in now's
// time zone (OtherDay). Tomorrow is a day of that zone too.
func (d Document) HasStrangeDate(now time.Time) bool {
	day := d.day()
	return day != "" && (day < earliestDay || day > now.AddDate(0, 0, 1).Format(time.DateOnly) || OtherDay(d.Date, now.Location()) != "")
}

// OtherDay returns the day in loc, like 2026-01-01, of a documentDate with a
// time of day, where it differs from the day in UTC, by which the document
// counts. Programs that convert a date of 1 January in Berlin into UTC write
// 2025-12-31T23:00:00Z. Empty: the day is the same, or the date has no time.
func OtherDay(date string, loc *time.Location) string {
	t, err := time.Parse(time.RFC3339, date)
	if err != nil || t.UTC().Equal(t.UTC().Truncate(24*time.Hour)) {
		return ""
	}
	if day := t.In(loc).Format(time.DateOnly); day != t.UTC().Format(time.DateOnly) {
		return day
	}
	return ""
}
