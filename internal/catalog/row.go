package catalog

import (
	"cmp"
	"path"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// The flags of a document. Their numbers are stored in the catalog's file.
const (
	flagHold = 1 << iota
	flagInDoubt
	flagPossibleDouble
	flagContradicted
	flagResolved
	flagNeedsReconcile
	flagStrangeDate
	flagReviewed
	flagSameNumber
	flagNeedsPerson
)

// row is what the catalog keeps of one entry and its document.
type row struct {
	ledger.Entry
	meta archive.Document // that was checked; zero: none was
	read archive.AsRead
}

// newRow returns the row of an entry. An entry whose document is erased has no texts of it.
func newRow(e ledger.Entry, doc ledger.Document) (row, error) {
	meta, err := parseMetadata(e, doc)
	return row{e, meta, doc.AsRead}, err
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

// values returns the columns from route on, in the order of the schema. parties has the number of each party's text.
func (r row) values(parties map[string]int64) []any {
	m := r.shown()
	return []any{
		string(r.Route), r.Drop, string(r.Vault), r.Folder, int(r.State), int(r.Source),
		m.Type, m.Number, strings.TrimSuffix(m.Date, "T00:00:00Z"), numberOrNull(parties[m.SenderName]), numberOrNull(parties[m.RecipientName]),
		string(m.Amount), sortable(m.Amount), m.Currency, millis(r.SeenAt), millis(r.ArchivedAt), millis(deliveredAt(r.Entry)), r.Package.Size, r.flags(),
		bytesOrNull(r.DuplicateOf), bytesOrNull(r.ID), r.bumID(), r.Cause.Code,
		lowerOrNull(r.Folder), lowerOrNull(r.Drop),
	}
}

// deliveredAt returns when an entry was delivered; zero: it was not.
func deliveredAt(e ledger.Entry) time.Time {
	if e.State != ledger.Delivered {
		return time.Time{}
	}
	return e.CompletedAt()
}

func (r row) bumID() string {
	if current := r.Current(); current != nil {
		return string(cmp.Or(r.ArchivedRemote, current.Ticket.Remote))
	}
	return string(r.ArchivedRemote)
}

func (r row) flags() int {
	flags := 0
	for _, f := range []struct {
		bit int
		on  bool
	}{
		{flagHold, r.Hold}, {flagInDoubt, r.InDoubt}, {flagPossibleDouble, r.PossibleDouble}, {flagContradicted, r.Contradicted}, {flagResolved, r.Resolved},
		{flagNeedsReconcile, r.NeedsReconcile}, {flagStrangeDate, r.StrangeDate}, {flagReviewed, r.Reviewed}, {flagSameNumber, !r.SameNumber.IsZero()}, {flagNeedsPerson, r.NeedsPerson()},
	} {
		if f.on {
			flags |= f.bit
		}
	}
	return flags
}

// sortable returns an amount as a number; nil: it is none.
func sortable(d archive.Decimal) any {
	if _, err := archive.ParseDecimal(string(d)); err != nil {
		return nil
	}
	f, _ := d.Rat().Float64()
	return f
}

// lowerOrNull returns a text in lower case; nil: it has only characters that SQLite makes lower case as well.
func lowerOrNull(text string) any {
	if isPlainASCII(text) {
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

func numberOrNull(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func bytesOrNull(b [16]byte) any {
	if b == [16]byte{} {
		return nil
	}
	return b[:]
}
