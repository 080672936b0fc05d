package report

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/expected"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// missingAtMost is how many listed documents that are not archived are named.
const missingAtMost = 10_000

// listed is the comparison with a list of what was expected.
type listed struct {
	expected.Info
	Rows     uint64 `json:"rows"`          // different documents of the list
	Archived uint64 `json:"archived"`      // of them: archived
	Missing  uint64 `json:"missing"`       // of them: not archived
	Differ   uint64 `json:"differ"`        // of the archived ones: with another amount, currency, date or sender
	Unlisted uint64 `json:"unlisted"`      // archived documents of the selection that are not on the list
	Unread   uint64 `json:"unreadNumbers"` // folders of the whole ledger that are not archived, and whose number could not be read

	MissingRows   []missingRow `json:"missingRows"`        // the first ten thousand, in the list's order
	DifferNames   []string     `json:"differingDocuments"` // the first five hundred
	UnlistedNames []string     `json:"unlistedDocuments"`  // the first five hundred
}

// missingRow is a listed document that is not archived.
type missingRow struct {
	Line     int    `json:"line"` // of the list
	Number   string `json:"documentId"`
	Sender   string `json:"senderName"`
	Date     string `json:"documentDate"`
	Amount   string `json:"amount"`
	Currency string `json:"currencyCode"`
	Found    string `json:"found"` // what the ledger has under that number, or may be the same; may be empty
}

// unequal is in what a document is not what the list says. A value that one of them does not give is equal, but for an amount
// that the list has and the document has not.
type unequal uint8

const (
	otherDate unequal = 1 << iota
	otherCurrency
	otherAmount
	otherSender
	nobody // no document: worse than any difference
)

func (u unequal) String() string {
	var words []string
	for _, one := range []struct {
		bit  unequal
		word string
	}{{otherSender, "sender"}, {otherAmount, "amount"}, {otherCurrency, "currency"}, {otherDate, "date"}} {
		if u&one.bit != 0 {
			words = append(words, one.word)
		}
	}
	return strings.Join(words, ", ")
}

// matcher finds the document of each row of the list.
type matcher struct {
	list    *expected.List // nil: there is none
	by      []archive.Key  // the archived document of each row
	unequal []unequal      // of that one; nobody: there is none
	others  []string       // what there is else under the row's number
	unread  uint64         // documents that are not archived, whose number could not be read

	elsewhere []bool         // that is archived, and not selected
	unlisted  []archive.Key  // the first few
	zeros     map[int]string // by row: numbers of the first archived documents that no row has, and that are its own but for zeros before it
	count     uint64         // archived documents of the selection
}

func newMatcher(list *expected.List) *matcher {
	if list == nil {
		return &matcher{}
	}
	m := &matcher{list: list, zeros: map[int]string{}, by: make([]archive.Key, list.Len()), unequal: make([]unequal, list.Len()), others: make([]string, list.Len()), elsewhere: make([]bool, list.Len())}
	for i := range m.unequal {
		m.unequal[i] = nobody
	}
	return m
}

// countArchived gives an archived document its row: the one that it equals most. A document that equals that row less makes room,
// and looks for another row, so that the order of the documents does not count.
func (m *matcher) countArchived(s present.Entries, key archive.Key, doc archive.Document) error {
	if m.list == nil {
		return nil
	}
	m.count++
	for {
		best, found, values := -1, nobody, 0
		for i := range m.list.Find(doc.Number) {
			row := m.list.Row(i)
			u, same := compareToRow(row, doc)
			if !same || u >= m.unequal[i] || u > found {
				continue
			}
			if n := countValues(row); u < found || n > values {
				best, found, values = i, u, n
			}
		}
		if best < 0 {
			if len(m.unlisted) < namedAtMost {
				m.unlisted = append(m.unlisted, key)
			}
			m.noteZeros(doc)
			return nil
		}
		m.by[best], key = key, m.by[best]
		m.unequal[best], found = found, m.unequal[best]
		if found == nobody {
			return nil
		}
		e, _, err := s.Entry(key)
		if err != nil {
			return err
		}
		if doc, _, err = present.ReadMetadata(s, e); err != nil {
			return err
		}
	}
}

// noteZeros notes a document that no row has where a row has its number without the zeros before it. Spreadsheet programs remove them.
// That is a hint for a person and counts for nothing: 4711 and 0004711 may be two invoices.
func (m *matcher) noteZeros(doc archive.Document) {
	for i := range m.rowsWithoutZeros(doc) {
		if _, has := m.zeros[i]; !has && len(m.zeros) < missingAtMost {
			m.zeros[i] = doc.Number
		}
	}
}

