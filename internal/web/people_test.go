package web

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

// echo is a page that tells who asked for it.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	v := VisitorOf(r.Context())
	fmt.Fprintf(w, "page %s %s for %q rights %+v token %q in %v out %v header %q", r.Method, r.URL.Path, v.Name, v.Rights, v.Token, v.MaySignIn, v.MaySignOut, r.Header)
})

// browser keeps cookies and says with each request where it comes from, as browsers do.
type browser struct {
	h       http.Handler
	host    string
	hasTLS  bool
	from    string // address
	cookies map[string]*http.Cookie
}

func newBrowser(h http.Handler) *browser {
	return &browser{h: h, host: "files01:8970", from: "192.0.2.9", cookies: map[string]*http.Cookie{}}
}

// ask sends a request; headers are pairs that replace what the browser would say.
func (b *browser) ask(method, path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host, r.RemoteAddr = b.host, b.from+":1234"
	if b.hasTLS {
		r.TLS = &tls.ConnectionState{}
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	r.Header.Set("Sec-Fetch-Dest", "document")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://"+b.host)
	}
	for _, c := range b.cookies {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	b.h.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if b.cookies[c.Name] = c; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return w
}

func (b *browser) get(path string, headers ...string) *httptest.ResponseRecorder {
	return b.ask(http.MethodGet, path, nil, headers...)
}

func (b *browser) signIn(name, password string) *httptest.ResponseRecorder {
	return b.ask(http.MethodPost, "/login", url.Values{"name": {name}, "password": {password}, "next": {"/search?q=4711"}})
}

// token is what a form of the first page holds.
func (b *browser) token() string {
	_, rest, _ := strings.Cut(b.get("/").Body.String(), `token "`)
	token, _, _ := strings.Cut(rest, `"`)
	return token
}

// isIn reports whether the first page is shown to anna.
func (b *browser) isIn() bool { return strings.Contains(b.get("/").Body.String(), `for "anna"`) }

func anna(t testing.TB) User {
	return userWith(t, "anna", canary, Rights{Read: true, Fetch: true})
}

func guarded(t testing.TB, more ...User) (*AccessGuard, http.Handler) {
	guard := NewAccessGuard(NewAccess(nil, append([]User{anna(t)}, more...), Proxy{}), silent)
	return guard, Handler(guard, sample, echo)
}

// Who signs in is let in by a cookie that scripts and other sites do not get, with a new id each time, and is out after signing out.
func TestSession_SignInAndOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, hasTLS := range []bool{false, true} {
			_, h := guarded(t)
			b := newBrowser(h)
			b.hasTLS = hasTLS
			w := b.get("/document/k%2F1?x=a&y=%2F")
			if got := w.Header().Get("Location"); w.Code != 303 || got != "/login?next="+url.QueryEscape("/document/k%2F1?x=a&y=%2F") {
				t.Error("a stranger:", w.Code, got)
			}
			for _, path := range openPaths {
				if w := b.get(path); w.Code != 200 || !strings.Contains(w.Body.String(), `for "" rights {Read:false Fetch:false Metrics:false} token "" in true out false`) {
					t.Errorf("path = %v, w.Code = %v, w.Body = %v, want w.Code = 200, w.Body.String() with `for \"\" rights {Read:false Fetch:false Metrics:false} token \"\" in true out false`", path, w.Code, w.Body)
				}
			}
			w = b.signIn("anna", canary)
			if w.Code != 303 || w.Header().Get("Location") != "/search?q=4711" {
				t.Error("signed in:", w.Code, w.Header())
			}
			set := w.Header().Get("Set-Cookie")
			kit.Holds(t, "the cookie", set, "Path=/", "HttpOnly", "SameSite=Strict")
			if strings.Contains(set, "Secure") != hasTLS || strings.HasPrefix(set, "__Host-") != hasTLS || strings.Contains(set, "Domain") {
				t.Errorf(`set = %v, want strings.Contains(set, "Secure") = %v, strings.HasPrefix(set, "__Host-") = %v, set without "Domain"`, set, hasTLS, hasTLS)
			}
			kit.Holds(t, "the text", b.get("/").Body.String(), `for "anna" rights {Read:true Fetch:true Metrics:false} token "`, "in false out true")
			first, token := b.cookies[cookieName(&http.Request{TLS: map[bool]*tls.ConnectionState{true: {}}[hasTLS]})].Value, b.token()
			b.signIn("anna", canary)
			second := b.cookies[cookieName(&http.Request{TLS: map[bool]*tls.ConnectionState{true: {}}[hasTLS]})].Value
			kit.Check(t, second != first && len(second) == 43 && b.token() != token, "the same id or token again")
			other := newBrowser(h)
			other.hasTLS = hasTLS
			for name, c := range b.cookies {
				other.cookies[name] = &http.Cookie{Name: name, Value: first, MaxAge: c.MaxAge}
			}
			kit.Check(t, !other.isIn(), "the id before is still good")
			if w := b.ask(http.MethodPost, "/logout", url.Values{"token": {b.token()}}); w.Code != 303 || w.Header().Get("Location") != "/login" || b.isIn() || len(b.cookies) != 0 {
				t.Error("signed out:", w.Code, b.cookies)
			}
		}
	})
}

