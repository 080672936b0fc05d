package emulator

import (
	"archive/zip"
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// world is a server, the clock it runs on, and a client that reaches it without a network.
type world struct {
	*testing.T
	*Server
	now time.Time
	cfg Config
}

const docs = "/v1/vaults/V1/documents"

func newWorld(t *testing.T, change func(*Config)) *world {
	t.Helper()
	w := &world{T: t, now: time.Date(2020, 11, 20, 12, 0, 0, 0, time.UTC)} // not the machine's time: nothing may use that
	w.cfg = Config{
		Dir: t.TempDir(), Clock: func() time.Time { return w.now },
		StoreURL: func() string { return "http://store.test/bucket" },
		Username: "user", Secret: "s3=cret/+", ClientID: "client", ClientSecret: "cl%secret",
		Vaults: []Vault{{ID: "V1", Name: "Acme Germany"}, {ID: "V2", Name: "Acme France"}}, Seed: 1,
	}
	if change != nil {
		change(&w.cfg)
	}
	w.restart()
	return w
}

// restart ends the server, if there is one, and starts it anew on the same directory.
func (w *world) restart() {
	w.Helper()
	if w.Server != nil {
		w.close()
	}
	s := kit.Value(New(w.cfg))(w)
	w.Server = s
	w.Cleanup(func() { _ = s.Close() })
}

func (w *world) close() {
	kit.Must(w, w.Close())
}

type answer struct {
	status int
	header http.Header
	body   string
	err    error // of the call, or of reading its answer
}

func (w *world) send(req *http.Request) answer {
	w.Helper()
	resp, err := w.Transport().RoundTrip(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b), err}
}

// request makes a call as the well-behaved user; header lines "Name: value" add to it, "Name:" takes one away.
func (w *world) request(method, url, body string, headers ...string) *http.Request {
	w.Helper()
	if strings.HasPrefix(url, "/") {
		url = "http://api.test" + url
	}
	req := kit.Value(http.NewRequestWithContext(w.Context(), method, url, strings.NewReader(body)))(w)
	if req.URL.Host == "api.test" {
		req.SetBasicAuth("user", "s3=cret/+")
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		req.Header.Del(name)
		if value != "" {
			req.Header.Set(name, strings.TrimSpace(value))
		}
	}
	return req
}

func (w *world) call(method, url, body string, headers ...string) answer {
	w.Helper()
	return w.send(w.request(method, url, body, headers...))
}

// ticket is a registration's answer, read in every form it may have.
type ticket struct {
	bumID, clientUUID, url string
	headers                map[string]string
}

func (w *world) tickets(a answer) []ticket {
	w.Helper()
	if a.status != 200 || a.err != nil {
		w.Fatalf("register: status %d, error %v, body %s", a.status, a.err, a.body)
	}
	var list []struct {
		BumID          string `json:"bumId"`
		ClientUUID     string `json:"clientUUID"`
		ArchiveFileURL any    `json:"archiveFileURL"`
	}
	w.decode(a, &list)
	var out []ticket
	for _, e := range list {
		t := ticket{bumID: e.BumID, clientUUID: e.ClientUUID, headers: map[string]string{}}
		switch u := e.ArchiveFileURL.(type) {
		case string:
			t.url = u
		case map[string]any:
			t.url = u["url"].(string)
			for _, form := range []string{"headers", "fields"} {
				m, _ := u[form].(map[string]any)
				for k, v := range m {
					t.headers[k] = v.(string)
				}
			}
		}
		out = append(out, t)
	}
	return out
}

func (w *world) decode(a answer, v any) {
	w.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		w.Fatalf("decode %q: %v", a.body, err)
	}
}

func clientUUID(n int) string { return fmt.Sprintf("10d90000-0000-4000-8000-%012d", n) }

