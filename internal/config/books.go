package config

import (
	"slices"
	"time"
)

// checkBooks looks at the section of the books. Without a table it is not used.
func (c *Config) checkBooks() {
	b := c.Books
	if b.Table == "" {
		return
	}
	c.applyRules(rule{c.Extracts.BaseURL == "", locationOf("books.table"), "is there, and no extracts are taken", "set extracts.base_url, or remove books", nil})
	const definition = "write the name that it has in the table definition, which lies beside the extract's files in the custody"
	for _, one := range []struct {
		key   string
		names Names
	}{{"key", b.Columns.Key}, {"number", b.Columns.Number}, {"date", b.Columns.Date}} {
		c.applyRules(rule{len(one.names) == 0, locationOf("books.columns." + one.key), "is missing, and books.table is there", definition, nil})
	}
	day, err := time.Parse(time.DateOnly, b.From)
	c.applyRules(
		rule{b.From == "", locationOf("books.from"), "is missing, and books.table is there", "write the day from which on invoices were dropped here, like 2026-01-01", nil},
		rule{b.From != "" && (err != nil || day.Year() < 1970), locationOf("books.from"), "is not a day", "write it like 2026-01-01", nil},
		rule{len(b.Booked.Column) > 0 && len(b.Booked.Values) == 0, locationOf("books.booked.values"), "is empty, so that no record would be booked", "write the values of the column that mean booked", nil},
		rule{len(b.Booked.Column) == 0 && len(b.Booked.Values) > 0, locationOf("books.booked.column"), "is missing, and books.booked.values is there", definition, nil},
		rule{len(b.Columns.Type) == 0 && len(b.Credit) > 0, locationOf("books.columns.type"), "is missing, and books.credit_notes is there", definition, nil},
		rule{slices.Contains(b.Booked.Values, ""), locationOf("books.booked.values"), "has an empty value", "remove it: a record without a value is never booked", nil})
}
