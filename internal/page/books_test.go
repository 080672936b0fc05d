package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/books"
	"vaultd/internal/test/kit"
	"vaultd/internal/web"
)

// bookkeeper answers about booked invoices alone, and keeps what it was asked.
type bookkeeper struct {
	oneDocument
	setup  *BooksSetup
	answer BooksAnswer
	err    error
	asked  *[]string
}

func (b bookkeeper) About() About {
	about := b.oneDocument.About()
	about.Books = b.setup
	return about
}

func (b bookkeeper) Books(_ context.Context, q BooksQuestion, most int) (BooksAnswer, error) {
	*b.asked = append(*b.asked, fmt.Sprintf("%s %s %s %d", q.From, q.To, q.Company, most))
	return b.answer, b.err
}

func (b bookkeeper) WriteBooks(_ context.Context, _ string, q BooksQuestion, form string, separator rune, begin func(string) io.Writer) error {
	*b.asked = append(*b.asked, fmt.Sprintf("%s %s %s %s %c", q.From, q.To, q.Company, form, separator))
	if b.err != nil {
		return b.err
	}
	_, err := io.WriteString(begin("books."+form), "R-3")
	return err
}

// october is an answer in which something of every kind is told.
func october(key archive.Key) BooksAnswer {
	until := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	return BooksAnswer{
		Result: "not-complete", Safe: "the ledger was set back", Extracts: 3, Records: 1204, NoKey: 2, Until: &until,
		Holes:    []BooksHole{{First: "2026-10-14", Last: "2026-10-14"}, {First: "2026-10-20", Last: "2026-10-22", Series: "monthly"}, {First: "2026-10-30", Last: "2026-10-31", IsAtEnd: true}},
		Problems: []string{"Extract 7: its file is damaged."}, Changes: []string{"The table definition changed on 3 Oct 2026 (extract 2): added KIND."},
		Booked: 1203, Archived: 1000, Missing: 203, Unbooked: 4,
		Verdicts: []BooksCount{{"archived", 1000}, {"never dropped", 203}},
		Sums:     []BooksSum{{"EUR", "2310442.1", "2300000", "10442.1"}, {"", "7", "7", "0"}},
		Rows: []BookedRow{
			{Number: "R-3 <b>", Supplier: "Huber", Company: "Acme", Date: "2026-10-05", Amount: "1.1", Currency: "EUR", Verdict: "never dropped", Found: "nothing of this number was dropped"},
			{Date: "", Amount: "1,5x", Verdict: "unreadable in the books", Found: "the amount", Folder: "Huber 88", Key: key},
		},
	}
}

// The answer is on the page in both languages: the result, what is not known, the counts, the sums, and the invoices with a link to the
// document that decides.
func TestBooks_I31_AnswerIsOnThePage(t *testing.T) {
	key := archive.NewKey(time.Now())
	asked := []string{}
	pages := New(bookkeeper{setup: &BooksSetup{From: "2026-01-01", HasCompany: true}, answer: october(key), asked: &asked}, slog.New(slog.DiscardHandler))
	for language, want := range map[string][]string{
		"en": {`class="verdict bad">Not complete<`, "Booked: 1,203. Archived: 1,000. Not archived: 203. Archived and not booked: 4.", "No extract covers 14 Oct 2026:", "No extract covers 20 Oct 2026 to 22 Oct 2026:",
			"(Series monthly)", "The extracts end before 30 Oct 2026 to 31 Oct 2026", "Records without a key, which cannot be counted: 2.", ">2,310,442.10<", ">10,442.10<", "never dropped", "1.10 EUR",
			"The first 2. There are 201 more", "1 Oct 2026 to 31 Oct 2026", ">not known<"},
		"de": {`class="verdict bad">Nicht vollständig<`, "Gebucht: 1.203. Archiviert: 1.000. Nicht archiviert: 203. Archiviert und nicht gebucht: 4.", "Für 14. Okt. 2026 gibt es keinen Auszug", "(Reihe monthly)",
			"Die Auszüge enden vor 30. Okt. 2026 bis 31. Okt. 2026", ">2.310.442,10<", "nie abgelegt", "in den Büchern nicht lesbar", "Die ersten 2. Es gibt 201 weitere", ">nicht bekannt<"},
	} {
		body := visit(t, pages, web.Rights{Read: true}, language, http.MethodPost, "/books?from=2026-10-01&to=2026-10-31&company=Acme+%22GmbH%22").Body.String()
		want = append(want, "R-3 &lt;b&gt;", "1,5x", `<a href="/document/`+key.String()+`">`, "Huber 88", "the ledger was set back", "Extract 7: its file is damaged.", "added KIND",
			`name="form" value="json"`, `value="Acme &#34;GmbH&#34;"`, `name="to" type="date" value="2026-10-31"`)
		kit.Holds(t, language, body, want...)
	}
	kit.Want(t, "asked", strings.Join(asked, ", "), `2026-10-01 2026-10-31 Acme "GmbH" 200, 2026-10-01 2026-10-31 Acme "GmbH" 200`)
}

