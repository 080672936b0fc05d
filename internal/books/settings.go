package books

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// Columns are the names of the columns that are read; empty: the table has no such column. Key and Number are always there.
type Columns struct {
	Key      string // that names a record: the last record of a key counts
	Number   string // of the invoice
	Supplier string
	Company  string // that is invoiced
	Date     string
	Amount   string
	Currency string
	Type     string
}

// Settings say which records are booked invoices and how they are read.
type Settings struct {
	Table   string
	Columns Columns
	Booked  string   // the column that tells whether a record is booked; empty: every record is
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

// names are the columns in the order of the fields.
func (s Settings) names() [fieldCount]string {
	c := s.Columns
	return [fieldCount]string{c.Key, c.Number, c.Supplier, c.Company, c.Date, c.Amount, c.Currency, c.Type, s.Booked}
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
	return s.Booked == "" || slices.Contains(s.Values, value)
}

// DefinitionError says that a table definition does not have what the settings name. The answer stops: records without that column would
// be read as if it were empty.
type DefinitionError struct {
	Extract string // its number
	Day     Day    // on which the extract was made
	Setting string // such as books.columns.amount
	Wanted  string
	Near    []string // what the definition has instead, the nearest first; at most three
}

// Error implements error.
func (e *DefinitionError) Error() string {
	text := fmt.Sprintf("%s %q is not in the table definition of %s (extract %s)", e.Setting, e.Wanted, e.Day, e.Extract)
	if len(e.Near) > 0 {
		text += "; near: " + strings.Join(e.Near, ", ")
	}
	return text
}

// definition is one table definition: the columns of each table, by its name.
type definition map[string][]string

// check returns a *DefinitionError where the settings name a table or column that the definition does not have.
func (d definition) check(s Settings, extract string, day Day) error {
	columns, ok := d[s.Table]
	if !ok {
		var tables []string
		for name := range d {
			tables = append(tables, name)
		}
		return &DefinitionError{extract, day, "books.table", s.Table, nearest(s.Table, tables)}
	}
	for i, name := range s.names() {
		if name != "" && !slices.Contains(columns, name) {
			return &DefinitionError{extract, day, fieldNames[i], name, nearest(name, columns)}
		}
	}
	return nil
}

// nearest returns the three names that are most like the wanted one, and no name that is not like it.
func nearest(wanted string, names []string) []string {
	type one struct {
		name string
		far  int
	}
	var all []one
	for _, n := range names {
		far := expected.EditDistance(strings.ToLower(wanted), strings.ToLower(n))
		if strings.Contains(strings.ToLower(n), strings.ToLower(wanted)) {
			far = 1
		}
		if far <= max(2, len(wanted)/2) {
			all = append(all, one{n, far})
		}
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Or(cmp.Compare(a.far, b.far), strings.Compare(a.name, b.name)) })
	var near []string
	for _, o := range all[:min(len(all), 3)] {
		near = append(near, o.name)
	}
	return near
}
