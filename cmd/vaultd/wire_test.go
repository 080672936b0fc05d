package main

import (
	"crypto/md5"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
	"vaultd/internal/networkapi"
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

// A drop of the business network is wired with its document's name and with the checks of the client.
func TestWireDrops_Network(t *testing.T) {
	section := "network: {base_url: 'https://net.acme.example', auth: {method: basic, username: n, secret_file: /etc/vaultd/secret-network}}\n"
	cfg := mustLoad(t, strings.Replace(smallConfig, "drops:", section+"drops:\n  - {name: acme-out, path: /srv/acme-out, route: network, document: invoice.json, complete: marker, same_number: hold}", 1))
	i := slices.IndexFunc(cfg.Drops, func(d config.Drop) bool { return d.Name == "acme-out" })
	s := wireDrops(cfg)[i]
	if s.Route != ledger.Network || s.Rules.Sidecar != "invoice.json" || s.Rules.Complete != "marker" || !s.Holds.SameNumber || s.Vault != "" || s.TakesFiles() {
		t.Errorf("%+v", s)
	}
	rules := s.Network
	rules.Rules = s.Rules
	if faults := rules.FindFaults(); len(faults) > 0 || rules.MaxDocument != networkapi.MaxDocument {
		t.Errorf("%+v", faults)
	}
	if faults := rules.Check([]byte(`{"data":{"documentCurrencyCode":"Euro"}}`)); len(faults) != 1 || faults[0].Line != 1 || faults[0].Field != "documentCurrencyCode" {
		t.Errorf("%+v", faults)
	}
	if _, err := dropwork.New(s, &dropwork.Shared{Scans: &dropwork.Scans{}}); err != nil {
		t.Error(err)
	}
}

// I24: the word of network.directory_fr decides whether recipients are checked, and what becomes of one that is not listed. Off is the default.
func TestWireRoutes_I24_DirectoryOfFrance(t *testing.T) {
	for word, want := range map[string]struct{ asks, requires bool }{"": {}, ", directory_fr: off": {}, ", directory_fr: warn": {asks: true}, ", directory_fr: require": {asks: true, requires: true}} {
		section := "network: {base_url: 'https://net.acme.example', auth: {method: basic, username: n, secret_file: /etc/vaultd/secret-network}" + word + "}\n"
		routes, err := wireRoutes(mustLoad(t, section+smallConfig), os.LookupEnv, func() archive.Instant { return archive.Instant{} })
		if err != nil {
			t.Fatal(err)
		}
		if r := routes[ledger.Network]; (r.Recipients != nil) != want.asks || r.RequiresListed != want.requires {
			t.Errorf("%q: %+v", word, r)
		}
	}
}
