package main_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	program "vaultd/cmd/vaultd"
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
	kit.Rows(t, map[string]string{"BasicFile": "basic", "OAuthCredential": "oauth2"}, func(t *testing.T, method string) {
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

func hashPassword(t *testing.T, input string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = program.Run(t.Context(), append([]string{"hash-password"}, args...), strings.NewReader(input), &stdout, &stderr, noEnv)
	return code, stdout.String(), stderr.String()
}

// The line that hash-password prints is one that the file of users takes, and its hash is the password's.
func TestHashPassword_PrintsALineForTheFile(t *testing.T) {
	t.Parallel()
	const password = "CANARY correct horse"
	code, line, errs := hashPassword(t, password+"\r\n", "anna", "--rights", "read,fetch")
	f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
	if code != 0 || len(f) != 3 || f[0] != "anna" || f[2] != "read,fetch" || bcrypt.CompareHashAndPassword([]byte(f[1]), []byte(password)) != nil || errs != "" {
		t.Fatalf(`%d %q %q, want code = 0, len(f) = 3, f[0] = "anna", f[2] = "read,fetch", bcrypt.CompareHashAndPassword([]byte(f[1]), []byte(password)) = nil, errs = ""`, code, line, errs)
	}
	s := newSite(t, "http://127.0.0.1:1", "")
	kit.Must(t, os.WriteFile(filepath.Join(s.dir, "users"), []byte(line), 0o600))
	s.edit(`http: {listen: ""}`, `http: {listen: "", access: {users_file: `+s.dir+`/users}}`)
	if out, code := s.vaultd("check", "--offline"); code != 0 {
		t.Error("the line is refused:", out)
	}
	if code, hash, _ := hashPassword(t, password); code != 0 || !strings.HasPrefix(hash, f[1][:7]) || strings.Contains(hash, ":") {
		t.Errorf(`code = %v, hash = %v, want code = 0, hash that begins with %q, hash without ":"`, code, hash, f[1][:7])
	}
	code, told, _ := hashPassword(t, password, "--json", "bob")
	var o struct {
		Name, Hash string
		Rights     []string
	}
	if err := json.Unmarshal([]byte(told), &o); err != nil || code != 0 || o.Name != "bob" || len(o.Rights) != 1 || o.Rights[0] != "read" || !strings.HasPrefix(o.Hash, "$2") {
		t.Errorf(`code = %v, told = %v, err = %v, want no error, code = 0, o.Name = "bob", len(o.Rights) = 1, o.Rights[0] = "read", o.Hash that begins with "$2"`, code, told, err)
	}
}

// I7: what cannot be used is refused with the reason, and the password is not shown.
func TestHashPassword_I7_RefusesInWords(t *testing.T) {
	const good = "CANARY correct horse"
	type row struct {
		input string
		args  []string
		code  int
		says  string
	}
	kit.Rows(t, map[string]row{
		"Short":         {"CANARY\n", nil, exitData, "6 characters; at least 12"},
		"Empty":         {"", nil, exitData, "0 characters"},
		"Equal":         {strings.Repeat("C", 12) + "\n", nil, exitData, "too few different characters: 1; at least 5"},
		"Long":          {"CANARY" + strings.Repeat("x", 67), nil, exitData, "73 bytes; bcrypt looks at the first 72 alone"},
		"TwoLines":      {good + "\n" + good + "\n", nil, exitData, "more than one line"},
		"Huge":          {strings.Repeat(good, 1000), nil, exitData, "more than one line"},
		"WrongName":     {good, []string{"anna:x"}, exitUsage, "NAME has a name that is not"},
		"WrongRight":    {good, []string{"anna", "--rights", "write"}, exitUsage, "--rights has a right that is not known"},
		"FetchAlone":    {good, []string{"anna", "--rights=fetch"}, exitUsage, "fetch needs read too"},
		"RightsAlone":   {good, []string{"--rights=read"}, exitUsage, "with NAME only"},
		"TwoNames":      {good, []string{"anna", "bob"}, exitUsage, "unexpected argument"},
		"EmptyName":     {good, []string{""}, exitUsage, "NAME has a name"},
		"EmptyRight":    {good, []string{"anna", "--rights="}, exitUsage, "--rights"},
		"ControlInside": {"CANARY\x07correct horse", nil, exitData, "control character"},
	}, func(t *testing.T, row row) {
		code, out, errs := hashPassword(t, row.input, row.args...)
		if code != row.code || out != "" || !strings.Contains(errs, row.says) || strings.Contains(errs, "CANARY") {
			t.Errorf(`%d %q %q, want code = %v, out = "", errs with %q, errs without "CANARY"`, code, out, errs, row.code, row.says)
		}
	})
}