func document(n int, more ...string) string {
	return fmt.Sprintf(`{"clientUUID":%q,"documentId":"INV-%d","documentDate":"2026-10-%02dT00:00:00Z","documentType":"Invoice"%s}`,
		clientUUID(n), n, 1+n%28, strings.Join(more, ""))
}

func batch(elements ...string) string { return "[" + strings.Join(elements, ",") + "]" }

// register registers one document and gives its ticket.
func (w *world) register(n int, more ...string) ticket {
	w.Helper()
	return w.tickets(w.call("POST", docs, batch(document(n, more...))))[0]
}

func (w *world) put(t ticket, body string, headers ...string) answer {
	w.Helper()
	for k, v := range t.headers {
		headers = append(headers, k+": "+v)
	}
	return w.call("PUT", t.url, body, headers...)
}

func (w *world) mustPut(t ticket, body string) {
	w.Helper()
	if a := w.put(t, body, "Content-MD5: "+md5of(body)); a.status != 200 || a.err != nil {
		w.Fatalf("PUT: status %d, error %v, body %s", a.status, a.err, a.body)
	}
}

// state is the status of a document as its two words.
func (w *world) state(bumID string) string {
	w.Helper()
	a := w.call("GET", docs+"/"+bumID+"/status", "")
	if a.status != 200 {
		return fmt.Sprint(a.status)
	}
	var rec struct{ Status, Message string }
	w.decode(a, &rec)
	return strings.TrimSpace(rec.Status + " " + rec.Message)
}

func (w *world) wantNoViolations() {
	w.Helper()
	if v := w.Violations(); len(v) > 0 {
		w.Errorf("violations: %q", v)
	}
}

func (w *world) wantViolation(part string) {
	w.Helper()
	for _, v := range w.Violations() {
		if strings.Contains(v, part) {
			return
		}
	}
	w.Errorf("no violation says %q: %q", part, w.Violations())
}

func md5of(body string) string {
	sum := md5.Sum([]byte(body))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// zipOf is a package with one file.
func zipOf(text string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create("invoice.xml")
	if err == nil {
		_, err = io.WriteString(f, text)
	}
	if err != nil || z.Close() != nil {
		panic(err)
	}
	return b.String()
}

// Every row of the table is known to the faults, and every row of the API but
// the tokens' wants its own service's credentials.
func TestOperations(t *testing.T) {
	w := newPDFWorld(t, nil)
	for _, o := range w.operations {
		if r := (Rule{Op: o.op, Rate: 1}); r.check() != nil {
			t.Errorf("%s: %v, want r.check() = nil", o.op, r.check())
		}
		kit.Check(t, o.serve != nil && (o.host == storeHost) != strings.HasPrefix(o.path, "/"), "row %+v", o)
		if o.host == storeHost || o.op == "extract-fetch" || o.op == "token" || o.op == "unknown" { // files of extracts are fetched from a host of their own
			continue
		}
		path := strings.NewReplacer("{vault}", "V1", "{bumId}", "x").Replace(o.path)
		kit.Want(t, o.op+" without credentials: status", w.call(o.method, path, "", "Authorization:").status, 401)
		stranger := asClerk
		if o.op == "pdf-register" {
			stranger = basicHeader("user", "s3=cret/+")
		}
		a := w.call(o.method, path, "", stranger)
		kit.Check(t, a.status == 403, "%s with the other service's credentials: status %d", o.op, a.status)
	}
}

// On one host, everything under the store's path is the store's, also by an
// unclean path.
func TestOneHost_UncleanPath(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.StoreURL = nil })
	srv := httptest.NewServer(w.Server)
	defer srv.Close()
	for path, status := range map[string]int{"/packages/V1//x.zip": 403, "/packages/V1/../x.pdf": 403, "/packages/": 403, "/v1//vaults": 502, "/v2//pdf/invoiceUpload": 502} {
		kit.Want(t, path+": status", wireSend(t, w.request("PUT", srv.URL+path, "x")).status, status)
	}
}