// A wrong name or password, an unknown, changed, expired or doubled cookie, and one of the other kind of connection let nobody in.
func TestSession_I7_ForgedAndExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard, h := guarded(t)
		b := newBrowser(h)
		for _, pair := range [][2]string{{"anna", "wrong"}, {"anna", ""}, {"", ""}, {"nobody", canary}, {"anna ", canary}, {"anna", canary + strings.Repeat("x", 80)}} {
			if w := b.signIn(pair[0], pair[1]); w.Code != 303 || w.Header().Get("Location") != "/login?failed=1&next=%2Fsearch%3Fq%3D4711" || len(b.cookies) != 0 || strings.Contains(fmt.Sprint(w.Header(), w.Body), "CANARY") {
				t.Errorf(`pair = %v, w.Code = %v, w.Header() = %v, want w.Code = 303, w.Header().Get("Location") = "/login?failed=1&next=%%2Fsearch%%3Fq%%3D4711", len(b.cookies) = 0, fmt.Sprint(w.Header(), w.Body) without "CANARY"`, pair, w.Code, w.Header())
			}
		}
		b.signIn("anna", canary)
		good := b.cookies["vaultd"].Value
		for name, cookie := range map[string]string{
			"Unknown": "vaultd=" + strings.Repeat("A", 43), "Cut": "vaultd=" + good[:42], "Changed": "vaultd=" + good[:42] + "_", "Empty": "vaultd=", "Other": "__Host-vaultd=" + good,
			"Doubled": "vaultd=" + good + "; vaultd=" + good, "Digest": fmt.Sprintf("vaultd=%x", first(guard.sessions)), "Quoted": `vaultd=";` + good + `"`,
		} {
			kit.Want(t, name, b.get("/", "Cookie", cookie).Code, 303)
		}
		w := b.get("/", "Authorization", "Basic YW5uYTpDQU5BUlktd2ViLXBhc3N3b3Jk", "Cookie", "")
		kit.Check(t, w.Code == 303, "a name and password in the header: %v", w.Code)
		kit.Check(t, b.isIn(), "the good one")
		time.Sleep(sessionIdle - time.Second)
		kit.Check(t, b.isIn(), "29 minutes idle")
		time.Sleep(sessionIdle)
		kit.Check(t, !b.isIn() && len(guard.sessions) == 0, "30 minutes idle")
		b.signIn("anna", canary)
		for range 12*3 - 1 {
			time.Sleep(20 * time.Minute)
			kit.Need(t, b.isIn(), "ended while it was used")
		}
		if time.Sleep(20 * time.Minute); b.isIn() {
			t.Error("longer than twelve hours")
		}
		b.signIn("anna", canary)
		for range 3 { // an open page that keeps itself fresh
			time.Sleep(11 * time.Minute)
			b.get("/", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "cors")
		}
		if w := b.get("/", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "cors"); w.Code != 403 || strings.Contains(w.Body.String(), "anna") {
			t.Error("a page left open keeps a session alive:", w.Code)
		}
	})
}

func first(m map[sessionKey]session) (key sessionKey) {
	for key = range m {
		break
	}
	return key
}

