package apicall

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// hangUp reads the whole request and closes the connection, after writing raw, if any.
func hangUp(raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		conn, _, _ := w.(http.Hijacker).Hijack()
		io.WriteString(conn, raw)
		conn.Close()
	}
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestOutcome_PostAndPut(t *testing.T) {
	rows := []struct {
		name   string
		answer http.HandlerFunc
		want   Outcome
		status int
		words  string
	}{
		{"ClosedBeforeHeaders", hangUp(""), OutcomeUnknown, 0, ""},
		{"GarbledHeaders", hangUp("SSH-2.0-OpenSSH\r\n\r\n"), OutcomeUnknown, 0, ""},
		{"HeadersCut", hangUp("HTTP/1.1 200 OK\r\nContent-Le"), OutcomeUnknown, 0, ""},
		{"InternalError", answer(500, `{"message":"boom"}`), OutcomeUnknown, 500, "boom"},
		{"BadGateway", answer(502, "<html><title>Bad</title>"), OutcomeUnknown, 502, "base address"},
		{"TooMany", answer(429, ""), OutcomeUnknown, 429, "no explanation"},
		{"RequestTimeout", answer(408, ""), OutcomeUnknown, 408, ""},
		{"StoreRequestTimeout", answer(400, "<Error><Code>RequestTimeout</Code><Message>Your socket idled</Message></Error>"), OutcomeUnknown, 400, "socket idled"},
		{"StoreSlowDown", answer(503, "<Error><Code>SlowDown</Code></Error>"), OutcomeUnknown, 503, "SlowDown"},
		{"BadRequest", answer(400, `{"detail":"schema"}`), NotProcessed, 400, "schema"},
		{"EndlessWords", answer(400, "no "+strings.Repeat("x", 2<<20)), NotProcessed, 400, "no xxx"},
		{"Conflict", answer(409, ""), NotProcessed, 409, ""},
		{"TooLarge", answer(413, ""), NotProcessed, 413, ""},
		{"Unprocessable", answer(422, `{"detail":[{"loc":["body"],"msg":"m"}]}`), NotProcessed, 422, "body: m"},
		{"Forbidden", answer(403, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"), NotProcessed, 403, "Request has expired"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var hits atomic.Int32
			srv := serve(t, func(w http.ResponseWriter, req *http.Request) { hits.Add(1); r.answer(w, req) })
			api, store := clients(t, Config{BaseURL: srv.URL})
			_, postErr := do(t, api, post("register", "[]"))
			_, putErr := store.put(context.Background(), upload{Op: "upload", URL: srv.URL + "/k?X-Amz-Signature=" + signatureCanary, Size: 3, SHA256: sum("zip"), Open: bodyOf("zip")})
			for _, err := range []error{postErr, putErr} {
				ce := failure(t, err)
				kit.Check(t, ce.Outcome == r.want && ce.Status == r.status && ce.Sent && strings.Contains(ce.Error(), r.words),
					"got outcome %v, status %d, %v; want %v, %d, %q", ce.Outcome, ce.Status, ce, r.want, r.status, r.words)
			}
			kit.Want(t, "requests for one POST and one PUT", hits.Load(), 2)
		})
	}
}

func TestOutcome_UnreadableAnswer(t *testing.T) {
	rows := map[string]http.HandlerFunc{
		"Truncated":   hangUp("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[{"),
		"BrokenChunk": hangUp("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
		"Huge":        answer(200, strings.Repeat("x", 2000)),
	}
	for name, h := range rows {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, h)
			api, _ := clients(t, Config{BaseURL: srv.URL})
			r := post("register", "[]")
			r.Limit = 1000
			_, err := do(t, api, r)
			ce := failure(t, err)
			kit.Check(t, ce.Outcome == OutcomeUnknown && ce.Status == 200,
				"got %v, status %d: %v", ce.Outcome, ce.Status, ce)
			kit.Check(t, name != "Huge" || errors.Is(err, ErrTooLarge), "got %v, want ErrTooLarge", err)
		})
	}
}

