package web

import (
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"html"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
)

const (
	maxForm      = 64 << 10        // bytes of the body of a POST
	placeTime    = 5 * time.Second // how long a request waits for its place
	lookPlaces   = 4               // pages in work at once, for people who are signed in
	actPlaces    = 4               // forms of them in work at once: a report or a download may take minutes
	publicPlaces = 2               // pages in work at once, for everybody else
	pageRest     = 3               // a place for pages rests so many times as long as a page took, so that a storm leaves the processors to the work
	maxPageRest  = time.Second     // a page may have waited for its reader
)

const pageContentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// openPaths are what a person needs to sign in.
var openPaths = []string{"/login", "/style.css", "/live.js", "/icon.svg"}

// people stands before the pages for people: it says who asks, and lets through what that person may ask for.
type people struct {
	guard   *AccessGuard
	pages   http.Handler
	origins *http.CrossOriginProtection
}

func newPeople(guard *AccessGuard, pages http.Handler) *people {
	return &people{guard: guard, pages: pages, origins: http.NewCrossOriginProtection()}
}

// places bound what is in work at once.
type places struct{ look, act, public chan struct{} }

func newPlaces() places {
	return places{look: make(chan struct{}, lookPlaces), act: make(chan struct{}, actPlaces), public: make(chan struct{}, publicPlaces)}
}

// refusal is an answer of a few words.
type refusal struct {
	status int
	text   string
}

func (f *refusal) write(w http.ResponseWriter) { http.Error(w, f.text, f.status) }

// ServeHTTP passes a request on to the pages, or answers it here: signing in and out, and what is refused.
func (p *people) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", pageContentPolicy)
	isForm := r.Method == http.MethodPost
	switch {
	case !isForm && r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "ask with GET, or send a form with POST", http.StatusMethodNotAllowed)
		return
	case p.origins.Check(r) != nil || !isForm && !isOwnOrNavigation(r):
		http.Error(w, "this request comes from another web site; open the page itself", http.StatusForbidden)
		return
	}
	if isForm {
		if f := readForm(w, r); f != nil {
			f.write(w)
			return
		}
	}
	v, refused := p.guard.visitorOf(r)
	if refused != "" {
		http.Error(w, refused, http.StatusForbidden)
		return
	}
	switch isSign := r.URL.Path == "/login" || r.URL.Path == "/logout"; {
	case isSign && !v.MaySignIn && !v.MaySignOut:
		http.Error(w, "nobody signs in here: there are no users, or the proxy says who asks (http.access in the configuration)", http.StatusNotFound)
	case isForm && r.URL.Path == "/login":
		p.signIn(w, r)
	case v.MaySignIn && (isForm || !slices.Contains(openPaths, r.URL.Path)):
		askToSignIn(w, r)
	case isForm && !isTokenGood(v, r):
		http.Error(w, "the form is too old, or was not made for you; open its page again and send it again", http.StatusForbidden)
	case isForm && r.URL.Path == "/logout":
		p.signOut(w, r)
	default:
		p.serve(w, r, v)
	}
}

// serve lets the pages answer, as soon as there is a place.
func (p *people) serve(w http.ResponseWriter, r *http.Request, v Visitor) {
	places := p.guard.places.public
	if v.Name != "" {
		places = p.guard.places.look
		if r.Method == http.MethodPost {
			places = p.guard.places.act
		}
	}
	wait := time.NewTimer(placeTime)
	defer wait.Stop()
	select {
	case places <- struct{}{}:
		defer func(begin time.Time) {
			rest := min(pageRest*time.Since(begin), maxPageRest)
			if r.Method == http.MethodPost {
				rest = 0
			}
			time.AfterFunc(rest, func() { <-places }) // later than the answer, which must not wait for it
		}(time.Now())
		p.pages.ServeHTTP(w, r.WithContext(WithVisitor(r.Context(), v)))
	case <-r.Context().Done():
	case <-wait.C:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many pages, reports or downloads are in work; try again in a few seconds", http.StatusServiceUnavailable)
	}
}

