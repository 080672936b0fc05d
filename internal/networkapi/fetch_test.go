package networkapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

const receivedInvoice = `{"bumId":"10d90000-0000-5000-8000-00000000000a","fileRefs":[{"refId":"54759eb3c090d83494e2d804","fileType":"imageFile"},{"refId":"54759eb3c090d83494e2d804"},{"refId":7}],
	"links":[{"rel":"file","href":"https://files.example/1?X-Amz-Signature=` + calls.Signature + `"},{"href":"https://files.example/2","method":"GET"},{},7],
	"origin":{"source":"SendingCustomer","sourceContentCategory":"StructuredData","processQualityIndicators":["HumanValidation"]},"new":{"a":1},
	"data":{"externalDocumentIdentifier":{"id":"INV-1"},"issueDate":"2026-10-31+01:00","documentCurrencyCode":"EUR",
	"accountingSupplierParty":{"partyName":"Otto","partyIdentifications":[{"id":"556","schemeId":"UNKNOWN"},{}],"endpoint":{"id":"0007:556"}},"accountingCustomerParty":{"partyName":"Acme","endpoint":{}},
	"taxTotal":{"taxSubtotals":[{"taxableAmount":9007199254740993.10,"taxCategory":{"id":"S"}},{"taxableAmount":0},{"taxableAmount":"0.005"}]},
	"orderReference":{},"invoiceLines":[{"id":"1"},{"id":"2","customFields":[{"name":"a","value":"b"}]}],"customFields":[{"name":"cost centre","value":7},{}]}}`

func TestFetchDocument_ReadsEachForm(t *testing.T) {
	raw, got, err := client(t, func(w http.ResponseWriter, r *http.Request) {
		kit.Check(t, r.Method == http.MethodGet && r.URL.Path == "/v2/invoices/"+string(bumID),
			"%s %s, want r.Method = http.MethodGet, r.URL.Path = %v", r.Method, r.URL, "/v2/invoices/"+string(bumID))
		io.WriteString(w, receivedInvoice)
	}).FetchDocument(t.Context(), archive.NetworkInvoice, bumID)
	kit.Need(t, err == nil && string(raw) == receivedInvoice,
		"%v, want no error, string(raw) = %v", err, receivedInvoice)
	if fmt.Sprint(got.Files) != "[{54759eb3c090d83494e2d804 {   false}} {7 {   false}}]" || len(got.Links) != 2 || got.Links[1].Relation != "file" || got.Links[0].Method != "GET" || got.Kind != archive.NetworkInvoice || got.Document != bumID {
		t.Errorf("got %+v", got)
	}
	kit.Check(t, bytes.HasPrefix(got.Data, []byte(`{"externalDocumentIdentifier"`)), "got %+v", got)
	c := got.Content
	if c.Number != "INV-1" || c.IssueDate != "2026-10-31+01:00" || c.Currency != "EUR" || c.NetAmount != "9007199254740993.105" || c.Lines != 2 ||
		fmt.Sprint(c.Supplier, c.Customer, c.Custom) != "{Otto [556 0007:556]} {Acme []} [{cost centre 7}]" {
		t.Errorf("got %+v", c)
	}
}

