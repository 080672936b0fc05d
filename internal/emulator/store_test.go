package emulator

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// What one library signs another verifies, whatever the path and the headers, and whatever time it is on either side.
func TestPresign_IsVerifiedByAnotherLibrary(t *testing.T) {
	k := keys{"ASIATEST", "secret", "session/+=", ""}
	for _, at := range []time.Time{time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Now(), time.Date(2041, 11, 20, 12, 0, 0, 999, time.UTC)} {
		for _, base := range []string{"https://h.test/b/V%201/x.zip", "http://127.0.0.1:9000/üñ/a@b.zip", "https://h.test/b/V%201%2F2/x+y.zip", "https://h.test/b?key=a%2Fb%20c"} {
			headers := map[string]string{"content-type": "application/zip", "x-amz-meta-a": "b", "x-amz-server-side-encryption": "aws:kms"}
			signed, err := k.presign(t.Context(), "PUT", base, headers, at, 900*time.Second)
			kit.Need(t, err == nil && strings.HasPrefix(signed, strings.NewReplacer("üñ", "%C3%BC%C3%B1").Replace(strings.Split(base, "?")[0])+"?"),
				"%s became %s: %v", base, signed, err)
			req := httptest.NewRequest("PUT", signed, nil)
			for name, v := range headers {
				req.Header.Set(name, v)
			}
			signedAt, d := k.verify(req, at.Add(900*time.Second).Truncate(time.Second))
			kit.Check(t, d == nil && signedAt.Equal(at.UTC().Truncate(time.Second)), "%s of %v: %+v", signed, at, d)
			req.Header.Set("x-amz-meta-a", "c")
			_, d = k.verify(req, at)
			kit.Check(t, d != nil && d.code == "SignatureDoesNotMatch", "another header: %+v", d)
		}
	}
}

func TestStoreRefuses(t *testing.T) {
	otherKey := keys{"ASIAOTHER", "other", "token", ""}
	rows := []struct {
		name   string
		edit   func(*world, *http.Request)
		status int
		body   string
	}{
		{"Expired", func(w *world, r *http.Request) { w.now = w.now.Add(15*time.Minute + time.Second) }, 403, "<Code>AccessDenied</Code><Message>Request has expired</Message>"},
		{"NotYetValid", func(w *world, r *http.Request) { w.now = w.now.Add(-16 * time.Minute) }, 403, "not valid yet"},
		{"LongerExpiresThanSigned", edited("X-Amz-Expires", "901"), 403, "SignatureDoesNotMatch"},
		{"ExpiresOverSevenDays", edited("X-Amz-Expires", "604801"), 400, "AuthorizationQueryParametersError"},
		{"TamperedSignature", edited("X-Amz-Signature", strings.Repeat("0", 64)), 403, "SignatureDoesNotMatch"},
		{"TamperedToken", edited("X-Amz-Security-Token", "x"), 403, "SignatureDoesNotMatch"},
		{"ExtraParameter", edited("versionId", "1"), 403, "SignatureDoesNotMatch"},
		{"NoSignature", func(w *world, r *http.Request) { r.URL.RawQuery = "" }, 403, "AccessDenied"},
		{"OtherPath", func(w *world, r *http.Request) { r.URL.Path += "x" }, 403, "SignatureDoesNotMatch"},
		{"OtherHost", func(w *world, r *http.Request) { r.Host = "other.test" }, 403, "SignatureDoesNotMatch"},
		{"OtherKey", func(w *world, r *http.Request) {
			u, _ := otherKey.presign(r.Context(), "PUT", "http://store.test"+r.URL.Path, nil, w.now, time.Minute)
			r.URL, _ = url.Parse(u)
		}, 403, "InvalidAccessKeyId"},
		{"GetOnPutURL", func(w *world, r *http.Request) { r.Method = "GET" }, 403, "SignatureDoesNotMatch"},
		{"Delete", func(w *world, r *http.Request) { r.Method = "DELETE" }, 405, "MethodNotAllowed"},
		{"Authorization", func(w *world, r *http.Request) { r.SetBasicAuth("user", "s3=cret/+") }, 400, "Only one auth mechanism allowed"},
		{"NoLength", func(w *world, r *http.Request) { r.ContentLength = -1 }, 411, "MissingContentLength"},
		{"WrongMD5", func(w *world, r *http.Request) { r.Header.Set("Content-MD5", md5of("other")) }, 400, "BadDigest"},
		{"MalformedMD5", func(w *world, r *http.Request) { r.Header.Set("Content-MD5", "abc") }, 400, "InvalidDigest"},
		{"UnsignedAmzHeader", func(w *world, r *http.Request) { r.Header.Set("x-amz-acl", "public-read") }, 403, "not signed"},
		{"BodyTooShort", func(w *world, r *http.Request) { r.ContentLength++ }, 0, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, nil)
			ticket := w.register(1)
			req := w.request("PUT", ticket.url, zipOf("a"))
			row.edit(w, req)
			a := w.send(req)
			kit.Check(t, a.status == row.status && strings.Contains(a.body, row.body),
				"status %d (%v), want %d with %q; body %s", a.status, a.err, row.status, row.body, a.body)
			kit.Check(t, a.status < 400 || a.status >= 500 || strings.Contains(a.body, "<RequestId>"),
				"body is no store error: %s", a.body)
			seen := w.Registrations()[0]
			kit.Check(t, seen.PUTs == 0, "stored all the same: %+v", seen)
			left, _ := os.ReadDir(w.objectsDir())
			kit.Check(t, len(left) == 0, "objects left: %v", left)
			if want := row.name == "Authorization" || row.name == "NoLength"; want != (len(w.Violations()) > 0) {
				t.Errorf("violations %q", w.Violations())
			}
		})
	}
}