// A page that is open without a script, or in an old browser, loads itself again and again. No session lives longer for it.
func TestSession_I7_OpenPageWithoutScriptKeepsNoneAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := guarded(t)
		b := newBrowser(h)
		b.signIn("anna", canary)
		for range int(sessionIdle/time.Minute) - 1 {
			time.Sleep(time.Minute)
			if w := b.get("/?refresh"); w.Code != 200 { // as a browser loads it by itself, and an old one that tells nothing of its requests
				t.Fatalf("w.Code = %v, want w.Code = 200", w.Code)
			}
			w := b.get("/?refresh", "Sec-Fetch-Dest", "", "Sec-Fetch-Mode", "", "Sec-Fetch-Site", "")
			kit.Need(t, w.Code == 200, "w.Code = %v, want w.Code = 200", w.Code)
		}
		time.Sleep(time.Minute)
		kit.Check(t, !b.isIn(), "a page that stays open keeps its session alive")
	})
}

// A reload ends the sessions of users whose password or rights changed, or who are gone, and no others.
func TestSession_I7_ReloadEndsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		anna, bob := anna(t), userWith(t, "bob", canary, Rights{Read: true})
		for name, row := range map[string]struct {
			users []User
			stays bool
		}{
			"Same": {[]User{bob, anna}, true}, "OtherGone": {[]User{anna}, true}, "Gone": {[]User{bob}, false},
			"Password": {[]User{userWith(t, "anna", "another password", anna.Rights), bob}, false},
			"Rights":   {[]User{{anna.Name, anna.Hash, Rights{Read: true}}, bob}, false},
		} {
			guard := NewAccessGuard(NewAccess(nil, []User{anna, bob}, Proxy{}), silent)
			b := newBrowser(Handler(guard, sample, echo))
			b.signIn("anna", canary)
			guard.SetAccess(NewAccess(nil, row.users, Proxy{}))
			kit.Check(t, b.isIn() == row.stays, "%v stays: %v", name, !row.stays)
			guard.SetAccess(NewAccess(nil, []User{anna, bob}, Proxy{}))
			kit.Check(t, b.isIn() == row.stays, "%v and back, stays: %v", name, !row.stays)
		}
		guard, h := guarded(t) // the reload comes while the password is checked
		b := newBrowser(h)
		holdChecks(guard, true)
		done := make(chan int, 1)
		go func() { done <- b.signIn("anna", canary).Code }()
		synctest.Wait()
		guard.SetAccess(NewAccess(nil, []User{bob}, Proxy{}))
		holdChecks(guard, false)
		if <-done; len(guard.sessions) != 0 || len(b.cookies) != 0 {
			t.Error("signed in by the users before")
		}
		if id, ok := guard.beginSession(anna); ok || id != "" || len(guard.sessions) != 0 { // it comes between the check and the session
			t.Error("a session for a user who is gone")
		}
	})
}

// A user has at most sixteen sessions, the newest; those of others stay.
func TestSession_I21_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard, h := guarded(t, userWith(t, "bob", canary, Rights{Read: true}))
		first, bob := newBrowser(h), newBrowser(h)
		first.signIn("anna", canary)
		bob.signIn("bob", canary)
		for i := range 3 * maxSessionsPerUser {
			time.Sleep(time.Second)
			b := newBrowser(h)
			b.signIn("anna", canary)
			kit.Need(t, b.isIn() && len(guard.sessions) <= maxSessionsPerUser+1,
				"i = %v, len(guard.sessions) = %v, want b.isIn(), len(guard.sessions) <= %v", i, len(guard.sessions), maxSessionsPerUser+1)
		}
		kit.Check(t, !first.isIn() && bob.get("/").Code == 200, "the oldest stays, or another user's is gone")
		time.Sleep(sessionLife)
		if b := newBrowser(h); b.signIn("anna", canary).Code != 303 || len(guard.sessions) != 1 {
			t.Error("what is over is kept:", len(guard.sessions))
		}
	})
}