func TestFetchDocument_LacksWhatMayBeLacking(t *testing.T) {
	for name, body := range map[string]string{
		"NothingButData": `{"data":{}}`, "Nulls": `{"bumId":null,"fileRefs":null,"links":null,"origin":null,"data":{"accountingSupplierParty":null,"invoiceLines":null,"taxTotal":null}}`,
		"EmptyObjects": `{"fileRefs":{},"links":{},"origin":{},"data":{"externalDocumentIdentifier":{},"accountingSupplierParty":{},"taxTotal":{},"invoiceLines":{},"customFields":{}}}`,
		"OddOrigin":    `{"origin":7,"data":{}}`, // archived unread, as it came
		"NoNumber":     `{"bumId":"` + string(bumID) + `","data":{"taxTotal":{"taxSubtotals":[{"taxableAmount":"1.234,56"}]}}}`,
	} {
		_, got, err := client(t, calls.Says(200, body)).FetchDocument(t.Context(), archive.NetworkCreditNote, bumID)
		if err != nil || len(got.Files)+len(got.Links)+got.Content.Lines != 0 || got.Content.Number != "" || got.Content.NetAmount != "" {
			t.Errorf(`%s: %+v, %v, want no error, len(got.Files)+len(got.Links)+got.Content.Lines = 0, got.Content.Number = "", got.Content.NetAmount = ""`, name, got, err)
		}
	}
	_, got, err := client(t, calls.Says(200, `{"data":{"creditNoteLines":[{},{}],"taxTotal":[{"taxSubtotals":[{"taxableAmount":-1.50}]}]},"fileRefs":{"refId":"a"}}`)).FetchDocument(t.Context(), archive.NetworkCreditNote, bumID)
	kit.Check(t, err == nil && got.Content.Lines == 2 && got.Content.NetAmount == "-1.50" && len(got.Files) == 1,
		`%+v, %v, want no error, got.Content.Lines = 2, got.Content.NetAmount = "-1.50", len(got.Files) = 1`, got, err)
}

// I8, I32: an answer that is another document, or that cannot be read whole, is no document.
func TestFetchDocument_I32_IsNeverWholeByMistake(t *testing.T) {
	for name, body := range map[string]string{
		"Empty": "", "Null": "null", "Page": "<html></html>", "NoData": `{"fileRefs":[]}`, "DataIsAText": `{"data":"x"}`, "Error": `{"error":{"code":"x"}}`,
		"AnotherDocument": `{"bumId":"10d90000-0000-5000-8000-00000000000b","data":{}}`, "TwoNumbers": `{"bumId":"a","bumid":"b","data":{}}`,
		"FileWithoutNumber": `{"data":{},"fileRefs":[{"refId":"a"},{}]}`, "FileWithAPath": `{"data":{},"fileRefs":[{"refId":"../a"}]}`, "FilesAreAText": `{"data":{},"fileRefs":"a"}`, "FileIsAText": `{"data":{},"fileRefs":["a"]}`,
		"NumberTwice": `{"data":{"externalDocumentIdentifier":{"id":"1","id":"2"}}}`, "DateTwice": `{"data":{"issueDate":"1","issueDate":"2"}}`, "CutOff": `{"data":{}`,
	} {
		raw, got, err := client(t, calls.Says(200, body)).FetchDocument(t.Context(), archive.NetworkInvoice, bumID)
		if err == nil || raw != nil || got.Data != nil {
			t.Errorf("%s gives %+v", name, got)
			continue
		}
		calls.Failed(t, err)
	}
	if err := second2(client(t, calls.Says(404, wrapped("error", "VALIDATION", "Error.003.0001"))).FetchDocument(t.Context(), archive.NetworkInvoice, bumID)); !IsUnknownDocument(err) {
		t.Errorf("%v, want IsUnknownDocument(err)", err)
	}
	err := second2(client(t, calls.Says(404, `{"message":"no route"}`)).FetchDocument(t.Context(), archive.NetworkInvoice, bumID))
	kit.Check(t, !IsUnknownDocument(err) && !IsUnknownDocument(nil), "%v, want not IsUnknownDocument(err), not IsUnknownDocument(nil)", err)
}

func second2[A, B any](_ A, _ B, err error) error { return err }

