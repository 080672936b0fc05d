package books

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// document is a document that some booked row may be about, or that the books do not have. There may be millions: it holds no pointer.
type document struct {
	key     archive.Key // zero: only the archive's index has it
	indexed int32       // its place in the list of those that only the index has, from 1 on
	state   ledger.State
	doubts  bool // its own success is in question
}

// indexOnly is a document that only the archive's index has.
type indexOnly struct {
	bumID  archive.RemoteID
	values archive.Document // as far as the index repeats it
}

// edge joins a booked row and a document.
type edge struct {
	row  uint32
	doc  int32
	kind kind
	diff Difference
}

// unbooked is an archived document that no booked row has.
type unbooked struct {
	doc int32
	day dayBytes // of the document
}

// dayBytes is the text of a day. One byte more than a day has keeps it in its order beside texts that are longer.
type dayBytes [len("2026-10-31") + 1]byte

func (d dayBytes) isBetween(from, to Day) bool {
	text := Day(strings.TrimRight(string(d[:]), "\x00"))
	return text >= from && text <= to
}

// matches are how the documents and the booked rows belong together. They are the same for every question of one state of the ledger.
type matches struct {
	docs     []document
	edges    []edge
	unbooked []unbooked
	indexed  []indexOnly
}

// place is where the rows of one similar number stand.
type place struct {
	hash uint64
	row  uint32
}

// candidate is a document with its values, of which the booked rows are looked up together with those of others.
type candidate struct {
	document document
	only     *indexOnly // nil: the ledger has it
	values   archive.Document
	first    int // of its places
	end      int
}

// lookedUpTogether is how many booked rows are looked up with one statement: a statement for each costs twice as much.
const lookedUpTogether = 1000

// matcher finds for each document the booked rows that may be about it.
type matcher struct {
	ctx    context.Context
	query  querier
	seed   maphash.Seed
	places []place                     // sorted by hash
	credit []string                    // types of booked rows that are credit notes
	choose func(archive.Document) bool // of the archived documents that no booked row has
	waits  []candidate
	rows   []uint32 // of all that wait

	matches
}

func newMatcher(ctx context.Context, q querier, choose func(archive.Document) bool, credit []string) (*matcher, error) {
	m := &matcher{ctx: ctx, query: q, seed: maphash.MakeSeed(), choose: choose, credit: credit}
	var n int
	if err := q.QueryRowContext(ctx, "SELECT count(*) FROM booked").Scan(&n); err != nil {
		return nil, err
	}
	m.places = make([]place, 0, n)
	rows, err := q.QueryContext(ctx, "SELECT id, number FROM booked WHERE counts = 1 AND number <> ''")
	if err != nil {
		return nil, err
	}
	defer rows.Close() // it is only read
	for rows.Next() {
		var id int64
		var number string
		if err := rows.Scan(&id, &number); err != nil {
			return nil, err
		}
		if id < 0 || id > math.MaxUint32 {
			return nil, fmt.Errorf("%s has a row %d, which is more than an answer can hold: remove the file, it is made anew", FileName, id)
		}
		m.places = append(m.places, place{maphash.String(m.seed, similarNumber(number)), uint32(id)})
	}
	slices.SortFunc(m.places, func(a, b place) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.row, b.row)) })
	return m, rows.Err()
}

// mayKnow reports whether some booked row has a number like this one.
func (m *matcher) mayKnow(number string) bool {
	_, found := m.at(number)
	return found
}

func (m *matcher) at(number string) (int, bool) {
	return slices.BinarySearchFunc(m.places, maphash.String(m.seed, similarNumber(number)), func(p place, h uint64) int { return cmp.Compare(p.hash, h) })
}

// addEntry joins an entry of the ledger. inIndex tells whether the archive's own index has it; it is true where the index was not read.
func (m *matcher) addEntry(l Ledger, e ledger.Entry, inIndex bool) error {
	if e.State == ledger.Duplicate { // the first one counts
		return nil
	}
	doc, read, err := present.ReadMetadata(l, e)
	if err != nil {
		return err
	}
	if doc.Number == "" {
		doc = archive.Document{Type: read.Type, Number: read.Number, SenderName: read.SenderName, RecipientName: read.RecipientName, Currency: read.Currency}
	}
	d := document{key: e.Key, state: e.State, doubts: e.Contradicted && !e.Resolved || e.State == ledger.Archived && !inIndex}
	return m.add(candidate{document: d, values: doc})
}