func edited(name, value string) func(*world, *http.Request) {
	return func(_ *world, r *http.Request) {
		q := r.URL.Query()
		q.Set(name, value)
		r.URL.RawQuery = q.Encode()
	}
}

func TestExpiryToTheSecond(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Window = 5 * time.Second })
	ticket := w.register(1)
	w.now = w.now.Add(5 * time.Second)
	w.mustPut(ticket, zipOf("a"))
	w.now = w.now.Add(time.Second)
	kit.Want(t, "status", w.put(ticket, zipOf("a")).status, 403)
	w.wantNoViolations()
}

func TestSecondPutReplacesFirst(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ArchiveMin = time.Hour })
	ticket := w.register(1)
	first, second := zipOf("first"), zipOf("second")
	w.mustPut(ticket, first)
	w.mustPut(ticket, first)
	w.wantNoViolations()
	w.now = w.now.Add(10 * time.Minute)
	w.mustPut(ticket, second)
	w.wantViolation("other bytes under bumId " + ticket.bumID)
	w.now = w.now.Add(59 * time.Minute)
	kit.Want(t, "state", w.state(ticket.bumID), inProgress)
	w.now = w.now.Add(time.Minute)
	kit.Want(t, "downloaded", w.call("GET", docs+"/"+ticket.bumID, "").body, second)
	s := w.Registrations()[0]
	kit.Check(t, s.PUTs == 3 && s.SHA256 == digest([]byte(second)) && s.Size == int64(len(second)) && s.ArchivedAt.Equal(w.now), "seen %+v", s)
}

func TestETagForms(t *testing.T) {
	for form, want := range map[string]bool{"md5": true, "kms": false} {
		w := newWorld(t, func(c *Config) { c.Readings.ETag = form })
		a := w.put(w.register(1), zipOf("a"))
		sum := fmt.Sprintf("%q", fmt.Sprintf("%x", mustDecode(md5of(zipOf("a")))))
		got := a.header.Get("ETag")
		kit.Check(t, (got == sum) == want && len(got) == 34, "%s: ETag %s", form, got)
	}
}

func TestReencodedQueryIsAViolation(t *testing.T) {
	w := newWorld(t, nil)
	ticket := w.register(1)
	u, _ := url.Parse(ticket.url)
	u.RawQuery = u.Query().Encode() // the signature moves to its place in the alphabet
	ticket.url = u.String()
	w.mustPut(ticket, zipOf("a"))
	w.wantViolation("re-encoded")
}

func TestTicketHeadersMustBeSent(t *testing.T) {
	for _, form := range []string{"headers", "fields"} {
		w := newWorld(t, func(c *Config) { c.Readings.URLForm = form })
		ticket := w.register(1)
		kit.Want(t, form+": status", w.call("PUT", ticket.url, zipOf("a")).status, 403)
		w.mustPut(ticket, zipOf("a"))
		w.wantNoViolations()
	}
}

