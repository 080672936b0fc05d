package emulator

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

// newNetworkWorld has a business network with an account of its own, where delivery takes an hour.
func newNetworkWorld(t *testing.T, change func(*Config)) *world {
	t.Helper()
	return newWorld(t, func(c *Config) {
		c.Network = Network{Account: Account{"trader", "n/et=secret"}, DeliverMin: time.Hour, DeliverMax: time.Hour}
		c.Readings.Network.Received = "type"
		if change != nil {
			change(c)
		}
	})
}

var asTrader = basicHeader("trader", "n/et=secret")

const (
	requestIDLine = "X-SVC-REQUEST-ID: 3f0e4f7c-5d0b-4d53-9d39-4f6e1f3f7a11"
	notices       = "/v1.1/notifications"
)

// net makes a call to the network as its well-behaved user.
func (w *world) net(method, path, body string, headers ...string) answer {
	w.Helper()
	return w.call(method, path, body, append([]string{asTrader, requestIDLine}, headers...)...)
}

func bumID(n int) string { return fmt.Sprintf("7a1f0000-0000-5000-8000-%012d", n) }

// invoice is a document with a note that refers to files.
func invoice(note string, refs ...string) string {
	var list []string
	for _, r := range refs {
		list = append(list, fmt.Sprintf(`{"refId":%q}`, r))
	}
	return fmt.Sprintf(`{"fileRefs":[%s],"data":{"documentCurrencyCode":"EUR","issueDate":"2026-01-31","note":%q,"externalDocumentIdentifier":{"id":"INV-1"}},`+
		`"processingPreference":{"sentTo":{"id":"7300010000001","schemeId":"GLN"}}}`, strings.Join(list, ","), note)
}

// filePart is one part of the body of a file.
type filePart struct{ disposition, contentType, body string }

func fileParts(request, name, content string) []filePart {
	return []filePart{{`form-data; name="request"`, "application/json", request}, {fmt.Sprintf(`form-data; name="file"; filename=%q`, name), "application/octet-stream", content}}
}

func (w *world) postParts(parts []filePart, headers ...string) answer {
	w.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for _, p := range parts {
		part, err := m.CreatePart(textproto.MIMEHeader{"Content-Disposition": {p.disposition}, "Content-Type": {p.contentType}})
		if err == nil {
			_, err = part.Write([]byte(p.body))
		}
		kit.Must(w, err)
	}
	kit.Must(w, m.Close())
	return w.net("POST", "/v2/files", b.String(), append([]string{"Content-Type: multipart/mixed; boundary=" + m.Boundary()}, headers...)...)
}

func (w *world) postFile(bumID, fileType, name, content string) answer {
	w.Helper()
	return w.postParts(fileParts(fmt.Sprintf(`{"bumId":%q,"fileType":%q}`, bumID, fileType), name, content))
}

// mustStore stores a file and returns its id.
func (w *world) mustStore(bumID, name, content string) string {
	w.Helper()
	a := w.postFile(bumID, "imageFile", name, content)
	var got struct{ Version, FileID string }
	if a.status != 200 {
		w.Fatalf("file: %+v", a)
	}
	w.decode(a, &got)
	return got.FileID
}

func (w *world) mustSend(n int, note string, refs ...string) {
	w.Helper()
	if a := w.net("POST", invoicesPath+"/"+bumID(n), invoice(note, refs...)); a.status != 200 || a.err != nil {
		w.Fatalf("send: %+v", a)
	}
}

// codeOf returns the code of an error answer in either wrapper, with its status.
func (w *world) codeOf(a answer) string {
	w.Helper()
	if a.err != nil {
		return "no answer"
	}
	if a.status < 300 {
		return fmt.Sprint(a.status)
	}
	var got map[string]any
	w.decode(a, &got)
	for _, wrapper := range []string{"error", "errors"} {
		if item, ok := got[wrapper].(map[string]any); ok {
			if id, _ := item["id"].(string); !isUUID(id) || item["type"] == "" || item["message"] == "" || item["info"] == "" {
				w.Errorf("the error answer is not whole: %s", a.body)
			}
			return fmt.Sprint(a.status, " ", strings.TrimPrefix(item["code"].(string), "Error."))
		}
	}
	return fmt.Sprint(a.status)
}