// rowsWithoutZeros gives the rows that have a document's number without the zeros before it, and that may be about it.
func (m *matcher) rowsWithoutZeros(doc archive.Document) iter.Seq[int] {
	return func(yield func(int) bool) {
		number := strings.TrimSpace(doc.Number)
		short := strings.TrimLeft(number, "0")
		if short == number || short == "" || strings.Trim(short, "0123456789") != "" {
			return
		}
		for i := range m.list.Find(short) {
			if _, same := compareToRow(m.list.Row(i), doc); same && !yield(i) {
				return
			}
		}
	}
}

// describeZeros says beside an archived document which missing row may be about it; empty: none.
func (m *matcher) describeZeros(doc archive.Document) string {
	for i := range m.rowsWithoutZeros(doc) {
		if r := m.list.Row(i); m.unequal[i] == nobody {
			return fmt.Sprintf("; may be the same as %s in row %d of the list, whose leading zeros a spreadsheet removed", r.Number, r.Line)
		}
	}
	return ""
}

// countValues tells how exactly a row says which document it means. A row that says less is left for a document that no other fits.
func countValues(r expected.Row) (n int) {
	for _, s := range []string{r.Sender, r.Date, r.Amount, r.Currency} {
		if s != "" {
			n++
		}
	}
	return n
}

// countOther notes what there is under a number that is not an archived
// document of the selection. An archived one elsewhere says more than any
// other.
func (m *matcher) countOther(e ledger.Entry, number, what string) {
	if m.list == nil {
		return
	}
	if number == "" {
		if isUnsettled(e) && e.Route != ledger.PDF {
			m.unread++
		}
		return
	}
	archived := e.State == ledger.Archived
	for i := range m.list.Find(number) {
		if archived || !m.elsewhere[i] {
			m.others[i], m.elsewhere[i] = what, archived
		}
	}
}

// compareToRow tells in what a document is not what a row says. same is false where it is another document with the same number: of
// another sender, and not of the same amount and day either.
func compareToRow(r expected.Row, d archive.Document) (u unequal, same bool) {
	differ := func(a, b string) bool { return a != "" && b != "" && archive.PlainText(a) != archive.PlainText(b) }
	day, _, _ := strings.Cut(d.Date, "T")
	if differ(r.Date, day) {
		u |= otherDate
	}
	if differ(r.Currency, d.Currency) {
		u |= otherCurrency
	}
	if r.Amount != "" && !isSameAmount(archive.Decimal(r.Amount).Rat(), d.Amount.Rat(), d.Type) {
		u |= otherAmount
	}
	if differ(r.Sender, d.SenderName) {
		u |= otherSender
		agrees := r.Amount != "" && d.Amount != "" && r.Date != "" && day != "" && u&(otherAmount|otherDate) == 0
		return u, agrees
	}
	return u, true
}

// isSameAmount compares amounts. Lists write the amount of a credit note with either sign.
func isSameAmount(a, b *big.Rat, kind string) bool {
	if a == nil || b == nil {
		return false
	}
	if strings.HasPrefix(kind, "CreditNote") {
		return new(big.Rat).Abs(a).Cmp(new(big.Rat).Abs(b)) == 0
	}
	return a.Cmp(b) == 0
}

// describeRow says how the list has an archived document; nil: there is no list.
func (m *matcher) describeRow(key archive.Key, number string) *string {
	if m.list == nil {
		return nil
	}
	text := "no"
	for i := range m.list.Find(number) {
		if m.by[i] == key && m.unequal[i] != nobody {
			text = cmp.Or(m.unequal[i].String(), "yes")
			if m.unequal[i] != 0 {
				text = "other " + text
			}
		}
	}
	return &text
}

// summarize gives the comparison; nil: there is no list.
func (m *matcher) summarize(s present.Entries) (*listed, error) {
	if m.list == nil {
		return nil, nil
	}
	l := &listed{Info: m.list.Info, Rows: uint64(m.list.Len()), MissingRows: []missingRow{}, DifferNames: []string{}, UnlistedNames: []string{}, Unread: m.unread}
	var missing, differ []int
	for i, u := range m.unequal {
		switch {
		case u == nobody:
			missing = append(missing, i)
		case u != 0:
			differ = append(differ, i)
		}
	}
	l.Missing, l.Differ = uint64(len(missing)), uint64(len(differ))
	l.Archived = l.Rows - l.Missing
	l.Unlisted = m.count - l.Archived
	slices.SortFunc(missing, m.list.Order)
	slices.SortFunc(differ, m.list.Order)
	for _, i := range missing[:min(len(missing), missingAtMost)] {
		r, found := m.list.Row(i), m.others[i]
		if whole, is := m.zeros[i]; is && found == "" {
			found = "nothing; may be the same as " + whole + ", which is archived: a spreadsheet removes leading zeros"
		}
		l.MissingRows = append(l.MissingRows, missingRow{r.Line, r.Number, r.Sender, r.Date, r.Amount, r.Currency, found})
	}
	for _, i := range differ[:min(len(differ), namedAtMost)] {
		text, _, err := describeDocument(s, m.by[i])
		if err != nil {
			return nil, err
		}
		r := m.list.Row(i)
		l.DifferNames = append(l.DifferNames, fmt.Sprintf("%s; row %d of the list has another %s: %s", text, r.Line, m.unequal[i], joinTexts(r.Sender, r.Date, r.Currency, r.Amount)))
	}
	for _, key := range m.unlisted {
		text, doc, err := describeDocument(s, key)
		if err != nil {
			return nil, err
		}
		l.UnlistedNames = append(l.UnlistedNames, text+m.describeZeros(doc))
	}
	return l, nil
}

