package page

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
	"vaultd/internal/web"
)

// oneDocument answers every question with one dossier. Questions that it cannot answer are nil calls.
type oneDocument struct {
	Source
	dossier present.Dossier
}

func (s oneDocument) About() About {
	return About{Clock: present.Clock{Now: time.Date(2026, 11, 20, 14, 32, 0, 0, time.UTC), Location: time.UTC}}
}

func (s oneDocument) Document(context.Context, archive.Key) (present.Dossier, bool, error) {
	return s.dossier, true, nil
}

// visit asks for a page as somebody with rights, in a language.
func visit(t *testing.T, h http.Handler, rights web.Rights, language, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("Accept-Language", language)
	r.PostForm = r.URL.Query() // as the port hands it on
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(web.WithVisitor(r.Context(), web.Visitor{Name: "anna", Rights: rights, Token: "t"})))
	return w
}

// tellingSource answers everything, with a name in each answer.
type tellingSource struct{ oneDocument }

func (tellingSource) Status(context.Context) (present.StatusSummary, error) {
	return present.StatusSummary{Needs: []present.Need{{What: "rejected", Count: 1, Text: "Huber 88", Names: []string{"Huber 88"}}},
		NotTaken: []present.NotTaken{{Drop: "acme", Reason: "busy", Count: 1, Names: []string{"Huber 88"}}}, Damage: "Huber 88"}, nil
}

func (tellingSource) History(context.Context) (present.History, error) {
	return present.History{Missing: "Huber 88"}, nil
}

func (s tellingSource) Search(context.Context, []string, archive.Key, int) (Found, error) {
	return Found{Hits: []Hit{{Entry: s.dossier.Entry}}}, nil
}

func (tellingSource) Receipt(user string, _ archive.Key) ([]byte, error) {
	return []byte("Huber 88"), refuseUnnamed(user)
}

// refuseUnnamed refuses whoever is not the visitor of these tests: who took what is told to the source.
func refuseUnnamed(user string) error {
	if user != "anna" {
		return fmt.Errorf("the user is %q", user)
	}
	return nil
}

func (tellingSource) Download(_ context.Context, _ string, _ archive.Key, begin func(Delivery) io.Writer) error {
	_, err := io.WriteString(begin(Delivery{Name: "Huber 88.zip", Size: 8}), "Huber 88")
	return err
}

func (s tellingSource) About() About {
	about := s.oneDocument.About()
	about.Books = &BooksSetup{From: "2026-01-01"}
	return about
}

func (tellingSource) Books(context.Context, BooksQuestion, int) (BooksAnswer, error) {
	return BooksAnswer{Rows: []BookedRow{{Number: "Huber 88"}}}, nil
}

func (tellingSource) WriteBooks(_ context.Context, user string, _ BooksQuestion, _ string, _ rune, begin func(string) io.Writer) error {
	if err := refuseUnnamed(user); err != nil {
		return err
	}
	_, err := io.WriteString(begin("books.csv"), "Huber 88")
	return err
}

func (tellingSource) Report(_ context.Context, user string, _ ReportOrder, begin func(string) io.Writer) error {
	if err := refuseUnnamed(user); err != nil {
		return err
	}
	_, err := io.WriteString(begin("archive.csv"), "Huber 88")
	return err
}

