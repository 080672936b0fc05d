package report

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// row is one folder as the table has it, and one object of the JSON's documents.
// Texts are as people gave them: each form makes them fit for itself.
type row struct {
	Key        string     `json:"key"`
	ClientUUID *string    `json:"clientUUID"`
	BumID      *string    `json:"bumId"`
	Vault      string     `json:"vault"`
	Drop       string     `json:"drop"`
	Folder     string     `json:"folder"`
	DocumentID *string    `json:"documentId"`
	Type       *string    `json:"documentType"`
	Date       *string    `json:"documentDate"`
	Sender     *string    `json:"senderName"`
	Amount     *string    `json:"amount"` // decimal text, digit for digit
	Currency   *string    `json:"currencyCode"`
	State      string     `json:"state"`
	Flags      []string   `json:"flags"`
	Source     string     `json:"source"`
	SHA256     *string    `json:"sha256"`
	Size       *int64     `json:"size"` // bytes
	SeenAt     *time.Time `json:"seenAt"`
	ArchivedAt *time.Time `json:"archivedAt"`
	Reason     *string    `json:"reason"`

	Recipient    *string           `json:"recipientName"`
	RecipientIDs *string           `json:"recipientIds"` // joined by ", "
	AsRead       *archive.AsRead   `json:"asRead"`       // what an unchecked sidecar says; the number alone stands above, too
	First        *present.Original `json:"first"`        // that a duplicate repeats
	Receipt      *string           `json:"receipt"`      // where it, or the delivery note, is in the kept folder, relative to the drop folder
	Needs        *string           `json:"needs"`        // why a person must see to it, as a stable word
	Listed       *string           `json:"listed"`       // of an archived one, with a list of what was expected: yes, no, or "other" and in what they differ

	Route       string     `json:"route,omitempty"`       // pdf or network; absent: vault
	DeliveredAt *time.Time `json:"deliveredAt,omitempty"` // absent: it is not delivered

	state ledger.State // none: the entry is not selected
	link  string       // to the receipt, from where the report will lie; empty: none would work
	month month        // by which it counts
}

// newRow makes the row of an entry; read is what its sidecar says, where nobody checked it.
func newRow(e ledger.Entry, m archive.Document, read archive.AsRead) row {
	r := row{
		Key: e.Key.String(), BumID: present.TextOrNil(string(present.RemoteNumber(e))), Vault: string(e.Vault), Drop: e.Drop, Folder: e.Folder,
		DocumentID: present.TextOrNil(m.Number), Type: present.TextOrNil(m.Type), Date: present.TextOrNil(m.Date), Sender: present.TextOrNil(m.SenderName),
		Amount: present.TextOrNil(string(m.Amount)), Currency: present.TextOrNil(m.Currency), State: e.State.String(), Flags: flagNames(e),
		Source: e.Source.String(), SeenAt: present.TimeOrNil(e.SeenAt), ArchivedAt: present.TimeOrNil(e.ArchivedAt), Reason: present.TextOrNil(summarizeReason(e)),
		Route: e.Route.Noted(), Recipient: present.TextOrNil(m.RecipientName), RecipientIDs: present.TextOrNil(strings.Join(m.RecipientIDs, ", ")),
	}
	if !read.IsZero() {
		r.AsRead, r.DocumentID = &read, present.TextOrNil(read.Number)
	}
	if e.State == ledger.Delivered {
		r.DeliveredAt = present.TimeOrNil(e.CompletedAt())
	}
	if name := noteNames[e.State]; name != "" && e.Source == ledger.Kept && e.Dest != "" { // the ledger decides: no row looks at the disk
		r.Receipt = present.TextOrNil(e.Dest + "/" + name)
	}
	if !e.ID.IsZero() {
		r.ClientUUID = present.TextOrNil(e.ArchivedID().String())
	}
	if !e.Package.IsZero() {
		r.SHA256, r.Size = present.TextOrNil(e.Package.SHA256.String()), &e.Package.Size
	}
	return r
}

// routeName is the route with its name.
func (r row) routeName() string { return cmp.Or(r.Route, string(ledger.Vault)) }

// noteNames are the receipt and the delivery note for people, by the state that they prove. The same in JSON lies beside each.
var noteNames = map[ledger.State]string{ledger.Archived: "_RECEIPT.txt", ledger.Delivered: "_DELIVERED.txt"}

