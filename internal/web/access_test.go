package web

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"vaultd/internal/test/kit"
)

const canary = "CANARY-web-password"

// silent is a log that nobody reads.
var silent = slog.New(slog.DiscardHandler)

// certificate makes one for this machine, with a name to tell it by.
func certificate(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	key := kit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der := kit.Value(x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key))(t)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serve answers on a port of this machine until the test ends.
func serve(t *testing.T, guard *AccessGuard, f Facts) (address string) {
	t.Helper()
	l := kit.Value(Listen(t.Context(), "127.0.0.1:0", guard.currentAccess()))(t)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, guard, func() Facts { return f }, nil, silent) }()
	t.Cleanup(func() {
		stop()
		kit.Want(t, "the error", <-done, nil)
	})
	return l.Addr().String()
}

// I20: every request gets the headers that browsers need, also one for a page
// that is missing.
func TestServe_I20_HeadersOfEveryAnswer(t *testing.T) {
	address := serve(t, NewAccessGuard(Access{}, silent), Facts{})
	for _, line := range []string{"OPTIONS *", "OPTIONS /livez", "GET /livez", "TRACE /", "PUT /nothing"} {
		c := kit.Value(net.Dial("tcp", address))(t)
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", line, address)
		said := kit.Value(io.ReadAll(c))(t)
		kit.Must(t, c.Close())
		kit.Holds(t, line, string(said), "X-Content-Type-Options: nosniff", "default-src 'none'", "Cache-Control: no-store")
	}
}

// userWith is a user whose password is hashed as cheaply as bcrypt can.
func userWith(t testing.TB, name, password string, rights Rights) User {
	t.Helper()
	hash := kit.Value(bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost))(t)
	return User{name, string(hash), rights}
}

// scraper is the user of a program that reads metrics.
func scraper(t testing.TB, password string) []User {
	return []User{userWith(t, "prometheus", password, Rights{Metrics: true})}
}

// I7: the health pages say one word to strangers, metrics nothing; who has the right is told all.
func TestAccessGuard_I7_StrangersLearnOneWord(t *testing.T) {
	guard := NewAccessGuard(NewAccess(nil, append(scraper(t, canary), userWith(t, "anna", canary+"2", Rights{Read: true, Fetch: true})), Proxy{}), silent)
	guard.attempts.pause = 0
	f := sample()
	f.Unfit = []string{"vault ACME paused since 09:12 (http-403)"}
	ask := func(path, user, password string) (int, string) {
		clear(guard.attempts.sources) // no turns are waited for here
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "files01.example:8970"
		if user != "" || password != "" {
			r.SetBasicAuth(user, password)
		}
		w := httptest.NewRecorder()
		Handler(guard, func() Facts { return f }, nil).ServeHTTP(w, r)
		return w.Code, w.Body.String() + fmt.Sprint(w.Header())
	}
	type row struct {
		path, user, password string
		code                 int
		told                 string // empty: nothing of vaultd's
	}
	kit.Rows(t, map[string]row{
		"LiveOpen":        {"/livez", "", "", 200, ""},
		"ReadyOpen":       {"/readyz", "", "", 503, ""},
		"MetricsClosed":   {"/metrics", "", "", 401, ""},
		"UnknownClosed":   {"/nothing", "", "", 401, ""},
		"WalkUp":          {"/%2e%2e/%2e%2e/etc/passwd", "", "", 401, ""},
		"WrongPassword":   {"/metrics", "prometheus", "CANARY-web-passworc", 401, ""},
		"Longer":          {"/metrics", "prometheus", canary + "x", 401, ""},
		"Shorter":         {"/metrics", "prometheus", canary[:len(canary)-1], 401, ""},
		"EmptyPassword":   {"/metrics", "prometheus", "", 401, ""},
		"WrongOnHealth":   {"/readyz", "x", "wrong", 401, ""},
		"UnknownUser":     {"/metrics", "whoever", canary, 401, ""},
		"NoUser":          {"/metrics", "", canary, 401, ""},
		"OtherCase":       {"/metrics", "Prometheus", canary, 401, ""},
		"PasswordOfOther": {"/metrics", "prometheus", canary + "2", 401, ""},
		"NoRight":         {"/metrics", "anna", canary + "2", 403, ""},
		"NoRightOnHealth": {"/readyz", "anna", canary + "2", 503, ""},
		"Right":           {"/metrics", "prometheus", canary, 200, "vaultd_ready 0"},
		"ReadyWithReason": {"/readyz", "prometheus", canary, 503, "vault ACME paused"},
		"NotFound":        {"/nothing", "prometheus", canary, 404, ""},
	}, func(t *testing.T, row row) {
		for range 2 { // the second time the pair is remembered, or must not be
			code, said := ask(row.path, row.user, row.password)
			kit.Check(t, code == row.code && (row.told == "" || strings.Contains(said, row.told)),
				"%d: %s", code, said)
			if row.told == "" && (strings.Contains(said, "ACME") || strings.Contains(said, "vaultd_")) || strings.Contains(said, canary) {
				t.Error("told a stranger:", said)
			}
			kit.Holds(t, "the answer", said, "nosniff", "no-store", "default-src 'none'", "DENY", "no-referrer")
		}
	})
	a := guard.currentAccess()
	if said := fmt.Sprintf("%v %+v %#v %d %s %v %+v %#v %v %+v %#v %x", a, a, a, a, a, a.users, a.users, a.users, a.users.byName["anna"], guard, guard, a.users.byName["anna"]); strings.Contains(said, "$2a$") || strings.Contains(said, "24326124") || !strings.Contains(said, "[access]") {
		t.Errorf(`said = %v, want said without "$2a$", said without "24326124", said with "[access]"`, said)
	}
}

