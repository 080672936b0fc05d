package main

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
)

// recordsAFile is how many records the service puts into a file at most.
const recordsAFile = 100_000

// booksRow measures the first answer about as many booked invoices as a filled ledger has documents, against reading the records and
// walking through the ledger alone. The second answer finds the records folded already, and compared with the ledger.
func (b *bench) booksRow(docs int) row {
	return row{ID: "books-" + short(docs), Goal: "ask", Title: fmt.Sprintf("vaultd books, %s booked invoices and as many documents, for the first time", short(docs)),
		A: side{"vaultd books", b.answerBooks(docs)}, B: side{"reading the records and the ledger", b.readBooks(docs)}, Pairs: b.costlyPairs(), Limit: wholeLimit,
		Ratios: []ratio{{"CPU", cpuRatio, "<= 2", atMost(2)}, {"wall", wallRatio, "told", nil}},
		Counts: []count{
			{"peak RssAnon, MiB", peakMiB, "<= 256", atMost(256)},
			{"books.db, bytes a record", figureOfRow("bytes_per_record"), "told", nil},
			{"the second answer, wall of the first", figureOfRow("again"), "told", nil},
		}}
}

// bookedLedger returns a filled ledger, in whose folder the custody of its booked invoices lies.
func (b *bench) bookedLedger(ctx context.Context, docs int) (string, error) {
	return b.makeOnce(ctx, fmt.Sprintf("booked-%d", docs), func(ctx context.Context, dir string) (err error) {
		state, folder := filepath.Join(dir, "state"), filepath.Join(dir, "custody")
		if err := errors.Join(os.Mkdir(state, 0o700), os.Mkdir(folder, 0o750)); err != nil {
			return err
		}
		if err := fillLedger(ctx, state, docs, 0, 0); err != nil {
			return err
		}
		l, err := boltledger.Open(boltledger.Config{Dir: state})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		c, err := custody.Open(folder, l.Info().ID, l.Info().Environment, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		return holdBooked(ctx, l, c, docs)
	})
}

const booksTable = "IA_INVOICE"

// holdBooked puts an initial extract into custody that has every document of the ledger, and tells the ledger so.
func holdBooked(ctx context.Context, l *boltledger.Ledger, c *custody.Custody, docs int) (err error) {
	e := archive.Extract{ID: "1", Type: archive.InitialExtract, Name: "all", Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC),
		Made: time.Date(2026, 11, 2, 1, 0, 0, 0, time.UTC), Files: (docs + recordsAFile - 1) / recordsAFile}
	h, err := c.Begin(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	definition, err := h.Definition(bookedDefinition())
	if err != nil {
		return err
	}
	events := []arrival.Event{arrival.Listed{Kind: arrival.Extract, Extract: e}}
	var listed []archive.ExtractFile
	var held []custody.HeldFile
	for n := range e.Files {
		file := archive.ExtractFile{Extract: e.ID, Table: booksTable, Name: fmt.Sprintf("%s_%d.zip", booksTable, n+1)}
		p, err := h.Begin(n+1, file)
		if err != nil {
			return err
		}
		if err := writeBooked(p, n*recordsAFile, min(docs, (n+1)*recordsAFile)); err != nil {
			return err
		}
		f, err := p.Commit(ctx)
		if err != nil {
			return err
		}
		listed, held = append(listed, file), append(held, custody.HeldFile{Name: file.Name, Table: file.Table, File: f})
	}
	m, sum, err := h.Seal(held, definition, e.Made.Add(time.Hour))
	if err != nil {
		return err
	}
	events = append(events, arrival.FilesListed{Files: listed})
	for _, f := range m.Files {
		events = append(events, arrival.DownloadIntended{File: f.Name}, arrival.FileHeld{File: f.Name, Stored: f.Stored, Size: f.Size, SHA256: f.SHA256})
	}
	_, err = l.ApplyArrival(ctx, arrival.Change{Key: archive.NewKey(e.Made), Events: append(events, arrival.HeldWhole{Again: listed, Manifest: sum}), At: archive.Instant{Wall: e.Made}})
	return err
}

// bookedRecord is the record of one document, with columns beside those that count, as a table of production has them.
func bookedRecord(n int) map[string]any {
	r := map[string]any{"INVOICE_ID": fmt.Sprintf("%032X", n+1), "INVOICE_NUM": fmt.Sprintf("R-%07d", n+1), "SUPPLIER_NAME": "Donauwerk GmbH", "ORG_NAME": "Brenner & Söhne KG",
		"INVOICE_DATE": "2026-10-31T00:00:00", "GROSS_SUM": json.Number(money(int64(n+1)*37 + 1000)), "CURRENCY_CODE": "EUR", "STATUS": "Booked"}
	for i := range 22 {
		r[fmt.Sprintf("FIELD_%02d", i)] = []any{"a text of a field", 4711 + n, true}[i%3]
	}
	return r
}

func bookedDefinition() []byte {
	columns := []map[string]string{}
	for name := range bookedRecord(0) {
		columns = append(columns, map[string]string{"Column name": name, "Data Type": "text"})
	}
	raw, err := json.Marshal([]any{map[string]any{"Table name": booksTable, "Columns": columns}})
	if err != nil {
		panic(err) // texts always encode
	}
	return raw
}

func writeBooked(to io.Writer, from, end int) error {
	z := zip.NewWriter(to)
	part, err := z.Create(booksTable + ".json")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(part)
	separator := "["
	for n := from; n < end; n++ {
		raw, err := json.Marshal(bookedRecord(n))
		if err != nil {
			return err
		}
		out.WriteString(separator) //lint:ignore errcheck bufio keeps the first error for Flush
		out.Write(raw)             //lint:ignore errcheck as above
		separator = ","
	}
	out.WriteString("]") //lint:ignore errcheck as above
	return errors.Join(out.Flush(), z.Close())
}

func (b *bench) answerBooks(docs int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		made, err := b.bookedLedger(ctx, docs)
		if err != nil {
			return s, err
		}
		state := filepath.Join(made, "state")
		file := filepath.Join(state, "books.db")
		for _, end := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(file + end); err != nil && !errors.Is(err, os.ErrNotExist) {
				return s, err
			}
		}
		in, err := b.installBeside(ctx, dir, setup{State: state})
		if err != nil {
			return s, err
		}
		text, err := os.ReadFile(in.configPath())
		if err != nil {
			return s, err
		}
		text = fmt.Appendf(text, `
extracts: {base_url: "https://%s", custody: %q, auth: {method: basic, username: %s, secret_file: %q}}
books: {table: %s, columns: {key: INVOICE_ID, number: INVOICE_NUM, supplier: SUPPLIER_NAME, company: ORG_NAME, date: INVOICE_DATE, amount: GROSS_SUM, currency: CURRENCY_CODE}, booked: {column: STATUS, values: [Booked]}, from: 2026-01-01}
`, ledgerAddress, filepath.Join(made, "custody"), benchUser, filepath.Join(dir, "secret"), booksTable)
		if err := os.WriteFile(in.configPath(), text, 0o600); err != nil {
			return s, err
		}
		ask := []string{"books", "--from", "2026-10-01", "--to", "2026-10-31"}
		if s, err = in.measureCommand(ctx, ask...); err != nil { // it ends with 0 only where every booked invoice is archived
			return s, err
		}
		s.Docs = docs
		info, err := os.Stat(file)
		if err != nil {
			return s, err
		}
		s.noteFigure("bytes_per_record", float64(info.Size())/float64(docs))
		again, err := in.measureCommand(ctx, ask...)
		s.noteFigure("again", quotient(again.Wall.Seconds(), s.Wall.Seconds()))
		return s, err
	}
}