// shown is what a table without room for objects shows of a document. Mark says whether anybody checked it.
type shown struct{ Number, Type, Date, Sender, Recipient, RecipientIDs, Amount, Currency, Mark string }

// shownFields gives the checked metadata, else what the sidecar says.
func (r row) shownFields() shown {
	read := r.AsRead
	if read == nil {
		return shown{textOf(r.DocumentID), textOf(r.Type), textOf(r.Date), textOf(r.Sender), textOf(r.Recipient), textOf(r.RecipientIDs), textOf(r.Amount), textOf(r.Currency), ""}
	}
	mark := "as read, refused"
	if r.First != nil {
		mark = "as read"
	}
	return shown{read.Number, read.Type, read.Date, read.SenderName, read.RecipientName, read.RecipientIDs, read.Amount, read.Currency, mark}
}

// Closing is what the end of a report says of its table.
type Closing struct {
	Rows   uint64   `json:"rows"`
	Agrees bool     `json:"agreesWithSummary"`
	States balance  `json:"states"`
	Moved  []string `json:"changedMeanwhile"` // in words, where it does not agree
}

// readRow makes the row of an entry; one without a state is not selected. Many may be made at the same time.
func (a *Audit) readRow(e ledger.Entry) (r row, err error) {
	if !a.c.Select.selectsEntry(e) || !a.since.selects(e.Key) {
		return row{}, nil
	}
	m, read, err := present.ReadMetadata(a.c.Ledger, e)
	if err != nil || !a.c.Select.selectsDayOf(e, m, a.c.Location) {
		return row{}, err
	}
	r = newRow(e, m, read)
	r.state, r.month = e.State, a.c.monthOf(e, m)
	r.Needs = present.TextOrNil(a.c.findEntryNeed(e))
	if e.State == ledger.Archived {
		r.Listed = a.match.describeRow(e.Key, m.Number)
	}
	if r.First, err = present.FindOriginal(a.c.Ledger, e); err != nil {
		return row{}, err
	}
	if r.First != nil {
		r.Reason = present.TextOrNil(r.First.Describe(a.c.Location))
	}
	if r.Receipt != nil && a.c.ReceiptLink != nil {
		r.link = a.c.ReceiptLink(e.Drop, *r.Receipt)
	}
	return r, nil
}

// preparedRow is a row with its bytes for each table.
type preparedRow struct {
	row
	forms [][]byte
}

// eachRow adds every selected entry to the tables, the newest first, and calls fn with it, which may be nil. It returns how what it gave
// compares with the summary. Rows are prepared for the tables on all cores: most of the work of a table is in its cells.
func (a *Audit) eachRow(ctx context.Context, fn func(row) error, tables ...Table) (Closing, error) {
	var counts ledger.Balance
	err := inOrder(a.c.Ledger.EntriesNewestFirst, func(e ledger.Entry) (p preparedRow, err error) {
		if p.row, err = a.readRow(e); err != nil || p.state == ledger.None {
			return p, err
		}
		p.forms = make([][]byte, len(tables))
		for i, one := range tables {
			p.forms[i] = one.prepare(p.row)
		}
		return p, nil
	}, func(p preparedRow) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p.state == ledger.None {
			return nil
		}
		counts.CountChange(ledger.None, p.state)
		if fn != nil {
			if err := fn(p.row); err != nil {
				return err
			}
		}
		for i, one := range tables {
			if err := one.add(p.forms[i]); err != nil {
				return err
			}
		}
		return nil
	})
	c := Closing{Rows: counts.Seen, Agrees: counts == a.counts, States: newBalance(counts), Moved: []string{}}
	for _, s := range ledger.States() {
		if was, is := a.counts.States[s], counts.States[s]; was != is {
			c.Moved = append(c.Moved, fmt.Sprintf("%s %s, now %s", s, formatNumber(was), formatNumber(is)))
		}
	}
	if err != nil {
		return c, fmt.Errorf("list the folders: %w", err)
	}
	return c, nil
}

// String says in words how table and summary compare.
func (c Closing) String() string {
	text := fmt.Sprintf("The table has %s", formatCount(c.Rows, "row", "rows"))
	if c.Agrees {
		return text + ", exactly those that the summary counts."
	}
	return text + "; the ledger changed while this report was written. Summary and table differ in: " + strings.Join(c.Moved, "; ") + "."
}