// Other machines may be let in with TLS and users only.
func TestListen_I20_OthersNeedBoth(t *testing.T) {
	pair := certificate(t, "one")
	for name, row := range map[string]struct {
		access Access
		ok     bool
	}{
		"Neither": {Access{}, false}, "UsersAlone": {NewAccess(nil, scraper(t, canary), Proxy{}), false}, "TLSAlone": {NewAccess(pair, nil, Proxy{}), false}, "Both": {NewAccess(pair, scraper(t, canary), Proxy{}), true},
	} {
		l, err := Listen(t.Context(), "0.0.0.0:0", row.access)
		kit.Check(t, (err == nil) == row.ok && (row.ok || errors.Is(err, ErrNotLocal)), "%s: %v", name, err)
		if err == nil {
			l.Close()
		}
	}
}

// HasTLS is 1.2 or newer; a renewed certificate and password count without a restart.
func TestServe_I20_TLSAndRenewal(t *testing.T) {
	guard := NewAccessGuard(NewAccess(certificate(t, "one"), scraper(t, canary), Proxy{}), silent)
	address := serve(t, guard, sample())
	name := func(c *tls.Config) string {
		c.InsecureSkipVerify = true // the test looks at the certificate itself
		conn, err := tls.Dial("tcp", address, c)
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	kit.Holds(t, "the text", name(&tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}), "protocol version")
	if got := name(&tls.Config{MaxVersion: tls.VersionTLS12}); got != "one" {
		t.Error("TLS 1.2:", got)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // as above
	ask := func(password string) int {
		r := kit.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil))(t)
		r.SetBasicAuth("prometheus", password)
		res := kit.Value(client.Do(r))(t)
		defer res.Body.Close()
		return res.StatusCode
	}
	guard.attempts.pause = 0
	if a, b := ask(canary), ask("the-renewed-one"); a != 200 || b != 401 {
		t.Error("before:", a, b)
	}
	guard.SetAccess(NewAccess(certificate(t, "two"), scraper(t, "the-renewed-one"), Proxy{}))
	if a, b, c := ask(canary), ask("the-renewed-one"), name(&tls.Config{}); a != 401 || b != 200 || c != "two" { // as above
		t.Error("after:", a, b, c)
	}
	if res, err := http.Get("http://" + address + "/livez"); err == nil {
		if res.Body.Close(); res.StatusCode != http.StatusBadRequest {
			t.Error("plain HTTP:", res.Status)
		}
	}
}

// Connections of one machine that ask nothing, half a question, or nothing more
// after an answer keep nobody from the health pages, and few of them stay open.
func TestServe_I21_SilentConnectionsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	kit.Rows(t, map[string]string{"Silent": "", "HalfAQuestion": "GET /livez HTTP/1.1\r\n", "NothingMore": "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"}, func(t *testing.T, text string) {
		t.Parallel()
		address := serve(t, NewAccessGuard(Access{}, silent), sample())
		var crowd []net.Conn
		for range 300 {
			conn := kit.Value(net.Dial("tcp", address))(t)
			defer conn.Close()
			io.WriteString(conn, text)
			crowd = append(crowd, conn)
		}
		client := http.Client{Timeout: headerTime - time.Second, Transport: new(http.Transport)}
		res, err := client.Get("http://" + address + "/livez")
		kit.Need(t, err == nil, "beside %d others: %v, want an answer", len(crowd), err)
		res.Body.Close()
		open, soon := 0, time.Now().Add(3*time.Second) // before the time of a header is over
		for _, conn := range crowd[:len(crowd)-maxFromThisHost] {
			conn.SetReadDeadline(soon)
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				open++
			}
		}
		kit.Want(t, "old connections that are open", open, 0)
	})
}

