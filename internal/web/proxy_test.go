package web

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"vaultd/internal/ledger"
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
			w := b.get("/livez", row.headers...)
			kit.Check(t, name == "Basic" || w.Code == 200, "%v livez: %v", name, w.Code)
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

var update = flag.Bool("update", false, "write docs/metrics.md anew")

func sample() Facts {
	at := time.Date(2026, 11, 20, 14, 32, 0, 0, time.UTC)
	f := Facts{
		At: at, Version: "1.2.0", Go: "go1.26.8", Environment: "test", OldestOpen: at.Add(-9 * time.Hour), LastSuccess: at.Add(-time.Hour),
		NeedsPerson: map[string]int{"rejected": 2},
		Pauses:      []Pause{{"vault ACME", "http-403", at.Add(-time.Minute)}},
		Drops:       []DropFacts{{"acme-in", true, at.Add(-time.Minute), 210e9}}, NotTaken: []NotTaken{{"acme-in", "no sidecar", 3}},
		Bills: []Bill{{"", 0.71}}, SpoolUsed: 5, SpoolMax: 20e9, StateFree: 40e9, LedgerSize: 1e6, Lines: 7, Commits: 3, Changes: 4, Syncs: 6, FileSyncs: 8, DirectorySyncs: 9,
		Reloaded: at, ReloadGood: true,
	}
	f.Balance.CountChange(ledger.None, ledger.Archived)
	f.Balance.CountChange(ledger.None, ledger.Uploaded)
	return f
}

func get(t *testing.T, f Facts, path, host string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://"+host+path, nil)
	w := httptest.NewRecorder()
	Handler(NewAccessGuard(Access{}, silent), func() Facts { return f }, nil).ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// I26: what keeps folders from being archived is loud on /readyz; only a stall is on /livez.
func TestHealth_I26_PauseAndStallAreLoud(t *testing.T) {
	good, paused, dead := sample(), sample(), sample()
	paused.Unfit = []string{"vault ACME paused since 09:12 (http-403)"}
	dead.Dead = []string{"the engine has stood still for 4 min"}
	type row struct {
		f                  Facts
		livez, readyz      int
		reasons, alive, ok int
	}
	kit.Rows(t, map[string]row{
		"Good":    {good, 200, 200, 0, 1, 1},
		"Paused":  {paused, 200, 503, 1, 1, 0},
		"Stalled": {dead, 503, 503, 1, 0, 0},
	}, func(t *testing.T, row row) {
		for path, want := range map[string]int{"/livez": row.livez, "/readyz": row.readyz, "/healthz": row.readyz} {
			code, body := get(t, row.f, path, "127.0.0.1:8970")
			var h health
			err := json.Unmarshal([]byte(body), &h)
			kit.Check(t, err == nil && code == want && (code == 200) == (h.Status == "ok"), "%s: %d %s %v, want %d", path, code, body, err, want)
			kit.Check(t, path != "/readyz" || len(h.Reasons) == row.reasons, "%s: reasons %q", path, h.Reasons)
		}
		_, body := get(t, row.f, "/metrics", "localhost")
		kit.Holds(t, "the metrics", body, fmt.Sprintf("vaultd_alive %d\n", row.alive), fmt.Sprintf("vaultd_ready %d\n", row.ok))
	})
}

// A web page elsewhere whose name leads to this machine gets nothing, whatever it asks for.
func TestHandler_I20_ForeignHostsGetNothing(t *testing.T) {
	for host, want := range map[string]int{
		"127.0.0.1:8970": 200, "localhost:8970": 200, "LOCALHOST": 200, "[::1]:8970": 200, "[::1]": 200, "127.8.8.8": 200,
		"evil.example": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example:8970": 421, "10.0.0.7:8970": 421, "0.0.0.0": 421,
	} {
		code, body := get(t, sample(), "/metrics", host)
		kit.Check(t, code == want && (code == 200 || !strings.Contains(body, "vaultd_")), "%s: %d, want %d", host, code, want)
	}
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Host = ""
	w := httptest.NewRecorder()
	Handler(NewAccessGuard(Access{}, silent), sample, nil).ServeHTTP(w, r)
	kit.Check(t, w.Code == http.StatusMisdirectedRequest, "no Host header: %v", w.Code)
	if r := httptest.NewRequest(http.MethodPost, "http://localhost/livez", nil); true {
		w := httptest.NewRecorder()
		if Handler(NewAccessGuard(Access{}, silent), sample, nil).ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
			t.Error("POST:", w.Code)
		}
	}
}

func TestListen_I20_LoopbackOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "files01:0"} {
		kit.Fails(t, address, kit.Err(Listen(t.Context(), address, Access{})), ErrNotLocal)
	}
	l := kit.Value(Listen(t.Context(), "127.0.0.1:0", Access{}))(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, NewAccessGuard(Access{}, silent), sample, nil, silent) }()
	res := kit.Value(http.Get("http://" + l.Addr().String() + "/livez"))(t)
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != 200 {
		t.Errorf("res.Status = %v, string(body) = %v, err = %v, want no error, res.StatusCode = 200", res.Status, string(body), err)
	}
	stop()
	kit.Want(t, "the error", <-done, nil)
}

// Every family that is described is there, is documented, and keeps Prometheus' own rules for names.
func TestMetrics_EachIsDocumented(t *testing.T) {
	r := prometheus.NewRegistry()
	r.MustRegister(newCollector(sample))
	families := kit.Value(r.Gather())(t)
	kit.Want(t, "families in the sample", len(families), len(metrics))
	problems, err := testutil.GatherAndLint(r)
	kit.Check(t, err == nil && len(problems) <= 0, "problems = %v, err = %v, want no error, len(problems) <= 0", problems, err)
	for _, f := range families {
		if f.GetName() != "vaultd_folders" {
			continue
		}
		sum := 0.0
		for _, m := range f.GetMetric() {
			sum += m.GetGauge().GetValue()
		}
		kit.Want(t, "vaultd_folders sums up to", sum, float64(sample().Balance.Seen))
	}
	const path, begin, end = "../../docs/metrics.md", "<!-- metrics: begin -->\n", "<!-- metrics: end -->"
	old := kit.Value(os.ReadFile(path))(t)
	head, rest, ok := strings.Cut(string(old), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	kit.Need(t, ok && ok2, "%s has no place for the metrics", path)
	want := head + begin + table() + end + tail
	if want == string(old) {
		return
	}
	kit.Need(t, *update, "%s is not what the program has; go test ./internal/web -update", path)
	kit.Must(t, os.WriteFile(path, []byte(want), 0o644))
}

// table is the table of docs/metrics.md.
func table() string {
	var b strings.Builder
	b.WriteString("| name | kind | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range metrics {
		kind := "gauge"
		if m.kind == counter {
			kind = "counter"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, kind, strings.Join(m.labels, ", "), strings.ReplaceAll(m.help, "|", "\\|"))
	}
	return b.String()
}

// The pages for people get every request that is not for a machine, and a visitor without rights.
func TestHandler_PagesGetTheirVisitor(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "page %s for %+v", r.URL.Path, VisitorOf(r.Context()))
	})
	h := Handler(NewAccessGuard(Access{}, silent), sample, pages)
	for path, isPage := range map[string]bool{"/": true, "/search": true, "/livez": false, "/readyz": false, "/healthz": false, "/metrics": false} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		got := strings.HasPrefix(w.Body.String(), "page "+path+" for {Name: Rights:{Read:false")
		kit.Check(t, got == isPage, "%s: %s, want got = %v", path, w.Body, isPage)
	}
}
