package main_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// cage holds everything that must not get out, by what it is, in each form in which it could.
type cage struct {
	mu    sync.Mutex
	birds map[string][][]byte // guarded by mu
}

func (c *cage) put(what, text string) {
	if len(text) < 8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.birds == nil {
		c.birds = map[string][][]byte{}
	}
	for _, form := range []string{text, url.QueryEscape(text), url.PathEscape(text), base64.StdEncoding.EncodeToString([]byte(text)), hex.EncodeToString([]byte(text))} {
		if b := []byte(form); !slices.ContainsFunc(c.birds[what], func(have []byte) bool { return bytes.Equal(have, b) }) {
			c.birds[what] = append(c.birds[what], b)
		}
	}
}

// out names what of the given kinds, all if there are none, is in a text.
func (c *cage) out(text []byte, kinds ...string) (found []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, forms := range c.birds {
		if len(kinds) > 0 && !slices.Contains(kinds, what) {
			continue
		}
		for _, form := range forms {
			if i := bytes.Index(text, form); i >= 0 {
				found = append(found, fmt.Sprintf("%s in …%q", what, text[max(0, i-60):min(len(text), i+60)]))
				break
			}
		}
	}
	return found
}

// Kinds of birds. Credentials may be nowhere; documents and sidecars are allowed where a place says so.
const (
	aPassword, aClientSecret, aPortPassword = "password", "client secret", "port password"
	aToken, aSignature, aSession            = "token", "signature", "session token"
	aSidecar, aDocument                     = "sidecar value", "document bytes"
)

var credentials = []string{aPassword, aClientSecret, aPortPassword, aToken, aSignature, aSession}

// blab is a service that puts what must not be seen into its errors. It notes every secret that passes.
type blab struct {
	http.Handler
	cage *cage

	mu  sync.Mutex
	n   map[string]int // calls by kind; guarded by mu
	bad bool           // guarded by mu: it errs
}

var (
	signaturePattern = regexp.MustCompile(`(X-Amz-Signature|X-Amz-Security-Token)=([^&"\\]+)`)
	tokenPattern     = regexp.MustCompile(`"access_token"\s*:\s*"([^"]+)"`)
)

func (b *blab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if form, ok := b.spite(r); ok {
		all := r.URL.String() + " " + r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(form.status)
		fmt.Fprintf(w, form.text, all)
		return
	}
	rec := httptest.NewRecorder()
	b.Handler.ServeHTTP(rec, r)
	body := rec.Body.Bytes()
	plain := strings.ReplaceAll(string(body), `\u0026`, "&")
	for _, m := range signaturePattern.FindAllStringSubmatch(plain, -1) {
		kind := map[string]string{"X-Amz-Signature": aSignature, "X-Amz-Security-Token": aSession}[m[1]]
		value, _ := url.QueryUnescape(m[2])
		b.cage.put(kind, value)
	}
	for _, m := range tokenPattern.FindAllStringSubmatch(plain, -1) {
		b.cage.put(aToken, m[1])
	}
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	w.Write(body)
}

type spite struct {
	status int
	text   string
}

// spites are errors in every form in which a service, a store or a gateway between may repeat what was sent.
var spites = []spite{
	{500, "%s"}, {503, `{"message": "cannot handle %s"}`}, {502, "<html><head><title>Bad %s</title></head></html>"},
	{403, "<Error><Code>AccessDenied</Code><Message>%s</Message></Error>"}, {401, `{"error":"invalid_token","error_description":"%s"}`},
	{400, `{"errors":[{"code":"x","detail":"%s"}]}`}, {429, "slow down, %s"}, {504, "\x1b]0;%s\a"}, {200, "this is not JSON %s"},
	{500, `{"Authorization": "%s", "deep": {"errors": ["%[1]s"]}}`},
}

// spite errs at every third call of each kind, in another form each time, while it is bad.
func (b *blab) spite(r *http.Request) (spite, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kind := r.Method
	if strings.HasSuffix(r.URL.Path, "/tokens") {
		kind = "token"
	}
	if b.n == nil {
		b.n = map[string]int{}
	}
	b.n[kind]++
	if !b.bad || b.n[kind]%3 != 2 {
		return spite{}, false
	}
	s := spites[b.n[kind]/3%len(spites)]
	if s.status == 400 && kind == http.MethodPost { // it would refuse a document for good
		s.status = 500
	}
	return s, true
}

func (b *blab) behave(bad bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bad = bad
}

