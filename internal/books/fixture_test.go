package books

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

const ledgerID = "L-books"

var columnNames = []string{"ID", "INVOICE_NUM", "SUPPLIER", "ORG", "INVOICE_DATE", "GROSS_SUM", "CURRENCY", "KIND", "STATUS"}

func testSettings() Settings {
	return Settings{Table: "IA_INVOICE", From: "2026-01-01", Location: time.UTC, Decimal: '.', Encoding: "utf-8", Booked: []string{"STATUS"}, Values: []string{"Booked", "Paid"}, Credit: []string{"GU"},
		Columns: Columns{Key: []string{"ID"}, Number: []string{"INVOICE_NUM"}, Supplier: []string{"SUPPLIER"}, Company: []string{"ORG"}, Date: []string{"INVOICE_DATE"}, Amount: []string{"GROSS_SUM"}, Currency: []string{"CURRENCY"}, Type: []string{"KIND"}}}
}

// world is a real ledger and a real custody, and the books of them.
type world struct {
	t       testing.TB
	dir     string
	led     *fill.Ledger
	custody *custody.Custody
	sums    map[archive.ExtractID]Recorded // as the ledger would have recorded them
	since   Day                            // of the settings; empty: theirs

	settings func(*Settings) // changes them; may be nil
	table    string          // of the files
	n        int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, table: "IA_INVOICE", sums: map[archive.ExtractID]Recorded{}}
	w.led = fill.New(t, boltledger.Config{}, ledger.Info{ID: ledgerID, Created: day("2026-01-01")})
	w.dir = w.led.Dir
	var err error
	w.custody, err = custody.Open(t.TempDir(), ledgerID, "test", nil)
	kit.Must(w.t, err)
	t.Cleanup(func() { w.custody.Close() })
	return w
}

func day(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t
}

// definitionOf is a table definition as the service writes it.
func definitionOf(table string, columns ...string) []byte {
	type column struct {
		Name string `json:"Column name"`
		Type string `json:"Data Type"`
	}
	var all []column
	for _, c := range columns {
		all = append(all, column{c, "text"})
	}
	raw, err := json.Marshal([]any{map[string]any{"Table name": table, "Columns": all}, map[string]any{"Table name": "ADM_SUPPLIER", "Columns": []column{{"ID", "text"}}}})
	if err != nil {
		panic(err)
	}
	return raw
}

func delta(id, from, to string) archive.Extract {
	return archive.Extract{ID: archive.ExtractID(id), Type: archive.DeltaExtract, Name: "daily", Start: day(from), End: day(to), Made: day(to).Add(time.Hour), Files: 1}
}

// hold puts an extract into custody, with one file of the table for each
// content. Without a definition the service had none.
func (w *world) hold(e archive.Extract, definition []byte, contents ...string) {
	w.t.Helper()
	h, err := w.custody.Begin(e)
	kit.Must(w.t, err)
	defer h.Close()
	var def custody.File // nil: there is none
	if definition != nil {
		def, err = h.Definition(definition)
		kit.Must(w.t, err)
	}
	var files []custody.HeldFile
	for i, content := range contents {
		name := fmt.Sprintf("IA_INVOICE_%d.zip", i+1)
		p := kit.Value(h.Begin(i+1, archive.ExtractFile{Extract: e.ID, Name: name, Table: w.table}))(w.t)
		z := zip.NewWriter(p)
		kit.Value(io.Copy(kit.Value(z.Create("records"))(w.t), bytes.NewReader([]byte(content))))(w.t)
		kit.Must(w.t, z.Close())
		f := kit.Value(p.Commit(w.t.Context()))(w.t)
		files = append(files, custody.HeldFile{Name: name, Table: w.table, File: f})
	}
	m, _, err := h.Seal(files, def, e.Made.Add(time.Hour))
	kit.Must(w.t, err)
	w.sums[e.ID] = Recorded{m.SHA256, e.End}
}

// file is a file of an extract, with its parts; a part without a name makes it a plain file.
type file struct {
	table, name string
	parts       [][2]string // name and content
}