// addressed is a connection from an address, which only closes.
type addressed struct {
	net.Conn
	from   string
	closed bool
}

func (c *addressed) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1234}
}

func (c *addressed) Close() error {
	c.closed = true
	return nil
}

// An address has a few places. When all are taken, a new address gets the place
// of one with more, and a request in work keeps its place.
func TestConnections_I21_FairBetweenAddresses(t *testing.T) {
	l := &connections{}
	var crowd []*addressed
	for i := range 20 * 30 {
		c := &addressed{from: fmt.Sprintf("192.0.2.%d", i%20)}
		l.place(c)
		crowd = append(crowd, c)
		kit.Need(t, len(l.open) <= maxConnections, "%d are open, want at most %d", len(l.open), maxConnections)
	}
	first := l.place(&addressed{from: "192.0.2.100"})
	kit.Need(t, first != nil, "a new address got no place, want one")
	first.addWork(1)
	for range 100 {
		l.place(&addressed{from: "192.0.2.100"})
	}
	kit.Want(t, "the request in work was cut off", first.Conn.(*addressed).closed, false)
	counts := map[string]int{}
	for _, c := range l.open {
		counts[c.source]++
	}
	kit.Want(t, "connections of one address", counts["192.0.2.100"] <= maxFromOneAddress, true)
	closed := 0
	for _, c := range crowd {
		if c.closed {
			closed++
		}
	}
	kit.Want(t, "closed of the crowd", closed, len(crowd)-(maxConnections-counts["192.0.2.100"]))
	for _, c := range slices.Clone(l.open) {
		c.addWork(1)
	}
	kit.Check(t, l.place(&addressed{from: "192.0.2.200"}) == nil, "got a place, want none while all are at work")
	for _, c := range slices.Clone(l.open) {
		kit.Must(t, c.Close())
	}
	kit.Want(t, "open after all were closed", len(l.open), 0)
}

// When Serve has returned, no page is in work any more: what it reads may be closed.
func TestServe_I1_ReturnsAfterThePages(t *testing.T) {
	kit.Waits(t, 0.3, "a page is in work at a real port")
	t.Parallel()
	guard := NewAccessGuard(Access{}, silent)
	l := kit.Value(Listen(t.Context(), "127.0.0.1:0", guard.currentAccess()))(t)
	begun, ended := make(chan struct{}), make(chan struct{})
	pages := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		time.Sleep(300 * time.Millisecond) // it ends what it had begun
		close(ended)
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, guard, sample, pages, silent) }()
	go http.Get("http://" + l.Addr().String() + "/")
	<-begun
	stop()
	kit.Want(t, "the error", <-done, nil)
	select {
	case <-ended:
	default:
		t.Error("a page is still in work")
	}
}

// Whoever says nothing, or too much, loses his connection; others are answered meanwhile.
func TestServe_I21_SlowAndHugeRequests(t *testing.T) {
	kit.Long(t, "waits as long as a request may take")
	t.Parallel()
	address := serve(t, NewAccessGuard(Access{}, silent), sample())
	slow := make([]net.Conn, 0, 20)
	for range 20 {
		conn := kit.Value(net.Dial("tcp", address))(t)
		defer conn.Close()
		io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		slow = append(slow, conn)
	}
	if res, err := http.Get("http://" + address + "/livez"); err != nil || res.StatusCode != 200 {
		t.Error("others:", err)
	} else {
		res.Body.Close()
	}
	for name, request := range map[string]string{
		"HugeHeader": "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n",
		"HugePath":   "GET /" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"NoHTTP":     "\x16\x03\x01\x00\xff\x00\x00\r\n\r\n",
		"TwoHosts":   "GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
	} {
		conn := kit.Value(net.Dial("tcp", address))(t)
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		go io.WriteString(conn, request)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		kit.Check(t, err != nil || res.StatusCode >= 400, "%s: %s", name, res.Status)
		conn.Close()
	}
	for _, conn := range slow {
		conn.SetReadDeadline(time.Now().Add(2 * headerTime))
		_, err := io.ReadAll(conn)
		kit.Check(t, !errors.Is(err, os.ErrDeadlineExceeded), "a silent connection stays open: %v", err)
	}
}
