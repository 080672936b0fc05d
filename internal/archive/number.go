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

// NumberDigest stands for an invoice number within one vault, one sender and one day of issue. Two documents with equal
// digests bear the same invoice number. Zero: the document is not known.
type NumberDigest [16]byte

// IsZero reports whether no document is known.
func (d NumberDigest) IsZero() bool { return d == NumberDigest{} }

// NumberDigest returns what stands for the document's number in a vault. The sender is its identifiers, in any order, and
// only where it has none its name. The date is the day alone. Of texts neither the space around them, nor their case, nor
// their Unicode form counts (NFC); anything else is another number: "RE 12" is not "RE-12", and "0012" is not "12".
func (d Document) NumberDigest(v VaultID) (n NumberDigest) {
	sender := []string{"name", plainText(d.SenderName)}
	if len(d.SenderIDs) > 0 {
		var ids []string
		for _, id := range d.SenderIDs {
			ids = append(ids, plainText(id))
		}
		slices.Sort(ids)
		sender = append([]string{"ids"}, ids...)
	}
	h := sha256.New()
	for _, s := range append(sender, string(v), plainText(d.Number), d.day()) {
		fmt.Fprintf(h, "%d:%s", len(s), s) // with its length: no two lists of texts run into the same bytes
	}
	copy(n[:], h.Sum(nil))
	return n
}

// plainText maps texts that people take for one to the same text.
func plainText(s string) string { return cases.Fold().String(norm.NFC.String(strings.TrimSpace(s))) }

// day returns the day of issue, like 2026-10-31; empty where the date is none.
func (d Document) day() string {
	t, err := time.Parse(time.RFC3339, d.Date)
	if err != nil {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

// earliestDay is the first day of issue that is believed: before it hardly an invoice was made on a computer.
const earliestDay = "1990-01-01"

// HasStrangeDate reports whether the document can hardly be of its date: that is before 1990, or after the day that follows
// now. Days are those of now's time zone.
func (d Document) HasStrangeDate(now time.Time) bool {
	day := d.day()
	return day != "" && (day < earliestDay || day > now.AddDate(0, 0, 1).Format(time.DateOnly))
}
