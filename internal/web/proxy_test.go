package web

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"vaultd/internal/test/kit"
)

const proxySecret = "CANARY-secret-of-the-proxy"

func behindProxy(t testing.TB, secret string, users ...User) http.Handler {
	t.Helper()
	p := Proxy{UserHeader: "Remote-User", Secret: secret, Rights: map[string]Rights{"anna": {Read: true, Fetch: true}, "guest": {}, "*": {Read: true, Metrics: true}}}
	return Handler(NewAccessGuard(NewAccess(nil, users, p), silent), sample, echo)
}

// A user name in a header counts for nothing without the proxy's secret, wherever it comes from: who can reach the port can write headers.
func TestProxy_I7_HeadersOfOthersCountForNothing(t *testing.T) {
	for name, row := range map[string]struct {
		h       http.Handler
		headers []string
		code    int
		has     string
	}{
		"Proxy":         {behindProxy(t, proxySecret), []string{secretHeader, proxySecret, "Remote-User", "anna"}, 200, `for "anna" rights {Read:true Fetch:true Metrics:false} token "`},
		"AnyoneElse":    {behindProxy(t, proxySecret), []string{secretHeader, proxySecret, "Remote-User", "bob@example.org"}, 200, `for "bob@example.org" rights {Read:true Fetch:false Metrics:true}`},
		"NoRights":      {behindProxy(t, proxySecret), []string{secretHeader, proxySecret, "Remote-User", "guest"}, 200, `for "guest" rights {Read:false Fetch:false Metrics:false}`},
		"Umlauts":       {behindProxy(t, proxySecret), []string{secretHeader, proxySecret, "Remote-User", "Jörg Müller"}, 200, `for "Jörg Müller"`},
		"NoSecret":      {behindProxy(t, proxySecret), []string{"Remote-User", "anna"}, 403, "through the proxy alone"},
		"EmptySecret":   {behindProxy(t, proxySecret), []string{"X-Vaultd-Secret", " ", "Remote-User", "anna"}, 403, "the secret of the proxy is wrong"},
		"WrongSecret":   {behindProxy(t, proxySecret), []string{secretHeader, proxySecret + "x", "Remote-User", "anna"}, 403, "the secret of the proxy is wrong"},
		"NoUser":        {behindProxy(t, proxySecret), []string{secretHeader, proxySecret}, 403, "the proxy names no user"},
		"Star":          {behindProxy(t, proxySecret), []string{secretHeader, proxySecret, "Remote-User", "*"}, 403, "the user name in Remote-User is none"},
		"LongName":      {behindProxy(t, proxySecret), []string{secretHeader, proxySecret, "Remote-User", strings.Repeat("a", 129)}, 403, "is none"},
		"ControlName":   {behindProxy(t, proxySecret), []string{secretHeader, proxySecret, "Remote-User", "anna\tx"}, 403, "is none"},
		"HiddenName":    {behindProxy(t, proxySecret), []string{secretHeader, proxySecret, "Remote-User", "an\u200bna"}, 403, "is none"},
		"TurnedName":    {behindProxy(t, proxySecret), []string{secretHeader, proxySecret, "Remote-User", "\u202eanna"}, 403, "is none"},
		"OtherHeader":   {behindProxy(t, proxySecret), []string{secretHeader, proxySecret, "X-Remote-User", "anna"}, 403, "the proxy names no user"},
		"Underscore":    {behindProxy(t, proxySecret), []string{"X_Vaultd_Secret", proxySecret, "Remote-User", "anna"}, 403, "through the proxy alone"},
		"UsersToo":      {behindProxy(t, proxySecret, anna(t)), []string{"Remote-User", "anna"}, 303, ""},
		"NoProxyAtAll":  {Handler(NewAccessGuard(NewAccess(nil, []User{anna(t)}, Proxy{}), silent), sample, echo), []string{secretHeader, proxySecret, "Remote-User", "anna"}, 303, ""},
		"SocketProxy":   {behindProxy(t, ""), []string{"Remote-User", "anna"}, 403, "through the proxy alone"},
		"SocketEmpty":   {behindProxy(t, ""), []string{secretHeader, "", "Remote-User", "anna"}, 403, "through the proxy alone"},
		"SocketDigest0": {behindProxy(t, ""), []string{secretHeader, " ", "Remote-User", "anna"}, 403, "through the proxy alone"},
	} {
		b := newBrowser(row.h)
		b.from = "127.0.0.1"
		w := b.get("/", row.headers...)
		if w.Code != row.code || !strings.Contains(w.Body.String(), row.has) || strings.Contains(w.Body.String(), "CANARY") || w.Code == 200 && strings.Contains(w.Body.String(), "Remote-User") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		kit.Check(t, w.Code == 200 || !strings.Contains(w.Body.String(), "page GET") && len(b.cookies) <= 0,
			"%s: the page is shown: %s", name, w.Body)
	}
	for _, headers := range []http.Header{
		{secretHeader: {proxySecret}, "Remote-User": {"guest", "anna"}},
		{secretHeader: {"x", proxySecret}, "Remote-User": {"anna"}},
		{secretHeader: {proxySecret, "x"}, "Remote-User": {"anna"}},
	} {
		r := newRequest("/")
		r.Header = headers.Clone()
		if code, body := record(behindProxy(t, proxySecret), r); code != 403 || strings.Contains(body, "page") {
			t.Errorf(`headers = %v, code = %v, body = %v, want code = 403, body without "page"`, headers, code, body)
		}
	}
}