// No page tells of a document to a visitor who may not read, whatever it is asked; and none is downloaded without the right to fetch.
func TestPages_I7_NothingIsToldWithoutRights(t *testing.T) {
	key := archive.NewKey(time.Now())
	pages := New(tellingSource{oneDocument{dossier: present.Dossier{Entry: ledger.Entry{Key: key, Folder: "Huber 88", State: ledger.Archived, ArchivedRemote: "R1"}}}}, slog.New(slog.DiscardHandler))
	document := "/document/" + key.String()
	told := func(rights web.Rights, method, path string) bool {
		w := visit(t, pages, rights, "en", method, path)
		return strings.Contains(w.Body.String(), "Huber 88") || strings.Contains(fmt.Sprint(w.Header()), "Huber")
	}
	for _, path := range []string{"GET /", "GET /search?q=4711", "GET " + document, "GET " + document + "/receipt", "POST " + document + "/download", "POST /report?form=csv", "POST /books", "POST /books?form=csv"} {
		method, path, _ := strings.Cut(path, " ")
		for _, rights := range []web.Rights{{}, {Metrics: true}, {Fetch: true}} {
			kit.Check(t, !told(rights, method, path),
				"%s %s tells of a document to who has the rights %+v", method, path, rights)
		}
		if isDownload := strings.HasSuffix(path, "/download"); told(web.Rights{Read: true}, method, path) == isDownload {
			t.Errorf("%s %s for who may read: the test sees nothing, or it downloads without fetch", method, path)
		}
		kit.Check(t, told(web.Rights{Read: true, Fetch: true}, method, path),
			"%s %s tells nothing to who may", method, path)
	}
}

// The names of further fields are the sidecar's own. They stand there as they are: they are neither translated nor filled in.
func TestDocument_I7_NamesOfTheSidecarAreNoTexts(t *testing.T) {
	key := archive.NewKey(time.Now())
	d := present.Dossier{Entry: ledger.Entry{Key: key, Folder: "Huber 88", State: ledger.Packaged}}
	d.Document.Metadata, d.Metadata.Number = []byte("{}"), "RE 1"
	for _, name := range []string{"50% Skonto", "%d%s%[9]d", "Number", "<b>"} {
		d.Metadata.Parameters = append(d.Metadata.Parameters, archive.Parameter{Key: name, Value: "x"})
	}
	body := visit(t, New(oneDocument{dossier: d}, slog.New(slog.DiscardHandler)), web.Rights{Read: true}, "de", http.MethodGet, "/document/"+key.String()).Body.String()
	kit.Holds(t, "the page", body, "<bdi>50% Skonto</bdi>", "<bdi>%d%s%[9]d</bdi>", "<dt>Nummer</dt><dd><bdi>RE 1", "<bdi>Number</bdi>", "<bdi>&lt;b&gt;</bdi>")
}

// What was read and not checked has the names that checked metadata has, in the language of the page.
func TestDocument_AsReadHasTheSameNames(t *testing.T) {
	key := archive.NewKey(time.Now())
	d := present.Dossier{Entry: ledger.Entry{Key: key, Folder: "Huber 88", State: ledger.Rejected}}
	d.Document.AsRead = archive.AsRead{Number: "RE 1", Amount: "1.234,56", Currency: "EUR", SenderIDs: "DE1"}
	body := visit(t, New(oneDocument{dossier: d}, slog.New(slog.DiscardHandler)), web.Rights{Read: true}, "de", http.MethodGet, "/document/"+key.String()).Body.String()
	kit.Holds(t, "the page", body, "<dt>Nummer</dt><dd><bdi>RE 1", "<dt>Betrag</dt><dd><bdi>1.234,56 EUR", "<dt>Nummern des Absenders</dt><dd><bdi>DE1")
}

// slowArchive delivers a document after a long time.
type slowArchive struct{ oneDocument }

func (slowArchive) Download(_ context.Context, _ string, _ archive.Key, begin func(Delivery) io.Writer) error {
	time.Sleep(longAnswer - time.Second)
	_, err := io.WriteString(begin(Delivery{Name: "Huber 88.zip", Size: 2}), "PK")
	return err
}

// timedAnswer is an answer that knows until when it may be written.
type timedAnswer struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (a *timedAnswer) SetWriteDeadline(at time.Time) error {
	a.deadline = at
	return nil
}

