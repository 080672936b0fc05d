package report

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"vaultd/internal/books"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// BooksFormat names the shape of the JSON of [Books]; it changes only with the shape.
const BooksFormat = "vaultd-books-1"

// Books is the report about booked invoices: which of them are in the archive.
type Books struct {
	Answer   *books.Answer
	Info     ledger.Info
	Made     time.Time
	Location *time.Location // of times for people
	Program  string         // name and version of who writes it
	Host     string         // the machine; empty: unknown
	By       string         // the person who asked; empty: unknown
}

// bookedRow is one line of the tables: a booked invoice, or an archived document that is not booked.
type bookedRow struct {
	Verdict    string `json:"verdict"` // not-booked for a document that the books do not have
	Number     string `json:"number"`
	Type       string `json:"type"`
	Date       string `json:"date"`
	Supplier   string `json:"supplier"`
	Company    string `json:"company"`
	Amount     string `json:"amount"` // plain decimal
	Currency   string `json:"currency"`
	Difference string `json:"differs"` // in what the archived document is not as booked
	Found      string `json:"found"`   // what there is, in words
	Folder     string `json:"folder"`
	Drop       string `json:"drop"`
	Entry      string `json:"key"`   // of the ledger's entry that decides; may be empty
	BumID      string `json:"bumId"` // where only the archive's index has the document
	Record     string `json:"bookedAs"`
	Extract    string `json:"extract"` // with the record's file
}

const notBooked = "not-booked"

func newBookedRow(r books.Row) bookedRow {
	b := bookedRow{Verdict: r.Verdict.String(), Number: r.Number, Type: r.Type, Date: string(r.Date), Supplier: r.Supplier, Company: r.Company, Amount: string(r.Amount),
		Currency: r.Currency, Difference: r.Difference.String(), Found: r.Found, Folder: r.Folder, Drop: r.Drop, Record: r.Key, Extract: r.Extract + ", " + r.File}
	if !r.Entry.IsZero() {
		b.Entry = r.Entry.String()
	}
	return b
}

func newUnbookedRow(u books.Unbooked) bookedRow {
	d := u.Document
	day, _, _ := strings.Cut(d.Date, "T")
	b := bookedRow{Verdict: notBooked, Number: d.Number, Type: d.Type, Date: day, Supplier: d.SenderName, Company: d.RecipientName, Amount: string(d.Amount), Currency: d.Currency,
		Folder: u.Folder, Drop: u.Drop, BumID: string(u.BumID)}
	if !u.Entry.IsZero() {
		b.Entry = u.Entry.String()
	}
	return b
}

// eachRow calls fn with every booked invoice of the question, and then with every archived document that is not booked.
func (b *Books) eachRow(ctx context.Context, fn func(bookedRow) error) error {
	if err := b.Answer.EachBooked(ctx, func(r books.Row) error { return fn(newBookedRow(r)) }); err != nil {
		return err
	}
	return b.Answer.EachUnbooked(ctx, func(u books.Unbooked) error { return fn(newUnbookedRow(u)) })
}

// errEnough ends a walk through rows of which no more are wanted.
var errEnough = errors.New("no more rows are wanted")