func TestOutcome_NotSent(t *testing.T) {
	l := kit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	refused := "http://" + l.Addr().String()
	l.Close()
	secure := httptest.NewUnstartedServer(answer(200, ""))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	old := httptest.NewUnstartedServer(answer(200, ""))
	old.Config.ErrorLog = log.New(io.Discard, "", 0)
	old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	old.StartTLS()
	defer old.Close()
	plainServer := serve(t, answer(200, ""))

	rows := map[string]Config{
		"PortRefused":      {BaseURL: refused},
		"NameUnknown":      {BaseURL: "https://no-such-name.invalid"},
		"UntrustedIssuer":  {BaseURL: secure.URL},
		"OldTLS":           {BaseURL: old.URL, CAFile: writeCA(t, old)},
		"PlainNotTLS":      {BaseURL: strings.Replace(plainServer.URL, "http:", "https:", 1)},
		"SecretUnreadable": {BaseURL: plainServer.URL, Auth: Auth{Method: Basic, Username: "u", Secret: func() (string, error) { return "", errors.New("no such file") }}},
		"TokenRefused":     {BaseURL: serve(t, answer(401, `{"error":"invalid_client","error_description":"`+secretCanary+` is wrong"}`)).URL, Auth: oauth("a")},
		"TokenGarbled":     {BaseURL: serve(t, answer(200, `<html>`)).URL, Auth: oauth("a")},
	}
	kinds := map[string]string{"PortRefused": "no-connection", "NameUnknown": "dns", "UntrustedIssuer": "certificate-unknown", "OldTLS": "tls",
		"PlainNotTLS": "tls", "SecretUnreadable": "credentials", "TokenRefused": "credentials"}
	words := map[string]string{"UntrustedIssuer": "from an authority that this machine does not know", "PlainNotTLS": "does not speak TLS",
		"SecretUnreadable": "the secret cannot be read: no such file", "TokenGarbled": "an HTML page (a proxy's?)"}
	for name, cfg := range rows {
		t.Run(name, func(t *testing.T) {
			api, _ := clients(t, cfg)
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_, err := api.Do(ctx, post("register", "[]"))
			ce := failure(t, err)
			kit.Check(t, ce.Outcome == NotSent && ce.Op == "register", "got %v: %v", ce.Outcome, ce)
			want, ok := kinds[name]
			kit.Check(t, !ok || ce.Code == want, "kind %s, want %s: %v", ce.Code, want, ce)
			kit.Holds(t, "the text", ce.Error(), words[name])
			kit.Want(t, "Denied", name == "SecretUnreadable" || name == "TokenRefused", ce.Denied)
		})
	}
}

func TestOutcome_PolicyIsNotSent(t *testing.T) {
	var hits atomic.Int32
	srv := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	api, store := clients(t, Config{BaseURL: "https://archive.example"})
	_, err := api.Do(context.Background(), Request{Op: "follow", URL: srv.URL + "/x"})
	_, err2 := store.put(context.Background(), upload{Op: "upload", URL: srv.URL + "/x?X-Amz-Signature=" + signatureCanary, Size: 1, SHA256: sum("z"), Open: bodyOf("z")})
	_, err3 := api.Do(context.Background(), Request{Op: "climb", Path: []string{"v1", "..", "x"}})
	for _, e := range []error{err, err2, err3} {
		ce := failure(t, e)
		kit.Check(t, ce.Outcome == NotSent, "got %v: %v", ce.Outcome, ce)
	}
	var pe *PolicyError
	kit.Check(t, errors.As(err2, &pe) && strings.HasPrefix(srv.URL, "http://"+pe.Host),
		"got %v, want a *PolicyError that names the host", err2)
	kit.Want(t, "requests", hits.Load(), 0)
}

// net/http repeats some requests by itself when a kept connection turns out dead. A POST and a PUT must not be among
// them, whether the server read them or not.
func TestOnce_KeptConnectionDies(t *testing.T) {
	for _, reads := range []bool{true, false} {
		t.Run(fmt.Sprintf("ServerReads=%v", reads), func(t *testing.T) {
			var dialled, requests atomic.Int32
			l, err := net.Listen("tcp", "127.0.0.1:0")
			kit.Must(t, err)
			defer l.Close()
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					dialled.Add(1)
					go oneAnswerThenDie(conn, reads, &requests)
				}
			}()
			base := "http://" + l.Addr().String()
			api, store := clients(t, Config{BaseURL: base})
			kit.Value(do(t, api, post("warm", "[]")))(t)
			_, err = do(t, api, post("register", "[]"))
			ce := failure(t, err)
			kit.Check(t, ce.Outcome == OutcomeUnknown, "POST: got %v: %v", ce.Outcome, ce)
			put := upload{Op: "upload", URL: base + "/k", Size: 3, SHA256: sum("zip"), Open: bodyOf("zip")}
			kit.Value(store.put(context.Background(), put))(t)
			_, err = store.put(context.Background(), put)
			ce = failure(t, err)
			kit.Check(t, ce.Outcome == OutcomeUnknown, "PUT: got %v: %v", ce.Outcome, ce)
			kit.Check(t, (!reads || requests.Load() == 4) && dialled.Load() == 2,
				"4 calls made %d requests on %d connections", requests.Load(), dialled.Load())
		})
	}
}

