package main_test

import (
	"vaultd/internal/test/kit"

	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	program "vaultd/cmd/vaultd"
)

// The flags of the PDF upload reach the stand-in: its path, its account, the addresses that it knows, and its readings.
func TestEmulate_PDFUpload(t *testing.T) {
	base, _ := runEmulateCommand(t, "--dir", filepath.Join(t.TempDir(), "service"),
		"--pdf-path", "/v2/smartpdf/invoiceUpload", "--pdf-user", "clerk", "--pdf-receiving", "ap@in.example", "--pdf-window", "10m",
		"--pdf-url-form", "url", "--pdf-bumid", "none", "--pdf-error-body", "error", "--fault", "pdf-upload:503:1")
	post := func(user, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v2/smartpdf/invoiceUpload", strings.NewReader(body))
		kit.Must(t, err)
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
	kit.Must(t, err)
	if code, text := sendForText(t, req); code != 503 {
		t.Errorf("the PUT with a fault: %d %s", code, text)
	}
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
		if code := <-ended; code != exitDone {
			t.Errorf("exit code %d", code)
		}
	})
	t.Cleanup(stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	kit.Must(t, err)
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the command
	return strings.TrimSpace(strings.TrimPrefix(line, "service")), stop
}

func sendForText(t *testing.T, req *http.Request) (status int, body string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	kit.Must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	kit.Must(t, err)
	return resp.StatusCode, string(text)
}
