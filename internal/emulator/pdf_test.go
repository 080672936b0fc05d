package emulator

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

const slots = "/v2/pdf/invoiceUpload"

// newPDFWorld has a PDF upload with an account of its own and one receiving address.
func newPDFWorld(t *testing.T, change func(*Config)) *world {
	t.Helper()
	return newWorld(t, func(c *Config) {
		c.PDF = PDF{Account: Account{"clerk", "p/df=secret"}, Receiving: []string{"ap@in.example"}}
		if change != nil {
			change(c)
		}
	})
}

func basicHeader(user, secret string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+secret))
}

var asClerk = basicHeader("clerk", "p/df=secret")

const goodBody = `{"receivingEmailAddress":"ap@in.example","notificationEmailAddress":"clerk@acme.example"}`

// slotTicket is what an answer of pdf-register says, in every form that it may have.
type slotTicket struct{ bumID, url string }

func (w *world) slotOf(a answer) slotTicket {
	w.Helper()
	if a.status != 200 || a.err != nil {
		w.Fatalf("pdf-register: status %d, error %v, body %s", a.status, a.err, a.body)
	}
	var got map[string]any
	w.decode(a, &got)
	t := slotTicket{}
	t.bumID, _ = got["bumId"].(string)
	for _, name := range []string{"uploadUrl", "url"} {
		switch u := got[name].(type) {
		case string:
			t.url = u
		case map[string]any:
			t.url, _ = u["url"].(string)
		}
	}
	return t
}

// slot registers one slot.
func (w *world) slot() slotTicket {
	w.Helper()
	return w.slotOf(w.call("POST", slots, goodBody, asClerk))
}

func (w *world) putPDF(t slotTicket, body string, headers ...string) answer {
	w.Helper()
	return w.call("PUT", t.url, body, append([]string{"Content-Type: application/pdf"}, headers...)...)
}

func (w *world) mustPutPDF(t slotTicket, body string) {
	w.Helper()
	if a := w.putPDF(t, body, "Content-MD5: "+md5of(body)); a.status != 200 || a.err != nil {
		w.Fatalf("PUT: status %d, error %v, body %s", a.status, a.err, a.body)
	}
}

// One call gives one slot, whose address is good for an hour; the store's 2xx means that a flow began with these bytes.
func TestPDFUpload(t *testing.T) {
	w := newPDFWorld(t, nil)
	a := w.call("POST", slots, goodBody, asClerk)
	one, two := w.slotOf(a), w.slot()
	u, err := url.Parse(one.url)
	kit.Check(t, err == nil && u.Host == "store.test" && u.Query().Get("X-Amz-Expires") == "3600" && u.Query().Get("X-Amz-SignedHeaders") == "host",
		"address %s: %v", one.url, err)
	kit.Check(t, one.bumID != "" && one.bumID != two.bumID && one.url != two.url && strings.Count(a.body, `":`) == 2,
		"answer %s, then %+v", a.body, two)
	w.now = w.now.Add(time.Minute)
	w.mustPutPDF(one, "%PDF-1.7 a")
	w.now = w.now.Add(time.Minute)
	w.mustPutPDF(one, "%PDF-1.7 a")
	at := w.now.Add(-2 * time.Minute)
	sum := digest([]byte("%PDF-1.7 a"))
	kit.Want(t, "slots", w.PDFSlots(), []PDFSlot{
		{BumID: one.bumID, Receiving: "ap@in.example", Notification: "clerk@acme.example", RegisteredAt: at, Deadline: at.Add(time.Hour), Flows: 1,
			PUTs: []StoredPDF{{sum, 10, at.Add(time.Minute), false, false, true}, {sum, 10, at.Add(2 * time.Minute), false, false, false}}},
		{BumID: two.bumID, Receiving: "ap@in.example", Notification: "clerk@acme.example", RegisteredAt: at, Deadline: at.Add(time.Hour)},
	})
	kit.Check(t, w.CountCalls("pdf-register") == 2 && w.CountCalls("pdf-upload") == 2 && w.CountCalls("register")+w.CountCalls("upload") == 0,
		"calls %v", w.callCounts)
	kit.Len(t, "the archive", w.Registrations(), 0)
	w.wantNoViolations()
}

