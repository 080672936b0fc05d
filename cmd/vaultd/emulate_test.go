package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/test/kit"
)

// The flags of the business network reach the emulator: its account, its paths,
// its outcomes, its readings and its faults.
func TestEmulate_Network(t *testing.T) {
	base, _ := runEmulateCommand(t, "--dir", filepath.Join(t.TempDir(), "service"),
		"--network-user", "trader", "--network-credit-notes", "/v2/credits", "--network-deliver-min", "0s", "--network-deliver-max", "0s",
		"--network-outcome", "undelivered:1", "--network-error-wrapper", "errors", "--network-credit-note-word", "CreditNote",
		"--fault", "network-fetch:Error.001.0010:1")
	call := func(user, method, path, body string) (int, string) {
		req := kit.Value(http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body)))(t)
		req.SetBasicAuth(user, "demo")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-SVC-REQUEST-ID", "3f0e4f7c-5d0b-4d53-9d39-4f6e1f3f7a11")
		return sendForText(t, req)
	}
	const path = "/v2/credits/7a1f0000-0000-5000-8000-000000000001"
	const document = `{"data":{"documentCurrencyCode":"EUR"},"processingPreference":{"sentTo":{"id":"7300010000001","schemeId":"GLN"}}}`
	if code, text := call("demo", "POST", path, document); code != 403 {
		t.Errorf("the user of the archive: %d %s", code, text)
	}
	if code, text := call("trader", "POST", path, "{"); code != 400 || !strings.HasPrefix(text, `{"errors":{`) {
		t.Errorf("no JSON: %d %s", code, text)
	}
	if code, text := call("trader", "GET", path, ""); code != 500 || !strings.Contains(text, "Error.001.0010") {
		t.Errorf("the GET with a fault: %d %s", code, text)
	}
	if code, text := call("trader", "POST", strings.TrimSuffix(path, "1")+"2", document); code != 200 {
		t.Fatalf("send: %d %s", code, text)
	}
	code, text := call("trader", "GET", "/v1.1/notifications?page=1&pageSize=10", "")
	if code != 200 || !strings.Contains(text, `"actionCode":"Undelivered"`) || !strings.Contains(text, `"documentType":"CreditNote"`) {
		t.Errorf("notifications: %d %s", code, text)
	}
}

// An outcome must have the form outcome:rate; any other is a mistake in the
// command line.
func TestEmulate_NetworkOutcomeRefused(t *testing.T) {
	for _, text := range []string{"undelivered", "undelivered:often", "lost:0.1"} {
		dir := filepath.Join(t.TempDir(), "service")
		_, _, code := runHere("emulate", "--listen", "127.0.0.1:0", "--dir", dir, "--network-outcome", text)
		kit.Check(t, code != exitDone, "%s: exit code %d", text, code)
	}
}

// I30: the documents of the folder --received come in, each with its files and
// what they are to it, and each once, whatever is restarted.
func TestEmulate_I30_Received(t *testing.T) {
	folder, service := t.TempDir(), filepath.Join(t.TempDir(), "service")
	kit.Must(t, os.CopyFS(folder, os.DirFS("../../testdata/received")))
	kit.Must(t, os.WriteFile(filepath.Join(folder, "HG-204", "terms.txt"), []byte("30 days"), 0o600))
	args := []string{"--dir", service, "--received", folder, "--network-file-headers", "all"}
	base, stop := runEmulateCommand(t, args...)
	get := func(path string) string {
		req := kit.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil))(t)
		req.SetBasicAuth("demo", "demo")
		req.Header.Set("X-SVC-REQUEST-ID", "3f0e4f7c-5d0b-4d53-9d39-4f6e1f3f7a11")
		code, text := sendForText(t, req)
		kit.Want(t, path, code, 200)
		return text
	}
	for range 2 {
		list := get("/v1.1/notifications?page=1&pageSize=10&type=DocumentsReceived")
		var all struct {
			Notifications []struct{ BumID, DocumentType string }
		}
		kit.Must(t, json.Unmarshal([]byte(list), &all))
		kit.Need(t, len(all.Notifications) == 2 && all.Notifications[0].DocumentType == "Invoice",
			"got %s, want an invoice and a credit note", list)
		document := get("/v2/invoices/" + all.Notifications[0].BumID)
		kit.Holds(t, "the invoice", document, "HG-204", `"fileType":"attachmentFile"`, "310.00")
		stop()
		base, stop = runEmulateCommand(t, args...)
	}
	stop()
	kit.Must(t, os.WriteFile(filepath.Join(folder, "HG-G7", "document.json"), []byte("{"), 0o600))
	_, said, code := runHere("emulate", "--listen", "127.0.0.1:0", "--dir", service+"2", "--received", folder)
	kit.Want(t, "exit code", code, exitUsage)
	kit.Holds(t, "the fault", said, "HG-G7/document.json: unexpected end of JSON", "docs/network.md")
}