// visitorOf says who asks for a page, or why nobody is answered. Names and passwords in a header do not count here: a browser would send
// them along with every request that some other page makes.
func (g *AccessGuard) visitorOf(r *http.Request) (v Visitor, refused string) {
	access := g.currentAccess()
	from := g.examineProxy(r)
	id := sessionID(r)
	switch u, found := g.findSession(id, isOfPerson(r) && !isRefresh(r)); {
	case from.refused != "":
		return Visitor{}, from.refused
	case from.name != "":
		return Visitor{Name: from.name, Rights: from.rights, Token: g.formToken("proxy", from.name)}, ""
	case from.isProxys:
		return Visitor{}, "the proxy names no user; it must let in only who signed in, and send the name in " + access.proxy.userHeader
	case found:
		return Visitor{Name: u.Name, Rights: u.Rights, Token: g.formToken("session", id), MaySignOut: true}, ""
	case access.HasUsers():
		return Visitor{MaySignIn: true}, ""
	case access.HasProxy():
		return Visitor{}, "the pages are reached through the proxy alone (http.access.proxy in the configuration)"
	}
	return Visitor{}, ""
}

// formToken returns what a form of one visitor must bring back. Another visitor, another session and another process have others.
func (g *AccessGuard) formToken(kind, of string) string {
	sum := g.digestOf("form", kind, of)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func isTokenGood(v Visitor, r *http.Request) bool {
	return v.Token != "" && subtle.ConstantTimeCompare([]byte(r.PostForm.Get("token")), []byte(v.Token)) == 1
}

// readForm reads the fields of a form.
func readForm(w http.ResponseWriter, r *http.Request) *refusal {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return &refusal{http.StatusUnsupportedMediaType, "send a form, as application/x-www-form-urlencoded"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return &refusal{http.StatusBadRequest, "the form cannot be read: it is larger than 64 kB, or damaged"}
	}
	return nil
}

// isOwnOrNavigation reports whether a request comes from one of our pages, or is a person's way to one. Browsers tell; what comes from
// no browser counts as its user's own.
func isOwnOrNavigation(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// isOfPerson reports whether a person asks: not the script that keeps an open page fresh.
func isOfPerson(r *http.Request) bool {
	dest := r.Header.Get("Sec-Fetch-Dest")
	return dest == "" || dest == "document"
}

// isRefresh reports whether an open page asks by itself how it stands now. Without a script, or in an old browser, nothing else tells it
// from a person.
func isRefresh(r *http.Request) bool { return r.URL.RawQuery == "refresh" }

// askToSignIn sends a person to the sign-in page, and from there back to here. A script and a form only hear that nobody is signed in.
func askToSignIn(w http.ResponseWriter, r *http.Request) {
	here := localPath(r.URL.RequestURI())
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case r.Method == http.MethodPost || !isOfPerson(r):
		http.Error(w, "nobody is signed in, or the session is over; open /login", http.StatusForbidden)
	case site == "cross-site" || site == "same-site":
		// A browser does not send the cookie of a session along with a link on another site. It does when our own page leads here: then it
		// shows whether somebody is signed in.
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!DOCTYPE html><html lang="en"><meta http-equiv="refresh" content="0; url=%[1]s"><title>vaultd</title><p><a href="%[1]s">Go on</a></p></html>`+"\n", html.EscapeString(here))
	default:
		redirect(w, "/login?next="+url.QueryEscape(here))
	}
}

// signIn answers POST /login. It needs no token: the origin of the form was checked, and before somebody signs in there is nothing that
// a token could be bound to but a further cookie, which another program on this host could set as well.
func (p *people) signIn(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.PostForm.Get("next"))
	u, result := p.guard.checkPassword(r, r.PostForm.Get("name"), r.PostForm.Get("password"))
	if result == accessGranted {
		if id, ok := p.guard.beginSession(u); ok {
			p.guard.endSession(sessionID(r))
			setSessionCookie(w, r, id)
			p.guard.log.Info("signed in on the web port", "user", u.Name, "from", sourceOf(r.RemoteAddr))
			redirect(w, next)
			return
		}
	}
	redirect(w, "/login?failed=1&next="+url.QueryEscape(next))
}

// signOut answers POST /logout.
func (p *people) signOut(w http.ResponseWriter, r *http.Request) {
	p.guard.endSession(sessionID(r))
	setSessionCookie(w, r, "")
	redirect(w, "/login")
}

// redirect sends a browser to a path of ours.
func redirect(w http.ResponseWriter, path string) {
	w.Header().Set("Location", path)
	w.WriteHeader(http.StatusSeeOther)
}

// localPath returns a text that is a path of this port, with its query, and "/" for all else: an address of another host must not be where
// somebody ends who has signed in.
func localPath(text string) string {
	const longest = 2 << 10
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > longest || u.Scheme != "" || u.Host != "" || u.Opaque != "" || u.User != nil,
		!strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.HasPrefix(text, "/\\"),
		strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) || c == '\\' }),
		u.Path == "/login" || u.Path == "/logout":
		return "/"
	}
	return u.RequestURI()
}
