package main_test

import (
	"vaultd/internal/test/kit"

	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The flags of the business network reach the stand-in: its account, its paths, its outcomes, its readings and its faults.
func TestEmulate_Network(t *testing.T) {
	base, _ := runEmulateCommand(t, "--dir", filepath.Join(t.TempDir(), "service"),
		"--network-user", "trader", "--network-credit-notes", "/v2/credits", "--network-deliver-min", "0s", "--network-deliver-max", "0s",
		"--network-outcome", "undelivered:1", "--network-error-wrapper", "errors", "--network-credit-note-word", "CreditNote",
		"--fault", "network-fetch:Error.001.0010:1")
	call := func(user, method, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		kit.Must(t, err)
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

// An outcome that is not of the form outcome:rate is a mistake in the command line.
func TestEmulate_NetworkOutcomeRefused(t *testing.T) {
	for _, text := range []string{"undelivered", "undelivered:often", "lost:0.1"} {
		dir := filepath.Join(t.TempDir(), "service")
		if _, _, code := runHere("emulate", "--listen", "127.0.0.1:0", "--dir", dir, "--network-outcome", text); code == exitDone {
			t.Errorf("%s: exit code %d", text, code)
		}
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
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		kit.Must(t, err)
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
		if len(all.Notifications) != 2 || all.Notifications[0].DocumentType != "Invoice" {
			t.Fatalf("got %s, want an invoice and a credit note", list)
		}
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
