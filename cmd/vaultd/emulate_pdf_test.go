package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// The flags of the PDF upload reach the stand-in: its path, its account, the addresses that it knows, and its readings.
func TestEmulate_PDFUpload(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := runCommandLine(ctx, []string{"emulate", "--listen", "127.0.0.1:0", "--dir", filepath.Join(t.TempDir(), "service"),
			"--pdf-path", "/v2/smartpdf/invoiceUpload", "--pdf-user", "clerk", "--pdf-receiving", "ap@in.example", "--pdf-window", "10m",
			"--pdf-url-form", "url", "--pdf-bumid", "none", "--pdf-error-body", "error", "--fault", "pdf-upload:503:1"}, in, io.Discard)
		_ = in.Close()
		ended <- code
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != exitDone {
			t.Errorf("exit code %d", code)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the command
	base := strings.TrimSpace(strings.TrimPrefix(line, "service"))
	post := func(user, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v2/smartpdf/invoiceUpload", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
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
	if code != 200 || !strings.HasPrefix(text, `{"url":"http://127.0.0.1:`) || !strings.Contains(text, "X-Amz-Expires=600") {
		t.Fatalf("a registration: %d %s", code, text)
	}
	address := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(text, `{"url":"`), `"}`), `\u0026`, "&")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader("%PDF-1.7"))
	if err != nil {
		t.Fatal(err)
	}
	if code, text := sendForText(t, req); code != 503 {
		t.Errorf("the PUT with a fault: %d %s", code, text)
	}
}

func sendForText(t *testing.T, req *http.Request) (status int, body string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