// eachDiffering calls take with the booked invoices that are not archived, and then with the archived documents that are not booked. Of each of
// the two it ends early where take says that no more are wanted: the others, which are most of all rows, are not looked up.
func (b *Books) eachDiffering(ctx context.Context, take func(bookedRow) (isMoreWanted bool)) error {
	offer := func(r bookedRow) error {
		if !take(r) {
			return errEnough
		}
		return nil
	}
	err := b.Answer.EachMissing(ctx, func(r books.Row) error { return offer(newBookedRow(r)) })
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	err = b.Answer.EachUnbooked(ctx, func(u books.Unbooked) error { return offer(newUnbookedRow(u)) })
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// mark is what each row of a table says of the environment.
func (b *Books) mark() string {
	if b.isTest() {
		return TestMark
	}
	return b.Info.Environment
}

func (b *Books) isTest() bool { return b.Info.Environment != "production" }

var booksHeader = []string{"environment", "verdict", "number", "type", "date", "supplier", "company", "amount", "currencyCode", "differs", "found",
	"folder", "drop", "key", "bumId", "bookedAs", "extract"}

// CSV writes every row in the form of [Audit.CSV].
func (b *Books) CSV(ctx context.Context, w io.Writer, separator rune) error {
	out := bufio.NewWriterSize(w, buffered)
	out.WriteString("\ufeff") //lint:ignore errcheck bufio keeps the first error for Flush
	if err := writeRecord(out, separator, booksHeader); err != nil {
		return err
	}
	mark := sanitize.Cell(b.mark())
	err := b.eachRow(ctx, func(r bookedRow) error {
		return writeRecord(out, separator, []string{mark, r.Verdict, sanitize.Cell(r.Number), sanitize.Cell(r.Type), r.Date, sanitize.Cell(r.Supplier), sanitize.Cell(r.Company),
			numericCell(r.Amount), sanitize.Cell(r.Currency), r.Difference, sanitize.Cell(r.Found), sanitize.Cell(r.Folder), sanitize.Cell(r.Drop), r.Entry, sanitize.Cell(r.BumID),
			sanitize.Cell(r.Record), sanitize.Cell(r.Extract)})
	})
	if err != nil {
		return err
	}
	return flush(out)
}

// XLSX writes every row in the form of [Audit.XLSX].
func (b *Books) XLSX(ctx context.Context, w io.Writer) error {
	t := newXLSX(w, b.mark(), b.isTest(), b.Made, booksHeader)
	text := func(s string) xlsxCell { return xlsxCell{textStyle, s} }
	err := b.eachRow(ctx, func(r bookedRow) error {
		return t.add(appendCells(nil, []xlsxCell{text(b.mark()), text(r.Verdict), text(r.Number), text(r.Type), dateCell(r.Date + "T00:00:00Z"), text(r.Supplier), text(r.Company),
			amountCell(r.Amount), text(r.Currency), text(r.Difference), text(r.Found), text(r.Folder), text(r.Drop), text(r.Entry), text(r.BumID), text(r.Record), text(r.Extract)}))
	})
	if err != nil {
		return err
	}
	return t.finish()
}

// booksSummary is what the report says before its rows, and what the audit has of it.
type booksSummary struct {
	Format      string            `json:"format"`
	Notice      string            `json:"notice"` // TestMark in a test environment, else empty
	Result      books.Result      `json:"result"`
	Environment string            `json:"environment"`
	Ledger      string            `json:"ledgerId"`
	Made        time.Time         `json:"made"`
	Program     string            `json:"program"`
	From        books.Day         `json:"from"`
	To          books.Day         `json:"to"`
	Company     string            `json:"company"` // empty: all
	Coverage    books.Coverage    `json:"coverage"`
	Problems    []books.Problem   `json:"problems"`
	Index       []books.IndexRead `json:"index"` // empty: it was not read
	Booked      uint64            `json:"booked"`
	Verdicts    map[string]uint64 `json:"verdicts"`
	NotArchived uint64            `json:"notArchived"`
	NotBooked   uint64            `json:"archivedNotBooked"`
	Sums        []books.Sum       `json:"sums"`
}

func (b *Books) summarize() booksSummary {
	a := b.Answer
	s := booksSummary{Format: BooksFormat, Result: a.Result(), Environment: b.Info.Environment, Ledger: b.Info.ID, Made: b.Made.UTC(), Program: b.Program, From: a.Question.From,
		To: a.Question.To, Company: a.Question.Company, Coverage: a.Coverage, Problems: append([]books.Problem{}, a.Problems...), Index: append([]books.IndexRead{}, a.Index...),
		Booked: a.Booked, Verdicts: map[string]uint64{}, NotArchived: a.Missing(), NotBooked: a.Unbooked, Sums: append([]books.Sum{}, a.Sums...)}
	if b.isTest() {
		s.Notice = TestMark
	}
	for _, v := range books.Verdicts() {
		s.Verdicts[v.String()] = a.Counts[v]
	}
	return s
}

// JSON writes one object: the summary's fields, then "invoices", one object a line. Times are in UTC, amounts are decimal text.
func (b *Books) JSON(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriterSize(w, buffered)
	head, err := marshalJSON(b.summarize())
	if err != nil {
		return err
	}
	out.Write(bytes.TrimSuffix(head, []byte("}"))) //lint:ignore errcheck bufio keeps the first error for Flush
	out.WriteString(",\n\"invoices\":[")           //lint:ignore errcheck as above
	separator := "\n"
	if err := b.eachRow(ctx, func(r bookedRow) error {
		line, err := marshalJSON(r)
		if err != nil {
			return err
		}
		out.WriteString(separator) //lint:ignore errcheck as above
		separator = ",\n"
		_, err = out.Write(line)
		return err
	}); err != nil {
		return err
	}
	out.WriteString("\n]}\n") //lint:ignore errcheck as above
	return flush(out)
}

// textRows is how many rows of each kind the text names.
const textRows = 20

// Text writes the answer for a terminal: the result, what is known, and the first invoices that are not archived.
func (b *Books) Text(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriterSize(w, buffered)
	a, line := b.Answer, func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	if b.isTest() {
		line("%s", TestMark)
	}
	result := a.Result()
	line("RESULT: %s\n%s\n", result.Title, sanitize.Text(result.Text))
	for _, text := range b.Known() {
		line("%s", sanitize.Text(text))
	}
	for _, s := range a.Sums {
		line("%s: %d booked, %s; %d archived, %s; %d not archived, %s", sanitize.Text(s.Currency), s.Booked.Count, formatMoney(s.Booked.Total), s.Archived.Count,
			formatMoney(s.Archived.Total), s.Missing.Count, formatMoney(s.Missing.Total))
	}
	told := map[bool]int{}
	titles := map[bool]string{false: "Booked, not archived:", true: "Archived, not booked:"}
	err := b.eachDiffering(ctx, func(r bookedRow) bool {
		isUnbooked := r.Verdict == notBooked
		if told[isUnbooked]++; told[isUnbooked] == 1 {
			line("\n%s", titles[isUnbooked])
		}
		line("  %s", sanitize.Text(r.describe()))
		return told[isUnbooked] < textRows
	})
	if err != nil {
		return err
	}
	if a.Missing() > textRows || a.Unbooked > textRows {
		line("\nNot all are named here: vaultd books -o FILE.html, .csv, .xlsx or .json has every one.")
	}
	return flush(out)
}

// formatMoney writes a plain decimal with two digits behind the point at least.
func formatMoney(s string) string {
	whole, fraction, _ := strings.Cut(s, ".")
	if s == "" || len(fraction) >= 2 {
		return groupThousands(s)
	}
	return groupThousands(whole + "." + (fraction + "00")[:2])
}

// describe says a row in a line.
func (r bookedRow) describe() string {
	parts := []string{r.Number, r.Supplier, r.Date, strings.TrimSpace(formatMoney(r.Amount) + " " + r.Currency)}
	text := joinTexts(parts...)
	if r.Verdict == notBooked {
		return text + ": " + joinTexts(r.Folder, r.Drop, r.BumID)
	}
	return text + ": " + strings.ReplaceAll(r.Verdict, "-", " ") + ": " + r.Found
}

// Known says in sentences what the answer rests on, and what is not known.
func (b *Books) Known() (all []string) {
	a := b.Answer
	c := a.Coverage
	until := "they cover no day of this time"
	if c.Until != nil {
		until = "the last one ends at " + c.Until.In(b.Location).Format("2 Jan 2006 15:04 MST")
	}
	all = append(all, fmt.Sprintf("Booked from %s to %s, from %s with %s; %s.", c.From, c.To, formatCount(uint64(c.Extracts), "extract", "extracts"),
		formatCount(uint64(c.Records), "record", "records"), until))
	for _, h := range c.Holes {
		all = append(all, h.String())
	}
	for _, p := range a.Problems {
		all = append(all, p.String())
	}
	for _, d := range c.Changes {
		all = append(all, d.String())
	}
	return append(all, a.IndexWords()...)
}
