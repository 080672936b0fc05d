package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/packager"
	"vaultd/internal/vaultapi"
	"vaultd/internal/watch"
)

// weather is a fault of the environment: in the answers of the service or of the store,
// or in the way to them.
type weather struct {
	api, store func(http.ResponseWriter)
	handshake  error
	dial       error
	code       string // of the pause, or how it begins
}

func says(status int, header, value, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		if header != "" {
			w.Header().Set(header, value)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

var weathers = map[string]weather{
	"429RetryAfterSeconds":  {api: says(429, "Retry-After", "1", ""), code: "http-429"},
	"429RetryAfterFraction": {api: says(429, "Retry-After", "0.5", ""), code: "http-429"},
	"429RetryAfterNegative": {api: says(429, "Retry-After", "-3600", ""), code: "http-429"},
	"429RetryAfterWords":    {api: says(429, "Retry-After", "soon", ""), code: "http-429"},
	"429RetryAfterPast":     {api: says(429, "Retry-After", "Tue, 03 Mar 2020 12:12:00 GMT", ""), code: "http-429"},
	"429RetryAfterNone":     {api: says(429, "", "", `{"message":"slow down"}`), code: "http-429"},
	"503RetryAfterDate": {api: func(w http.ResponseWriter) {
		says(503, "Retry-After", time.Now().Add(time.Second).UTC().Format(http.TimeFormat), "")(w)
	}, code: "http-503"},
	"401":             {api: says(401, "", "", `{"message":"Unauthorized"}`), code: "http-401"},
	"403":             {api: says(403, "", "", `{"message":"Forbidden"}`), code: "http-403"},
	"404":             {api: says(404, "", "", ""), code: "http-404"},
	"502FromAProxy":   {api: says(502, "Content-Type", "text/html", "<html>Bad Gateway</html>"), code: "http-502"},
	"SignInPage":      {api: says(200, "Content-Type", "text/html", "<html>sign in</html>"), code: "unreadable"},
	"TLS":             {handshake: errors.New("the certificate ran out"), code: "tls"},
	"DNS":             {dial: &net.DNSError{Err: "no such host", Name: "archive.example", IsNotFound: true}, code: "dns"},
	"NoRoute":         {dial: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errors.New("no route to host"))}, code: "no-connection"},
	"StoreSlowDown":   {store: says(503, "Retry-After", "1", "<Error><Code>SlowDown</Code></Error>"), code: "http-503"},
	"StoreForbids":    {store: says(403, "", "", "<Error><Code>AccessDenied</Code></Error>"), code: "http-403"},
	"StoreClockFault": {store: says(403, "", "", "<Error><Code>RequestTimeTooSkewed</Code></Error>"), code: "http-403"},
}

// TestEnvironment_I24_ComesBackByItself lets each fault of the environment last a moment, on the real way to
// a real server: the route rests and says why, no document is blamed, and all goes on by
// itself. The rows spend their time waiting, and so all run at once.
func TestEnvironment_I24_ComesBackByItself(t *testing.T) {
	var g sync.WaitGroup
	defer g.Wait()
	for name, row := range weathers {
		bad := new(atomic.Bool)
		d, path := row.daemon(t, bad)
		g.Go(func() { row.pass(t, name, d, path, bad) })
	}
}

func (f weather) pass(t *testing.T, name string, d *Daemon, path string, bad *atomic.Bool) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	defer func() {
		stop()
		if err := errors.Join(<-ended, d.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}()
	bad.Store(true)
	for i := range 4 {
		dir := filepath.Join(path, fmt.Sprintf("Huber %d", i))
		if err := errors.Join(os.Mkdir(dir, 0o770), os.WriteFile(filepath.Join(dir, "a.pdf"), []byte{byte(i)}, 0o660),
			os.WriteFile(filepath.Join(dir, "metadata.json"), fmt.Appendf(nil, `{"documentType": "Invoice", "documentId": "INV-%d", "documentDate": "2026-10-31", "amount": 1}`, i), 0o660)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	paused := until(func() bool { return len(d.State().Pauses) > 0 })
	if p := d.State().Pauses; !paused || !strings.HasPrefix(p[0].Cause.Code, f.code) {
		t.Errorf("%s: paused %+v", name, p)
	}
	bad.Store(false)
	through := until(func() bool { return d.Ledger().Balance().States[ledger.Archived] == 4 && len(d.State().Pauses) == 0 })
	if !through {
		t.Errorf("%s: %v, paused %+v", name, d.Ledger().Balance(), d.State().Pauses)
	}
}

// until waits for something, at most a minute.
func until(so func() bool) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if so() {
			return true
		}
		<-tick.C
	}
	return false
}

func (f weather) daemon(t *testing.T, bad *atomic.Bool) (*Daemon, string) {
	dir := t.TempDir()
	path := filepath.Join(dir, "in")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(errors.Join(os.Mkdir(path, 0o770), os.Mkdir(filepath.Join(dir, "state"), 0o700)))
	var storeURL string
	emu, err := emulator.New(emulator.Config{Dir: filepath.Join(dir, "emulator"), Clock: time.Now, StoreURL: func() string { return storeURL },
		Username: "u", Secret: "s", Vaults: []emulator.Vault{{ID: "V"}}, ArchiveMin: time.Millisecond, ArchiveMax: time.Millisecond})
	must(err)
	t.Cleanup(func() { must(emu.Close()) })
	serve := func(good http.Handler, fault func(http.ResponseWriter)) *httptest.Server {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if fault != nil && bad.Load() {
				fault(w)
				return
			}
			good.ServeHTTP(w, r)
		}))
		srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
		srv.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if bad.Load() {
				return nil, f.handshake
			}
			return nil, nil
		}}
		srv.StartTLS()
		t.Cleanup(srv.Close)
		return srv
	}
	apiServer, storeServer := serve(emu.API(), f.api), serve(emu.Store(), f.store)
	storeURL = storeServer.URL
	transport := apiServer.Client().Transport.(*http.Transport)
	transport.DisableKeepAlives = true
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if f.dial != nil && bad.Load() {
			return nil, f.dial
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	now, err := Clock()
	must(err)
	api, store, err := apicall.New(apicall.Config{BaseURL: apiServer.URL, Transport: transport, AllowedHosts: []string{"127.0.0.1"},
		Auth: apicall.Auth{Method: apicall.Basic, Username: "u", Secret: func() (string, error) { return "s", nil }}})
	must(err)
	must(boltledger.Create(filepath.Join(dir, "state"), ledger.Info{ID: "L-1", Environment: "test", BaseURL: apiServer.URL, Schema: boltledger.Schema, Created: time.Now()}))
	d, err := Open(Config{StateDir: filepath.Join(dir, "state"), Environment: "test", BaseURL: apiServer.URL, Location: time.UTC,
		Vault: vaultapi.New(vaultapi.Config{API: api, Store: store, Now: now}), Now: now, Log: slog.New(slog.DiscardHandler),
		SpoolMax: 20_000_000_000, SpoolMinFree: 1, Workers: 2, BatchSize: 1, BatchWait: time.Millisecond,
		PollMin: 100 * time.Millisecond, PollMax: time.Second, Grace: 24 * time.Hour,
		Drops: []dropwork.Settings{{Name: "acme-in", Path: path, Vault: "V", Rules: packager.Rules{Sidecar: "metadata.json", Compression: "fast"},
			Mode: watch.Poll, Settle: 50 * time.Millisecond, Rescan: 100 * time.Millisecond}}})
	must(err)
	return d, path
}
