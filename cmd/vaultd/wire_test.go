package main

import (
	"crypto/md5"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/archive"
)

// The configured type of a package reaches the store.
func TestService_ContentType(t *testing.T) {
	var got string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Content-Type")
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer srv.Close()
	secretFile := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secretFile, []byte("demo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"application/octet-stream", "application/zip"} {
		cfg := mustLoad(t, strings.Replace(smallConfig, "https://vault.example", srv.URL, 1)+"upload: {content_type: "+want+"}\n")
		cfg.Service.Auth.SecretFile = secretFile
		client, err := (&app{env: os.LookupEnv}).newServiceClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		content := []byte("PK")
		p := archive.Package{Path: filepath.Join(t.TempDir(), "p.zip"), Size: 2, SHA256: archive.Sum(content), MD5: md5.Sum(content)}
		if err := os.WriteFile(p.Path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := client.Upload(t.Context(), archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k")}, p); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("sent as %q, want %q", got, want)
		}
	}
}