// oneAnswerThenDie answers the first request on a connection and dies of the second.
func oneAnswerThenDie(conn net.Conn, reads bool, requests *atomic.Int32) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for n := 0; ; n++ {
		if n == 1 && !reads {
			in.Peek(1)
			return
		}
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, r.Body)
		requests.Add(1)
		if n == 1 {
			return
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
	}
}

// Errors of the network like to print what was asked for, and servers like to repeat it.
func TestError_I7_HoldsNoSecret(t *testing.T) {
	link := "https://bucket.example/k?X-Amz-Credential=AKIA&X-Amz-Signature=" + signatureCanary
	reset := errors.New("reset")
	kit.Rows(t, map[string]error{
		"URLError":  &url.Error{Op: "Put", URL: link, Err: &url.Error{Op: "Put", URL: link, Err: reset}},
		"Wrapped":   fmt.Errorf("send: %w", &url.Error{Op: "Put", URL: link, Err: reset}),
		"Printed":   fmt.Errorf("cannot send to %s with %s: %w", link, basicHeader("user", secretCanary, false).header, reset),
		"BareValue": fmt.Errorf("refused %s: %w", signatureCanary, reset),
	}, func(t *testing.T, cause error) {
		api, store := clients(t, Config{BaseURL: "https://archive.example", Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, cause })})
		_, put := store.put(context.Background(), upload{Op: "upload", URL: link, Size: 3, SHA256: sum("zip"), Open: bodyOf("zip")})
		_, call := do(t, api, Request{Op: "follow", Method: "POST", URL: "https://archive.example/k?X-Amz-Signature=" + signatureCanary})
		for _, err := range []error{put, call} {
			if ce := failure(t, err); !errors.Is(err, reset) || !strings.Contains(ce.Error(), "reset") || ce.Path != "/k" {
				t.Errorf(`%v, want error %v, ce with "reset", ce.Path = "/k"`, err, reset)
			}
		}
	})
	api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("bad header %q of %s", r.Header.Get("Authorization"), secretCanary)
	})})
	_, err := do(t, api, post("register", "[]"))
	failure(t, err)
}

func TestProxy(t *testing.T) {
	var asked []string
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Host)
		w.WriteHeader(http.StatusProxyAuthRequired)
	})
	withUser := strings.Replace(proxy.URL, "http://", "http://user:"+tokenCanary+"@", 1)
	api, store := clients(t, Config{BaseURL: "https://archive.example", Proxy: withUser})
	_, err := do(t, api, post("register", "[]"))
	_, err2 := store.put(context.Background(), upload{Op: "upload", URL: "https://bucket.example/k", Size: 3, SHA256: sum("zip"), Open: bodyOf("zip")})
	for _, err := range []error{err, err2} {
		ce := failure(t, err)
		kit.Check(t, ce.Outcome == NotSent, "%v: %v, want ce.Outcome = %v", ce.Outcome, ce, NotSent)
	}
	kit.Check(t, fmt.Sprint(asked) == "[CONNECT archive.example:443 CONNECT bucket.example:443]",
		"the proxy was asked for %v", asked)
	direct := serve(t, answer(200, ""))
	api, _ = clients(t, Config{BaseURL: direct.URL, Proxy: withUser})
	_, err = do(t, api, get("list"))
	kit.Check(t, err == nil && len(asked) == 2, "loopback went through the proxy: %v", err)
	for _, bad := range []string{"proxy.example:3128", "ftp://proxy.example", "http://"} {
		_, _, err := New(Config{BaseURL: direct.URL, Proxy: bad, Auth: basicAuth()})
		kit.Check(t, err != nil, "proxy %q was taken", bad)
	}
}