// I4: a file is written as it came, with what the headers tell of it.
func TestFetchFile_I4_AsItCameWithItsHeaders(t *testing.T) {
	for _, came := range []string{"%PDF-1.7" + strings.Repeat("\x00\xffabc", 40_000), "JVBERi0x\r\nLjc=", "x", "<html>an attachment</html>"} {
		var out bytes.Buffer
		told, err := client(t, func(w http.ResponseWriter, q *http.Request) {
			kit.Check(t, q.URL.Path == "/v2/files/54759eb3c090d83494e2d804" && q.Header.Get("Accept-Encoding") == "identity",
				`%s %v, want q.URL.Path = "/v2/files/54759eb3c090d83494e2d804", q.Header.Get("Accept-Encoding") = "identity"`, q.URL, q.Header)
			w.Header().Set("Content-Type", "Application/PDF;charset=utf-8")
			w.Header().Set("Content-Disposition", `attachment; filename="../a/Rechnung 1.pdf"`)
			w.Header().Set("Content-Transfer-Encoding", "BASE64")
			io.WriteString(w, came)
		}).FetchFile(t.Context(), "54759eb3c090d83494e2d804", &out)
		kit.Must(t, err)
		kit.Want(t, "the file", out.String(), came)
		kit.Want(t, "what is told", told, archive.FileTold{Name: "Rechnung 1.pdf", Type: "application/pdf", Encoding: "base64"})
	}
}

