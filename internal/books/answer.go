package books

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// Ledger is what an answer reads of the ledger.
type Ledger interface {
	present.Entries
	EntriesOldestFirst(fn func(ledger.Entry) error) error
	Head() ledger.Head
}

// Index reads the archive's own index of each vault, and calls each with every record.
type Index func(each func(archive.IndexRecord) error) ([]IndexRead, error)

// Question is what is asked. Days are those of the invoices' dates in the books.
type Question struct {
	From, To Day
	Company  string // empty: all
	Now      time.Time
	Safe     string // why the ledger does not know everything that was done; empty: it does
	Index    Index  // nil: the index is not read
}

// Sum is what the invoices of one currency come to.
type Sum struct {
	Currency string `json:"currency"`
	Booked   Amount `json:"booked"`
	Archived Amount `json:"archived"`
	Missing  Amount `json:"notArchived"`
}

// Amount is how many invoices there are, and what they come to.
type Amount struct {
	Count uint64 `json:"count"`
	Total string `json:"total"` // plain decimal

	sum        big.Rat
	millionths int64 // that are not in sum yet
}

// add adds an amount. Nearly all are counted as whole millionths, which is as exact as fractions are and takes a tenth of their time.
func (a *Amount) add(amount archive.Decimal) {
	a.Count++
	if n, ok := countMillionths(amount); ok {
		const most = 8e18 // one more amount does not overflow
		if a.millionths += n; a.millionths > most || a.millionths < -most {
			a.addMillionths()
		}
		return
	}
	if r := amount.Rat(); r != nil {
		a.sum.Add(&a.sum, r)
	}
}

// countMillionths returns the millionths of a plain decimal that has at most eleven digits before the point and six behind it.
func countMillionths(amount archive.Decimal) (n int64, ok bool) {
	digits, isNegative := strings.CutPrefix(string(amount), "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	const behind = 6
	if whole == "" || len(whole) > 11 || len(fraction) > behind {
		return 0, false
	}
	for _, part := range []string{whole, fraction} {
		for i := range len(part) {
			if part[i] < '0' || part[i] > '9' {
				return 0, false
			}
			n = n*10 + int64(part[i]-'0')
		}
	}
	for range behind - len(fraction) {
		n *= 10
	}
	if isNegative {
		n = -n
	}
	return n, true
}

func (a *Amount) addMillionths() {
	a.sum.Add(&a.sum, big.NewRat(a.millionths, 1e6))
	a.millionths = 0
}

// write writes the sum.
func (a *Amount) write() {
	a.addMillionths()
	digits, _ := a.sum.FloatPrec() // a sum of decimals always ends
	a.Total = a.sum.FloatString(digits)
}

// Answer compares the three lists. Close must follow.
type Answer struct {
	Question Question
	Coverage Coverage
	Problems []Problem
	Index    []IndexRead // empty: it was not read

	Booked   uint64
	Counts   map[Verdict]uint64
	Sums     []Sum
	Unbooked uint64 // archived documents of the period that the books do not have

	unclear  uint64 // booked invoices of which a value can be read in two ways
	conn     *sql.Conn
	ledger   Ledger
	sources  map[source]string // names of the files
	matches  *matches
	unbooked []int32 // documents
	resolver *resolver
}

// Missing is how many booked invoices are not archived, or not without doubt.
func (a *Answer) Missing() uint64 { return a.Booked - a.Counts[Archived] }

// IsComplete reports whether everything is known: what was booked, and what the archive has.
func (a *Answer) IsComplete() bool {
	return a.Question.Safe == "" && len(a.Coverage.Holes) == 0 && len(a.Problems) == 0 && a.Coverage.NoKey == 0 && a.Counts[Unreadable] == 0 && a.unclear == 0 &&
		!slices.ContainsFunc(a.Index, func(i IndexRead) bool { return !i.Complete })
}

// Answer compares what was booked with the ledger and the index. It folds nothing: problems are what Update returned.
func (b *Books) Answer(ctx context.Context, q Question, l Ledger, problems []Problem) (a *Answer, err error) {
	conn, err := b.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	a = &Answer{Question: q, Counts: map[Verdict]uint64{}, conn: conn, ledger: l}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
			a = nil
		}
	}()
	// One state of the file for the whole answer, while others may fold.
	if _, err = conn.ExecContext(ctx, "BEGIN DEFERRED"); err != nil {
		return a, err
	}
	spans, err := b.listSpans(ctx, conn)
	if err != nil {
		return a, err
	}
	a.Coverage = cover(spans, b.settings.From, q.From, q.To, q.Now, b.settings.Location)
	a.Problems = slices.Concat(problems, listUntimed(spans))
	if err = a.checkCompany(ctx); err != nil {
		return a, err
	}
	if a.sources, err = listSources(ctx, conn); err != nil {
		return a, err
	}
	if err = a.match(ctx, b); err != nil {
		return a, err
	}
	if err = a.chooseUnbooked(ctx); err != nil {
		return a, err
	}
	return a, a.count(ctx)
}