// A form through the proxy needs the token of its user and this process; the host is the one that the proxy says.
func TestProxy_I7_FormsNeedTheirToken(t *testing.T) {
	h := behindProxy(t, proxySecret)
	as := func(h http.Handler) *browser {
		b := newBrowser(h)
		b.host = "archive.example"
		return b
	}
	head := func(user string, more ...string) []string {
		return append([]string{secretHeader, proxySecret, "Remote-User", user}, more...)
	}
	token := func(user string, h http.Handler) string {
		_, rest, _ := strings.Cut(as(h).get("/", head(user)...).Body.String(), `token "`)
		token, _, _ := strings.Cut(rest, `"`)
		return token
	}
	if len(token("anna", h)) != 43 || token("anna", h) == token("bob", h) || token("anna", h) == token("anna", behindProxy(t, proxySecret)) {
		t.Error("tokens:", token("anna", h), token("bob", h))
	}
	for name, row := range map[string]struct {
		token   string
		headers []string
		code    int
	}{
		"Good": {token("anna", h), head("anna"), 200}, "OfBob": {token("bob", h), head("anna"), 403}, "None": {"", head("anna"), 403},
		"CrossSite": {token("anna", h), head("anna", "Sec-Fetch-Site", "cross-site"), 403}, "WithoutSecret": {token("anna", h), []string{"Remote-User", "anna"}, 403},
	} {
		kit.Want(t, name, as(h).ask(http.MethodPost, "/report", url.Values{"token": {row.token}}, row.headers...).Code, row.code)
	}
	for _, path := range []string{"/login", "/logout"} {
		kit.Want(t, path, as(h).ask(http.MethodPost, path, url.Values{"token": {token("anna", h)}, "name": {"anna"}, "password": {canary}}, head("anna")...).Code, 404)
	}
}

// Metrics and the reasons of the health pages are for users of the proxy with the right; others hear one word.
func TestProxy_I7_MachinePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := behindProxy(t, proxySecret)
		for name, row := range map[string]struct {
			headers []string
			code    int
		}{
			"Right": {[]string{secretHeader, proxySecret, "Remote-User", "monitor"}, 200}, "NoRight": {[]string{secretHeader, proxySecret, "Remote-User", "anna"}, 403},
			"NoSecret": {[]string{"Remote-User", "monitor"}, 401}, "WrongSecret": {[]string{secretHeader, "x", "Remote-User", "monitor"}, 401}, "Stranger": {nil, 401},
			"Basic": {[]string{"Authorization", "Basic bW9uaXRvcjp4"}, 401},
		} {
			b := newBrowser(h)
			if w := b.get("/metrics", row.headers...); w.Code != row.code || (row.code == 200) != strings.Contains(w.Body.String(), "vaultd_") {
				t.Errorf("%v: w.Code = %v, want w.Code = %v, (row.code == 200) = %v", name, w.Code, row.code, strings.Contains(w.Body.String(), "vaultd_"))
			}
			if w := b.get("/livez", row.headers...); name != "Basic" && w.Code != 200 {
				t.Error(name, "livez:", w.Code)
			}
		}
	})
}

// Over a Unix socket each request is the proxy's; the same guard serves the port, where nobody is.
func TestProxy_I7_Socket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pages.sock")
	over := kit.Value(net.Listen("unix", path))(t)
	guard := NewAccessGuard(NewAccess(certificate(t, "one"), nil, Proxy{UserHeader: "Remote-User", Rights: map[string]Rights{"*": {Read: true}}}), silent)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, over, guard, sample, echo, silent) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	for user, want := range map[string]int{"anna": 200, "": 403} {
		r := newRequest("http://archive.example/")
		r.RequestURI = ""
		r.Header.Set("Remote-User", user)
		res := kit.Value(client.Do(r))(t)
		res.Body.Close()
		kit.Want(t, user, res.StatusCode, want)
	}
	if stop(); <-done != nil {
		t.Error("Serve failed")
	}
	_, err := Listen(t.Context(), "0.0.0.0:0", guard.currentAccess())
	kit.Check(t, err != nil, "a port for others, where the proxy uses the socket and nobody can sign in")
}