const (
	canaryPassword = "CANARY-password-8w3/kq+Zt=!ä"
	canaryClient   = "CANARY-clientsecret-5Rt&9+x/="
	canaryPort     = "CANARY-port-password-77aQ"
	canaryAccount  = "CANARY-account-of-beta-x2/P+=ö"
)

// serveBlab runs the emulator behind a blab.
func serveBlab(t *testing.T, c *cage) (*blab, string) {
	t.Helper()
	emu, err := emulator.New(emulator.Config{
		Dir: t.TempDir(), Username: "canary-user", Secret: canaryPassword, ClientID: "canary-client", ClientSecret: canaryClient,
		Scopes: []string{"importDocuments.write"}, Vaults: []emulator.Vault{{ID: "ACME"}, {ID: "BETA", Account: emulator.Account{Name: "canary-beta", Secret: canaryAccount}}}, Window: 3 * time.Second,
		ArchiveMin: 10 * time.Millisecond, ArchiveMax: 200 * time.Millisecond, TokenLife: 30 * time.Second, Seed: 11,
	})
	kit.Must(t, err)
	b := &blab{Handler: emu, cage: c, bad: true}
	srv := httptest.NewServer(b)
	t.Cleanup(func() {
		srv.Close()
		kit.Want(t, "the error of Close", emu.Close(), nil)
	})
	return b, srv.URL
}

// canaryConfig replaces what newSite wrote by a configuration that has a canary in every place where one can be.
func (s *site) canaryConfig(c *cage, oauth bool, address string) {
	s.t.Helper()
	auth, secret := "{method: basic, username: canary-user, secret_file: "+s.dir+"/secret}", canaryPassword
	if oauth {
		auth, secret = "{method: oauth2, username: canary-client, secret_file: "+s.dir+"/secret, scopes: [importDocuments.write]}", canaryClient
	}
	s.edit("{method: basic, username: demo, secret_file: "+s.dir+"/secret}", auth)
	account := strings.NewReplacer("canary-user", "canary-beta", "canary-client", "canary-beta", "/secret", "/secret-beta").Replace(auth)
	s.edit("\nstate_dir:", "\n  accounts: {beta: "+account+"}\nstate_dir:")
	s.edit("vault: BETA,", "vault: BETA, account: beta,")
	s.edit(`http: {listen: ""}`, `http: {listen: "`+address+`", access: {users_file: `+s.dir+`/port-users}}`)
	for path, text := range map[string]string{"secret": secret + "\n", "secret-beta": canaryAccount + "\n", "port-users": portUser(s.t, c, canaryPort)} {
		kit.Must(s.t, os.WriteFile(filepath.Join(s.dir, path), []byte(text), 0o600))
	}
}

// portUser is the file of users, who have the same password. Password and hash are canaries.
func portUser(t *testing.T, c *cage, password string) string {
	t.Helper()
	hash := kit.Value(bcrypt.GenerateFromPassword([]byte(password), 10))(t)
	c.put(aPortPassword, password)
	c.put(aPortPassword, string(hash))
	return "prometheus:" + string(hash) + ":metrics\nreader:" + string(hash) + ":read\n"
}

// canaryDocument drops a folder that holds a canary in its bytes and in each field that is no id.
func (s *site) canaryDocument(c *cage, i int, more map[string]any) {
	s.t.Helper()
	value := func(field string) string {
		text := fmt.Sprintf("CANARY-%s-%04d", field, i)
		c.put(aSidecar, text)
		return text
	}
	content := fmt.Sprintf("%%PDF CANARY-document-bytes-%04d", i)
	c.put(aDocument, content)
	sidecar := map[string]any{
		"documentType": "Invoice", "documentId": fmt.Sprint("R-", i), "documentDate": "2026-10-31",
		"senderName": value("sender"), "recipientName": value("recipient"), "buyerReferenceId": value("reference"),
		"additionalParameters": []map[string]string{{"key": "project", "value": value("project")}},
	}
	for k, v := range more {
		if text, ok := v.(string); ok && strings.Contains(text, "CANARY") {
			c.put(aSidecar, text)
		}
		sidecar[k] = v
	}
	s.drop([]string{"acme", "beta"}[i%2], fmt.Sprintf("Rechnung %04d", i), map[string][]byte{"a.pdf": []byte(content)}, sidecar)
}

