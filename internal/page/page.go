package page

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/web"
)

// Source answers what the pages ask. Its answers hold everything; the package leaves out what a visitor may not see.
type Source interface {
	// About returns what every page says of this vaultd.
	About() About
	// Status returns the status summary, as "vaultd status" shows it.
	Status(ctx context.Context) (present.StatusSummary, error)
	// History returns the figures of the charts.
	History(ctx context.Context) (present.History, error)
	// Search returns the newest documents in which all words occur, at most limit of them. With a key it goes on behind the document that
	// has it, and leaves out what is not taken.
	Search(ctx context.Context, words []string, after archive.Key, limit int) (Found, error)
	// Document returns everything about one entry; false: there is none with this key. Its history lacks some steps where too much of
	// the journal would have to be read while somebody waits.
	Document(ctx context.Context, key archive.Key) (present.Dossier, bool, error)
	// Receipt returns the receipt of an archived document to a user, as it lies beside the kept folder. A [*Refusal] says why there is none.
	Receipt(user string, key archive.Key) ([]byte, error)
	// Download fetches an archived document, compares it, and then calls begin with what came. A [*Refusal] says why not.
	Download(ctx context.Context, user string, key archive.Key, begin func(Delivery) io.Writer) error
	// Report writes a report for a user. A [*Refusal] says why not.
	Report(ctx context.Context, user string, order ReportOrder, begin func(name string) io.Writer) error
	// Books compares what was booked with the archive; the answer has so many rows at most. A [*Refusal] says why it cannot be given.
	Books(ctx context.Context, q BooksQuestion, most int) (BooksAnswer, error)
	// WriteBooks writes the whole answer as a file for a user: html, xlsx, json, or csv with the separator. A [*Refusal] says why not.
	WriteBooks(ctx context.Context, user string, q BooksQuestion, form string, separator rune, begin func(name string) io.Writer) error
}

// About is what every page says of a vaultd.
type About struct {
	Clock       present.Clock // the time, and the zone in which people are told of times
	Host        string
	Version     string
	Environment string      // test or production
	Books       *BooksSetup // nil: nobody tells what was booked
}

// Found is what a search found, the newest first.
type Found struct {
	Hits     []Hit
	HasMore  bool                   // there are more than were asked for
	NotTaken []present.NotTakenItem // that lie in a drop folder
	Lacks    string                 // why there may be more that was not found; empty: there is not
	IsCut    bool                   // it took too long and was ended
}

// Hit is one document that a search found.
type Hit struct {
	Entry    ledger.Entry
	Metadata archive.Document // zero before the entry is sealed
	AsRead   archive.AsRead   // of a folder that was refused or is a duplicate
}

// Delivery is a document that came from the archive.
type Delivery struct {
	Name    string // of the file
	Size    int64  // bytes
	Differs bool   // it is not what was sent
}

// Refusal says why something was not done, in words for the visitor.
type Refusal struct {
	Status   int // of HTTP
	Text, Do string
	Detail   string // what exactly, in English as the commands say it; empty: nothing more is to be said
}

func (r *Refusal) Error() string { return r.Text }

// Pages answers the requests of people. It is safe for concurrent use.
type Pages struct {
	source Source
	log    *slog.Logger
	mux    *http.ServeMux
}

// New returns the pages. The handler expects the visitor in the context of each request, as [web.Handler] puts it there.
func New(source Source, log *slog.Logger) *Pages {
	p := &Pages{source: source, log: log, mux: http.NewServeMux()}
	p.mux.HandleFunc("GET /{$}", p.handle(p.showStatus))
	p.mux.HandleFunc("GET /login", p.handle(p.showLogin))
	p.mux.HandleFunc("GET /search", p.handle(p.readersOnly(p.showHits)))
	p.mux.HandleFunc("GET /document/{key}", p.handle(p.readersOnly(p.showDocument)))
	p.mux.HandleFunc("GET /document/{key}/receipt", p.handle(p.readersOnly(p.sendReceipt)))
	p.mux.HandleFunc("POST /document/{key}/download", p.handle(p.readersOnly(p.download)))
	p.mux.HandleFunc("GET /report", p.handle(p.readersOnly(p.showReport)))
	p.mux.HandleFunc("POST /report", p.handle(p.readersOnly(p.writeReport)))
	p.mux.HandleFunc("GET /books", p.handle(p.whereBooked(p.showBooks)))
	p.mux.HandleFunc("POST /books", p.handle(p.whereBooked(p.answerBooks)))
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		p.mux.HandleFunc("GET /"+name, serveFile(name, kind))
	}
	p.mux.HandleFunc("/", p.handle(func(http.ResponseWriter, *http.Request, *frame) error { return noSuchPage() }))
	return p
}