// A download that the archive was slow with, and that may have been charged, has the same time on its way to the visitor as any other.
func TestDownload_I26_SlowArchiveLeavesTimeToDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &timedAnswer{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest(http.MethodPost, "/document/"+archive.NewKey(time.Now()).String()+"/download", nil)
		v := web.Visitor{Name: "anna", Rights: web.Rights{Read: true, Fetch: true}}
		New(slowArchive{}, slog.New(slog.DiscardHandler)).ServeHTTP(a, r.WithContext(web.WithVisitor(r.Context(), v)))
		left := time.Until(a.deadline)
		kit.Check(t, a.Body.String() == "PK" && left >= longAnswer, "%q comes, with %s to deliver it", a.Body, left)
	})
}

// endlessArchive goes on until nobody waits any more.
type endlessArchive struct{ oneDocument }

func (endlessArchive) Download(ctx context.Context, _ string, _ archive.Key, _ func(Delivery) io.Writer) error {
	<-ctx.Done()
	return &Refusal{Status: http.StatusBadGateway, Text: "The archive did not deliver the document."}
}

// An archive that never ends its answer is left in the end, and the visitor is told.
func TestDownload_I21_EndlessArchiveIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &timedAnswer{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest(http.MethodPost, "/document/"+archive.NewKey(time.Now()).String()+"/download", nil)
		v := web.Visitor{Name: "anna", Rights: web.Rights{Read: true, Fetch: true}}
		New(endlessArchive{}, slog.New(slog.DiscardHandler)).ServeHTTP(a, r.WithContext(web.WithVisitor(r.Context(), v)))
		left := time.Until(a.deadline)
		kit.Check(t, a.Code == http.StatusBadGateway && left > 0, "%d, with %s left to write it", a.Code, left)
	})
}

// A fault of the program in a page is an error in the log, without what people searched for, and ends that answer alone.
func TestPages_I26_PanicIsToldInTheLog(t *testing.T) {
	var log bytes.Buffer
	pages := New(oneDocument{}, slog.New(slog.NewTextHandler(&log, nil)))
	func() {
		defer func() {
			fault := recover()
			kit.Check(t, fault == http.ErrAbortHandler, "the server gets %v, want %v", fault, http.ErrAbortHandler)
		}()
		visit(t, pages, web.Rights{Read: true}, "en", http.MethodGet, "/search?q=Huber+88")
	}()
	text := log.String()
	kit.Check(t, strings.Contains(text, "level=ERROR") && strings.Contains(text, "/search") && !strings.Contains(text, "Huber"), "the log: %s", text)
}

// manyHits finds so many documents, the newest first, and one that is not taken.
type manyHits struct {
	oneDocument
	keys []archive.Key
}

func (s manyHits) Search(_ context.Context, words []string, after archive.Key, limit int) (f Found, err error) {
	keys := s.keys
	if after.IsZero() {
		f.NotTaken = []present.NotTakenItem{{Folder: "waits", Drop: "acme"}}
	} else {
		keys = keys[slices.Index(keys, after)+1:]
	}
	f.HasMore = len(keys) > limit
	for _, k := range keys[:min(len(keys), limit)] {
		f.Hits = append(f.Hits, Hit{Entry: ledger.Entry{Key: k, Folder: words[0]}})
	}
	return f, nil
}

var (
	documentLink = regexp.MustCompile(`href="/document/([0-9a-z]+)"`)
	nextLink     = regexp.MustCompile(`rel="next" href="([^"]+)"`)
	waiting      = regexp.MustCompile(`>waits<`)
)