// I7: with canaries everywhere and a service that repeats what it was sent in every error, none gets out: not into logs,
// health, metrics, status, commands, the process's own files, the ledger, backups or a dump.
func TestCanary_I7_NothingGetsOut(t *testing.T) {
	kit.Waits(t, 1, "faults strike a process meanwhile")
	t.Parallel()
	kit.Rows(t, map[string]bool{"Basic": false, "OAuth2": true}, func(t *testing.T, oauth bool) {
		t.Parallel()
		watchCanaries(t, oauth)
	})
}

func watchCanaries(t *testing.T, oauth bool) {
	c := &cage{}
	c.put(aPassword, canaryPassword)
	c.put(aClientSecret, canaryClient)
	c.put(aPassword, canaryAccount)
	b, service := serveBlab(t, c)
	s := newSite(t, service, "upload: {batch_wait: 100ms, window: 3s}\nstatus: {poll_min: 300ms, poll_max: 1s, unclear_grace: 4s}")
	address := freeAddress(t)
	s.canaryConfig(c, oauth, address)
	for i := range 12 {
		s.canaryDocument(c, i, nil)
	}
	s.canaryDocument(c, 90, map[string]any{"amount": "CANARY-amount-1.234,56"})          // we refuse it
	s.canaryDocument(c, 91, map[string]any{"documentId": "FAIL-91"})                     // the service fails it
	s.canaryDocument(c, 92, map[string]any{"password": "CANARY-unknown-key-of-sidecar"}) // a key that nobody knows
	p := s.canaryDaemon(t)
	kit.Await(t, "health", func() bool { return s.asks(address, "") != 0 })
	checks := &canaryCheck{t: t, cage: c}
	s.ask(checks, address)
	time.Sleep(time.Second) // faults strike meanwhile; the process has no virtual time
	s.ask(checks, address)
	checks.process(p.Process.Pid)
	b.behave(false)
	all := func() bool {
		found, err := filepath.Glob(filepath.Join(s.dir, "*", "_archived", "*", "Rechnung 00[01]*"))
		return err == nil && len(found) == 12
	}
	kit.Await(t, "all to be archived, what was unclear after its grace", all)
	s.ask(checks, address)
	s.renewsPortPassword(checks, p, address)
	if out, code := s.vaultd("backup", filepath.Join(s.dir, "copy.db")); code != exitDone {
		t.Error("backup:", code, out)
	}
	kit.Must(t, p.Process.Signal(syscall.SIGQUIT))
	p.end(t, 40*time.Second)
	dump := p.out.String()
	kit.Check(t, strings.Contains(dump, "goroutine "), "no dump to look at")
	checks.nothing("the daemon's log and its dump", []byte(p.out.String()))
	checks.tree(s)
	checks.journal(s)
	kit.Check(t, checks.looks >= 100 && len(c.birds[aSignature]) >= 12 && (!oauth || len(c.birds[aToken]) != 0),
		"vacuous: %d looks, %d signatures, %d tokens", checks.looks, len(c.birds[aSignature]), len(c.birds[aToken]))
}

// canaryDaemon starts the daemon where a core would be found, with what asks for one.
func (s *site) canaryDaemon(t *testing.T) *process {
	t.Helper()
	for _, dir := range []string{"cwd", "tmp"} {
		kit.Must(t, os.Mkdir(filepath.Join(s.dir, dir), 0o755))
	}
	p := s.command("run", "-v")
	p.Dir, p.Env = filepath.Join(s.dir, "cwd"), append(os.Environ(), "GOTRACEBACK=crash", "TMPDIR="+filepath.Join(s.dir, "tmp"))
	return startProcess(t, p)
}