// The wire as it is: a real listener, so that chunks, early ends and 100-continue are net/http's own.
func TestStoreOnTheWire(t *testing.T) {
	var srv *httptest.Server
	w := newWorld(t, func(c *Config) { c.StoreURL = nil })
	srv = httptest.NewServer(w.Server)
	defer srv.Close()
	register := func(n int) ticket {
		req := w.request("POST", srv.URL+docs, batch(document(n)), "Content-Type: application/json")
		req.SetBasicAuth("user", "s3=cret/+")
		return w.tickets(wireSend(t, req))[0]
	}

	t.Run("Whole", func(t *testing.T) {
		a := wireSend(t, w.request("PUT", register(1).url, zipOf("a")))
		kit.Check(t, a.status == 200, "status %d: %s", a.status, a.body)
	})
	t.Run("Chunked", func(t *testing.T) {
		req := w.request("PUT", register(2).url, zipOf("a"))
		req.ContentLength = -1
		kit.Want(t, "status", wireSend(t, req).status, 411)
	})
	t.Run("EndsEarly", func(t *testing.T) {
		ticket := register(3)
		conn := rawPut(t, ticket.url, "Content-Length: 100\r\n", "only this")
		defer conn.Close()
		_ = conn.(*net.TCPConn).CloseWrite()
		got, _ := io.ReadAll(conn)
		kit.Check(t, !strings.Contains(string(got), " 200 "), "answered %q", got)
		s := w.Registrations()[2]
		kit.Check(t, s.PUTs == 0, "stored: %+v", s)
	})
	t.Run("ExpectContinueRefused", func(t *testing.T) {
		ticket := register(4)
		conn := rawPut(t, ticket.url+"x", "Content-Length: 100\r\nExpect: 100-continue\r\n", "")
		defer conn.Close()
		line, _ := bufio.NewReader(conn).ReadString('\n')
		kit.Check(t, strings.Contains(line, " 403 "), "answered %q before the body", line)
	})
	t.Run("ExpectContinueTaken", func(t *testing.T) {
		ticket := register(5)
		conn := rawPut(t, ticket.url, "Content-Length: 4\r\nExpect: 100-continue\r\n", "")
		defer conn.Close()
		in := bufio.NewReader(conn)
		line, _ := in.ReadString('\n')
		kit.Need(t, strings.Contains(line, " 100 "), "answered %q, not to go on", line)
		_, _ = io.WriteString(conn, "body")
		_, _ = in.ReadString('\n')
		line, _ = in.ReadString('\n')
		kit.Check(t, strings.Contains(line, " 200 "), "answered %q", line)
	})
}

func rawPut(t *testing.T, to, headers, body string) net.Conn {
	t.Helper()
	u := kit.Value(url.Parse(to))(t)
	conn := kit.Value(net.Dial("tcp", u.Host))(t)
	fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", u.RequestURI(), u.Host, headers, body)
	return conn
}

func wireSend(t *testing.T, req *http.Request) answer {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b), err}
}

func TestRedirectedPut(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Readings.StoreRedirectTo, c.Readings.URLForm = "https://eu.store.test", "headers" })
	ticket := w.register(1)
	a := w.put(ticket, zipOf("a"))
	kit.Need(t, a.status == 307 && w.Registrations()[0].PUTs == 0, "status %d", a.status)
	ticket.url = a.header.Get("Location")
	w.mustPut(ticket, zipOf("a"))
	w.wantNoViolations()
}

// Many clients at once, for the race detector; every package must end under its own bumId.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Faults.Rules = []Rule{{Rate: 0.1, Fault: Fault{Kind: Abort, IsAfterWork: true}}, {Rate: 0.1, Fault: Fault{Kind: Status}}}
	})
	var wg sync.WaitGroup
	for n := range 100 {
		wg.Go(func() {
			a := w.call("POST", docs, batch(document(n)))
			if a.status != 200 {
				return
			}
			ticket := w.tickets(a)[0]
			w.put(ticket, zipOf(ticket.clientUUID))
			w.call("GET", docs+"/status", "")
			w.call("GET", "/v1/vaults/V1/index", "")
			w.Violations()
		})
	}
	wg.Wait()
	stored := 0
	for _, s := range w.Registrations() {
		if s.PUTs > 0 {
			stored++
		}
		kit.Check(t, s.PUTs <= 0 || s.SHA256 == digest([]byte(zipOf(s.ClientUUID))), "foreign content: %+v", s)
	}
	kit.Check(t, stored >= 40, "only %d stored", stored)
	w.wantNoViolations()
}