// A form needs its token and its own site; nothing is done without.
func TestForms_I7_OtherSitesCannotSendThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := guarded(t, userWith(t, "bob", canary, Rights{Read: true}))
		b, bob := newBrowser(h), newBrowser(h)
		b.signIn("anna", canary)
		bob.signIn("bob", canary)
		token := b.token()
		good := url.Values{"token": {token}}
		for name, row := range map[string]struct {
			form    url.Values
			headers []string
			code    int
		}{
			"Good":           {good, nil, 200},
			"NoBrowser":      {good, []string{"Sec-Fetch-Site", "", "Origin", ""}, 200},
			"NoToken":        {nil, nil, 403},
			"EmptyToken":     {url.Values{"token": {""}}, nil, 403},
			"TokenOfBob":     {url.Values{"token": {bob.token()}}, nil, 403},
			"CutToken":       {url.Values{"token": {token[:42]}}, nil, 403},
			"SecondIsGood":   {url.Values{"token": {"x", token}}, nil, 403},
			"CrossSite":      {good, []string{"Sec-Fetch-Site", "cross-site"}, 403},
			"OtherPort":      {good, []string{"Sec-Fetch-Site", "same-site", "Origin", "http://files01:9999"}, 403},
			"OldBrowser":     {good, []string{"Sec-Fetch-Site", "", "Origin", "http://evil.example"}, 403},
			"OldOtherPort":   {good, []string{"Sec-Fetch-Site", "", "Origin", "http://files01:9999"}, 403},
			"NullOrigin":     {good, []string{"Sec-Fetch-Site", "", "Origin", "null"}, 403},
			"Rebound":        {good, []string{"Host", "evil.example", "Cookie", ""}, 403},
			"TextPlain":      {good, []string{"Content-Type", "text/plain"}, 415},
			"JSON":           {good, []string{"Content-Type", "application/json"}, 415},
			"Multipart":      {good, []string{"Content-Type", "multipart/form-data; boundary=x"}, 415},
			"NoContentType":  {good, []string{"Content-Type", ""}, 415},
			"Huge":           {url.Values{"token": {token}, "x": {strings.Repeat("x", maxForm)}}, nil, 400},
			"NoSession":      {good, []string{"Cookie", ""}, 403},
			"BasicInsteadOf": {good, []string{"Cookie", "", "Authorization", "Basic YW5uYTpDQU5BUlktd2ViLXBhc3N3b3Jk"}, 403},
		} {
			w := b.ask(http.MethodPost, "/document/k/download", row.form, row.headers...)
			if w.Code != row.code || (w.Code == 200) != strings.HasPrefix(w.Body.String(), "page POST") {
				t.Errorf("%s: %d %s, want w.Code = %v, (w.Code == 200) = %v", name, w.Code, w.Body, row.code, strings.HasPrefix(w.Body.String(), "page POST"))
			}
		}
		if w := b.ask(http.MethodPost, "/report?token="+token, nil); w.Code != 403 {
			t.Error("a token in the address:", w.Code)
		}
		for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodTrace, "X"} {
			kit.Want(t, method, b.ask(method, "/", good).Code, 405)
		}
		for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "", "Origin", "http://evil.example"}} {
			stranger := newBrowser(h)
			w := stranger.ask(http.MethodPost, "/login", url.Values{"name": {"anna"}, "password": {canary}}, headers...)
			kit.Check(t, w.Code == 403 && len(stranger.cookies) == 0, "another site signs in: %v", w.Code)
			w = b.ask(http.MethodPost, "/logout", good, headers...)
			kit.Check(t, w.Code == 403 && b.isIn(), "another site signs out: %v", w.Code)
		}
		if w := b.ask(http.MethodPost, "/logout", nil); w.Code != 403 || !b.isIn() {
			t.Error("signed out without a token:", w.Code)
		}
	})
}

// Another site may lead a person here; it may not load a page as a picture, script or frame, nor read one.
func TestPages_I7_OtherSitesLoadNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := guarded(t)
		b := newBrowser(h)
		b.signIn("anna", canary)
		for name, row := range map[string]struct {
			headers []string
			code    int
		}{
			"Link":      {[]string{"Sec-Fetch-Site", "cross-site"}, 200},
			"Typed":     {[]string{"Sec-Fetch-Site", "none"}, 200},
			"Script":    {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, 403},
			"OtherPort": {[]string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}, 403},
			"Frame":     {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "iframe"}, 403},
		} {
			w := b.get("/document/k", row.headers...)
			if w.Code != row.code || row.code != 200 && strings.Contains(w.Body.String(), "anna") {
				t.Error(name, w.Code, w.Body)
			}
			for header, want := range map[string]string{
				"Content-Security-Policy": pageContentPolicy, "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
				"X-Frame-Options": "DENY", "Cache-Control": "no-store", "Strict-Transport-Security": "", "Access-Control-Allow-Origin": "",
			} {
				kit.Want(t, fmt.Sprintf("%s: %s", name, header), w.Header().Get(header), want)
			}
		}
		stranger := newBrowser(h) // as a browser with a session too: it keeps the cookie back
		if w := stranger.get(`/search?q="><script>`, "Sec-Fetch-Site", "cross-site"); w.Code != 200 || !strings.Contains(w.Body.String(), `content="0; url=/search?q=&#34;&gt;&lt;script&gt;"`) || strings.Contains(w.Body.String(), "page GET") {
			t.Error("a link of another site:", w.Code, w.Body)
		}
		if w := stranger.get("/search?q=x"); w.Code != 303 {
			t.Error("from our own page:", w.Code)
		}
		if b.hasTLS = true; b.get("/login").Header().Get("Strict-Transport-Security") == "" {
			t.Error("no HSTS with TLS")
		}
	})
}