// The pages of a search, each behind the link of the one before, show every document once and in order; the words stay as they were
// written. What is not taken stands on the first one alone.
func TestSearch_PagesAreTheWhole(t *testing.T) {
	for _, documents := range []int{0, 1, mostHits, mostHits + 1, 3*mostHits - 1} {
		var s manyHits
		for i := range documents {
			k := archive.NewKey(time.Date(2026, 11, 20, 0, 0, documents-i, 0, time.UTC))
			binary.BigEndian.PutUint16(k[14:], uint16(i))
			s.keys = append(s.keys, k)
		}
		pages := New(s, slog.New(slog.DiscardHandler))
		var got []archive.Key
		n := 0
		for path := "/search?q=M%C3%BCller+%26+%22S%C3%B6hne%22+%2B"; path != ""; n++ {
			body := visit(t, pages, web.Rights{Read: true}, "de", http.MethodGet, path).Body.String()
			for _, m := range documentLink.FindAllStringSubmatch(body, -1) {
				k := kit.Value(archive.ParseKey(m[1]))(t)
				got = append(got, k)
			}
			waits := waiting.MatchString(body)
			kit.Check(t, waits == (n == 0), "page %d of %d documents tells what is not taken: %v", n, documents, waits)
			path = ""
			if m := nextLink.FindStringSubmatch(body); m != nil {
				path = html.UnescapeString(m[1])
			}
		}
		want := max(1, (documents+mostHits-1)/mostHits)
		kit.Check(t, slices.Equal(got, s.keys) && n == want, "%d documents: %d on %d pages, want %d pages", documents, len(got), n, want)
	}
	pages := New(manyHits{}, slog.New(slog.DiscardHandler))
	w := visit(t, pages, web.Rights{Read: true}, "en", http.MethodGet, "/search?q=x&after=nothing")
	kit.Check(t, w.Code == http.StatusNotFound, "a key that is none: %d", w.Code)
}

// foundSource finds what a test gives it.
type foundSource struct {
	oneDocument
	hits  []Hit
	lacks string
}

func (s foundSource) Search(context.Context, []string, archive.Key, int) (Found, error) {
	return Found{Hits: s.hits, Lacks: s.lacks}, nil
}

// A search that may lack documents says so, and not that there are none.
func TestSearch_I32_SaysWhatItLacks(t *testing.T) {
	for language, want := range map[string]string{"en": "The search index is not complete now.", "de": "Das Verzeichnis für die Suche ist gerade nicht vollständig."} {
		for _, hits := range [][]Hit{nil, {{Entry: ledger.Entry{Folder: "Huber 88", State: ledger.Rejected}}}} {
			pages := New(foundSource{hits: hits, lacks: "the catalog is at 7 %"}, slog.New(slog.DiscardHandler))
			body := visit(t, pages, web.Rights{Read: true}, language, http.MethodGet, "/search?q=88").Body.String()
			kit.Holds(t, "the page", body, want, `<small lang="en">the catalog is at 7 %</small>`)
			kit.Lacks(t, "the page", body, "Nothing that was taken", "Nichts Übernommenes")
		}
	}
}

// What is not known of a hit is an empty cell, without a space or an element in it: the style sheet hides such a cell on a phone. A number that people
// write stays on one line; one that is too long for a phone does not.
func TestSearch_CellsOfAHit(t *testing.T) {
	hit := func(number, sender string) Hit {
		return Hit{Entry: ledger.Entry{Key: archive.NewKey(time.Now()), Folder: "Huber 88", State: ledger.Rejected}, AsRead: archive.AsRead{Number: number, SenderName: sender, Type: "Invoice"}}
	}
	long := strings.Repeat("RE-", 20)
	pages := New(foundSource{hits: []Hit{hit("", ""), hit("RE-2026-2365", "Huber & Sohn"), hit(long, "")}}, slog.New(slog.DiscardHandler))
	body := visit(t, pages, web.Rights{Read: true}, "en", http.MethodGet, "/search?q=88").Body.String()
	for want, times := range map[string]int{
		`<td data-name="Number" class="nowrap"></td>`: 1, `<td data-name="Sender"></td>`: 2, `<td data-name="Recipient"></td>`: 3, `<td data-name="Amount" class="number"></td>`: 3,
		`<td data-name="Number" class="nowrap"><bdi>RE-2026-2365</bdi></td>`: 1, `<td data-name="Number"><bdi>` + long + `</bdi></td>`: 1, `<td data-name="Sender"><bdi>Huber &amp; Sohn</bdi></td>`: 1,
	} {
		n := strings.Count(body, want)
		kit.Check(t, n == times, "%s is there %d times, not %d:\n%s", want, n, times, body)
	}
}