// Every result of the books has its words, and a word that is not known never looks like a good one.
func TestBooks_I31_EveryResultHasWords(t *testing.T) {
	f := frameOf("en")
	for _, c := range []struct {
		answer *books.Answer
		words  string
		mood   string
	}{
		{&books.Answer{Booked: 1, Counts: map[books.Verdict]uint64{books.Archived: 1}}, "Every booked invoice is archived", "good"},
		{&books.Answer{Booked: 1}, "Not complete", "bad"},
		{&books.Answer{}, "Nothing is booked", "calm"},
	} {
		shown := &BooksAnswer{Result: c.answer.Result().Code}
		if words, mood := f.BooksResult(shown), f.BooksMood(shown); words != c.words || mood != c.mood {
			t.Errorf("%s: %q, %s, want words = %v, mood = %v", shown.Result, words, mood, c.words, c.mood)
		}
	}
	unknown := (&BooksAnswer{Result: "fine"})
	kit.Check(t, f.BooksResult(unknown) == "Not complete" && f.BooksMood(unknown) == "bad", "a result that is not known is no bad one")
}

// The page stays small, whatever the books hold.
func TestBooks_I21_PageHasABoundedSize(t *testing.T) {
	long := strings.Repeat("ü", 4096)
	answer := BooksAnswer{Result: "not-complete", Safe: long, Booked: 1_000_000, Missing: 1_000_000}
	for range mostMissing {
		answer.Rows = append(answer.Rows, BookedRow{long, long, long, "2026-10-05", long, long, "never dropped", long, long, archive.NewKey(time.Now())})
	}
	for range 100_000 {
		answer.Holes, answer.Problems, answer.Changes = append(answer.Holes, BooksHole{First: "2026-10-01", Last: "2026-10-02", Series: long}), append(answer.Problems, long), append(answer.Changes, long)
		answer.Sums = append(answer.Sums, BooksSum{long, "1", "1", "1"})
	}
	var asked []string
	body := visit(t, New(bookkeeper{setup: &BooksSetup{From: "2026-01-01"}, answer: answer, asked: &asked}, slog.New(slog.DiscardHandler)), web.Rights{Read: true}, "en", http.MethodPost, "/books").Body.String()
	if len(body) > 1_500_000 || !strings.Contains(body, "and 99,950 more such times") || !strings.Contains(body, "and 99,950 more currencies") {
		t.Errorf("%d bytes", len(body))
	}
}