// Without users everybody sees counts and states alone: no right, no form, no sign-in; and another host name gets nothing.
func TestPages_I7_WithoutUsersNoRights(t *testing.T) {
	h := Handler(NewAccessGuard(Access{}, silent), sample, echo)
	b := newBrowser(h)
	b.host = "127.0.0.1:8970"
	kit.Holds(t, "the text", b.get("/document/k").Body.String(), `for "" rights {Read:false Fetch:false Metrics:false} token "" in false out false`)
	for _, token := range []string{"", "x"} {
		w := b.ask(http.MethodPost, "/report", url.Values{"token": {token}})
		kit.Check(t, w.Code == 403, "a form: %v %v", w.Code, w.Body)
	}
	for _, path := range []string{"/login", "/logout"} {
		kit.Want(t, path, b.get(path).Code, 404)
		w := b.signIn("anna", canary)
		kit.Check(t, w.Code == 404 && len(b.cookies) == 0, "signed in: %v", w.Code)
	}
	if w := b.get("/", "Host", "evil.example:8970"); w.Code != http.StatusMisdirectedRequest || strings.Contains(w.Body.String(), "page") {
		t.Error("another host name:", w.Code, w.Body)
	}
}

// Nobody is sent to another host after signing in.
func TestLocalPath_LeadsNowhereElse(t *testing.T) {
	for text, want := range map[string]string{
		"/": "/", "/search?q=Rechnung+4711&x=%2F": "/search?q=Rechnung+4711&x=%2F", "/document/a%2Fb": "/document/a%2Fb", "/#x": "/", "/search?q=ü": "/search?q=ü",
		"": "/", "search": "/", "//evil.example": "/", "///evil.example": "/", "/\\evil.example": "/", "\\\\evil.example": "/", "https://evil.example/": "/", "http:/x": "/", "javascript:alert(1)": "/",
		"/\t/evil.example": "/", "/x\r\nSet-Cookie: a=b": "/", "/\x00": "/", "/a\\b": "/", " /x": "/", "/%zz": "/", "/login": "/", "/login?next=/login": "/", "/logout": "/",
		"/%2F%2Fevil.example": "/%2F%2Fevil.example", "//files01:8970/": "/", "/x@evil.example": "/x@evil.example", "/" + strings.Repeat("a", 3000): "/",
	} {
		kit.Want(t, text, localPath(text), want)
	}
}

func FuzzLocalPath(f *testing.F) {
	for _, text := range []string{"/", "//evil.example", "/\\evil", "/a?b#c", "https://x", "/\t/x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := localPath(text)
		base := &url.URL{Scheme: "https", Host: "files01:8970"}
		to, err := base.Parse(strings.ReplaceAll(got, "\\", "/")) // as browsers read it
		if err != nil || to.Host != base.Host || to.Scheme != "https" || strings.ContainsAny(got, "\r\n\t") || strings.HasPrefix(got, "//") {
			t.Errorf("%q: %q leads to %v %v", text, got, to, err)
		}
	})
}

