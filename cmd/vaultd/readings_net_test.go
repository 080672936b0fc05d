package main_test

import (
	"vaultd/internal/test/kit"

	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vaultd/internal/emulator"
)

// tunnel is a CONNECT proxy that leads every host to one address.
type tunnel struct {
	to    string
	mu    sync.Mutex
	asked map[string]bool // guarded by mu
}

func (p *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked[r.Method+" "+r.Host] = true
	p.mu.Unlock()
	there, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	fmt.Fprint(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(there, buffered); there.Close(); done <- struct{}{} }()
	go func() { _, _ = io.Copy(here, there); here.Close(); done <- struct{}{} }()
	<-done
	<-done
}

// behindProxy is a service with tokens alone, an authority of its own, and hosts that only the proxy knows.
func behindProxy(t *testing.T, secret string) (emu *emulator.Server, proxy *tunnel, service string) {
	t.Helper()
	emu, err := emulator.New(emulator.Config{Dir: t.TempDir(), ClientID: "client", ClientSecret: secret, TokenLife: 2 * time.Second,
		Scopes: []string{"importDocuments.write"}, RequireScope: "importDocuments.write", ArchiveMax: 300 * time.Millisecond,
		Vaults: []emulator.Vault{{ID: "ACME"}, {ID: "BETA"}}, StoreURL: func() string { return "https://store.example.com/packages" },
		Readings: emulator.Readings{BasicEncoding: "rfc6749"}})
	kit.Must(t, err)
	tls := httptest.NewTLSServer(emu)
	proxy = &tunnel{to: tls.Listener.Addr().String(), asked: map[string]bool{}}
	front := httptest.NewServer(proxy)
	t.Cleanup(func() {
		front.Close()
		tls.CloseClientConnections()
		tls.Close()
		if err := emu.Close(); err != nil {
			t.Error(err)
		}
	})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	kit.Must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}), 0o600))
	return emu, proxy, fmt.Sprintf("  ca_file: %s\n  proxy: %s\n", ca, front.URL)
}

// An installation behind a proxy, at a service with its own authority, with tokens that live two seconds and an escaped
// secret that is wrong at first: status names it, the corrected file is enough while vaultd runs, and fetch understands
// each form of a download.
func TestReading_I24_CorrectedWhileRunning(t *testing.T) {
	t.Parallel()
	const secret = "S3cr3t=/+!:% canary"
	emu, proxy, service := behindProxy(t, secret)
	s := newSite(t, "https://archive.example.com", "upload: {batch_wait: 100ms}\nstatus: {poll_min: 500ms, poll_max: 2s}")
	text, err := os.ReadFile(s.config)
	kit.Must(t, err)
	auth := fmt.Sprintf("  auth: {method: basic, username: demo, secret_file: %s/secret}\n", s.dir)
	changed := strings.Replace(string(text), auth, service+fmt.Sprintf(
		"  auth: {method: oauth2, username: client, secret_file: %s/secret, scopes: [importDocuments.write], basic_encoding: rfc6749}\n", s.dir), 1)
	if changed == string(text) {
		t.Fatalf("the configuration has no line %q", auth)
	}
	kit.Must(t, os.WriteFile(s.config, []byte(changed), 0o640))
	s.fill(4, 9)
	p := s.start("run", "-v")
	waitFor(t, "status to name the wrong secret", func() bool {
		out, _ := s.vaultd("status")
		return strings.Contains(out, "NOW      vault ACME paused since") && strings.Contains(out, "get a token") && strings.Contains(out, "invalid_client")
	})
	kit.Must(t, os.WriteFile(filepath.Join(s.dir, "secret"), []byte(secret+"\n"), 0o600))
	waitFor(t, "all to be archived", func() bool {
		out, _ := s.vaultd("status", "--json")
		return strings.Contains(out, `"archived":4`)
	})
	for _, form := range []string{"bytes", "redirect", "json"} {
		kit.Must(t, emu.SetReadings(emulator.Readings{BasicEncoding: "rfc6749", Download: form}))
		file := filepath.Join(t.TempDir(), form+".zip")
		out, code := s.vaultd("fetch", "Rechnung 0001", "-o", file)
		if info, err := os.Stat(file); code != 0 || err != nil || info.Size() == 0 || !strings.Contains(out, "identical with what was sent") {
			t.Errorf("fetch as %s: exit %d, %v: %s", form, code, err, out)
		}
	}
	if code := p.stop(t); code != 0 || strings.Contains(p.out.String(), "canary") {
		t.Errorf("exit %d, or the secret was logged", code)
	}
	if out, code := s.vaultd("verify"); code != 0 {
		t.Errorf("verify: exit %d\n%s", code, out)
	}
	onceEach(t, emu, 4)
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	for _, host := range []string{"CONNECT archive.example.com:443", "CONNECT store.example.com:443"} {
		if !proxy.asked[host] {
			t.Errorf("the proxy was asked for %v", proxy.asked)
		}
	}
}
