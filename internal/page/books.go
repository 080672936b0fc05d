package page

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
)

// BooksSetup says what can be asked about booked invoices.
type BooksSetup struct {
	From       string // the first day, like 2026-01-01
	HasCompany bool   // the books tell which company is invoiced
}

// BooksQuestion asks which booked invoices are not archived.
type BooksQuestion struct {
	From, To string // days of the invoices, like 2026-10-31
	Company  string // empty: all
}

// BooksAnswer says which booked invoices are archived, and what is not known.
type BooksAnswer struct {
	Result   string // complete, not-complete or nothing
	Safe     string // why the ledger does not know everything that was done; empty: it does
	Extracts int    // that were read
	Records  int
	NoKey    int        // records that cannot be counted
	Until    *time.Time // up to when the extracts tell what was booked; nil: they do not
	Holes    []BooksHole
	Problems []string // extracts that could not be read, and why
	Changes  []string // of the table definition

	Booked, Archived, Missing, Unbooked uint64

	Verdicts []BooksCount // those that occur
	Sums     []BooksSum
	Rows     []BookedRow // the first that are not archived
}

// BooksHole is a time for which no extract tells what was booked.
type BooksHole struct {
	First, Last string // days
	IsAtEnd     bool   // the extracts end here; the next ones may tell
	Series      string // of extracts; empty: there is only one
}

// BooksCount is how many booked invoices became one thing.
type BooksCount struct {
	Words string
	Count uint64
}

// BooksSum is what the invoices of one currency come to, as plain decimals.
type BooksSum struct {
	Currency, Booked, Archived, Missing string
}

// BookedRow is a booked invoice that is not archived, or not without doubt.
type BookedRow struct {
	Number, Supplier, Company, Date, Amount, Currency string

	Verdict string // in words
	Found   string // what there is, in words
	Folder  string // of the document that decides; empty: there is none in the ledger
	Key     archive.Key
}

// HasDocument reports whether there is a page of the document that decides.
func (r BookedRow) HasDocument() bool { return !r.Key.IsZero() }

// What the page shows of an answer at most. The files have all of it.
const (
	mostMissing = 200
	mostLines   = 50  // of each list of what is not known, and of the sums
	mostCompany = 200 // characters that are asked for
	mostText    = 200 // characters of a value of a row
	mostReason  = 600 // characters of a sentence
)

// booksForms are the forms of the files. Without a form the answer is shown on the page.
var booksForms = func() map[string]fileForm {
	forms := maps.Clone(reportForms)
	forms["json"] = fileForm{form: "json", kind: "application/json"}
	return forms
}()

// booksBody is the form of the question, and the answer once there is one.
type booksBody struct {
	BooksSetup
	Question BooksQuestion
	Answer   *BooksAnswer // nil: nothing was asked yet
}

const booksTitle = "Which booked invoices are not archived?"

// whereBooked refuses everybody where nobody tells what was booked.
func (p *Pages) whereBooked(do action) action {
	return p.readersOnly(func(w http.ResponseWriter, r *http.Request, f *frame) error {
		if f.about.Books == nil {
			return &Refusal{Status: http.StatusNotFound, Text: "Nobody tells vaultd here what was booked.", Do: "IT can take extracts of the accounts-payable system and say which records are booked invoices (extracts and books in the configuration)."}
		}
		return do(w, r, f)
	})
}

func (p *Pages) showBooks(w http.ResponseWriter, _ *http.Request, f *frame) error {
	b := booksBody{BooksSetup: *f.about.Books}
	b.Question = BooksQuestion{From: b.From, To: max(f.today(), b.From)}
	f.writePage(w, http.StatusOK, "books", f.T(booksTitle), b)
	return nil
}

// today is the day of the page.
func (f *frame) today() string { return f.clock.Now.In(f.clock.Location).Format(time.DateOnly) }

// answerBooks shows the answer, or sends all of it as a file. It is a POST, because it reads the whole ledger.
func (p *Pages) answerBooks(w http.ResponseWriter, r *http.Request, f *frame) error {
	q, refusal := parseBooksQuestion(r, f)
	if refusal != nil {
		return refusal
	}
	giveTime(w)
	ctx, cancel := context.WithTimeout(r.Context(), longAnswer)
	defer cancel()
	if name := r.PostFormValue("form"); name != "" {
		form, ok := booksForms[name]
		if !ok {
			return &Refusal{Status: http.StatusBadRequest, Text: "This form of a report is not known.", Do: "Go back and choose again."}
		}
		return p.source.WriteBooks(ctx, f.Visitor.Name, q, form.form, form.separator, func(name string) io.Writer {
			giveTime(w) // anew, for its way to the visitor
			return beginFile(w, name, form.kind)
		})
	}
	answer, err := p.source.Books(ctx, q, mostMissing)
	if err != nil {
		return err
	}
	giveTime(w)
	f.writePage(w, http.StatusOK, "books", f.T(booksTitle), booksBody{*f.about.Books, q, &answer})
	return nil
}