// Few pages are in work at once; a flood of strangers takes no place of those who are signed in, and what waits too long is told so.
func TestPages_I21_PlacesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		working, most := map[string]int{}, map[string]int{}
		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kind := r.Method + VisitorOf(r.Context()).Name
			mu.Lock()
			working[kind]++
			most[kind] = max(most[kind], working[kind])
			mu.Unlock()
			time.Sleep(time.Minute)
			mu.Lock()
			working[kind]--
			mu.Unlock()
		})
		guard := NewAccessGuard(NewAccess(nil, []User{anna(t)}, Proxy{}), silent)
		h := Handler(guard, sample, slow)
		b := newBrowser(h)
		b.signIn("anna", canary)
		token := guard.formToken("session", b.cookies["vaultd"].Value)
		codes := map[string][]int{}
		var all sync.WaitGroup
		count := func(kind string, code int) {
			mu.Lock()
			defer mu.Unlock()
			codes[kind] = append(codes[kind], code)
		}
		for range 50 {
			all.Go(func() { count("strangers", newBrowser(h).get("/login").Code) })
		}
		synctest.Wait()
		for range 6 {
			all.Go(func() { count("looks", b.get("/").Code) })
			all.Go(func() {
				w := b.ask(http.MethodPost, "/report", url.Values{"token": {token}})
				if count("acts", w.Code); w.Code == 503 && w.Header().Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			})
		}
		all.Wait()
		for kind, want := range map[string]int{"strangers": publicPlaces, "looks": lookPlaces, "acts": actPlaces} {
			good := 0
			for _, code := range codes[kind] {
				if code == 200 {
					good++
				} else {
					kit.Want(t, kind, code, 503)
				}
			}
			if good != want {
				t.Errorf("%s: %d were answered, want %d: %v", kind, good, want, codes[kind])
			}
		}
		kit.Check(t, most["GET"] == publicPlaces && most["GETanna"] == lookPlaces && most["POSTanna"] == actPlaces,
			"at once: %v", most)
	})
}

// A storm of pages takes half a processor where nobody has signed in, and one processor of all who have; a page that is asked for alone
// waits for nothing.
func TestPages_I21_StormLeavesTheProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const page, last = 100 * time.Millisecond, time.Minute
		var mu sync.Mutex
		busy := map[string]time.Duration{}
		work := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(page)
			mu.Lock()
			defer mu.Unlock()
			busy[VisitorOf(r.Context()).Name] += page
		})
		b := newBrowser(Handler(NewAccessGuard(NewAccess(nil, []User{anna(t)}, Proxy{}), silent), sample, work))
		b.signIn("anna", canary)
		begin := time.Now()
		var storm sync.WaitGroup
		for range 50 {
			storm.Go(func() {
				for time.Since(begin) < last {
					b.get("/")
				}
			})
			storm.Go(func() {
				for time.Since(begin) < last {
					newBrowser(b.h).get("/login")
				}
			})
		}
		storm.Wait()
		for name, most := range map[string]float64{"anna": 1, "": 0.5} {
			share := float64(busy[name]) / float64(time.Since(begin))
			kit.Check(t, share <= most*1.05 && share >= most*0.8, "%q: a share of %.2f of a processor", name, share)
		}
		time.Sleep(maxPageRest)
		asked := time.Now()
		if b.get("/"); time.Since(asked) > page {
			t.Error("a page alone took", time.Since(asked))
		}
	})
}

// A page may take longer than other answers: it extends its deadline through what stands before it.
func TestPages_DeadlineCanBeExtended(t *testing.T) {
	var said error
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		said = c.SetWriteDeadline(time.Now().Add(time.Hour))
		fmt.Fprint(w, "x")
		if err := c.Flush(); err != nil {
			said = err
		}
	})
	l := kit.Value(Listen(t.Context(), "127.0.0.1:0", Access{}))(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, NewAccessGuard(Access{}, silent), sample, page, silent) }()
	res := kit.Value(http.Get("http://" + l.Addr().String() + "/"))(t)
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if stop(); string(body) != "x" || err != nil || said != nil || <-done != nil {
		t.Errorf(`string(body) = %v, err = %v, said = %v, want string(body) = "x", no error, said = nil, <-done = nil`, string(body), err, said)
	}
}

// I7: neither a password nor a name that was typed is in the log or in an answer, whatever goes wrong; who signed in is logged.
func TestSignIn_I7_NothingTypedIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		guard := NewAccessGuard(NewAccess(nil, []User{anna(t)}, Proxy{}), log)
		b := newBrowser(Handler(guard, sample, echo))
		var said []string
		for _, pair := range [][2]string{{"anna", canary + "x"}, {canary, ""}, {canary, canary}, {"anna", canary}} {
			w := b.signIn(pair[0], pair[1])
			c := b.cookies["vaultd"]
			said = append(said, w.Body.String(), strings.ReplaceAll(fmt.Sprint(w.Header()), fmt.Sprint(c), ""))
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			r.SetBasicAuth(pair[0], pair[1])
			w = httptest.NewRecorder()
			b.h.ServeHTTP(w, r)
			said = append(said, w.Body.String(), fmt.Sprint(w.Header()))
			time.Sleep(time.Minute)
		}
		id := b.cookies["vaultd"].Value
		if all := out.String() + strings.Join(said, ""); strings.Contains(all, "CANARY") || strings.Contains(out.String(), id) {
			t.Errorf(`all = %v, want all without "CANARY", out.String() without %q`, all, id)
		}
		kit.Want(t, "lines for failed sign-ins", strings.Count(out.String(), "a sign-in on the web port failed"), 6)
		kit.Holds(t, "the log", out.String(), "user=anna")
	})
}