// listedNotice is a notification as a list tells it.
type listedNotice struct {
	BumID, DocumentType, AcknowledgementID, ResponseCode, ActionCode, NotificationCreated string
	AdditionalActionProperties                                                            []NoticeProperty
	Links                                                                                 []struct{ Rel, Href, Method string }
}

func (n listedNotice) pair() string { return n.ResponseCode + "/" + n.ActionCode }

type noticeList struct {
	HasMoreItems  bool
	Notifications []listedNotice
}

func (w *world) list(query string) noticeList {
	w.Helper()
	a := w.net("GET", notices+"?"+query, "")
	if a.status != 200 {
		w.Fatalf("notifications: %+v", a)
	}
	var got noticeList
	w.decode(a, &got)
	return got
}

// pairs returns the codes of all notifications that wait.
func (w *world) pairs(query ...string) (all []string) {
	w.Helper()
	for _, n := range w.list(strings.Join(append([]string{"page=1&pageSize=5000"}, query...), "&")).Notifications {
		all = append(all, n.pair())
	}
	return all
}

func (w *world) wantPairs(want ...string) {
	w.Helper()
	kit.Want(w, "notifications", w.pairs(), want)
}

// A file, a document that refers to it, and what becomes of it: from the first call to the last notification.
func TestNetwork_SendAndFollow(t *testing.T) {
	w := newNetworkWorld(t, nil)
	ref := w.mustStore(bumID(1), "invoice.PDF", "%PDF-1.7")
	kit.Want(t, "file id", len(ref), 24)
	w.mustSend(1, "please pay", ref)
	w.wantPairs("TechnicalAccept/ReceivedForProcessing")
	w.now = w.now.Add(time.Hour)
	w.wantPairs("TechnicalAccept/ReceivedForProcessing", "TechnicalAccept/Delivered")
	for _, n := range w.list("page=1&pageSize=10").Notifications {
		a := w.net("DELETE", notices+"/"+n.AcknowledgementID, "")
		kit.Check(t, a.status == 200, "DELETE: %+v", a)
	}
	w.wantPairs()
	sent := w.SentDocuments()
	if len(sent) != 1 || sent[0].BumID != bumID(1) || sent[0].Kind != "Invoice" || sent[0].SHA256 != digest([]byte(invoice("please pay", ref))) ||
		sent[0].TimesAccepted != 1 || sent[0].TimesPosted != 1 || sent[0].Files[0].SHA256 != digest([]byte("%PDF-1.7")) {
		t.Errorf("sent: %+v", sent)
	}
	w.wantNoViolations()
}

// The network takes credit notes at their own path, wherever that is, and tells them as the readings say.
func TestNetwork_CreditNotes(t *testing.T) {
	for _, word := range []string{"CreditNode", "CreditNote"} {
		w := newNetworkWorld(t, func(c *Config) { c.Network.CreditNotes = "/v2/credits"; c.Readings.Network.CreditNoteWord = word })
		a := w.net("POST", "/v2/credits/"+bumID(1), invoice(""))
		kit.Need(t, a.status == 200, "send: %+v", a)
		w.mustSend(2, "")
		got := w.list("page=1&pageSize=9&documentType=CreditNode").Notifications
		if len(got) != 1 || got[0].DocumentType != word || got[0].BumID != bumID(1) {
			t.Errorf("%s: %+v, want len(got) = 1, got[0].DocumentType = %v, got[0].BumID = %v", word, got, word, bumID(1))
		}
		a = w.net("GET", "/v1/credits/"+bumID(1), "")
		kit.Check(t, a.status == 200 && !strings.Contains(a.body, "bumId"), "v1: %+v", a)
		a = w.net("GET", "/v2/credits/"+bumID(2), "")
		kit.Check(t, w.codeOf(a) == "404 003.0001", "an invoice among the credit notes: %+v", a)
		w.wantNoViolations()
	}
}