func TestPDFBody_IsStrict(t *testing.T) {
	const receiving, notification = `"receivingEmailAddress":"ap@in.example"`, `"notificationEmailAddress":"clerk@acme.example"`
	rows := []struct {
		name, body string
		status     int
		parts      string // of the answer, separated by blanks
	}{
		{"Good", "{" + notification + "," + receiving + "}", 200, `uploadUrl`},
		{"OtherCase", `{"receivingEmailAddress":"AP@In.example",` + notification + "}", 200, `uploadUrl`},
		{"NoReceiving", "{" + notification + "}", 422, `"loc":["body","receivingEmailAddress"] "type":"value_error.missing"`},
		{"NoNotification", "{" + receiving + "}", 422, `"loc":["body","notificationEmailAddress"] "type":"value_error.missing"`},
		{"Nothing", "{}", 422, `"receivingEmailAddress" "notificationEmailAddress"`},
		{"OneMore", "{" + receiving + "," + notification + `,"x":1}`, 422, `"loc":["body","x"] "type":"value_error.extra"`},
		{"OtherCaseOfAName", `{"ReceivingEmailAddress":"ap@in.example",` + notification + "}", 422, `["body","receivingEmailAddress"] ["body","ReceivingEmailAddress"]`},
		{"NoAddress", `{"receivingEmailAddress":"ap",` + notification + "}", 422, `["body","receivingEmailAddress"] "type":"value_error.email"`},
		{"AddressWithName", "{" + receiving + `,"notificationEmailAddress":"Clerk <clerk@acme.example>"}`, 422, `"type":"value_error.email"`},
		{"TwoAddresses", "{" + receiving + `,"notificationEmailAddress":"a@acme.example, b@acme.example"}`, 422, `"type":"value_error.email"`},
		{"EmptyAddress", "{" + receiving + `,"notificationEmailAddress":""}`, 422, `"type":"value_error.email"`},
		{"Null", `{"receivingEmailAddress":null,` + notification + "}", 422, `"type":"type_error.str"`},
		{"List", `{"receivingEmailAddress":["ap@in.example"],` + notification + "}", 422, `"type":"type_error.str"`},
		{"UnknownAddress", `{"receivingEmailAddress":"other@in.example",` + notification + "}", 422, `["body","receivingEmailAddress"]`},
		{"Twice", "{" + receiving + "," + receiving + "," + notification + "}", 400, `{"detail":"`},
		{"Array", "[" + goodBody + "]", 400, `{"detail":"`},
		{"NoJSON", "receivingEmailAddress=ap", 400, `{"detail":"`},
		{"Trailing", goodBody + "x", 400, `{"detail":"`},
		{"BadUTF8", "{" + receiving + ",\"notificationEmailAddress\":\"\xff@acme.example\"}", 400, `{"detail":"`},
		{"Empty", "", 400, `{"detail":"`},
		{"TooLong", goodBody + strings.Repeat(" ", 64<<10), 413, `{"detail":"`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := newPDFWorld(t, nil)
			a := w.call("POST", slots, row.body, asClerk)
			kit.Check(t, a.status == row.status, "status %d, want %d: %s", a.status, row.status, a.body)
			kit.Holds(t, "the text", a.body, strings.Fields(row.parts)...)
			if made := len(w.PDFSlots()) == 1; made != (row.status == 200) {
				t.Errorf("slots %+v", w.PDFSlots())
			}
			w.wantNoViolations()
		})
	}
	w := newPDFWorld(t, nil)
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded"} {
		a := w.call("POST", slots, goodBody, asClerk, "Content-Type:"+kind)
		kit.Check(t, a.status == 400, "Content-Type %q: status %d", kind, a.status)
	}
	kit.Want(t, "Content-Type with a parameter: status",
		w.call("POST", slots, goodBody, asClerk, "Content-Type: application/json; charset=utf-8").status, 200)
}

