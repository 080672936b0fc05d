package books

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/custody"
)

// Problem is an extract that could not be folded. What it tells is not known, so its time counts as not covered.
type Problem struct {
	Extract string `json:"extract"`
	Text    string `json:"text"`
}

// Recorded is what the ledger has of an extract that is held.
type Recorded struct {
	Manifest archive.Digest
	End      time.Time // of what it tells about; zero: unknown
}

// String says which extract could not be read, and why.
func (p Problem) String() string {
	if p.Extract == "" {
		return p.Text + "."
	}
	return "Extract " + p.Extract + ": " + p.Text + "."
}

// Update folds the extracts that are held and not folded yet. An extract counts
// only as the ledger recorded it, and only with the bytes of its manifest. One
// that cannot be read, that lacks a column, or that the custody has lost, is a
// problem, and the others are folded. The error is a *DefinitionError where no
// extract has a column: then the settings are wrong.
func (b *Books) Update(ctx context.Context, recorded map[archive.ExtractID]Recorded) ([]Problem, error) {
	held, problems, err := b.listHeld(recorded)
	if err != nil {
		return nil, err
	}
	folded, err := b.listFolded(ctx)
	if err != nil {
		return nil, err
	}
	for id, sum := range folded {
		// Rows that other records had replaced are not known any more, so that one extract cannot be taken out alone.
		if m, ok := held[id]; !ok || m.SHA256 != sum {
			if err := b.empty(ctx); err != nil {
				return nil, err
			}
			clear(folded)
			break
		}
	}
	var lost *DefinitionError // of the last extract that lacks a column
	for _, m := range held {
		if _, ok := folded[m.Extract.ID]; ok {
			continue
		}
		err := b.foldExtract(ctx, m)
		if e, is := errors.AsType[*DefinitionError](err); is {
			if problems = append(problems, Problem{string(m.Extract.ID), e.Error()}); lost == nil || e.Day > lost.Day {
				lost = e
			}
			continue
		}
		if _, isUnreadable := errors.AsType[*unreadableError](err); isUnreadable {
			problems = append(problems, Problem{string(m.Extract.ID), err.Error()})
			continue
		}
		if err != nil {
			return nil, err
		}
		folded[m.Extract.ID] = m.SHA256
	}
	if lost != nil && len(folded) == 0 {
		return nil, lost
	}
	if err := b.settle(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Extract, b.Extract) })
	return problems, nil
}

// unreadableError says why an extract cannot be folded.
type unreadableError struct{ err error }

func (e *unreadableError) Error() string { return e.err.Error() }
func (e *unreadableError) Unwrap() error { return e.err }