// add takes a document. What it belongs to is known after the last call and flush.
func (m *matcher) add(c candidate) error {
	if i, found := m.at(c.values.Number); found && exactNumber(c.values.Number) != "" {
		for c.first, c.end = i, i; c.end < len(m.places) && m.places[c.end].hash == m.places[i].hash; c.end++ {
			m.rows = append(m.rows, m.places[c.end].row)
		}
	}
	if c.first == c.end && !m.mayBeUnbooked(c) {
		return nil
	}
	m.waits = append(m.waits, c)
	if len(m.rows) < lookedUpTogether && len(m.waits) < lookedUpTogether {
		return nil
	}
	return m.flush()
}

// mayBeUnbooked reports whether the document may be told where no booked row has it.
func (m *matcher) mayBeUnbooked(c candidate) bool {
	return c.document.state == ledger.Archived && m.choose(c.values)
}

// flush joins the documents that wait, in the order in which they came.
func (m *matcher) flush() error {
	rows, err := m.readRows()
	if err != nil {
		return err
	}
	for _, c := range m.waits {
		if err := m.join(c, rows); err != nil {
			return err
		}
	}
	clear(m.waits) // their texts are not kept
	m.waits, m.rows = m.waits[:0], m.rows[:0]
	return nil
}

// numbered is a booked row as far as it is compared.
type numbered struct {
	id uint32
	Booked
}

// readRows returns the booked rows of the documents that wait, by their numbers.
func (m *matcher) readRows() (all []numbered, err error) {
	if len(m.rows) == 0 {
		return nil, nil
	}
	slices.Sort(m.rows)
	ids, err := json.Marshal(slices.Compact(m.rows))
	if err != nil {
		return nil, err
	}
	rows, err := m.query.QueryContext(m.ctx, `SELECT booked.id, number, supplier, company, date, amount, currency, booked.type
		FROM json_each(?) AS wanted CROSS JOIN booked ON booked.id = wanted.value`, string(ids))
	if err != nil {
		return nil, err
	}
	defer rows.Close() // it is only read
	for rows.Next() {
		var r numbered
		if err := rows.Scan(&r.id, &r.Number, &r.Supplier, &r.Company, &r.Date, &r.Amount, &r.Currency, &r.Type); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// join joins a document with the booked rows that may be about it.
func (m *matcher) join(c candidate, rows []numbered) error {
	number, like := exactNumber(c.values.Number), similarNumber(c.values.Number)
	at := int32(len(m.docs))
	before, isBooked := len(m.edges), false
	for _, p := range m.places[c.first:c.end] {
		i, found := slices.BinarySearchFunc(rows, p.row, func(r numbered, id uint32) int { return cmp.Compare(r.id, id) })
		if !found {
			return errors.New("a booked row was lost while it was read")
		}
		r := &rows[i].Booked
		e := edge{row: p.row, doc: at}
		var contradicts bool
		e.diff, contradicts = r.compare(c.values, slices.Contains(m.credit, r.Type))
		switch {
		case r.Number != number && similarNumber(r.Number) != like: // two numbers of one hash
			continue
		case r.Number != number && contradicts:
			continue
		case r.Number != number:
			e.kind = alike
		case contradicts:
			e.kind = other
		case e.diff != 0:
			e.kind, isBooked = differs, true
		default:
			e.kind, isBooked = whole, true
		}
		m.edges = append(m.edges, e)
	}
	isUnbooked := !isBooked && m.mayBeUnbooked(c)
	if len(m.edges) == before && !isUnbooked {
		return nil
	}
	if c.only != nil {
		m.indexed = append(m.indexed, *c.only)
		c.document.indexed = int32(len(m.indexed))
	}
	m.docs = append(m.docs, c.document)
	if isUnbooked {
		u := unbooked{doc: at}
		copy(u.day[:], dayIn(c.values))
		m.unbooked = append(m.unbooked, u)
	}
	return nil
}

// dayIn returns the day of a document.
func dayIn(d archive.Document) Day {
	day, _, _ := strings.Cut(d.Date, "T")
	return Day(day)
}