// asks gets a page; 0 while nobody answers.
func (s *site) asks(address, password string) (code int) {
	r := kit.Value(http.NewRequest(http.MethodGet, "http://"+address+"/metrics", nil))(s.t)
	if password != "" {
		r.SetBasicAuth("prometheus", password)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	return res.StatusCode
}

// renewsPortPassword changes the password of the pages: after a reload it counts, the old one does not, and the sessions that began with it
// are over.
func (s *site) renewsPortPassword(c *canaryCheck, p *process, address string) {
	s.t.Helper()
	session := s.signsIn(c, address)
	const next = "CANARY-port-password-of-next-year"
	kit.Must(s.t, os.WriteFile(filepath.Join(s.dir, "port-users"), []byte(portUser(s.t, c.cage, next)), 0o600))
	if old := s.asks(address, canaryPort); old != http.StatusOK {
		s.t.Error("the old password before the reload:", old)
	}
	p.hup(s.t)
	kit.Await(s.t, "the new password is taken", func() bool { return s.asks(address, next) == http.StatusOK })
	if old, none := s.asks(address, canaryPort), s.asks(address, ""); old != http.StatusUnauthorized || none != http.StatusUnauthorized {
		s.t.Error("the old password, and none:", old, none)
	}
	r := kit.Value(http.NewRequest(http.MethodGet, "http://"+address+"/", nil))(s.t)
	r.AddCookie(session)
	res := kit.Value(http.DefaultTransport.RoundTrip(r))(s.t)
	res.Body.Close()
	kit.Check(s.t, res.StatusCode == http.StatusSeeOther, "a session of the old password: %v", res.Status)
}

// signsIn signs in on the pages, with a wrong password first, and looks at what a person then sees. The session's id is a canary.
func (s *site) signsIn(c *canaryCheck, address string) (session *http.Cookie) {
	s.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, password := range []string{canaryPort + "-wrong", canaryPort} {
		res := kit.Value(client.PostForm("http://"+address+"/login", url.Values{"name": {"reader"}, "password": {password}}))(s.t)
		res.Body.Close()
		for _, session = range res.Cookies() {
			c.cage.put(aPortPassword, session.Value)
		}
		res.Header.Del("Set-Cookie")
		c.nothing("/login", []byte(fmt.Sprint(res.Status, res.Header)))
	}
	kit.Need(s.t, session != nil, "nobody could sign in")
	for _, path := range []string{"/", "/search?q=Rechnung", "/report"} {
		r := kit.Value(http.NewRequest(http.MethodGet, "http://"+address+path, nil))(s.t)
		r.AddCookie(session)
		res := kit.Value(client.Do(r))(s.t)
		w := new(bytes.Buffer)
		res.Header.Write(w)
		w.ReadFrom(res.Body)
		res.Body.Close()
		kit.Check(s.t, res.StatusCode == http.StatusOK,
			"path = %v, res.Status = %v, want res.StatusCode = http.StatusOK", path, res.Status)
		c.allowing(path, w.Bytes(), aSidecar)
	}
	return session
}

// ask runs every command that asks, and every page.
func (s *site) ask(c *canaryCheck, address string) {
	s.t.Helper()
	s.signsIn(c, address)
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/nothing"} {
		for _, password := range []string{"", canaryPort} {
			r := kit.Value(http.NewRequest(http.MethodGet, "http://"+address+path, nil))(s.t)
			if password != "" {
				r.SetBasicAuth("prometheus", password)
			}
			w := new(bytes.Buffer)
			res := kit.Value(http.DefaultClient.Do(r))(s.t)
			res.Header.Write(w)
			w.ReadFrom(res.Body)
			res.Body.Close()
			c.nothing(path, w.Bytes())
		}
	}
	for _, line := range []string{
		"status", "status --json", "list", "check", "check --show", "check --show --json", "verify", "verify --json", "why|Rechnung 0003", "version --json", "vaults", "list --state rejected", "nonsense", "why|nobody", "check|--config|" + filepath.Join(s.dir, "secret"),
	} {
		out, _ := s.vaultd(splitLine(line)...)
		c.nothing("vaultd "+line, []byte(out))
	}
	for _, line := range []string{"list --json", "why|Rechnung 0090", "why|--json|Rechnung 0091", "show|Rechnung 0003", "show|--json|Rechnung 0091", "find CANARY", "audit --format json", "audit --format csv", "audit --format html", "receipt|Rechnung 0003"} {
		out, _ := s.vaultd(splitLine(line)...) // authorised outputs: metadata, and what a refusal quotes of a sidecar
		c.allowing("vaultd "+line, []byte(out), aSidecar)
	}
}

func splitLine(line string) []string {
	if strings.Contains(line, "|") {
		return strings.Split(line, "|")
	}
	return strings.Fields(line)
}

// canaryCheck looks for what got out.
type canaryCheck struct {
	t     *testing.T
	cage  *cage
	looks int
}

func (c *canaryCheck) nothing(where string, text []byte) { c.allowing(where, text) }

func (c *canaryCheck) allowing(where string, text []byte, kinds ...string) {
	c.t.Helper()
	c.looks++
	wanted := slices.DeleteFunc(append(slices.Clone(credentials), aSidecar, aDocument), func(k string) bool { return slices.Contains(kinds, k) })
	for _, found := range c.cage.out(text, wanted...) {
		c.t.Errorf("%s: %s", where, found)
	}
}