// listHeld returns the manifests that count, and a problem for each extract of which only the ledger or only the custody knows.
func (b *Books) listHeld(recorded map[archive.ExtractID]Recorded) (map[archive.ExtractID]custody.Manifest, []Problem, error) {
	held, missing := map[archive.ExtractID]custody.Manifest{}, maps.Clone(recorded)
	var problems []Problem
	for m, err := range b.custody.Manifests() {
		if bad, is := errors.AsType[*custody.ManifestError](err); is {
			problems = append(problems, Problem{"", bad.Error()})
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		of, ok := recorded[m.Extract.ID]
		delete(missing, m.Extract.ID)
		switch {
		case !ok: // the engine takes it in, and the next answer has it
			problems = append(problems, Problem{string(m.Extract.ID), "the ledger does not have it as held yet"})
		case of.Manifest != m.SHA256:
			problems = append(problems, Problem{string(m.Extract.ID), "its manifest is not the one that the ledger recorded: run vaultd extracts verify"})
		default:
			held[m.Extract.ID] = m
		}
	}
	for id, of := range missing {
		if !of.End.IsZero() && !of.End.After(b.settings.From.time(b.settings.Location)) {
			continue // of what is not asked about; people may move it away
		}
		problems = append(problems, Problem{string(id), "it is held by the ledger, and its folder is not in the custody: put it back from a copy"})
	}
	return held, problems, nil
}

func (b *Books) listFolded(ctx context.Context) (map[archive.ExtractID]archive.Digest, error) {
	rows, err := b.db.QueryContext(ctx, "SELECT id, manifest FROM extract")
	if err != nil {
		return nil, err
	}
	defer rows.Close() // it is only read
	folded := map[archive.ExtractID]archive.Digest{}
	for rows.Next() {
		var id string
		var sum []byte
		if err := rows.Scan(&id, &sum); err != nil {
			return nil, err
		}
		var digest archive.Digest
		copy(digest[:], sum)
		folded[archive.ExtractID(id)] = digest
	}
	return folded, rows.Err()
}

// countChange makes matches that were made of the rows before useless. It is in the transaction that changes rows.
const countChange = "UPDATE made SET changes = changes + 1"

// empty removes all rows.
func (b *Books) empty(ctx context.Context) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, statement := range []string{"DELETE FROM booked", "DELETE FROM file", "DELETE FROM extract", countChange} {
		if err == nil {
			_, err = tx.ExecContext(ctx, statement)
		}
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// foldExtract enters the records of one extract. The error is an *unreadableError where the extract is the cause.
func (b *Books) foldExtract(ctx context.Context, m custody.Manifest) error {
	if err := b.custody.Verify(ctx, m); err != nil {
		if _, is := errors.AsType[*custody.ChangedError](err); is {
			return &unreadableError{err}
		}
		return err
	}
	table, err := b.readTable(m)
	if err != nil {
		return err
	}
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// One transaction: after a crash the extract is folded whole, or not at all, and the next answer folds it.
	var isFolded bool // by another answer that was quicker
	err = tx.QueryRowContext(ctx, "SELECT count(*) FROM extract WHERE id = ?", string(m.Extract.ID)).Scan(&isFolded)
	f := &folding{settings: b.settings, table: table, tx: tx, of: m}
	if err == nil && !isFolded {
		err = f.fold(ctx, b.custody)
	}
	if isFull(err) {
		err = &unreadableError{fmt.Errorf("its records have no room in %s, which holds %d GB at most, or its disk is full", FileName, mostPages*pageSize>>30)}
	}
	if err != nil || isFolded {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Bounds of what is folded.
const (
	mostKept   = 256 << 20 // bytes of values of one file
	mostBooked = 5_000_000 // records of all extracts; an answer keeps 16 bytes of each in memory
)

// folding enters the records of one extract.
type folding struct {
	settings Settings
	table    table
	tx       *sql.Tx
	of       custody.Manifest

	upsert         *sql.Stmt
	file           custody.HeldFile
	fileNumber     int
	number         int // of the record in its file
	records, noKey int
	kept           int // bytes of values of the file
	shown          shown
	has            [fieldCount]bool // the column is in some record
}

func (f *folding) fold(ctx context.Context, c *custody.Custody) (err error) {
	f.upsert, err = f.tx.PrepareContext(ctx, `INSERT INTO booked (key, rank, counts, number, supplier, company, date, amount, currency, type, wrong, raw_amount, raw_date, unclear)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET rank = excluded.rank, counts = excluded.counts, number = excluded.number,
		supplier = excluded.supplier, company = excluded.company, date = excluded.date, amount = excluded.amount, currency = excluded.currency, type = excluded.type,
		wrong = excluded.wrong, raw_amount = excluded.raw_amount, raw_date = excluded.raw_date, unclear = excluded.unclear WHERE excluded.rank > booked.rank`)
	if err != nil {
		return err
	}
	defer f.upsert.Close() // the transaction has its outcome
	has, own := noTable, dataSetOf(f.settings.Table)
	for i, file := range f.of.Files {
		if slices.Contains(own.tables, file.Table) {
			has = ownTables
		} else if file.Table != "" {
			has = max(has, otherTables)
		}
		switch {
		case file.Table == f.settings.Table:
		case file.Table == "":
			found, err := f.eachPart(c, file, drain)
			if err == nil && found.own == 0 {
				continue // an extra file
			}
			return &unreadableError{errors.Join(err, fmt.Errorf("%s is of no table that is named, and may have records of %s", file.Name, f.settings.Table))}
		case strings.EqualFold(file.Table, f.settings.Table):
			return &unreadableError{fmt.Errorf("%s is of a table %q; whether that is %s nobody can know", file.Name, file.Table, f.settings.Table)}
		default:
			continue
		}
		f.file, f.fileNumber, f.number, f.kept = file, i, 0, 0
		if err := f.foldFile(ctx, c); err != nil {
			return err
		}
		if _, err := f.tx.ExecContext(ctx, "INSERT INTO file VALUES (?, ?, ?)", string(f.of.Extract.ID), i, file.Name); err != nil {
			return err
		}
	}
	if err := f.checkColumns(); err != nil {
		return err
	}
	var rows int
	if err := f.tx.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM booked").Scan(&rows); err != nil {
		return err
	}
	if rows > mostBooked {
		return &unreadableError{fmt.Errorf("with it there are more than %d booked records, which is more than an answer can hold", mostBooked)}
	}
	if _, err := f.tx.ExecContext(ctx, countChange); err != nil {
		return err
	}
	e := f.of.Extract
	_, err = f.tx.ExecContext(ctx, "INSERT INTO extract VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", string(e.ID), f.of.SHA256[:], e.Name, e.Type,
		seconds(e.Start), seconds(e.End), seconds(e.Made), has, f.records, f.noKey, strings.Join(f.table.columns, "\n"), f.table.unread, f.shown.decimal, f.shown.order)
	return err
}

// checkColumns refuses an extract without a table definition of which no record
// has a column: the column may have another name.
func (f *folding) checkColumns() error {
	if f.table.unread == "" || f.records+f.noKey == 0 {
		return nil
	}
	for i, names := range f.table.names {
		if len(names) > 0 && !f.has[i] {
			return &unreadableError{fmt.Errorf("no record has %s (%s), and there is no table definition that shows whether it was renamed", strings.Join(names, " or "), fieldNames[i])}
		}
	}
	return nil
}

// enter enters one record, unless a later one of its key is there.
func (f *folding) enter(ctx context.Context, r record) error {
	f.number++
	for i, has := range r.has {
		f.has[i] = f.has[i] || has
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	key := strings.TrimSpace(r.values[keyField])
	if key == "" {
		f.noKey++
		return nil
	}
	f.records++
	for _, v := range r.values {
		f.kept += len(v)
	}
	if f.kept > mostKept {
		return &unreadableError{fmt.Errorf("%s has more than %d MB of values in the columns that are read", f.file.Name, mostKept>>20)}
	}
	w := f.readValues(r)
	v := func(at field) string { return strings.TrimSpace(r.values[at]) }
	counts := 0
	if f.settings.isBooked(v(bookedField)) {
		counts = 1
	}
	// The context was asked above. SQLite would start a goroutine for each record to watch it.
	_, err := f.upsert.ExecContext(context.WithoutCancel(ctx), key, f.rank(), counts, exactNumber(v(numberField)), v(supplierField), v(companyField), string(w.date), string(w.amount),
		w.currency, v(typeField), w.wrong, w.rawAmount, w.rawDate, w.unclear)
	return err
}

// rank orders all records: by the end of the time that the extract tells about, then by when it was made and its number, then by the order
// of its files and of the records in them. An extract of chosen days has records as they were when it was made.
func (f *folding) rank() []byte {
	e := f.of.Extract
	end := e.End
	if end.IsZero() || e.Type == archive.RangeExtract && !e.Made.IsZero() {
		end = e.Made
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(max(seconds(end), 0)))
	kind := byte(1)
	if e.Type == archive.InitialExtract {
		kind = 0
	}
	b = binary.BigEndian.AppendUint64(append(b, kind), uint64(max(seconds(e.Made), 0)))
	b = append(append(b, e.ID...), 0)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, uint32(f.fileNumber)), uint32(f.number))
}

// source is a file of an extract.
type source struct {
	extract string
	number  uint32 // in the manifest
}

// readRank returns the file that a rank names, and the number of the record in it.
func readRank(rank []byte) (s source, record uint32, err error) {
	const before, behind = 8 + 1 + 8, 1 + 4 + 4 // around the number of the extract
	if len(rank) < before+behind {
		return s, 0, fmt.Errorf("a rank of %d bytes in %s", len(rank), FileName)
	}
	end := len(rank) - behind
	return source{string(rank[before:end]), binary.BigEndian.Uint32(rank[end+1:])}, binary.BigEndian.Uint32(rank[end+5:]), nil
}

func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
