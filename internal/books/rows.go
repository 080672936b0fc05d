package books

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/present"
)

// listSources returns the names of the files that rows are of.
func listSources(ctx context.Context, q querier) (map[source]string, error) {
	rows, err := q.QueryContext(ctx, "SELECT extract, number, name FROM file")
	if err != nil {
		return nil, err
	}
	defer rows.Close() // it is only read
	all := map[source]string{}
	for rows.Next() {
		var s source
		var name string
		if err := rows.Scan(&s.extract, &s.number, &name); err != nil {
			return nil, err
		}
		all[s] = name
	}
	return all, rows.Err()
}

// errEnough ends a walk through rows early.
var errEnough = errors.New("no more rows are wanted")

// eachOutcome calls fn with each booked row of the question, by date and number. A row whose date cannot be read may be of any day.
func (a *Answer) eachOutcome(ctx context.Context, fn func(Booked, outcome) error) error {
	for _, days := range [][2]Day{{"", ""}, {a.Question.From, a.Question.To}} {
		if err := a.eachOutcomeOf(ctx, days[0], days[1], fn); err != nil {
			return err
		}
	}
	return nil
}

// eachOutcomeOf calls fn with each row of some days.
func (a *Answer) eachOutcomeOf(ctx context.Context, from, to Day, fn func(Booked, outcome) error) error {
	// The index has the rows in this order, so that the first ones come at once and nothing is sorted.
	rows, err := a.conn.QueryContext(ctx, "SELECT id, "+bookedColumns+" FROM booked INDEXED BY booked_order WHERE counts = 1 AND date BETWEEN ? AND ? ORDER BY date, number, key",
		string(from), string(to))
	if err != nil {
		return err
	}
	defer rows.Close() // it is only read
	for rows.Next() {
		var b Booked
		var id int64
		if err := b.scan(rows, &id); err != nil {
			return err
		}
		if !a.mayBeOf(b.Company) {
			continue
		}
		if err := fn(b, a.resolver.resolve(id, b)); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Row is a booked invoice with what became of it.
type Row struct {
	Booked
	Verdict    Verdict
	Difference Difference
	Found      string // what there is, in words
	Folder     string // of the document that decides; empty: there is none in the ledger
	Drop       string
	Entry      archive.Key // of that document; zero if missing
}

// EachBooked calls fn with each booked row of the question, by date and number.
func (a *Answer) EachBooked(ctx context.Context, fn func(Row) error) error {
	return a.eachOutcome(ctx, func(b Booked, o outcome) error {
		row, err := a.describe(b, o)
		if err != nil {
			return err
		}
		return fn(row)
	})
}

// EachMissing calls fn with each booked row that is not archived, or not without doubt, by date and number. It does not look up the documents
// of the others, which are most of them.
func (a *Answer) EachMissing(ctx context.Context, fn func(Row) error) error {
	left := a.Missing()
	if left == 0 {
		return nil
	}
	err := a.eachOutcome(ctx, func(b Booked, o outcome) error {
		if o.verdict == Archived {
			return nil
		}
		row, err := a.describe(b, o)
		if err == nil {
			err = fn(row)
		}
		if left--; err == nil && left == 0 { // they were counted in the same state of the file
			err = errEnough
		}
		return err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return err
}

// describe says what became of a row.
func (a *Answer) describe(b Booked, o outcome) (Row, error) {
	row := Row{Booked: b, Verdict: o.verdict, Difference: o.diff}
	of, record, err := readRank(b.rank)
	if err != nil {
		return row, err
	}
	row.Extract, row.File = of.extract, fmt.Sprintf("%s, record %d", a.sources[of], record)
	found := ""
	switch {
	case o.doc == nil:
	case o.verdict != Archived || o.doc.indexed > 0:
		found, err = a.nameIn(&row, o.doc)
	default:
		e, _, failed := a.ledger.Entry(o.doc.key)
		row.Folder, row.Drop, row.Entry, err = e.Folder, e.Drop, e.Key, failed
	}
	switch o.verdict {
	case Archived:
		row.Found = found
	case Differs:
		row.Found = "other " + o.diff.String() + ": " + found
		if o.diff == OnlyNumber {
			row.Found = "nothing but the number can be compared: " + found
		}
	case Ambiguous:
		if b.Unclear != "" {
			row.Found = "the " + b.Unclear
			break
		}
		row.Found = "several fit, one of them is " + found
	case Similar:
		row.Found = "only a number that is alike: " + found
	case NeverDropped:
		row.Found = "nothing of this number was dropped"
		if o.other != nil && err == nil {
			found, err = a.nameIn(&row, o.other)
			row.Folder, row.Drop, row.Entry = "", "", archive.Key{}
			row.Found += "; of this number there is another invoice: " + found
		}
	case Unreadable:
		row.Found = "the books give no number"
		if b.Wrong != "" {
			row.Found = "the " + b.Wrong
		}
	default:
		row.Found = found
	}
	return row, err
}

// nameIn says in words which document is meant, and names its entry in the row.
func (a *Answer) nameIn(row *Row, d *document) (string, error) {
	if d.indexed > 0 {
		return "the archive's index has it as " + string(a.matches.indexed[d.indexed-1].bumID), nil
	}
	e, _, err := a.ledger.Entry(d.key)
	if err != nil {
		return "", err
	}
	row.Folder, row.Drop, row.Entry = e.Folder, e.Drop, e.Key
	doc, read, err := present.ReadMetadata(a.ledger, e)
	if doc.Number == "" {
		doc.Number = read.Number
	}
	day, _, _ := strings.Cut(doc.Date, "T")
	said := slices.DeleteFunc([]string{doc.Number, doc.SenderName, day, doc.Currency, string(doc.Amount)}, func(s string) bool { return s == "" })
	return fmt.Sprintf("%s (%s), %s: %s", e.Folder, e.Drop, e.State, strings.Join(said, ", ")), err
}

// Unbooked is an archived document of the period that the books do not have.
type Unbooked struct {
	Document archive.Document
	BumID    archive.RemoteID // where only the archive's index has it
	Folder   string
	Drop     string
	Entry    archive.Key
}

// EachUnbooked calls fn with each of them, oldest first.
func (a *Answer) EachUnbooked(ctx context.Context, fn func(Unbooked) error) error {
	for _, at := range a.unbooked {
		if err := ctx.Err(); err != nil {
			return err
		}
		d := a.matches.docs[at]
		u := Unbooked{Entry: d.key}
		var err error
		if u.Document, err = a.valuesOf(d); err != nil {
			return err
		}
		if d.indexed > 0 {
			u.BumID = a.matches.indexed[d.indexed-1].bumID
		} else {
			e, _, err := a.ledger.Entry(d.key)
			if err != nil {
				return err
			}
			u.Folder, u.Drop = e.Folder, e.Drop
		}
		if err := fn(u); err != nil {
			return err
		}
	}
	return nil
}