// The folder of extracts and the flags reach the emulator: it lists what is in
// the folder, to its own user alone, in the words of the readings. After a
// restart each extract is there once.
func TestEmulate_Extracts(t *testing.T) {
	service := filepath.Join(t.TempDir(), "service")
	args := []string{"--dir", service, "--extracts", "../../testdata/extracts", "--extract-user", "books", "--extract-times", "rfc3339", "--extract-list", "wrapped", "--extract-file", "bytes"}
	base, stop := runEmulateCommand(t, args...)
	get := func(user, path string) (int, string) {
		req := kit.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil))(t)
		req.SetBasicAuth(user, "demo")
		req.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
		return sendForText(t, req)
	}
	code, text := get("demo", "/v1/dataExtracts")
	kit.Check(t, code == 403, "the main user: %d %s", code, text)
	for range 2 {
		code, text := get("books", "/v1/dataExtracts")
		for _, want := range []string{`{"dataExtracts":[`, `"id":"2026-01-01_2026-10-28"`, `"type":"Initial"`, `"endDate":"2026-10-29T00:00:00Z"`, `"id":"2026-10-29"`, `"type":"Delta"`, `"id":"2026-10-31"`} {
			kit.Check(t, code == 200 && strings.Contains(text, want), "no %s in %d %s", want, code, text)
		}
		n := strings.Count(text, `"fileCount":1`)
		kit.Check(t, n == 3, "%d extracts of one file: %s", n, text)
		stop()
		base, stop = runEmulateCommand(t, args...)
	}
	if code, text := get("books", "/v1/dataExtracts/specification/tableDefinition"); code != 200 || !strings.Contains(text, `"INVOICE_NUM"`) {
		t.Errorf("%d %s, want code = 200, text with `\"INVOICE_NUM\"`", code, text)
	}
	if code, text := get("books", "/v1/dataExtracts/2026-10-29/files/0"); code != 200 || !strings.HasPrefix(text, "PK") {
		t.Errorf(`%d %q, want code = 200, text that begins with "PK"`, code, text)
	}
}

// A fault in a folder of extracts ends the command with its reason.
func TestEmulate_ExtractsMistakes(t *testing.T) {
	kit.Rows(t, map[string]struct{ folder, definition, want string }{
		"NoDefinition":  {"2026-10-29", "", "definition.json: no such file"},
		"NotJSON":       {"2026-10-29", "columns", "the table definition is no JSON"},
		"NoDay":         {"october", "[]", `"october" is neither a day such as 2026-10-29`},
		"EndsTooEarly":  {"2026-10-29_2026-10-01", "[]", "is neither a day"},
		"DayIsNotThere": {"2026-02-30", "[]", "is neither a day"},
	}, func(t *testing.T, r struct{ folder, definition, want string }) {
		dir := t.TempDir()
		err := os.Mkdir(filepath.Join(dir, r.folder), 0o700)
		if r.definition != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, "definition.json"), []byte(r.definition), 0o600))
		}
		kit.Must(t, err)
		var said bytes.Buffer
		code := program.Run(t.Context(), []string{"emulate", "--listen", "127.0.0.1:0", "--dir", filepath.Join(t.TempDir(), "service"), "--extracts", dir}, strings.NewReader(""), &said, &said, os.LookupEnv)
		kit.Check(t, code == exitUsage && strings.Contains(said.String(), r.want), "exit %d: %s", code, said.String())
	})
}

// The flags of the PDF upload reach the emulator: its path, its account, the
// addresses that it knows, and its readings.
func TestEmulate_PDFUpload(t *testing.T) {
	base, _ := runEmulateCommand(t, "--dir", filepath.Join(t.TempDir(), "service"),
		"--pdf-path", "/v2/smartpdf/invoiceUpload", "--pdf-user", "clerk", "--pdf-receiving", "ap@in.example", "--pdf-window", "10m",
		"--pdf-url-form", "url", "--pdf-bumid", "none", "--pdf-error-body", "error", "--fault", "pdf-upload:503:1")
	post := func(user, body string) (int, string) {
		req := kit.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v2/smartpdf/invoiceUpload", strings.NewReader(body)))(t)
		req.SetBasicAuth(user, "demo")
		req.Header.Set("Content-Type", "application/json")
		return sendForText(t, req)
	}
	const good = `{"receivingEmailAddress":"ap@in.example","notificationEmailAddress":"clerk@acme.example"}`
	if code, text := post("demo", good); code != 403 {
		t.Errorf("the user of the archive: %d %s", code, text)
	}
	if code, text := post("clerk", strings.Replace(good, "ap@", "xy@", 1)); code != 422 || !strings.HasPrefix(text, `{"error":"`) {
		t.Errorf("an unknown address: %d %s", code, text)
	}
	code, text := post("clerk", good)
	kit.Need(t, code == 200 && strings.HasPrefix(text, `{"url":"http://127.0.0.1:`) && strings.Contains(text, "X-Amz-Expires=600"),
		"a registration: %d %s", code, text)
	address := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(text, `{"url":"`), `"}`), `\u0026`, "&")
	req := kit.Value(http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader("%PDF-1.7")))(t)
	code, text = sendForText(t, req)
	kit.Check(t, code == 503, "the PUT with a fault: %d %s", code, text)
}

// runEmulateCommand runs "emulate" until stop or the end of the test, and returns its address.
func runEmulateCommand(t *testing.T, args ...string) (base string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := program.Run(ctx, append([]string{"emulate", "--listen", "127.0.0.1:0"}, args...), strings.NewReader(""), in, io.Discard, os.LookupEnv)
		_ = in.Close()
		ended <- code
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		kit.Want(t, "exit code", <-ended, exitDone)
	})
	t.Cleanup(stop)
	line := kit.Value(bufio.NewReader(out).ReadString('\n'))(t)
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the command
	return strings.TrimSpace(strings.TrimPrefix(line, "service")), stop
}

func sendForText(t *testing.T, req *http.Request) (status int, body string) {
	t.Helper()
	resp := kit.Value(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	text := kit.Value(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(text)
}