// The PDF upload has an account and a scope of its own: neither side's credentials open the other, and no scope that an account
// lacks is granted.
func TestPDFAccess(t *testing.T) {
	w := newPDFWorld(t, func(c *Config) { c.Scopes = []string{"vault.read"} })
	token := func(id, secret, scope string) (string, string) {
		form := url.Values{"grant_type": {"client_credentials"}, "scope": {scope}}
		var got struct {
			Token string `json:"access_token"`
			Scope string
		}
		w.decode(w.call("POST", "/v1/tokens", form.Encode(), "Content-Type: application/x-www-form-urlencoded", basicHeader(id, secret)), &got)
		return "Authorization: Bearer " + got.Token, got.Scope
	}
	for _, row := range []struct{ id, secret, asked, granted string }{
		{"clerk", "p/df=secret", "importDocuments.write vault.read other", "importDocuments.write"},
		{"client", "cl%secret", "importDocuments.write vault.read other", "vault.read"},
	} {
		_, granted := token(row.id, row.secret, row.asked)
		kit.Check(t, granted == row.granted, "%s asked for %q and got %q", row.id, row.asked, granted)
	}
	scoped, _ := token("clerk", "p/df=secret", "importDocuments.write")
	unscoped, _ := token("clerk", "p/df=secret", "importDocuments.wriet")
	ofVault, _ := token("client", "cl%secret", "vault.read importDocuments.write")
	for _, row := range []struct {
		name, header  string
		slots, vaults int
	}{
		{"Clerk", asClerk, 200, 403},
		{"ClerkWithWrongSecret", basicHeader("clerk", "x"), 403, 403},
		{"Vault", basicHeader("user", "s3=cret/+"), 403, 200},
		{"Nobody", "Authorization:", 401, 401},
		{"Token", scoped, 200, 403},
		{"TokenWithoutScope", unscoped, 403, 403},
		{"TokenOfVault", ofVault, 403, 200},
		{"AlteredToken", scoped + "x", 403, 403},
	} {
		a := w.call("POST", slots, goodBody, row.header)
		kit.Check(t, a.status == row.slots && (a.status <= 400 || strings.HasPrefix(a.body, `{"detail":"`)),
			"%s: slots give %d %s", row.name, a.status, a.body)
		kit.Want(t, row.name+": vaults give", w.call("GET", "/v1/vaults", "", row.header).status, row.vaults)
	}
	w.wantNoViolations()

	w = newWorld(t, nil) // without an account of its own the main one has it
	kit.Want(t, "main account: status", w.call("POST", slots, goodBody).status, 200)
	kit.Holds(t, "the answer", w.token("importDocuments.write x").body, `"scope":"importDocuments.write x"`)
	w = newWorld(t, func(c *Config) { c.Scopes = []string{"vault.read"} }) // and has no other scopes than it is given
	kit.Holds(t, "the answer", w.token("importDocuments.write vault.read").body, `"scope":"vault.read"`)
}

func TestPDFPath(t *testing.T) {
	w := newPDFWorld(t, func(c *Config) { c.PDF.Path = "/v2/smartpdf/invoiceUpload" })
	kit.Want(t, "status", w.call("POST", "/v2/smartpdf/invoiceUpload", goodBody, asClerk).status, 200)
	for _, call := range []string{"POST " + slots, "GET /v2/smartpdf/invoiceUpload", "HEAD /v2/smartpdf/invoiceUpload", "POST /v2/smartpdf/invoiceUpload/", "POST /v2/smartpdf/invoiceupload"} {
		method, path, _ := strings.Cut(call, " ")
		kit.Want(t, call+": status", w.call(method, path, goodBody, asClerk).status, 502)
	}
	good := w.cfg
	for _, path := range []string{"v2/pdf", "/", "/v2/pdf/", "/v2/../pdf", "/v2/{pdf}", "/v1/tokens", "/v2 /pdf"} {
		cfg := good
		cfg.Dir, cfg.PDF.Path = t.TempDir(), path
		if s, err := New(cfg); err == nil {
			t.Errorf("path %q was taken", path)
			_ = s.Close()
		}
	}
	for name, spoil := range map[string]func(*PDF){
		"HalfSecond": func(p *PDF) { p.Window = time.Second / 2 }, "EightDays": func(p *PDF) { p.Window = 8 * 24 * time.Hour },
		"TwoScopes": func(p *PDF) { p.Scope = "a b" }, "NoAddress": func(p *PDF) { p.Receiving = []string{"ap"} },
	} {
		cfg := good
		cfg.Dir = t.TempDir()
		spoil(&cfg.PDF)
		if s, err := New(cfg); err == nil {
			t.Errorf("%s was taken", name)
			_ = s.Close()
		}
	}
}

// On one host, with a store at its root, API and store are told apart.
func TestPDFOnOneHost(t *testing.T) {
	for _, path := range []string{"", "/packages"} {
		for _, validity := range []string{"told", "untold"} {
			var srv *httptest.Server
			w := newPDFWorld(t, func(c *Config) {
				c.StoreURL = func() string { return srv.URL + path }
				c.Readings.PDF.Validity = validity
			})
			srv = httptest.NewServer(w.Server)
			defer srv.Close()
			ticket := w.slotOf(wireSend(t, w.request("POST", srv.URL+slots, goodBody, "Content-Type: application/json", asClerk)))
			a := wireSend(t, w.request("PUT", ticket.url, "%PDF-1.7"))
			kit.Check(t, a.status == 200, "store at %q: status %d: %s", path, a.status, a.body)
			kit.Want(t, fmt.Sprintf("store at %q", path), len(w.PDFSlots()[0].PUTs), 1)
			w.wantNoViolations()
		}
	}
}