func noSuchPage() error {
	return &Refusal{Status: http.StatusNotFound, Text: "There is no such page.", Do: "Go to the first page, or search for a document."}
}

// ServeHTTP answers a request.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

//go:embed templates style.css live.js icon.svg
var files embed.FS

func serveFile(name, kind string) http.HandlerFunc {
	body, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is part of the program
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	}
}

// templates has the template of each page, with the frame around it.
var templates = parseTemplates("status", "login", "search", "document", "report", "books", "refusal")

func parseTemplates(names ...string) map[string]*template.Template {
	all := map[string]*template.Template{}
	for _, name := range names {
		all[name] = template.Must(template.ParseFS(files, "templates/frame.html", "templates/"+name+".html"))
	}
	return all
}

// action answers one request. It writes the answer, or returns why it cannot.
type action func(w http.ResponseWriter, r *http.Request, f *frame) error

// handle makes the frame for an action, and tells the visitor why it failed.
func (p *Pages) handle(do action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f := newFrame(p.source.About(), web.VisitorOf(r.Context()), r)
		w.Header().Set("Vary", "Accept-Language, Cookie")
		w.Header().Set("Content-Language", f.Lang())
		defer p.tellPanic(r)
		err := do(w, r, f)
		if err == nil || r.Context().Err() != nil { // the visitor has gone
			return
		}
		refusal, isRefusal := errors.AsType[*Refusal](err)
		if !isRefusal {
			p.log.Error("a page failed", "path", routeOf(r), "err", err)
			refusal = &Refusal{Status: http.StatusInternalServerError, Text: "vaultd could not answer.", Do: "Try it again. If it stays so, tell IT: the log has the cause."}
		}
		f.writePage(w, refusal.Status, "refusal", f.T("Not done"), refusal)
	}
}

// tellPanic logs a fault of the program where people read it, and breaks the connection: an answer may have begun. The daemon goes on.
func (p *Pages) tellPanic(r *http.Request) {
	fault := recover()
	if fault == nil {
		return
	}
	if fault != http.ErrAbortHandler { //lint:ignore errorlint net/http compares it so too
		p.log.Error("a page failed: a fault of the program", "path", routeOf(r), "fault", fault, "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

// routeOf is the pattern of a request: its path may hold what people searched for.
func routeOf(r *http.Request) string { return r.Pattern }

// readersOnly refuses visitors without the right to read.
func (p *Pages) readersOnly(do action) action {
	return func(w http.ResponseWriter, r *http.Request, f *frame) error {
		if !f.Visitor.Rights.Read {
			return &Refusal{Status: http.StatusForbidden, Text: "You may not see documents.", Do: "Sign in with a user who has the right to read (http.access in the configuration)."}
		}
		return do(w, r, f)
	}
}

// writePage writes a whole page, or none: the template runs before the first byte leaves.
func (f *frame) writePage(w http.ResponseWriter, status int, name, title string, body any) {
	f.Title, f.Body = title, body
	var out bytes.Buffer
	if err := templates[name].ExecuteTemplate(&out, "frame", f); err != nil {
		panic(fmt.Sprintf("page %s: %v", name, err)) // a fault of the template
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	w.Write(out.Bytes()) //lint:ignore errcheck the visitor went away
}

func (p *Pages) showLogin(w http.ResponseWriter, r *http.Request, f *frame) error {
	f.writePage(w, http.StatusOK, "login", f.T("Sign in"), struct {
		Next     string // where to go from there; the port leads to no other host, whatever stands here
		IsFailed bool
	}{r.URL.Query().Get("next"), r.URL.Query().Has("failed")})
	return nil
}