// Close ends the answer. Its figures stay, its rows do not.
func (a *Answer) Close() error {
	// The connection is thrown away with its transaction, which changed nothing. Closing it would keep both for the next answer.
	thrown := a.conn.Raw(func(any) error { return driver.ErrBadConn })
	if errors.Is(thrown, driver.ErrBadConn) {
		thrown = nil
	}
	closed := a.conn.Close()
	if errors.Is(closed, sql.ErrConnDone) {
		closed = nil
	}
	return errors.Join(closed, thrown)
}

// UnknownCompanyError says that no booked invoice names the company that is asked for.
type UnknownCompanyError struct {
	Company string
	Near    []string // names that the books have and that are like it, the nearest first; at most three
}

// Error implements error.
func (e *UnknownCompanyError) Error() string {
	text := fmt.Sprintf("no booked invoice is of the company %q", e.Company)
	if len(e.Near) > 0 {
		text += "; near: " + strings.Join(e.Near, ", ")
	}
	return text
}

// checkCompany returns an *UnknownCompanyError where the company of the question is in no booked row: a name that is mistyped must not look
// like a company of which everything is archived.
func (a *Answer) checkCompany(ctx context.Context) error {
	if a.Question.Company == "" {
		return nil
	}
	rows, err := a.conn.QueryContext(ctx, "SELECT DISTINCT company FROM booked WHERE counts = 1")
	if err != nil {
		return err
	}
	defer rows.Close() // it is only read
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		if archive.PlainText(name) == archive.PlainText(a.Question.Company) {
			return nil
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return &UnknownCompanyError{a.Question.Company, nearest(a.Question.Company, names)}
}

// match joins the documents of the ledger and of the index with the booked
// rows. If neither the ledger nor the books changed since they were last
// joined, that is read from the file.
func (a *Answer) match(ctx context.Context, b *Books) error {
	if a.Question.Index != nil { // the archive may have changed since
		m, err := a.joinAll(ctx, a.isAsked, b.settings.Credit)
		if err == nil {
			a.matches, a.resolver = m, newResolver(m.docs, m.edges)
		}
		return err
	}
	since, before := min(b.settings.From, a.Question.From), a.ledger.Head()
	of := matchedOf(before, since, b.settings.Credit)
	changes, err := b.countChanges(ctx, a.conn)
	if err != nil {
		return err
	}
	m, err := loadMatches(ctx, a.conn, of, changes)
	if err != nil {
		return err
	}
	if m != nil {
		a.matches, a.resolver = m, newResolver(m.docs, m.edges)
		return nil
	}
	m, err = a.joinAll(ctx, func(d archive.Document) bool { return d.FlowDirection != "sending" && dayIn(d) >= since }, b.settings.Credit)
	if err != nil {
		return err
	}
	a.matches, a.resolver = m, newResolver(m.docs, m.edges)
	// The ledger is read in parts: where it went on meanwhile, the matches are of no one state of it.
	if a.ledger.Head() == before {
		b.keepMatches(ctx, m, of, changes)
	}
	return nil
}

// joinAll goes through the index, where it is asked for, and through the whole ledger. choose says which archived documents are told where
// no booked row has them.
func (a *Answer) joinAll(ctx context.Context, choose func(archive.Document) bool, credit []string) (*matches, error) {
	m, err := newMatcher(ctx, a.conn, choose, credit)
	if err != nil {
		return nil, err
	}
	index := newIndexed(m)
	if a.Question.Index != nil {
		if a.Index, err = a.Question.Index(index.add); err != nil {
			return nil, err
		}
	}
	// An index that was not read to its end says nothing about what it left out.
	isWhole := len(a.Index) > 0 && !slices.ContainsFunc(a.Index, func(i IndexRead) bool { return !i.Complete })
	if err := a.ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return m.addEntry(a.ledger, e, index.take(e) || !isWhole || !a.readVault(e.Vault))
	}); err != nil {
		return nil, err
	}
	if err := errors.Join(index.addRest(), m.flush()); err != nil {
		return nil, err
	}
	found := m.matches // without the places of the numbers, which are as large again
	return &found, nil
}