// describeDocument names an archived document.
func describeDocument(s present.Entries, key archive.Key) (text string, m archive.Document, err error) {
	e, _, err := s.Entry(key)
	if err != nil {
		return "", m, err
	}
	m, _, err = present.ReadMetadata(s, e)
	return fmt.Sprintf("%s (%s): %s", e.Folder, e.Drop, joinTexts(m.Number, m.SenderName, present.FormatDay(m.Date), m.Currency, string(m.Amount))), m, err
}

// joinTexts joins the texts that are there.
func joinTexts(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), ", ")
}

// matchEntry gives an entry that is selected to the list.
func (t *counts) matchEntry(e ledger.Entry, m archive.Document, read archive.AsRead) error {
	switch e.State {
	case ledger.Archived:
		return t.match.countArchived(t.c.Ledger, e.Key, m)
	case ledger.Duplicate: // the first one counts
	default:
		t.match.countOther(e, cmp.Or(m.Number, read.Number), e.State.String()+", "+e.Folder+" ("+e.Drop+")")
	}
	return nil
}

// matchElsewhere notes a document that is not selected: a listed number is looked
// for in the whole ledger before it is called missing.
func (t *counts) matchElsewhere(e ledger.Entry, m archive.Document, read archive.AsRead) {
	const elsewhere = ", but not in the choice of this report: "
	switch e.State {
	case ledger.Archived:
		t.match.countOther(e, m.Number, "archived"+elsewhere+joinTexts("vault "+string(e.Vault), "drop "+e.Drop, present.FormatDay(m.Date)))
	case ledger.Duplicate: // the first one counts
	default:
		t.match.countOther(e, cmp.Or(m.Number, read.Number), e.Folder+" ("+e.Drop+")"+elsewhere+joinTexts("vault "+string(e.Vault), t.c.describeUnsettled(e, m, read)))
	}
}

// describeShortfall says what of the list keeps the result from being complete; empty: nothing.
func (l *listed) describeShortfall() string {
	text := ""
	if l != nil && l.Missing > 0 {
		text = formatCount(l.Missing, "listed document is", "listed documents are") + " not archived. "
	}
	if l != nil && l.Differ > 0 {
		text += formatCount(l.Differ, "archived document is", "archived documents are") + " not as listed. "
	}
	if l != nil && l.Dated > 0 {
		text += formatCount(l.Dated, "row of the list has", "rows of the list have") + " a date and no number: whether such a document is archived is not known. "
	}
	return text
}

// ColumnNames are the columns that were compared, as the list calls them.
func (l *listed) ColumnNames() (names []string) {
	for _, field := range slices.Sorted(maps.Keys(l.Columns)) {
		names = append(names, fmt.Sprintf("%s (%s)", field, l.Columns[field]))
	}
	return names
}

// describe says what was compared.
func (l *listed) describe() string {
	if l == nil {
		return asDropped
	}
	text := fmt.Sprintf("Compared with the list %s (%s): %s archived, %s not; %s archived and not listed.", l.File, formatCount(l.Rows, "document", "documents"),
		formatNumber(l.Archived), formatNumber(l.Missing), formatCount(l.Unlisted, "document is", "documents are"))
	text += " It was compared by " + strings.Join(slices.Sorted(maps.Keys(l.Columns)), ", ") + "."
	if l.Unnumber > 0 {
		text += " " + formatCount(l.Unnumber, "row of it has", "rows of it have") + " no number and could not be compared."
	}
	if l.Repeated > 0 {
		text += " " + formatCount(l.Repeated, "row of it repeats another one and counts", "rows of it repeat another one and count") + " once."
	}
	if l.OtherSheets > 0 {
		text += fmt.Sprintf(" Only its first sheet was read, not the other %d.", l.OtherSheets)
	}
	return text
}