// The end of an address is judged to the second, and a client that comes later is remembered, in whatever form the address is.
func TestPDFExpiry(t *testing.T) {
	for validity, window := range map[string]time.Duration{"told": 5 * time.Second, "untold": 15 * time.Minute} {
		w := newPDFWorld(t, func(c *Config) { c.Readings.PDF.Validity, c.PDF.Window = validity, window })
		ticket := w.slot()
		w.now = w.now.Add(window)
		w.mustPutPDF(ticket, "%PDF-1.7")
		w.wantNoViolations()
		w.now = w.now.Add(time.Second)
		if a := w.putPDF(ticket, "%PDF-1.7"); a.status != 403 || !strings.Contains(a.body, "Request has expired") {
			t.Errorf(`%s: %+v, want a.status = 403, a.body with "Request has expired"`, validity, a)
		}
		w.wantViolation("after the end of its address")
		kit.Want(t, validity, len(w.PDFSlots()[0].PUTs), 1)
	}
}

// An address that ends before a client can know it is refused, and is not the client's doing.
func TestPDFExpiry_UntoldAndShort(t *testing.T) {
	w := newPDFWorld(t, func(c *Config) { c.Readings.PDF.Validity, c.PDF.Window = "untold", time.Minute })
	ticket := w.slot()
	w.now = w.now.Add(15 * time.Minute)
	a := w.putPDF(ticket, "%PDF-1.7")
	kit.Check(t, a.status == 403, "%+v, want a.status = 403", a)
	w.wantNoViolations()
}

// A call that the service itself delays beyond the end of its address is refused, and is not the client's doing.
func TestPDFExpiry_ByADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPDFWorld(t, func(c *Config) { c.Clock = nil })
		ticket := w.slot()
		time.Sleep(59 * time.Minute)
		w.at("pdf-upload", 1, Fault{Delay: 5 * time.Minute})
		a := w.putPDF(ticket, "%PDF-1.7")
		kit.Check(t, a.status == 403, "%+v, want a.status = 403", a)
		w.wantNoViolations()
	})
}

func TestPDFStoreRefuses(t *testing.T) {
	for _, validity := range []string{"told", "untold"} {
		for name, row := range map[string]struct {
			edit      func(w *world, t *slotTicket) []string
			status    int
			violation string
		}{
			"Authorization": {func(*world, *slotTicket) []string { return []string{asClerk} }, 400, "Authorization header on a pre-signed PUT"},
			"OtherSlot": {func(w *world, t *slotTicket) []string {
				t.url = strings.Replace(t.url, t.bumID, w.slot().bumID, 1)
				return nil
			}, 403, ""},
			"NoSignature": {func(_ *world, t *slotTicket) []string { t.url, _, _ = strings.Cut(t.url, "?"); return nil }, 403, ""},
			"Tampered":    {func(_ *world, t *slotTicket) []string { t.url += "0"; return nil }, 403, ""},
			"WrongMD5":    {func(*world, *slotTicket) []string { return []string{"Content-MD5: " + md5of("other")} }, 400, ""},
		} {
			t.Run(validity+name, func(t *testing.T) {
				w := newPDFWorld(t, func(c *Config) { c.Readings.PDF.Validity = validity })
				ticket := w.slot()
				headers := row.edit(w, &ticket)
				a := w.putPDF(ticket, "%PDF-1.7", headers...)
				kit.Check(t, a.status == row.status, "%+v, want a.status = %v", a, row.status)
				for _, s := range w.PDFSlots() {
					kit.Check(t, len(s.PUTs) <= 0, "stored all the same: %+v", s)
				}
				if row.violation == "" {
					w.wantNoViolations()
				} else {
					w.wantViolation(row.violation)
				}
			})
		}
	}
	w := newPDFWorld(t, nil)
	req := w.request("PUT", w.slot().url, "%PDF-1.7")
	req.ContentLength = -1
	a := w.send(req)
	kit.Check(t, a.status == 411, "no length: %+v", a)
	w.wantViolation("PUT without a Content-Length")
	a = w.call("DELETE", w.slot().url, "")
	kit.Check(t, a.status == 405, "delete: %+v", a)
}

