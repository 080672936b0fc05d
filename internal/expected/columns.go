package expected

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// The fields that a list may have. Each is also the word before the equals sign of a mapping.
const (
	fieldNumber   = "number"
	fieldSender   = "sender"
	fieldDate     = "date"
	fieldAmount   = "amount"
	fieldCurrency = "currency"
)

var fields = []string{fieldNumber, fieldSender, fieldDate, fieldAmount, fieldCurrency}

// knownNames are what columns are called, as foldName writes it.
var knownNames = map[string][]string{
	fieldNumber: {"number", "documentid", "documentnumber", "documentno", "docno", "invoicenumber", "invoiceno", "invoiceid", "invoice", "vouchernumber", "externaldocumentno",
		"belegnummer", "belegnr", "beleg", "rechnungsnummer", "rechnungsnr", "rechnung", "rechnr", "rgnr", "renr", "belegfeld1"},
	fieldSender:   {"sender", "sendername", "supplier", "suppliername", "vendor", "vendorname", "absender", "lieferant", "lieferantenname", "kreditor", "kreditorname", "rechnungssteller"},
	fieldDate:     {"date", "documentdate", "invoicedate", "postingdate", "datum", "belegdatum", "rechnungsdatum", "rgdatum"},
	fieldAmount:   {"amount", "total", "totalamount", "gross", "grossamount", "invoiceamount", "betrag", "bruttobetrag", "brutto", "rechnungsbetrag", "gesamtbetrag", "umsatz", "umsatzohnesollhabenkz"},
	fieldCurrency: {"currency", "currencycode", "wahrung", "waehrung", "wkz", "wkzumsatz", "whg"},
}

// foldName gives the letters and digits of a name, small and without accents.
func foldName(s string) string {
	bare, _, err := transform.String(transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn)), norm.NFC), s)
	if err != nil {
		bare = s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, bare)
}

// ParseColumns reads a mapping like "number=Beleg-Nr., amount=Summe EUR". An empty name says that the list has no such column.
func ParseColumns(s string) (map[string]string, error) {
	columns := map[string]string{}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		field, name, ok := strings.Cut(part, "=")
		if field = strings.ToLower(strings.TrimSpace(field)); !ok || !slices.Contains(fields, field) {
			return nil, fmt.Errorf("%q maps no column; write FIELD=NAME, where FIELD is one of %s", part, strings.Join(fields, ", "))
		}
		columns[field] = strings.TrimSpace(name)
	}
	return columns, nil
}

// ColumnsError says that a list has no column that is known as what is needed.
type ColumnsError struct {
	File    string
	Field   string   // that is not found
	Wanted  string   // what the mapping calls it; empty: there is no mapping of it
	Columns []string // of the list
	Nearest []string // of them, the nearest first
}

// Error implements error.
func (e *ColumnsError) Error() string {
	what := fmt.Sprintf("no column that is known as the document's %s", e.Field)
	if e.Wanted != "" {
		what = fmt.Sprintf("no column %q", e.Wanted)
	}
	return fmt.Sprintf("the list %s has %s; its columns are %s", e.File, what, quoteAll(e.Columns))
}

// Advice says how to map.
func (e *ColumnsError) Advice() string {
	name := "NAME"
	text := ""
	if len(e.Nearest) > 0 {
		name, text = e.Nearest[0], "nearest: "+quoteAll(e.Nearest)+"; "
	}
	return fmt.Sprintf(`%ssay which it is, for instance with --columns %q; known without it are %s`, text, e.Field+"="+name, strings.Join(knownNames[e.Field], ", "))
}

func quoteAll(names []string) string {
	var all []string
	for _, n := range names[:min(len(names), 40)] {
		all = append(all, fmt.Sprintf("%q", n))
	}
	return strings.Join(all, ", ")
}

// findColumns returns the position of each field in a row of names; ok is false where that row has no column of numbers.
func findColumns(names []string, mapping map[string]string) (at map[string]int, ok bool) {
	at = map[string]int{}
	for _, field := range fields {
		wanted, mapped := mapping[field]
		if mapped && wanted == "" {
			continue
		}
		known := knownNames[field]
		if mapped {
			known = []string{foldName(wanted)}
		}
		for _, one := range known { // the order of the known names decides between several columns
			i := slices.IndexFunc(names, func(n string) bool { return foldName(n) == one && one != "" })
			if i >= 0 {
				at[field] = i
				break
			}
		}
	}
	_, ok = at[fieldNumber]
	for field, wanted := range mapping {
		if _, found := at[field]; wanted != "" && !found {
			ok = false
		}
	}
	return at, ok
}

// newColumnsError says what the row of names lacks.
func newColumnsError(file string, names []string, mapping map[string]string) error {
	at, _ := findColumns(names, mapping)
	e := &ColumnsError{File: file, Field: fieldNumber, Columns: slices.DeleteFunc(slices.Clone(names), func(s string) bool { return strings.TrimSpace(s) == "" })}
	for _, field := range slices.Sorted(maps.Keys(mapping)) {
		if _, found := at[field]; mapping[field] != "" && !found {
			e.Field, e.Wanted = field, mapping[field]
		}
	}
	wanted := knownNames[e.Field]
	if e.Wanted != "" {
		wanted = []string{foldName(e.Wanted)}
	}
	distance := func(name string) int {
		least := 1 << 20
		for _, w := range wanted {
			least = min(least, EditDistance(foldName(name), w))
		}
		return least
	}
	e.Nearest = slices.Clone(e.Columns)
	slices.SortStableFunc(e.Nearest, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
	e.Nearest = slices.DeleteFunc(e.Nearest, func(n string) bool { return distance(n) > max(2, len(foldName(n))/3) })
	e.Nearest = e.Nearest[:min(len(e.Nearest), 3)]
	return e
}

// EditDistance counts the letters to change, add or drop so that one name becomes the other.
func EditDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before := make([]int, len(y)+1)
	for j := range before {
		before[j] = j
	}
	for i := range x {
		now := []int{i + 1}
		for j := range y {
			cost := before[j]
			if x[i] != y[j] {
				cost++
			}
			now = append(now, min(cost, before[j+1]+1, now[j]+1))
		}
		before = now
	}
	return before[len(y)]
}
