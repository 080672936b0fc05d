package catalog

import (
	"encoding/json"
	"fmt"
	"math"
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

	tokens string // those of its texts, made ahead; empty: they are made when they are needed
}

// newRow returns the row of an entry. An entry whose document is erased has no texts of it.
func newRow(e ledger.Entry, doc ledger.Document) (r row, err error) {
	r = row{Entry: e, read: doc.AsRead, erasable: len(doc.Metadata) > 0 || !doc.AsRead.IsZero()}
	switch {
	case len(doc.Metadata) == 0:
	case e.Route == ledger.PDF:
		err = json.Unmarshal(doc.Metadata, &r.sent)
	default:
		r.meta, err = archive.ParseMetadata(doc.Metadata)
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

// place returns the folder in which the source lies; empty: it was not placed yet.
func (r row) place() string {
	if r.Dest == "" {
		return ""
	}
	return path.Dir(r.Dest) + "/"
}

// values returns the columns from route on, in the order of [documentColumns]. parties has the number of each party's text.
func (r row) values(parties map[string]int64) []any {
	m := r.shown()
	return []any{
		string(r.Route), r.Drop, string(r.Vault), r.Folder, int(r.State),
		m.Type, m.Number, numberOrNull(dayOf(m.Date)), numberOrNull(parties[m.SenderName], m.SenderName != ""), numberOrNull(amountRank(m.Amount)),
		millis(r.SeenAt), millis(r.ArchivedAt), millis(deliveredAt(r.Entry)), r.Package.Size,
		lowerOrNull(r.Folder), lowerOrNull(r.Drop), lowerOrNull(m.Number),
	}
}

// deliveredAt returns when an entry was delivered; zero: it was not.
func deliveredAt(e ledger.Entry) time.Time {
	if e.State != ledger.Delivered {
		return time.Time{}
	}
	return e.CompletedAt()
}

// dayOf returns the day of a date, since 1970. ok is false where it does not begin with year, month and day: dates of a sidecar that
// nobody checked may be written in another way.
func dayOf(date string) (day int64, ok bool) {
	t, err := time.Parse(time.DateOnly, date[:min(len(date), len(time.DateOnly))])
	if err != nil {
		return 0, false
	}
	return t.Unix() / (24 * 60 * 60), true // at midnight: nothing is left over
}

// amountRank returns a number that is larger where the amount is, as far as the nearest floating-point numbers differ. ok is false where it is no amount.
func amountRank(d archive.Decimal) (rank int64, ok bool) {
	if _, err := archive.ParseDecimal(string(d)); err != nil {
		return 0, false
	}
	f, _ := d.Rat().Float64()
	// The bits of floating-point numbers without their sign are in the order of the numbers.
	rank = int64(math.Float64bits(math.Abs(f)))
	if f < 0 {
		rank = -rank
	}
	return rank, true
}

// lowerOrNull returns a text in lower case; nil: it has only characters that SQLite makes lower case as well.
func lowerOrNull(text string) any {
	if isASCII(text) {
		return nil
	}
	return strings.ToLower(text)
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func numberOrNull(n int64, ok bool) any {
	if !ok {
		return nil
	}
	return n
}