// What is wrong with a document is refused with the code that the specification names.
func TestNetwork_RefusesDocuments(t *testing.T) {
	w := newNetworkWorld(t, func(c *Config) {
		c.Network.UnknownReceivers = []string{"7300010000002"}
		c.Network.MaxDocument = 10_000
	})
	good := invoice("")
	edit := func(old, now string) string { return strings.Replace(good, old, now, 1) }
	for name, row := range map[string]struct{ id, body, want string }{
		"v7":                 {"01890000-0000-7000-8000-000000000001", good, "400 004.0003"},
		"Capitals":           {strings.ToUpper(bumID(1)), good, "400 004.0003"},
		"NoJSON":             {bumID(1), "{", "400 004.0004"},
		"Twins":              {bumID(1), edit(`"data"`, `"data":{},"data"`), "400 004.0004"},
		"UnknownField":       {bumID(1), edit(`"data"`, `"version":"1","data"`), "400 004.0002"},
		"NoData":             {bumID(1), edit(`"data"`, `"printingPreference"`), "400 004.0002"},
		"NoCurrency":         {bumID(1), edit(`"documentCurrencyCode":"EUR",`, ``), "400 004.0002"},
		"SmallCurrency":      {bumID(1), edit(`"EUR"`, `"eur"`), "400 004.0002"},
		"BadDate":            {bumID(1), edit(`2026-01-31`, `31.01.2026`), "400 004.0002"},
		"NoPartyName":        {bumID(1), edit(`"note"`, `"accountingSupplierParty":{},"note"`), "400 004.0002"},
		"ChargeWithoutSign":  {bumID(1), edit(`"note"`, `"allowanceCharges":[{"amount":1}],"note"`), "400 004.0002"},
		"NoMeansCode":        {bumID(1), edit(`"note"`, `"paymentMeans":{},"note"`), "400 004.0002"},
		"UnknownOutcome":     {bumID(1), invoice("emulate:fly"), "400 004.0002"},
		"NoReceiver":         {bumID(1), edit(`"sentTo"`, `"other"`), "400 004.0002"},
		"ShortGLN":           {bumID(1), edit(`7300010000001`, `730001000000`), "400 004.0013"},
		"UnknownScheme":      {bumID(1), edit(`"GLN"`, `"UNKNOWN"`), "400 004.0013"},
		"LongSIREN":          {bumID(1), edit(`"GLN"`, `"FR:ORGNR"`), "400 004.0013"},
		"IBANWithSpaces":     {bumID(1), edit(`"note"`, `"paymentMeans":{"paymentMeansCode":"30","financialAccounts":[{"ids":[{"id":"DE02 1203","schemeId":"IBAN"}]}]},"note"`), "400 004.0014"},
		"UnknownReceiver":    {bumID(1), edit(`7300010000001`, `7300010000002`), "400 001.0001"},
		"TooLarge":           {bumID(1), invoice(strings.Repeat("x", 10_000)), "413 004.0012"},
		"UnknownTypeOfFiles": {bumID(1), edit(`[]`, `[{"refId":"x","fileType":"image"}]`), "400 003.0020"},
	} {
		w := newNetworkWorld(t, func(c *Config) {
			c.Network.UnknownReceivers, c.Network.MaxDocument = w.cfg.Network.UnknownReceivers, w.cfg.Network.MaxDocument
		})
		kit.Want(t, name, w.codeOf(w.net("POST", invoicesPath+"/"+row.id, row.body)), row.want)
		kit.Check(t, len(w.SentDocuments()) <= 0, "%s: it was accepted", name)
	}
	kit.Want(t, "plain text", w.codeOf(w.net("POST", invoicesPath+"/"+bumID(1), good, "Content-Type: text/plain")), "400 004.0004")
}

// Every call but those about notifications carries a UUID of its own.
func TestNetwork_RequestID(t *testing.T) {
	w := newNetworkWorld(t, nil)
	id := bumID(1)
	for _, call := range []string{"POST /v2/files", "POST /v2/invoices/" + id, "GET /v2/invoices/" + id, "GET /v1/files/x", "GET /files/x", "GET /v1/directory/fr?siren=123456789"} {
		method, path, _ := strings.Cut(call, " ")
		for _, header := range []string{"X-SVC-REQUEST-ID:", "X-SVC-REQUEST-ID: 17"} {
			got := w.codeOf(w.net(method, path, invoice(""), header))
			kit.Check(t, got == "400 004.0004", "%s with %q: %s", call, header, got)
		}
	}
	a := w.net("GET", notices+"?page=1&pageSize=1", "", "X-SVC-REQUEST-ID:")
	kit.Check(t, a.status == 200, "notifications without an identifier: %+v", a)
}