// Two slots with one PDF for one addressee are a violation, unless a person released it, and as often as that.
func TestPDFDouble(t *testing.T) {
	const other = `{"receivingEmailAddress":"second@in.example","notificationEmailAddress":"clerk@acme.example"}`
	w := newPDFWorld(t, func(c *Config) { c.PDF.Receiving = nil })
	w.mustPutPDF(w.slot(), "%PDF-1.7 a")
	w.mustPutPDF(w.slot(), "%PDF-1.7 b")
	w.mustPutPDF(w.slotOf(w.call("POST", slots, other, asClerk)), "%PDF-1.7 a")
	w.slot()
	w.wantNoViolations()
	w.mustPutPDF(w.slot(), "%PDF-1.7 a")
	w.wantViolation("double PDF")
	release := func() {
		kit.Must(t, w.ReleasePDF("AP@in.example", digest([]byte("%PDF-1.7 a"))))
		w.restart()
	}
	release()
	w.wantNoViolations()
	w.mustPutPDF(w.slot(), "%PDF-1.7 a")
	w.wantViolation("double PDF")
	release()
	release()
	w.mustPutPDF(w.slot(), "%PDF-1.7 a")
	w.wantNoViolations()
}

// What the store answered to refuse, and kept, is no double: a client cannot know of it. The ledger of truth tells it.
func TestPDFDouble_RefusedAndKept(t *testing.T) {
	for status, double := range map[int]bool{400: false, 403: false, 500: true, 503: true} {
		w := newPDFWorld(t, nil)
		w.at("pdf-upload", 1, Fault{Kind: Status, Status: status, IsAfterWork: true})
		a := w.putPDF(w.slot(), "%PDF-1.7 a")
		kit.Check(t, a.status == status, "%d: %+v, want a.status = %v", status, a, status)
		w.mustPutPDF(w.slot(), "%PDF-1.7 a")
		kit.Want(t, fmt.Sprintf("%d: %q", status, w.Violations()), len(w.Violations()) == 1, double)
		if s := w.PDFSlots()[0]; len(s.PUTs) != 1 || s.PUTs[0].IsRefused == double || s.Flows != 1 {
			t.Errorf("%d: %+v, want len(s.PUTs) = 1, s.PUTs[0].IsRefused other than %v, s.Flows = 1", status, s, double)
		}
	}
}

func TestPDFOtherBytesInASlot(t *testing.T) {
	w := newPDFWorld(t, nil)
	ticket := w.slot()
	w.mustPutPDF(ticket, "%PDF-1.7 a")
	w.wantNoViolations()
	w.mustPutPDF(ticket, "%PDF-1.7 b")
	w.wantViolation("other bytes in slot " + ticket.bumID)
}

// A client begins with few calls at once. After the first second, and in a flow that goes on over a restart, it may have more.
func TestPDFFirstSecond(t *testing.T) {
	for _, row := range []struct {
		name     string
		atOnce   int
		op       string
		before   time.Duration // since the first call; 0: these are the first
		restarts bool
		want     bool
	}{
		{"FourSlots", 4, "pdf-register", 0, false, false},
		{"FiveSlots", 5, "pdf-register", 0, false, true},
		{"FivePUTs", 5, "pdf-upload", 200 * time.Millisecond, false, true},
		{"FiveASecondLater", 5, "pdf-register", 1100 * time.Millisecond, false, false},
		{"FiveAfterARestart", 5, "pdf-register", time.Minute, true, false},
		{"FiveAfterAPause", 5, "pdf-register", 10 * time.Minute, false, true},
		{"FiveVaultCalls", 5, "vaults", 0, false, false},
	} {
		kit.Bubble(t, row.name, func(t *testing.T) {
			w := newPDFWorld(t, func(c *Config) { c.Clock = nil })
			var first slotTicket
			if row.before > 0 {
				first = w.slot()
				time.Sleep(row.before)
			}
			if row.restarts {
				w.restart()
			}
			kit.Must(t, w.SetFaults(Faults{Rules: []Rule{{Rate: 1, Fault: Fault{DelayAfter: 2 * time.Second}}}}))
			for range row.atOnce {
				go func() {
					switch row.op {
					case "pdf-register":
						w.call("POST", slots, goodBody, asClerk)
					case "pdf-upload":
						w.putPDF(first, "%PDF-1.7")
					default:
						w.call("GET", "/v1/vaults", "")
					}
				}()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			kit.Want(t, fmt.Sprintf("violations %q", w.Violations()), len(w.Violations()) > 0, row.want)
			if row.want {
				w.wantViolation("5 calls at once in the first second")
			}
		})
	}
}
