package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// lock is a service whose secret can be changed while it works: then no other is taken, and older tokens are dead.
type lock struct {
	http.Handler

	mu     sync.Mutex
	secret string          // guarded by mu
	tokens map[string]bool // guarded by mu: given since the secret was changed
	no     int             // how often it said 401; guarded by mu
}

func (l *lock) change(secret string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secret, l.tokens = secret, map[string]bool{}
}

func (l *lock) refusals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.no
}

func (l *lock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	user, secret, basic := r.BasicAuth()
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if basic && secret != l.secret || bearer && !l.tokens[token] {
		l.no++
		http.Error(w, `{"error":"invalid_token"}`, http.StatusUnauthorized)
		return
	}
	if basic {
		r.SetBasicAuth(user, "demo")
	}
	rec := httptest.NewRecorder()
	l.Handler.ServeHTTP(rec, r)
	if m := tokenPattern.FindStringSubmatch(rec.Body.String()); m != nil {
		l.tokens[m[1]] = true
	}
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes())
}

// A renewed secret counts without a restart and without a reload, from a file and from a systemd credential.
func TestSecret_RenewedWhileItRuns(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]string{"BasicFile": "basic", "OAuthCredential": "oauth2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			emu, err := emulator.New(emulator.Config{Dir: t.TempDir(), Username: "demo", Secret: "demo", ClientID: "client", ClientSecret: "demo",
				Scopes: []string{"s"}, Vaults: []emulator.Vault{{ID: "ACME"}, {ID: "BETA"}}, Window: 10 * time.Second, ArchiveMin: time.Millisecond, ArchiveMax: 50 * time.Millisecond})
			kit.Must(t, err)
			l := &lock{Handler: emu}
			l.change("CANARY-first-secret")
			srv := httptest.NewServer(l)
			t.Cleanup(func() { srv.Close(); emu.Close() })
			s := newSite(t, srv.URL, fast)
			file := filepath.Join(s.dir, "secret")
			write := func(text string) {
				kit.Must(t, os.WriteFile(file+".new", []byte(text+"\r\n"), 0o400))
				kit.Must(t, os.Rename(file+".new", file))
			}
			write("CANARY-first-secret")
			if method == "oauth2" {
				s.edit("{method: basic, username: demo, secret_file: "+file+"}", "{method: oauth2, username: client, secret_file: credential:secret, scopes: [s]}")
			}
			s.env = map[string]string{"CREDENTIALS_DIRECTORY": s.dir}
			p := s.start("run")
			s.drop("acme", "Otto 1", map[string][]byte{"a.pdf": []byte("one")}, numbered(1))
			kit.Await(t, "the first is archived", func() bool { return kept(s, "acme", "Otto 1") })
			l.change("CANARY-second-secret")
			s.drop("acme", "Otto 2", map[string][]byte{"a.pdf": []byte("two")}, numbered(2))
			kit.Await(t, "the old secret is refused", func() bool { return l.refusals() > 0 })
			write("CANARY-second-secret")
			kit.Await(t, "the second is archived", func() bool { return kept(s, "acme", "Otto 2") })
			p.stop(t)
			kit.Lacks(t, "a secret in the log", p.out.String(), "CANARY")
		})
	}
}