// holdFiles puts an extract into custody.
func (w *world) holdFiles(e archive.Extract, definition []byte, files ...file) {
	w.t.Helper()
	h := kit.Value(w.custody.Begin(e))(w.t)
	defer h.Close()
	def := kit.Value(h.Definition(definition))(w.t)
	var held []custody.HeldFile
	for i, f := range files {
		p := kit.Value(h.Begin(i+1, archive.ExtractFile{Extract: e.ID, Name: f.name, Table: f.table}))(w.t)
		z := zip.NewWriter(p)
		for _, part := range f.parts {
			out := io.Writer(p)
			if part[0] != "" {
				out = kit.Value(z.Create(part[0]))(w.t)
			}
			kit.Value(io.WriteString(out, part[1]))(w.t)
		}
		if len(f.parts) == 0 || f.parts[0][0] != "" {
			kit.Must(w.t, z.Close())
		}
		kept := kit.Value(p.Commit(w.t.Context()))(w.t)
		held = append(held, custody.HeldFile{Name: f.name, Table: f.table, File: kept})
	}
	m, _, err := h.Seal(held, def, e.Made.Add(time.Hour))
	kit.Must(w.t, err)
	w.sums[e.ID] = Recorded{m.SHA256, e.End}
}

// rec is a record by the names of the columns, of those that it has.
type rec map[string]any

func jsonOf(records ...rec) string {
	if records == nil {
		records = []rec{}
	}
	raw, err := json.Marshal(records)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// invoice is a booked record.
func invoice(id, number string, more ...any) rec {
	r := rec{"ID": id, "INVOICE_NUM": number, "SUPPLIER": "Huber GmbH", "ORG": "Acme", "INVOICE_DATE": "2026-10-05", "GROSS_SUM": json.Number("119.00"), "CURRENCY": "EUR", "STATUS": "Booked"}
	for i := 0; i < len(more); i += 2 {
		if r[more[i].(string)] = more[i+1]; more[i+1] == nil {
			delete(r, more[i].(string))
		}
	}
	return r
}

func documentOf(number string) archive.Document {
	return archive.Document{Type: "Invoice", Number: number, Date: "2026-10-05T00:00:00Z", SenderName: "Huber GmbH", RecipientName: "Acme", Currency: "EUR", Amount: "119.00"}
}

// drop makes an entry that came as far as a state, and returns its registration's number.
func (w *world) drop(folder string, m archive.Document, state ledger.State) archive.RemoteID {
	w.t.Helper()
	w.n++
	at := day("2026-10-06").Add(time.Duration(w.n) * time.Second)
	it := w.led.Add(fill.Item{Name: folder, Document: m, Remote: archive.RemoteID(fmt.Sprintf("bum-%d", w.n))})
	switch state {
	case ledger.Rejected:
		it.AsRead = archive.AsRead{Number: m.Number, SenderName: m.SenderName}
		it.Refuse(at, ledger.Cause{})
	case ledger.Packaged:
		it.Seal(at)
	case ledger.Uploaded:
		it.Store(at)
	case ledger.Archived:
		it.Archive(at, time.Minute)
	}
	e := it.Entry()
	kit.Need(w.t, e.State == state, "%s is %s, want %s", folder, e.State, state)
	return it.Remote
}

func (w *world) open(s Settings) *Books {
	w.t.Helper()
	b := kit.Value(Open(w.t.Context(), w.dir, s, w.custody))(w.t)
	w.t.Cleanup(func() { b.Close() })
	return b
}

// ask folds what is held, and asks for October.
func (w *world) ask(change ...func(*Question)) (*Answer, []Row) {
	w.t.Helper()
	s := testSettings()
	s.From = cmp.Or(w.since, s.From)
	if w.settings != nil {
		w.settings(&s)
	}
	b := w.open(s)
	problems := kit.Value(b.Update(w.t.Context(), w.sums))(w.t)
	q := Question{From: "2026-10-01", To: "2026-10-31", Now: day("2026-11-20")}
	for _, c := range change {
		c(&q)
	}
	a := kit.Value(b.Answer(w.t.Context(), q, w.led, problems))(w.t)
	defer func() { kit.Must(w.t, a.Close()); kit.Must(w.t, b.Close()) }()
	var rows []Row
	kit.Must(w.t, a.EachBooked(w.t.Context(), func(r Row) error { rows = append(rows, r); return nil }))
	unbooked := uint64(0)
	kit.Must(w.t, a.EachUnbooked(w.t.Context(), func(Unbooked) error { unbooked++; return nil }))
	kit.Check(w.t, unbooked == a.Unbooked && uint64(len(rows)) == a.Booked,
		"%d rows and %d unbooked, told were %d and %d", len(rows), unbooked, a.Booked, a.Unbooked)
	return a, rows
}