// What is asked in a wrong way is refused and asks nobody; what is left open is asked from the first day until today.
func TestBooks_QuestionIsChecked(t *testing.T) {
	var asked []string
	b := bookkeeper{setup: &BooksSetup{From: "2026-01-01"}, asked: &asked}
	pages := New(b, slog.New(slog.DiscardHandler))
	for _, wrong := range []string{"from=2025-12-31", "from=x", "to=1.10.2026", "to=2026-02-30", "to=0001-01-01", "from=2026-10-02&to=2026-10-01", "company=Acme", "form=pdf", "form=page"} {
		kit.Want(t, wrong, visit(t, pages, web.Rights{Read: true}, "en", http.MethodPost, "/books?"+wrong).Code, http.StatusBadRequest)
	}
	b.setup.HasCompany = true
	kit.Want(t, "a long company", visit(t, pages, web.Rights{Read: true}, "en", http.MethodPost, "/books?company="+url.QueryEscape(strings.Repeat("ü", mostCompany+1))).Code, http.StatusBadRequest)
	for _, form := range []string{"", "html", "xlsx", "csv", "csv-semicolon", "json"} {
		w := visit(t, pages, web.Rights{Read: true}, "en", http.MethodPost, "/books?form="+form)
		isFile := strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment")
		kit.Want(t, form+": status, is a file", []any{w.Code, isFile}, []any{http.StatusOK, (form != "")})
	}
	const period = "2026-01-01 2026-11-20 "
	want := period + " 200, " + period + " html ,, " + period + " xlsx ,, " + period + " csv ,, " + period + " csv ;, " + period + " json \x00"
	kit.Want(t, "asked", strings.Join(asked, ", "), want)
}

// Where nobody tells what was booked there is neither a page nor a way to it, and a visitor who may not read is told of none.
func TestBooks_OnlyWhereConfiguredAndForReaders(t *testing.T) {
	var asked []string
	for _, c := range []struct {
		setup  *BooksSetup
		rights web.Rights
		code   int
		link   bool
	}{
		{nil, web.Rights{Read: true}, http.StatusNotFound, false},
		{&BooksSetup{From: "2026-01-01"}, web.Rights{Read: true}, http.StatusOK, true},
		{&BooksSetup{From: "2026-01-01"}, web.Rights{Fetch: true, Metrics: true}, http.StatusForbidden, false},
	} {
		pages := New(bookkeeper{setup: c.setup, asked: &asked}, slog.New(slog.DiscardHandler))
		w := visit(t, pages, c.rights, "en", http.MethodGet, "/books")
		link := strings.Contains(w.Body.String(), `<a href="/books">`)
		kit.Check(t, w.Code == c.code && link == c.link, "%v %+v: %d, a link %v", c.setup, c.rights, w.Code, link)
		report := visit(t, pages, web.Rights{Read: true}, "en", http.MethodGet, "/report").Body.String()
		kit.Check(t, strings.Contains(report, "booked and not archived") == (c.setup != nil), "%v: the report page: %s", c.setup, report)
	}
	kit.Check(t, len(asked) <= 0, "the books were asked: %q", asked)
}

// Why there is no answer is told in words, with what exactly is wrong as text.
func TestBooks_RefusalSaysWhatIsWrong(t *testing.T) {
	var asked []string
	err := &Refusal{Status: http.StatusServiceUnavailable, Text: "The books cannot be compared with the archive now.", Do: "Tell IT what stands here.", Detail: `books.columns.amount "<b>100% GROSS" is not there`}
	pages := New(bookkeeper{setup: &BooksSetup{From: "2026-01-01"}, err: err, asked: &asked}, slog.New(slog.DiscardHandler))
	for _, path := range []string{"/books", "/books?form=csv"} {
		w := visit(t, pages, web.Rights{Read: true}, "de", http.MethodPost, path)
		if body := w.Body.String(); w.Code != err.Status || !strings.Contains(body, "können jetzt nicht") || !strings.Contains(body, "&lt;b&gt;100% GROSS") || w.Header().Get("Content-Disposition") != "" {
			t.Errorf(`%s: %d %s, want w.Code = %v, body with "können jetzt nicht", body with "&lt;b&gt;100%% GROSS", w.Header().Get("Content-Disposition") = ""`, path, w.Code, body, err.Status)
		}
	}
	pages = New(bookkeeper{setup: &BooksSetup{From: "2026-01-01"}, err: errors.New("/secret/path"), asked: &asked}, slog.New(slog.DiscardHandler))
	if w := visit(t, pages, web.Rights{Read: true}, "en", http.MethodPost, "/books"); w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "secret") {
		t.Errorf(`w.Code = %v, want w.Code = http.StatusInternalServerError, w.Body.String() without "secret"`, w.Code)
	}
}