// A proxy that wants a sign-in gets it, and nobody else does; without it, or
// with a wrong one, nothing was sent, and the code says that the proxy is what
// to look at. The same of a gateway that answers 407 in the service's place.
func TestProxy_I20_I24_SignIn(t *testing.T) {
	var seen, elsewhere atomic.Value // of strings
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Proxy-Authorization"))
		switch {
		case r.Header.Get("Authorization") != "":
			t.Error("the credentials of the service went to the proxy")
		case r.Header.Get("Proxy-Authorization") != basicHeader("us er", secretCanary, false).header:
			w.Header().Set("Proxy-Authenticate", `Basic realm="corp"`)
			w.WriteHeader(http.StatusProxyAuthRequired)
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	gateway := serve(t, func(w http.ResponseWriter, r *http.Request) {
		elsewhere.Store(r.Header.Get("Proxy-Authorization"))
		w.WriteHeader(http.StatusProxyAuthRequired)
		fmt.Fprint(w, "<html>"+secretCanary)
	})
	none := func() (string, error) { return "", errors.New("no such file") }
	wrong := func() (string, error) { return "wrong", nil }
	type row struct {
		base    string
		auth    ProxyAuth
		oauth   bool
		outcome Outcome
		code    string
		says    string
	}
	kit.Rows(t, map[string]row{
		"Right":            {"https://archive.example", ProxyAuth{"us er", secret}, false, NotSent, "proxy", "the proxy refused to connect: 502 Bad Gateway"},
		"Wrong":            {"https://archive.example", ProxyAuth{"us er", wrong}, false, NotSent, "http-407", "the proxy refused to connect: 407 Proxy Authentication Required"},
		"None":             {"https://archive.example", ProxyAuth{}, false, NotSent, "http-407", "407 Proxy Authentication Required"},
		"ForTokens":        {"https://archive.example", ProxyAuth{}, true, NotSent, "http-407", "get a token: "},
		"NoSecret":         {"https://archive.example", ProxyAuth{"us er", none}, false, NotSent, "credentials", "sign in at the proxy: the secret cannot be read"},
		"Gateway":          {gateway.URL, ProxyAuth{"us er", secret}, false, NotProcessed, "http-407", "407 Proxy Authentication Required: an HTML page"},
		"GatewayForTokens": {gateway.URL, ProxyAuth{"us er", secret}, true, NotSent, "http-407", "get a token: "},
	}, func(t *testing.T, r row) {
		cfg := Config{BaseURL: r.base, Proxy: proxy.URL, ProxyAuth: r.auth}
		if r.oauth {
			cfg.Auth = oauth()
		}
		api, store := clients(t, cfg)
		_, err := do(t, api, post("register", "[]"))
		e := failure(t, err)
		kit.Want(t, "outcome", e.Outcome, r.outcome)
		kit.Want(t, "code", e.Code, r.code)
		kit.Want(t, "denied", e.Denied, r.code != "proxy")
		kit.Holds(t, "error", e.Error(), r.says)
		kit.Lacks(t, "error", e.Error(), secretCanary)
		if r.base == gateway.URL {
			kit.Want(t, "sign-in sent to another than the proxy", elsewhere.Load(), any(""))
			_, err = store.put(context.Background(), upload{Op: "upload", URL: gateway.URL + "/k", Size: 3, SHA256: sum("zip"), Open: bodyOf("zip")})
			kit.Want(t, "outcome of an upload", uploadError(err).Outcome, NotProcessed)
			kit.Want(t, "code of an upload", uploadError(err).Code, "http-407")
		}
	})
}

func TestTLS_OwnAuthority(t *testing.T) {
	srv := httptest.NewTLSServer(answer(200, "[]"))
	defer srv.Close()
	api, _ := clients(t, Config{BaseURL: srv.URL, CAFile: writeCA(t, srv)})
	kit.Want(t, "the error of do", kit.Err(do(t, api, get("list"))), nil)
	_, _, err := New(Config{BaseURL: srv.URL, CAFile: "/dev/null", Auth: basicAuth()})
	kit.Check(t, err != nil, "an empty ca_file was taken")
}
