package books

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"vaultd/internal/expected"
)

// Day is a day like 2026-10-31; empty: none. Days compare as texts do.
type Day string

// dayOf returns the day of a time in a zone.
func dayOf(t time.Time, loc *time.Location) Day { return Day(t.In(loc).Format(time.DateOnly)) }

// time returns the beginning of the day.
func (d Day) time(loc *time.Location) time.Time {
	t, err := time.ParseInLocation(time.DateOnly, string(d), loc)
	if err != nil {
		return time.Time{}
	}
	return t
}

// next returns the day after it.
func (d Day) next() Day { return Day(d.time(time.UTC).AddDate(0, 0, 1).Format(time.DateOnly)) }

// String writes the day for people: 31 Oct 2026.
func (d Day) String() string {
	if d == "" {
		return ""
	}
	return d.time(time.UTC).Format("2 Jan 2006")
}

// Columns are the names that each column may have; empty: the table has no such
// column. Key and Number are always there.
type Columns struct {
	Key      []string // that names a record: the last record of a key counts
	Number   []string // of the invoice
	Supplier []string
	Company  []string // that is invoiced
	Date     []string
	Amount   []string
	Currency []string
	Type     []string
}

// Settings say which records are booked invoices and how they are read.
type Settings struct {
	Table   string
	Columns Columns
	Booked  []string // names of the column that tells whether a record is booked; empty: every record is
	Values  []string // of that column, where it is
	Credit  []string // values of the column Type that make a record a credit note, whatever the sign of its amount
	From    Day      // the first day that is asked about

	Separator rune           // of CSV; zero: as the first line shows
	Encoding  string         // of CSV: utf-8 or windows-1252
	Decimal   expected.Shown // of amounts that are texts: '.' or ','; zero: as the column's values show

	Location *time.Location // of days
}

// field is the place of a value in a record.
type field int

const (
	keyField field = iota
	numberField
	supplierField
	companyField
	dateField
	amountField
	currencyField
	typeField
	bookedField
	fieldCount
)

var fieldNames = [fieldCount]string{"books.columns.key", "books.columns.number", "books.columns.supplier", "books.columns.company",
	"books.columns.date", "books.columns.amount", "books.columns.currency", "books.columns.type", "books.booked.column"}

// columns are the names that the column of each field may have, the first one
// that is there counting.
type columns [fieldCount][]string

// columns returns the names of the settings.
func (s Settings) columns() columns {
	c := s.Columns
	return columns{c.Key, c.Number, c.Supplier, c.Company, c.Date, c.Amount, c.Currency, c.Type, s.Booked}
}

// readingVersion is raised with each change in how records are read.
const readingVersion = 3

// digest names how records become rows: a file made in another way is made anew.
func (s Settings) digest() string {
	s.From, s.Credit = "", nil // they change answers, and no rows
	zone := s.Location.String()
	s.Location = nil
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s %s", readingVersion, schema, zone, text))
	return hex.EncodeToString(sum[:8])
}

// isBooked reports whether the value of the column of Booked says so.
func (s Settings) isBooked(value string) bool {
	return len(s.Booked) == 0 || slices.Contains(s.Values, value)
}