func TestFetchFile_Faults(t *testing.T) {
	for name, body := range map[string]string{"Empty": ""} {
		if _, err := client(t, calls.Says(200, body)).FetchFile(t.Context(), "a", io.Discard); err == nil {
			t.Errorf("%s is a file", name)
		} else {
			calls.Failed(t, err)
		}
	}
	_, err := client(t, calls.Says(200, "x")).FetchFile(t.Context(), "a", brokenWriter{})
	e := calls.Failed(t, err)
	kit.Check(t, e.Code == "local", `%q: %v, want e.Code = "local"`, e.Code, e)
	gets := 0
	_, err = client(t, func(w http.ResponseWriter, _ *http.Request) { gets++; w.WriteHeader(503) }).FetchFile(t.Context(), "a", io.Discard)
	if calls.Failed(t, err); gets != 1 {
		t.Errorf("%d calls", gets)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestFetchValidationFile(t *testing.T) {
	for name, r := range map[string]struct{ content, want string }{
		"xml":      {"<validation/>", "<validation/>"},
		"base64":   {"PD94bWwgdmVyc2lvbj0iMS4wIj8+PHYvPg==", `<?xml version="1.0"?><v/>`},
		"as long":  {strings.Repeat("x", archive.MaxValidationFile), strings.Repeat("x", archive.MaxValidationFile)},
		"too long": {strings.Repeat("x", archive.MaxValidationFile+1), ""},
		"text":     {"all is well", "all is well"},
		"latin":    {"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<v>M\xfcller</v>", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<v>M\xfcller</v>"},
		"cut off":  {"<validation><error/>", ""},
		"deep":     {strings.Repeat("<a>", 5000) + strings.Repeat("</a>", 5000), ""},
		"no XML":   {"<", ""},
		"web page": {"\ufeff <!DOCTYPE html><title>Proxy</title>", ""},
		"store":    {`<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>`, ""},
		"empty":    {"", ""},
	} {
		c := client(t, func(w http.ResponseWriter, q *http.Request) {
			kit.Want(t, "got", q.URL.Path, "/files/ref-1")
			io.WriteString(w, r.content)
		})
		got, err := Sender{Client: c}.FetchValidationFile(t.Context(), "ref-1")
		kit.Check(t, (r.want == "" || err == nil && string(got) == r.want) && (r.want != "" || err != nil),
			"%s: %d bytes, %v", name, len(got), err)
	}
}

// I24: a validation file that is unknown under the path of the specification is
// asked for where all other files are. Only an answer about the file is a
// reason to ask elsewhere.
func TestFetchValidationFile_I24_AmongTheOtherFiles(t *testing.T) {
	for name, r := range map[string]struct {
		at    string // where it is
		other int    // the status elsewhere
		want  []string
	}{
		"BelowV2":    {"/v2/files/ref-1", 404, []string{"/files/ref-1", "/v2/files/ref-1"}},
		"BelowV1":    {"/v1/files/ref-1", 404, []string{"/files/ref-1", "/v2/files/ref-1", "/v1/files/ref-1"}},
		"Nowhere":    {"", 404, []string{"/files/ref-1", "/v2/files/ref-1", "/v1/files/ref-1"}},
		"NotAllowed": {"", 403, []string{"/files/ref-1"}},
		"TooMuch":    {"", 429, []string{"/files/ref-1"}},
	} {
		var paths []string
		c := client(t, func(w http.ResponseWriter, q *http.Request) {
			paths = append(paths, q.URL.Path)
			if q.URL.Path != r.at {
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(r.other)
			}
			io.WriteString(w, "<v/>")
		})
		got, err := Sender{Client: c}.FetchValidationFile(t.Context(), "ref-1")
		kit.Check(t, slices.Equal(paths, r.want) && (err == nil) == (r.at != "") && (err != nil || string(got) == "<v/>"),
			"%s: got %q, %v after %q, want the file from %q after %q", name, got, err, paths, r.at, r.want)
	}
}

// I24, I30: what version 2 does not know is asked for in version 1. A fault of version 1 that says nothing about the document or file is not taken for
// "unknown", and a document of which version 1 may name files in other words is not read.
func TestFetch_I24_I30_InVersionOne(t *testing.T) {
	unknown := func(w http.ResponseWriter) {
		w.WriteHeader(404)
		io.WriteString(w, wrapped("error", "VALIDATION", "Error.003.0001"))
	}
	at := func(first http.HandlerFunc, paths *[]string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			*paths = append(*paths, r.URL.Path)
			if strings.HasPrefix(r.URL.Path, "/v2/") {
				unknown(w)
				return
			}
			first(w, r)
		}
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(code)
		}
	}
	for name, r := range map[string]struct {
		first http.HandlerFunc
		want  func(e *apicall.Error) bool
	}{
		"Neither":     {func(w http.ResponseWriter, _ *http.Request) { unknown(w) }, func(e *apicall.Error) bool { return IsUnknownDocument(e) }},
		"TooMuch":     {status(429), func(e *apicall.Error) bool { return e.Overloaded() && e.RetryAfter > 0 && !IsUnknownDocument(e) }},
		"NotAllowed":  {status(403), func(e *apicall.Error) bool { return e.Denied }},
		"MoreLinks":   {calls.Says(200, `{"data":{},"links":[{"href":"https://network.example/v1/files/a"}]}`), func(e *apicall.Error) bool { return e.Code == "unreadable" }},
		"OtherNumber": {calls.Says(200, `{"bumId":"10d90000-0000-5000-8000-00000000000b","data":{}}`), func(e *apicall.Error) bool { return e.Code == "unreadable" }},
	} {
		var paths []string
		err := second2(client(t, at(r.first, &paths)).FetchDocument(t.Context(), archive.NetworkInvoice, bumID))
		e := calls.Failed(t, err)
		kit.Check(t, r.want(e) && len(paths) == 2, "%s: %+v after %q", name, e, paths)
	}
	var paths []string
	_, got, err := client(t, at(calls.Says(200, `{"data":{},"fileRef":[{"refId":"a"}],"links":[{"href":"https://network.example/v1/files/a"}]}`), &paths)).FetchDocument(t.Context(), archive.NetworkInvoice, bumID)
	kit.Check(t, err == nil && len(got.Files) == 1, "%+v, %v, want no error, len(got.Files) = 1", got, err)
	_, err = client(t, at(calls.Says(200, "content"), &paths)).FetchFile(t.Context(), "a", brokenWriter{})
	kit.Want(t, "a full disk is told", calls.Failed(t, err).Code, "local")
	var out bytes.Buffer
	if _, err := client(t, at(calls.Says(200, "content"), &paths)).FetchFile(t.Context(), "a", &out); err != nil || out.String() != "content" {
		t.Errorf(`%q, %v, want no error, out.String() = "content"`, out.String(), err)
	}
	paths = nil
	page := func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(404)
		io.WriteString(w, "<html>not here</html>")
	}
	err = second2(client(t, page).FetchDocument(t.Context(), archive.NetworkInvoice, bumID))
	kit.Check(t, err != nil && len(paths) == 1, "a page of a proxy asks for more: %q, %v", paths, err)
}
