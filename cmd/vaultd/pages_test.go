package main_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

const pagesPassword = "a long pass phrase"

// reader is a person with a browser that keeps cookies.
type reader struct {
	t      *testing.T
	client *http.Client
	base   string
}

// answer is what a page answered.
type answer struct {
	code   int
	header http.Header
	body   string
}

func newReader(t *testing.T, address string) *reader {
	t.Helper()
	jar := kit.Value(cookiejar.New(nil))(t)
	return &reader{t, &http.Client{Jar: jar, Timeout: time.Minute}, "http://" + address}
}

// awaitPort waits until somebody listens at an address.
func awaitPort(t *testing.T, address string) {
	t.Helper()
	kit.Await(t, "the pages", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

func (r *reader) do(method, path string, fields url.Values) (a answer) {
	r.t.Helper()
	req := kit.Value(http.NewRequest(method, r.base+path, strings.NewReader(fields.Encode())))(r.t)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res := kit.Value(r.client.Do(req))(r.t)
	defer res.Body.Close()
	body := kit.Value(io.ReadAll(res.Body))(r.t)
	return answer{res.StatusCode, res.Header, string(body)}
}

func (r *reader) get(path string) answer { r.t.Helper(); return r.do(http.MethodGet, path, nil) }

var tokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// send sends the form of a page, with its token.
func (r *reader) send(page, path string, fields url.Values) answer {
	r.t.Helper()
	found := tokenField.FindStringSubmatch(r.get(page).body)
	kit.Need(r.t, found != nil, "%s has no form", page)
	fields.Set("token", found[1])
	return r.do(http.MethodPost, path, fields)
}

func (r *reader) signIn(name string) {
	r.t.Helper()
	a := r.do(http.MethodPost, "/login", url.Values{"name": {name}, "password": {pagesPassword}})
	kit.Need(r.t, a.code == http.StatusOK && strings.Contains(a.body, "/logout"), "%s cannot sign in: %d %s", name, a.code, a.body)
}

// withPages gives a site its port, with users who may read, and read and fetch.
func (s *site) withPages() (address string) {
	s.t.Helper()
	address = freeAddress(s.t)
	hash, err := bcrypt.GenerateFromPassword([]byte(pagesPassword), 10) // the least that the configuration takes
	kit.Must(s.t, err)
	users := strings.ReplaceAll("reader:HASH:read\nanna:HASH:read,fetch\nprobe:HASH:metrics\n", "HASH", string(hash))
	kit.Must(s.t, os.WriteFile(filepath.Join(s.dir, "users"), []byte(users), 0o600))
	s.edit(`http: {listen: ""}`, `http: {listen: "`+address+`", access: {users_file: `+s.dir+`/users}}
billing: {downloads_per_month: 2}`)
	return address
}

// A day with the pages, over the real program: people find what was dropped, see its history, download it, and make reports; each
// one may do what the file of users says, and no more.
func TestPages_FindShowDownloadReport(t *testing.T) {
	_, s := served(t, emulator.Config{Window: 10 * time.Second, ArchiveMin: 50 * time.Millisecond, ArchiveMax: 300 * time.Millisecond}, fast)
	address := s.withPages()
	day := s.start("run")
	invoice := map[string]any{"documentType": "Invoice", "documentId": "RE20264711", "documentDate": "2026-10-31", "senderName": "Müller <b>& Söhne", "amount": "1234.50", "currencyCode": "EUR"}
	s.drop("acme", "Müller 4711", map[string][]byte{"scan.pdf": []byte("%PDF 4711")}, invoice)
	s.drop("acme", "Müller 4711 again", map[string][]byte{"scan.pdf": []byte("%PDF 4711")}, invoice)
	s.drop("beta", "Huber 88", map[string][]byte{"scan.pdf": []byte("%PDF 88")}, map[string]any{"documentType": "Invoice"})
	kit.Must(t, os.WriteFile(filepath.Join(s.dir, "beta", "scan7.pdf"), []byte("loose"), 0o660))
	s.calm(3)
	anna := newReader(t, address)
	anna.signIn("anna")
	key := s.findsOnPages(anna)
	s.downloadsOnPages(anna, key)
	s.reportsOnPages(anna)

	limited := newReader(t, address)
	limited.signIn("reader")
	if a := limited.get("/document/" + key); a.code != http.StatusOK || strings.Contains(a.body, "/download\"") {
		t.Errorf("without the right to fetch: %d, a button %v", a.code, strings.Contains(a.body, "/download\""))
	}
	kit.Want(t, "a download without the right to fetch",
		limited.send("/report", "/document/"+key+"/download", url.Values{}).code, http.StatusForbidden)
	probe := newReader(t, address)
	if probe.signIn("probe"); strings.Contains(probe.get("/").body, "Huber") {
		t.Error("who may not read documents sees one")
	}
	for _, path := range []string{"/search?q=4711", "/document/" + key, "/document/" + key + "/receipt", "/report"} {
		if a := probe.get(path); a.code != http.StatusForbidden || strings.Contains(a.body, "4711") && path != "/search?q=4711" {
			t.Errorf("%s without the right to read: %d", path, a.code)
		}
	}

	// The pages are gone with the daemon, and back with it; who was signed in signs in again.
	day.stop(t)
	s.tellsWhoTookWhat(day.out.String(), key)
	journal := s.journal()
	if n := strings.Count(journal, `"event":"fetched"`); n != 2 || strings.Contains(journal, "anna") {
		t.Errorf("%d downloads in the journal, the name in it: %v", n, strings.Contains(journal, "anna"))
	}
	s.start("run")
	kit.Await(t, "the pages are back", func() bool {
		res, err := anna.client.Get(anna.base + "/login")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	anna.signIn("anna")
	kit.Holds(t, "after a restart", anna.get("/search?q="+url.QueryEscape("mueller 4711")).body, key)
}

// tellsWhoTookWhat expects a line of the log for each receipt and report that left on the pages, with the user, and none for what was refused.
func (s *site) tellsWhoTookWhat(log, key string) {
	s.t.Helper()
	took := map[string]int{}
	for line := range strings.Lines(log) {
		var told struct {
			Msg, User, Key, Form string
			Year, Month          int
		}
		if err := json.Unmarshal([]byte(line), &told); err == nil && strings.HasPrefix(told.Msg, "a person took") {
			took[fmt.Sprintf("%s %s %s%s %d-%d", told.Msg, told.User, told.Key, told.Form, told.Year, told.Month)]++
		}
	}
	want := map[string]int{"a person took a receipt anna " + key + " 0-0": 1}
	for _, order := range []string{"csv 2026-10", "csv 2026-9", "csv 2026-0", "csv 0-0", "html 2026-0", "xlsx 0-0"} {
		want["a person took a report anna "+order] = 1
	}
	kit.Check(s.t, maps.Equal(took, want), "the log tells %v, not %v:\n%s", took, want, log)
}

// findsOnPages searches, and opens what was found. It returns the key of the archived document.
func (s *site) findsOnPages(anna *reader) (key string) {
	t := s.t
	t.Helper()
	a := anna.get("/search?q=" + url.QueryEscape("MUELLER 4711"))
	keys := regexp.MustCompile(`/document/([0-9a-z]+)"`).FindAllStringSubmatch(a.body, -1)
	if a.code != http.StatusOK || len(keys) != 2 || strings.Contains(a.body, "<b>") || !strings.Contains(a.body, "1,234.50 EUR") || !strings.Contains(a.body, "31 Oct 2026") {
		t.Fatalf("%d, %d found: %s", a.code, len(keys), a.body)
	}
	states := map[string]string{}
	for _, one := range keys {
		page := anna.get("/document/" + one[1])
		state := regexp.MustCompile(`class="verdict [a-z]+">([a-z]+)`).FindStringSubmatch(page.body)
		kit.Need(t, page.code == http.StatusOK && state != nil,
			"%d: %s, want page.code = http.StatusOK, state other than nil", page.code, page.body)
		states[state[1]] = one[1]
	}
	key = states["archived"]
	kit.Need(t, key != "" && states["duplicate"] != "",
		`%v, want key other than "", states["duplicate"] other than ""`, states)
	page := anna.get("/document/" + key).body
	kit.Holds(t, "the document's page", page,
		"The archive itself said that it is archived.", "Taken from the drop folder.", "Sent completely.", "scan.pdf", "SHA-256", "/receipt", "0 of 2 are used this month",
	)
	if first := anna.get("/document/" + states["duplicate"]).body; !strings.Contains(first, `href="/document/`+key+`"`) {
		t.Errorf("the duplicate does not lead to what it repeats: %s", first)
	}
	var receipt struct{ Folder, Key string }
	err := json.Unmarshal([]byte(anna.get("/document/"+key+"/receipt").body), &receipt)
	kit.Check(t, err == nil && receipt.Key == key, "the receipt: %+v, %v", receipt, err)
	for question, want := range map[string]string{
		"": "Write part of", "*": "A star or a question mark stands for nothing", "scan7": "not taken", "no such thing": "Nothing that was taken has", "huber": "as read, not checked",
		strings.Repeat("many words ", 50): "These are too many words", "88 <script>": "Nothing that was taken has",
	} {
		if a := anna.get("/search?q=" + url.QueryEscape(question)); !strings.Contains(a.body, want) || strings.Contains(a.body, "<script>") {
			t.Errorf("%q: %d, no %q in %s", question, a.code, want, a.body)
		}
	}
	for path, code := range map[string]int{"/document/nonsense": 404, "/document/06gzgbs2d2n43zeqyj2594nkn0": 404, "/nothing": 404, "/style.css": 200, "/live.js": 200, "/icon.svg": 200} {
		kit.Want(t, path, anna.get(path).code, code)
	}
	kit.Holds(t, "how it stands", anna.get("/").body, "Huber 88", "scan7.pdf", `<svg class="chart"`)
	return key
}

// downloadsOnPages downloads until the month has none left. Each download is a line of the journal, and who asked stands beside it.
func (s *site) downloadsOnPages(anna *reader, key string) {
	t := s.t
	t.Helper()
	kit.Want(t, "a download without the form's token",
		anna.do(http.MethodPost, "/document/"+key+"/download", url.Values{}).code, http.StatusForbidden)
	a := anna.get("/document/" + key + "/download")
	kit.Check(t, a.code != http.StatusOK, "a link downloads")
	for i, want := range []int{200, 200, 429} {
		a := anna.send("/document/"+key, "/document/"+key+"/download", url.Values{})
		kit.Need(t, a.code == want, "download %d: %d %s", i, a.code, a.body)
		if want != http.StatusOK {
			continue
		}
		z, err := zip.NewReader(strings.NewReader(a.body), int64(len(a.body)))
		if err != nil || !slices.ContainsFunc(z.File, func(f *zip.File) bool { return f.Name == "scan.pdf" }) || !strings.Contains(a.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("download %d: %v, %v", i, err, a.header)
		}
	}
	out, _ := s.vaultd("audit", "--format", "json")
	kit.Check(t, strings.Count(out, "on the pages, by the user anna") == 2, "the audit does not say who downloaded:\n%s", out)
}

// reportsOnPages holds the reports of the pages against those of the command.
func (s *site) reportsOnPages(anna *reader) {
	t := s.t
	t.Helper()
	for _, one := range []struct{ form, year, month, name, command string }{
		{"csv", "2026", "10", "archive-2026-10.csv", "--month=2026-10"},
		{"csv", "2026", "9", "archive-2026-09.csv", "--month=2026-09"},
		{"csv", "2026", "", "archive-2026.csv", "--year=2026"},
		{"csv", "", "", "archive.csv", ""},
	} {
		a := anna.send("/report", "/report", url.Values{"form": {one.form}, "year": {one.year}, "month": {one.month}})
		if a.code != http.StatusOK || !strings.Contains(a.header.Get("Content-Disposition"), one.name) {
			t.Fatalf(`%+v: %d %v %s, want a.code = http.StatusOK, a.header.Get("Content-Disposition") with %q`, one, a.code, a.header, a.body, one.name)
		}
		args := []string{"audit", "--format=csv", "-o", filepath.Join(t.TempDir(), "report.csv")}
		if one.command != "" {
			args = append(args, one.command)
		}
		if out, code := s.vaultd(args...); code != exitDone && code != exitDifferences {
			t.Errorf("%v: exit %d, want %d or %d:\n%s", args, code, exitDone, exitDifferences, out)
		}
		want, err := os.ReadFile(args[3])
		kit.Check(t, err == nil && a.body == string(want),
			"%+v: the page gives\n%s, the command\n%s (%v)", one, a.body, want, err)
	}
	if a := anna.send("/report", "/report", url.Values{"form": {"html"}, "year": {"2026"}}); !strings.Contains(a.body, "TEST, NO EVIDENCE") || !strings.Contains(a.body, "document dates of 2026") {
		t.Errorf("the page to read: %d %s", a.code, a.body)
	}
	a := anna.send("/report", "/report", url.Values{"form": {"xlsx"}})
	if _, err := zip.NewReader(bytes.NewReader([]byte(a.body)), int64(len(a.body))); err != nil {
		t.Errorf("the workbook: %v", errors.Join(err))
	}
	for _, wrong := range []url.Values{{}, {"form": {"pdf"}}, {"form": {"csv"}, "year": {"1"}}, {"form": {"csv"}, "month": {"5"}}, {"form": {"csv"}, "year": {"2026"}, "month": {"13"}}} {
		kit.Want(t, fmt.Sprint(wrong), anna.send("/report", "/report", wrong).code, http.StatusBadRequest)
	}
}