func (a *Answer) readVault(v archive.VaultID) bool {
	return slices.ContainsFunc(a.Index, func(i IndexRead) bool { return i.Vault == v })
}

// isAsked reports whether an archived document belongs to the period and company of the question. What the company sent is in no books
// of accounts payable.
func (a *Answer) isAsked(d archive.Document) bool {
	return d.FlowDirection != "sending" && dayIn(d) >= a.Question.From && dayIn(d) <= a.Question.To && a.mayBeOf(d.RecipientName)
}

// chooseUnbooked chooses the archived documents that no booked row has and that belong to the period and company of the question.
func (a *Answer) chooseUnbooked(ctx context.Context) error {
	for _, u := range a.matches.unbooked {
		if !u.day.isBetween(a.Question.From, a.Question.To) {
			continue
		}
		if a.Question.Company != "" {
			if err := ctx.Err(); err != nil {
				return err
			}
			values, err := a.valuesOf(a.matches.docs[u.doc])
			if err != nil {
				return err
			}
			if !a.mayBeOf(values.RecipientName) {
				continue
			}
		}
		a.unbooked = append(a.unbooked, u.doc)
	}
	a.Unbooked = uint64(len(a.unbooked))
	return nil
}

// valuesOf returns the metadata of a document.
func (a *Answer) valuesOf(d document) (archive.Document, error) {
	if d.indexed > 0 {
		return a.matches.indexed[d.indexed-1].values, nil
	}
	e, _, err := a.ledger.Entry(d.key)
	if err != nil {
		return archive.Document{}, err
	}
	values, _, err := present.ReadMetadata(a.ledger, e)
	return values, err
}

// mayBeOf reports whether what names this company may belong to the question: what names none may.
func (a *Answer) mayBeOf(company string) bool {
	return a.Question.Company == "" || company == "" || archive.PlainText(company) == archive.PlainText(a.Question.Company)
}

// count sums up the rows.
func (a *Answer) count(ctx context.Context) error {
	sums := map[string]*Sum{}
	err := a.eachCounted(ctx, func(b Booked, o outcome) {
		a.Booked++
		a.Counts[o.verdict]++
		if b.Unclear != "" {
			a.unclear++
		}
		s := sums[b.Currency]
		if s == nil {
			s = &Sum{Currency: b.Currency}
			sums[b.Currency] = s
		}
		s.Booked.add(b.Amount)
		if o.verdict == Archived {
			s.Archived.add(b.Amount)
		} else {
			s.Missing.add(b.Amount)
		}
	})
	for _, s := range sums {
		s.Booked.write()
		s.Archived.write()
		s.Missing.write()
		a.Sums = append(a.Sums, *s)
	}
	slices.SortFunc(a.Sums, func(x, y Sum) int { return strings.Compare(x.Currency, y.Currency) })
	return err
}

// eachCounted calls fn with each booked row of the question as far as it is counted, in any order.
func (a *Answer) eachCounted(ctx context.Context, fn func(Booked, outcome)) error {
	rows, err := a.conn.QueryContext(ctx, "SELECT id, number, company, amount, currency, wrong, unclear FROM booked WHERE counts = 1 AND (date = '' OR date BETWEEN ? AND ?)",
		string(a.Question.From), string(a.Question.To))
	if err != nil {
		return err
	}
	defer rows.Close() // it is only read
	for rows.Next() {
		var b Booked
		var id int64
		if err := rows.Scan(&id, &b.Number, &b.Company, &b.Amount, &b.Currency, &b.Wrong, &b.Unclear); err != nil {
			return err
		}
		if a.mayBeOf(b.Company) {
			fn(b, a.resolver.resolve(id, b))
		}
	}
	return rows.Err()
}