// In a storm of wrong sign-ins for a name, its user goes on with his session, and signs in anew within seconds.
func TestSignIn_I21_StormLocksNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard, h := guarded(t)
		known := newBrowser(h)
		known.signIn("anna", canary)
		begin := time.Now()
		var storm sync.WaitGroup
		for i := range 60 {
			storm.Go(func() {
				for time.Since(begin) < 5*time.Minute {
					b := newBrowser(h)
					b.from = fmt.Sprintf("192.0.2.%d", i%8)
					b.signIn("anna", fmt.Sprint("guess ", i))
					time.Sleep(time.Second)
				}
			})
		}
		for range 5 {
			time.Sleep(50 * time.Second)
			if asked := time.Now(); !known.isIn() || time.Since(asked) > 0 {
				t.Error("a session waited", time.Since(asked))
			}
			fresh, asked := newBrowser(h), time.Now()
			if fresh.signIn("anna", canary); !fresh.isIn() || time.Since(asked) > 2*maxInterval {
				t.Error("a sign-in from another machine took", time.Since(asked), fresh.isIn())
			}
		}
		storm.Wait()
		kit.Want(t, "attempts are left behind", len(guard.attempts.waiting), 0)
	})
}

func newRequest(address string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, address, nil)
	r.RemoteAddr = "127.0.0.1:1234"
	return r
}

func record(h http.Handler, r *http.Request) (code int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// Whatever a stranger sends: no page but those of the sign-in page is reached, and none with a name, a right or a token.
func FuzzPages_I7_StrangersReachNothing(f *testing.F) {
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET /login?next=/ HTTP/1.1\r\nHost: x\r\nCookie: vaultd=x; vaultd=y\r\n\r\n", "POST /report HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 7\r\n\r\ntoken=x",
		"GET /login/../search HTTP/1.1\r\nHost: x\r\nRemote-User: anna\r\nX-Vaultd-Secret: \r\n\r\n", "GET http://y/style.css HTTP/1.0\r\n\r\n", "CONNECT /login HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET //login HTTP/1.1\r\nHost: x\r\nx-vaultd-secret: CANARY-secret-of-the-prox\r\nremote-user: anna\r\n\r\n", "HEAD /%6cogin HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		f.Add([]byte(request))
	}
	p := Proxy{UserHeader: "Remote-User", Secret: proxySecret, Rights: map[string]Rights{"*": {Read: true}}}
	reached := func(r *http.Request, t *testing.T) {
		v := VisitorOf(r.Context())
		if !slices.Contains(openPaths, r.URL.Path) || v != (Visitor{MaySignIn: true}) || r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Remote-User") != "" {
			t.Errorf("%s %q reached by %+v", r.Method, r.URL.Path, v)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil || strings.Contains(string(raw), proxySecret) || r.Header.Get("Authorization") != "" && strings.HasPrefix(strings.ToLower(r.Header.Get("Authorization")), "basic") {
			return
		}
		if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "login") { // a wrong password takes its time
			return
		}
		guard := NewAccessGuard(NewAccess(nil, []User{{"anna", unknownHash(4), Rights{Read: true}}}, p), silent)
		h := Handler(guard, sample, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached(r, t) }))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		kit.Check(t, !strings.Contains(w.Body.String(), "vaultd_") && w.Header().Get("X-Content-Type-Options") == "nosniff",
			`%q: %d %s, want w.Body.String() without "vaultd_", w.Header().Get("X-Content-Type-Options") = "nosniff"`, raw, w.Code, w.Body)
		to := w.Header().Get("Location")
		kit.Check(t, w.Code != http.StatusSeeOther || strings.HasPrefix(to, "/login?next=%2F"), "%q leads to %q", raw, to)
	})
}
