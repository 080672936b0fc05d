package books

import (
	"context"
	"database/sql"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/expected"
)

// querier is the open file, or a transaction that sees one state of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// Booked is one booked invoice, as the last record of its key has it.
type Booked struct {
	Key, Number, Supplier, Company string
	Date                           Day
	Amount                         archive.Decimal // without zeros at its end
	Currency, Type                 string
	Wrong                          string // what of it cannot be read; may be empty
	Unclear                        string // what of it can be read in two ways; may be empty
	Extract, File                  string // that it stands in, with its record; only in a [Row]

	rank []byte // of the record
}

const bookedColumns = "key, number, supplier, company, date, amount, currency, type, wrong, unclear, rank"

func (r *Booked) scan(row interface{ Scan(...any) error }, more ...any) error {
	return row.Scan(append(more, &r.Key, &r.Number, &r.Supplier, &r.Company, &r.Date, &r.Amount, &r.Currency, &r.Type, &r.Wrong, &r.Unclear, &r.rank)...)
}

// Difference is in what a document of the archive is not what the books say.
type Difference uint8

// The differences.
const (
	OtherDate Difference = 1 << iota
	OtherCurrency
	OtherAmount
	OtherSupplier
	OtherCompany
	OtherType  // one is a credit note, and the other is not
	OnlyNumber // neither an amount nor a date stands in both
)

// String names them.
func (d Difference) String() string {
	var words []string
	for _, one := range []struct {
		bit  Difference
		word string
	}{{OtherSupplier, "supplier"}, {OtherCompany, "company"}, {OtherAmount, "amount"}, {OtherCurrency, "currency"}, {OtherDate, "date"}, {OtherType, "type"}, {OnlyNumber, "only the number"}} {
		if d&one.bit != 0 {
			words = append(words, one.word)
		}
	}
	return strings.Join(words, ", ")
}

// compare tells in what a document is not what a booked row of its number says. A value that one of them does not have differs from
// nothing, but for an amount that the books have and the document has not; and the amount or the date must stand in both. contradicts says
// that it is another invoice of that number: another supplier or company, and not of the same amount, currency and date either.
func (r Booked) compare(d archive.Document, isTypedCredit bool) (diff Difference, contradicts bool) {
	differ := func(a, b string) bool {
		return a != b && a != "" && b != "" && archive.PlainText(a) != archive.PlainText(b)
	}
	day, _, _ := strings.Cut(d.Date, "T")
	if differ(string(r.Date), day) {
		diff |= OtherDate
	}
	if differ(r.Currency, d.Currency) {
		diff |= OtherCurrency
	}
	isCredit := strings.HasPrefix(d.Type, "CreditNote")
	if r.Amount != "" && !r.hasAmountOf(d, isCredit) {
		diff |= OtherAmount
	}
	// Books write a credit note with a minus, or name it. A correction may be an invoice with a minus.
	if d.Type != "" && (isCredit && !isTypedCredit && !strings.HasPrefix(string(r.Amount), "-") || isTypedCredit && !isCredit) {
		diff |= OtherType
	}
	hasAmount, hasDate := r.Amount != "" && d.Amount != "", r.Date != "" && day != ""
	agrees := diff == 0 && hasAmount && hasDate
	if !hasAmount && !hasDate {
		diff |= OnlyNumber
	}
	if differ(r.Supplier, d.SenderName) {
		diff |= OtherSupplier
	}
	if differ(r.Company, d.RecipientName) {
		diff |= OtherCompany
	}
	return diff, diff&(OtherSupplier|OtherCompany) != 0 && !agrees
}

// hasAmountOf compares amounts by their value, digit for digit. The amount of a credit note is written with either sign.
func (r Booked) hasAmountOf(d archive.Document, isCredit bool) bool {
	amount, err := expected.ParseNumber(string(d.Amount))
	if err != nil {
		return false
	}
	a, b := string(r.Amount), string(trimZeros(amount))
	if isCredit {
		a, b = strings.TrimPrefix(a, "-"), strings.TrimPrefix(b, "-")
	}
	return a == b
}

// kind is how a document stands to a booked row.
type kind uint8

const (
	whole   kind = iota // its number, and nothing differs
	differs             // its number, and something differs
	other               // its number, and it is another invoice
	alike               // a number that is alike
)