// TestServerProcess is no test: it is the server that TestKillLosesNothing kills.
func TestServerProcess(t *testing.T) {
	dir := os.Getenv("EMULATOR_TEST_DIR")
	if dir == "" {
		t.Skip("only as the child of another test")
	}
	s := kit.Value(New(realConfig(dir)))(t)
	ln := kit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	fmt.Println("listening on", ln.Addr())
	t.Fatal(http.Serve(ln, s))
}

func realConfig(dir string) Config {
	return Config{Dir: dir, Username: "user", Secret: "s3=cret/+", Vaults: []Vault{{ID: "V1", Name: "Acme"}}}
}

// I5 durability, on the service's side: what was answered before kill -9 is there after it.
func TestKillLosesNothing(t *testing.T) {
	n := 0
	survivesKill(t, func(w *world, base string, answered map[string]bool) bool {
		n++
		a := wireSend(t, w.request("POST", base+docs, batch(document(n)), asUser, "Content-Type: application/json"))
		if a.err != nil {
			return false
		}
		t := w.tickets(a)[0]
		return w.uploads(t.bumID, t.url, zipOf(t.bumID), answered)
	}, func(w *world, id string, accepted bool) (known any, ok bool) {
		for _, s := range w.Registrations() {
			if s.BumID == id {
				return s, !accepted || s.SHA256 == digest([]byte(zipOf(id)))
			}
		}
		return nil, false
	})
}

var asUser = basicHeader("user", "s3=cret/+")

// uploads sends a content to its address, notes whether it was accepted, and
// reports whether the server lives.
func (w *world) uploads(id, url, content string, answered map[string]bool) (alive bool) {
	answered[id] = false
	a := wireSend(w.T, w.request("PUT", url, content))
	answered[id] = a.status == 200
	return a.err == nil
}

// survivesKill checks that what a server answered is there after kill -9. Until
// the server is gone, ask sends a document and notes by its number whether it
// was accepted. Of each number, kept gives what is known, and whether that is
// what was answered.
func survivesKill(t *testing.T, ask func(w *world, base string, answered map[string]bool) (alive bool),
	kept func(w *world, id string, accepted bool) (known any, ok bool)) {
	t.Helper()
	w := &world{T: t, cfg: realConfig(t.TempDir())}
	answered := map[string]bool{}
	for round := range 3 {
		base, process := startProcess(t, w.cfg.Dir)
		time.AfterFunc(time.Duration(50+40*round)*time.Millisecond, func() { _ = process.Process.Kill() })
		for ask(w, base, answered) {
		}
		_ = process.Wait()
	}
	w.restart()
	stored := 0
	for id, accepted := range answered {
		known, ok := kept(w, id, accepted)
		kit.Check(t, ok, "%s was answered, accepted: %t; known: %+v", id, accepted, known)
		if accepted {
			stored++
		}
	}
	kit.Check(t, stored != 0, "nothing was stored: the test proves nothing")
	w.wantNoViolations()
}

// startProcess runs a server process and gives its address.
func startProcess(t *testing.T, dir string) (base string, cmd *exec.Cmd) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^TestServerProcess$")
	cmd.Env = append(os.Environ(), "EMULATOR_TEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	kit.Must(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	kit.Need(t, err == nil, "server process said %q: %v", line, err)
	return "http://" + strings.TrimSpace(strings.TrimPrefix(line, "listening on ")), cmd
}

// I5 durability, on the service's side: a slot that was answered, and a PDF that was accepted, are there after kill -9.
func TestKillLosesNoPDF(t *testing.T) {
	content := func(id string) string { return "%PDF-1.7 " + id }
	survivesKill(t, func(w *world, base string, answered map[string]bool) bool {
		a := wireSend(t, w.request("POST", base+slots, goodBody, asUser, "Content-Type: application/json"))
		if a.err != nil {
			return false
		}
		slot := w.slotOf(a)
		return w.uploads(slot.bumID, slot.url, content(slot.bumID), answered)
	}, func(w *world, id string, accepted bool) (known any, ok bool) {
		for _, s := range w.PDFSlots() {
			if s.BumID == id {
				return s, !accepted || s.Flows == 1 && s.PUTs[0].SHA256 == digest([]byte(content(id)))
			}
		}
		return nil, false
	})
}
