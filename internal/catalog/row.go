package catalog

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// row is what the catalog keeps of one entry and its document.
type row struct {
	ledger.Entry
	meta archive.Document // that was checked; zero if missing
	read archive.AsRead
	sent archive.PDFRequest // the addresses that a PDF was packed with; zero: it is none

	erasable bool // the document gave texts

	completed, successes any // as figuresOf has them; a row that is only compared needs none
}

// readRow reads what the catalog keeps of the entry with a key.
func (c *Catalog) readRow(k archive.Key) (row, error) {
	e, ok, err := c.cfg.Ledger.Entry(k)
	if err == nil && !ok {
		err = fmt.Errorf("read the entry %s, which the journal tells of: there is none", k)
	}
	if err != nil {
		return row{}, err
	}
	doc, _, err := c.cfg.Ledger.Document(k)
	if err != nil {
		return row{}, err
	}
	r, err := newRow(e, doc)
	r.completed, r.successes = figuresOf(e, c.cfg.Location)
	return r, err
}

// newRow returns the row of an entry. An entry whose document is erased has no texts of it.
func newRow(e ledger.Entry, doc ledger.Document) (r row, err error) {
	r = row{Entry: e, read: doc.AsRead, erasable: len(doc.Metadata) > 0 || !doc.AsRead.IsZero()}
	if len(doc.Metadata) > 0 {
		r.meta, err = archive.ParseMetadata(doc.Metadata)
		if err == nil && r.meta.Number == "" { // a single PDF has addresses in its place
			err = json.Unmarshal(doc.Metadata, &r.sent)
		}
	}
	if err != nil {
		return r, fmt.Errorf("read the metadata of entry %s: %w", e.Key, err)
	}
	return r, nil
}

// parties returns the names and numbers of sender and recipient, and the addresses of a PDF, empty ones left out.
func (r row) parties() []string {
	m, read := r.meta, r.read
	all := append([]string{m.SenderName, m.RecipientName, read.SenderName, read.RecipientName, read.SenderIDs, read.RecipientIDs, r.sent.Receiving, r.sent.Notify}, m.SenderIDs...)
	return slices.DeleteFunc(append(all, m.RecipientIDs...), func(s string) bool { return s == "" })
}

// references returns the number and the other texts of the document itself that
// people search for, empty ones left out.
func (r row) references() []string {
	all := []string{r.meta.Number, r.read.Number, r.meta.BuyerReferenceID, r.meta.TradingPartner}
	for _, p := range r.meta.Parameters {
		all = append(all, p.Value)
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// shown returns the metadata for the columns: what was checked, else what was read of the sidecar.
func (r row) shown() archive.Document {
	if read := r.read; r.meta.Type == "" && !read.IsZero() {
		return archive.Document{Type: read.Type, Number: read.Number, Date: read.Date, SenderName: read.SenderName, RecipientName: read.RecipientName,
			Amount: archive.Decimal(read.Amount), Currency: read.Currency}
	}
	return r.meta
}

// documentColumns are the columns of a document after id and key, in the order of [row.values].
var documentColumns = []string{"erasable", "origin", "party", "state", "day", "amount", "seen", "archived", "delivered", "size",
	"folder_sort", "number_sort", "place", "folder", "number", "rest", "marks",
	"completed", "successes"}

// values returns the columns.
func (r row) values(origin, party int64) []any {
	m := r.shown()
	place, folder, number := "", foldedLines(r.Folder), foldedLines(m.Number)
	var rest []string
	if base := path.Base(r.Dest); r.Dest != "" && base == r.Folder && isASCII(r.Dest) {
		place = foldedLines(strings.TrimSuffix(r.Dest, base))
	} else if r.Dest != "" {
		rest = append(rest, foldedLines(r.Dest))
	}
	for _, text := range r.references() {
		if text != m.Number {
			rest = append(rest, foldedLines(text))
		}
	}
	others, marks := strings.Join(append(rest, ""), "\n"), ""
	for _, m := range marksOf(r.Entry) {
		marks += markBeginning(m)
	}
	marks += markStart
	if party != 0 {
		marks += partyToken(party)
	}
	return []any{
		r.erasable, origin, nullIfZero(party), int(r.State), dayOf(m.Date), amountOf(m.Amount),
		millis(r.SeenAt), nullIfZero(millis(r.ArchivedAt)), nullIfZero(millis(deliveredAt(r.Entry))), nullIfZero(r.Package.Size),
		lowerIfOther(r.Folder, folder), lowerIfOther(m.Number, number), place, folder, number, others, marks,
		r.completed, r.successes,
	}
}

// foldedLines returns the forms of a text, each in a line, as far as SQLite can compare them.
func foldedLines(text string) string { return storable(strings.Join(spellingsOf(text), "\n")) }

// storable returns a text with another character for those at which SQLite
// would stop, and that its index replaces.
func storable(text string) string { return unstorable.Replace(strings.ToValidUTF8(text, "\ufffd")) }

var unstorable = strings.NewReplacer("\x00", "\ufffd", "\ufffe", "\ufffd", "\uffff", "\ufffd")

const (
	markStart = "\x01" // before the beginning of a key or number, and behind the last one
	markSize  = 12     // characters of it
)

// markBeginning returns the piece of a document's text that is for a key or
// number, or the beginning of that piece for the beginning of one.
func markBeginning(mark string) string {
	if m := []rune(strings.ToLower(mark)); len(m) > markSize {
		mark = string(m[:markSize])
	}
	return markStart + storable(strings.ToLower(mark))
}

// partyToken returns three characters, which no text has, for the number of a
// party: a piece of the index.
func partyToken(id int64) string {
	const first, many = '\ue000', 6400 // the private area of Unicode
	return string([]rune{first + rune(id/many/many%many), first + rune(id/many%many), first + rune(id%many)})
}

// deliveredAt returns when an entry was delivered; zero: it was not.
func deliveredAt(e ledger.Entry) time.Time {
	if e.State != ledger.Delivered {
		return time.Time{}
	}
	return e.CompletedAt()
}

// dayOf returns the day of a date, since 1970; nil where it does not begin with
// year, month and day: dates of a sidecar that nobody checked may be written in
// another way.
func dayOf(date string) any {
	t, err := time.Parse(time.DateOnly, date[:min(len(date), len(time.DateOnly))])
	if err != nil {
		return nil
	}
	return t.Unix() / (24 * 60 * 60) // at midnight: nothing is left over
}

// amountOf returns the nearest floating-point number; nil where it is no amount.
func amountOf(d archive.Decimal) any {
	if _, err := archive.ParseDecimal(string(d)); err != nil {
		return nil
	}
	f, _ := d.Rat().Float64()
	return f
}

// lowerIfOther returns a text in lower case; nil: it is its folded form.
func lowerIfOther(text, folded string) any {
	if lower := strings.ToLower(text); lower != folded {
		return lower
	}
	return nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func nullIfZero(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}