// readBooks decodes every record and reads every entry with its metadata, and does nothing with them.
func (b *bench) readBooks(docs int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, _ string) (s sample, err error) {
		made, err := b.bookedLedger(ctx, docs)
		if err != nil {
			return s, err
		}
		began, cpu := time.Now(), ownCPU()
		l, err := boltledger.Open(boltledger.Config{Dir: filepath.Join(made, "state")})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		records, err := decodeRecords(filepath.Join(made, "custody", "extracts", "1", "files"))
		if err != nil {
			return s, err
		}
		entries := 0
		if err := l.EntriesOldestFirst(func(e ledger.Entry) error {
			entries++
			doc, _, err := l.Document(e.Key)
			if err == nil {
				_, err = archive.ParseMetadata(doc.Metadata)
			}
			return err
		}); err != nil {
			return s, err
		}
		if records != docs || entries != docs {
			return s, fmt.Errorf("read %d records and %d entries, want %d", records, entries, docs)
		}
		s.Wall, s.CPU, s.Docs = time.Since(began), ownCPU()-cpu, docs
		return s, nil
	}
}

// decodeRecords decodes the records of all files of a folder and counts them.
func decodeRecords(folder string) (n int, err error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		z, err := zip.OpenReader(filepath.Join(folder, f.Name()))
		if err != nil {
			return n, err
		}
		part, err := z.File[0].Open()
		if err != nil {
			return n, errors.Join(err, z.Close())
		}
		d := json.NewDecoder(part)
		_, err = d.Token()
		for ; err == nil && d.More(); n++ {
			var record map[string]json.RawMessage
			err = d.Decode(&record)
		}
		if err := errors.Join(err, part.Close(), z.Close()); err != nil {
			return n, err
		}
	}
	return n, nil
}