// parseBooksQuestion reads the question from the form. What is left open is asked from the first day on, or until today.
func parseBooksQuestion(r *http.Request, f *frame) (q BooksQuestion, refusal *Refusal) {
	bad := func(text string) (BooksQuestion, *Refusal) {
		return q, &Refusal{Status: http.StatusBadRequest, Text: text, Do: "Go back and choose again."}
	}
	setup := f.about.Books
	q = BooksQuestion{From: r.PostFormValue("from"), To: r.PostFormValue("to"), Company: strings.TrimSpace(r.PostFormValue("company"))}
	if q.From == "" {
		q.From = setup.From
	}
	if q.To == "" {
		q.To = max(f.today(), q.From)
	}
	for _, day := range []string{q.From, q.To} {
		if t, err := time.Parse(time.DateOnly, day); err != nil || t.Year() < 1970 {
			return bad("This is not a day. Write it like 2026-10-31.")
		}
	}
	switch {
	case q.From < setup.From:
		return bad("The first day is too early: only later invoices were dropped here (books.from in the configuration).")
	case q.To < q.From:
		return bad("The last day is before the first one.")
	case len([]rune(q.Company)) > mostCompany:
		return bad("This name of a company is too long.")
	case q.Company != "" && !setup.HasCompany:
		return bad("The books do not tell here which company is invoiced.")
	}
	return q, nil
}

// HasBooks reports whether the visitor can ask about booked invoices.
func (f *frame) HasBooks() bool { return f.about.Books != nil && f.Visitor.Rights.Read }

// booksResults are the results in words; anything else is not complete.
var booksResults = map[string]string{"complete": "Every booked invoice is archived", "nothing": "Nothing is booked"}

// BooksResult says the result in a few words.
func (f *frame) BooksResult(a *BooksAnswer) string {
	if text, ok := booksResults[a.Result]; ok {
		return f.T(text)
	}
	return f.T("Not complete")
}

// BooksMood is the class of the result.
func (f *frame) BooksMood(a *BooksAnswer) string {
	switch a.Result {
	case "complete":
		return "good"
	case "nothing":
		return "calm"
	}
	return "bad"
}

// FormatPeriod writes the days from one to another.
func (f *frame) FormatPeriod(first, last string) string {
	if first == last {
		return f.FormatDay(first)
	}
	return f.T("%s to %s", f.FormatDay(first), f.FormatDay(last))
}

// DescribeHole says which days are not known, and what to do.
func (f *frame) DescribeHole(h BooksHole) string {
	days := f.FormatPeriod(h.First, h.Last)
	text := f.T("No extract covers %s: what was booked then is not known. Ask the provider for an extract of these days.", days)
	if h.IsAtEnd {
		text = f.T("The extracts end before %s: what was booked since is not known yet.", days)
	}
	if h.Series != "" {
		text += " " + f.T("(Series %s)", sanitize.Truncate(sanitize.Text(h.Series), mostText))
	}
	return text
}

// FormatMoney writes a plain decimal with two digits behind the point at least.
func (f *frame) FormatMoney(text string) string {
	if _, err := archive.ParseDecimal(text); err != nil {
		return f.Cut(text)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) < 2 {
		text = whole + "." + (fraction + "00")[:2]
	}
	return f.FormatDecimal(text)
}

// Cut makes a value fit to be shown, and shortens a long one: the page stays small whatever the books hold.
func (f *frame) Cut(text string) string { return sanitize.Truncate(sanitize.Text(text), mostText) }

// CutSentence is Cut for a sentence.
func (f *frame) CutSentence(text string) string {
	return sanitize.Truncate(sanitize.Text(text), mostReason)
}

// shortList is the beginning of a list.
type shortList[T any] struct {
	Shown []T
	More  int // that are not shown
}

func shorten[T any](all []T) shortList[T] {
	n := min(len(all), mostLines)
	return shortList[T]{all[:n], len(all) - n}
}

// ShownHoles, ShownProblems, ShownChanges and ShownSums are the lists as far as the page shows them.
func (a *BooksAnswer) ShownHoles() shortList[BooksHole] { return shorten(a.Holes) }

// ShownProblems is described at ShownHoles.
func (a *BooksAnswer) ShownProblems() shortList[string] { return shorten(a.Problems) }

// ShownChanges is described at ShownHoles.
func (a *BooksAnswer) ShownChanges() shortList[string] { return shorten(a.Changes) }

// ShownSums is described at ShownHoles.
func (a *BooksAnswer) ShownSums() shortList[BooksSum] { return shorten(a.Sums) }

// MoreRows is how many booked invoices that are not archived the page does not show.
func (a *BooksAnswer) MoreRows() uint64 { return a.Missing - min(a.Missing, uint64(len(a.Rows))) }