// The two wrappers of errors: one has a version and the faults by field.
func TestNetwork_ErrorWrappers(t *testing.T) {
	for reading, begin := range map[string]string{"error": `{"error":{`, "errors": `{"errors":{`} {
		w := newNetworkWorld(t, func(c *Config) { c.Readings.Network.ErrorWrapper = reading })
		body := strings.Replace(strings.Replace(invoice(""), `"EUR"`, `"eur"`, 1), "2026-01-31", "x", 1)
		a := w.net("POST", invoicesPath+"/"+bumID(1), body)
		kit.Check(t, w.codeOf(a) == "400 004.0002" && strings.HasPrefix(a.body, begin),
			`%s: %s, want w.codeOf(a) = "400 004.0002", a.body that begins with %q`, reading, a.body, begin)
		hasFields := strings.Contains(a.body, "data.issueDate") && strings.Contains(a.body, `"version":"1.0"`)
		kit.Check(t, hasFields == (reading == "errors"), "%s: %s, want hasFields = %v", reading, a.body, (reading == "errors"))
	}
}

// A call without credentials is a violation. A token is no credential here, and nor is the secret of another service.
func TestNetwork_Credentials(t *testing.T) {
	w := newNetworkWorld(t, func(c *Config) { c.Username, c.Secret = "", "" })
	var granted struct {
		Token string `json:"access_token"`
	}
	w.decode(w.token(""), &granted)
	for header, want := range map[string]int{"Authorization: Bearer " + granted.Token: 401, "Authorization: Basic Og==": 401,
		basicHeader("trader", "wrong"): 403, asTrader: 200} {
		a := w.net("GET", notices+"?page=1&pageSize=1", "", header)
		kit.Check(t, a.status == want, "%s: %+v, want a.status = %v", header, a, want)
	}
	w.wantNoViolations()
	a := w.net("GET", notices+"?page=1&pageSize=1", "", "Authorization:")
	kit.Check(t, a.status == 401, "without credentials: %+v", a)
	w.wantViolation("network-notices without an Authorization header")
}

// A flow that begins with many calls at once is a violation.
func TestNetwork_StartsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetworkWorld(t, func(c *Config) {
			c.Clock = time.Now
			c.Faults.Rules = []Rule{{Op: "network-notices", Rate: 1, Fault: Fault{Delay: time.Minute}}}
		})
		start := func(n int) {
			ended := make(chan error)
			for range n {
				go func() {
					resp, err := w.Transport().RoundTrip(w.request(http.MethodGet, notices+"?page=1&pageSize=1", "", asTrader))
					if err == nil {
						err = resp.Body.Close()
					}
					ended <- err
				}()
			}
			for range n {
				kit.Want(t, "the error", <-ended, nil)
			}
		}
		start(4)
		w.wantNoViolations()
		time.Sleep(time.Hour)
		start(5)
		w.wantViolation("5 calls at once in the first second")
	})
}

// A configuration that no service can have is refused.
func TestNetwork_RefusesConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"InvoicePath": func(c *Config) { c.Network.CreditNotes = "/v2/invoices" },
		"NoV2":        func(c *Config) { c.Network.CreditNotes = "/creditNotes" },
		"Pattern":     func(c *Config) { c.Network.CreditNotes = "/v2/{x}" },
		"OutcomeWord": func(c *Config) { c.Network.Outcomes = []OutcomeRate{{"lost", 0.1}} },
		"OutcomeRate": func(c *Config) { c.Network.Outcomes = []OutcomeRate{{"silent", 2}} },
		"ReadingWord": func(c *Config) { c.Readings.Network.Files = "hex" },
		"CodeUnknown": func(c *Config) {
			c.Faults.Rules = []Rule{{Op: "network-send", Fault: Fault{Kind: Coded, Code: "Error.9"}}}
		},
		"CodeElsewhere": func(c *Config) { c.Faults.Rules = []Rule{{Op: "upload", Fault: Fault{Kind: Coded}}} },
	} {
		c := realConfig(t.TempDir())
		change(&c)
		if s, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
			_ = s.Close()
		}
	}
}