// process looks at what the kernel tells others of the process, and that it leaves no core.
func (c *canaryCheck) process(pid int) {
	c.t.Helper()
	for _, name := range []string{"cmdline", "environ", "status", "stat", "limits", "maps"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		kit.Want(c.t, "the error", err, nil)
		c.nothing(name, b)
		kit.Check(c.t, name != "limits" || regexp.MustCompile(`Max core file size\s+0\s+0\s`).Match(b),
			"a core may be written:\n%s", b)
	}
}

// place is where something may lie, and why.
type place struct {
	path  *regexp.Regexp // below the site's folder
	kinds []string
	why   string
}

// allowedPlaces are the only ones. Everything else that the site's folder holds must hold no canary.
var allowedPlaces = []place{
	{regexp.MustCompile(`^secret(-beta)?$`), []string{aPassword, aClientSecret}, "the secret itself, as the administrator wrote it"},
	{regexp.MustCompile(`^port-users$`), []string{aPortPassword}, "as above"},
	{regexp.MustCompile(`^(acme|beta)/([^_.]|_archived/[^/]+/|_rejected/|_duplicates/|\.vaultd/claimed/)[^/]*/.*(a\.pdf|metadata\.json)$`), []string{aSidecar, aDocument}, "what people dropped, where they dropped it or where it was moved"},
	{regexp.MustCompile(`^(acme|beta)/_rejected/.*/_REASON\.txt$`), []string{aSidecar}, "it tells the person who dropped the folder what to put right"},
	{regexp.MustCompile(`^(acme|beta)/_archived/.*/_[A-Z]+\.(txt|json)$`), []string{aSidecar}, "the receipt is an authorised output"},
	{regexp.MustCompile(`^state/spool/[0-9a-z]{26}\.zip$`), []string{aDocument, aSidecar}, "the spool holds the ZIPs of what is not archived"},
	{regexp.MustCompile(`^state/ledger\.db$|^copy\.db$`), []string{aSidecar}, "the metadata that is sent stands in the ledger's erasable part, readable for vaultd alone"},
	{regexp.MustCompile(`^state/catalog\.db(-wal)?$`), []string{aSidecar}, "the catalog finds documents by what was sent of them; it is made from the ledger's erasable part, and readable for vaultd alone"},
	{regexp.MustCompile(`^state/ledger\.db$|^copy\.db$`), []string{aSignature, aSession}, "no entry keeps a spent address (journal looks), but a page that bbolt has freed keeps its bytes until it is used again"},
}

// tree looks at every file of the site.
func (c *canaryCheck) tree(s *site) {
	c.t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(s.dir, path)
		if err != nil || relErr != nil {
			return err
		}
		found := c.cage.out([]byte(rel))
		kit.Check(c.t, found == nil, "the name %s: %s", rel, found)
		if !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var allowed []string
		for _, p := range allowedPlaces {
			if p.path.MatchString(rel) {
				allowed = append(allowed, p.kinds...)
			}
		}
		waits, _ := filepath.Glob(filepath.Join(s.dir, "*", ".vaultd", "claimed", strings.TrimSuffix(d.Name(), ".zip")))
		if strings.HasPrefix(rel, "state/spool/") && len(waits) == 0 || strings.HasPrefix(rel, "cwd/") || strings.HasPrefix(rel, "tmp/") {
			c.t.Errorf("%s is left at the end", rel)
		}
		c.allowing(rel, b, allowed...)
		return nil
	})
	kit.Want(c.t, "the error", err, nil)
}

// journal looks at every line of the journal, and that a spent ticket has no address.
func (c *canaryCheck) journal(s *site) {
	c.t.Helper()
	l := kit.Value(boltledger.Open(boltledger.Config{Dir: filepath.Join(s.dir, "state"), Location: time.UTC}))(c.t)
	defer l.Close()
	kit.Want(c.t, "the error of Lines", l.Lines(1, func(n uint64, line []byte) error {
		c.nothing(fmt.Sprint("journal line ", n), line)
		return nil
	}), nil)
	kit.Want(c.t, "the error of EntriesNewestFirst", l.EntriesNewestFirst(func(e ledger.Entry) error {
		for _, r := range e.Registrations {
			kit.Check(c.t, r.Ticket.URL == "" || e.State == ledger.Registered || e.State == ledger.Sending,
				"%s is %s and keeps an upload address", e.Folder, e.State)
		}
		return nil
	}), nil)
}
