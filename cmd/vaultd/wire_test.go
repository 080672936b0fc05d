package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// The configured type of a package reaches the store.
func TestService_ContentType(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"application/octet-stream", "application/zip"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			emu, address := serveEmulator(t, emulator.Config{ArchiveMax: 50 * time.Millisecond})
			var mu sync.Mutex
			var sent []string // guarded by mu
			store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					mu.Lock()
					sent = append(sent, r.Header.Get("Content-Type"))
					mu.Unlock()
				}
				emu.ServeHTTP(w, r)
			}))
			t.Cleanup(store.Close)
			s := newSite(t, address, strings.Replace(fast, "upload: {", "upload: {content_type: "+want+", ", 1))
			s.edit(address, store.URL)
			s.must(0, "init")
			s.add("acme", "otto", 1)
			s.must(0, "run", "--once", "--wait")
			mu.Lock()
			defer mu.Unlock()
			kit.Check(t, len(sent) == 1 && sent[0] == want, "sent as %q, want %q", sent, want)
		})
	}
}

// A drop of the business network takes the document by its configured name, waits for its marker, and holds a number that came before; what the
// client would not send is refused with its place.
func TestWireDrops_Network(t *testing.T) {
	t.Parallel()
	emu, s := served(t, emulator.Config{}, fast)
	s.withNetwork(s.service)
	s.edit("drops:\n", "drops:\n  - {name: out, path: "+s.dir+"/out, route: network, document: invoice.json, complete: marker, same_number: hold, settle: 100ms}\n")
	put := func(folder, document string, isComplete bool) {
		writeIn(t, filepath.Join(s.dir, "out", folder), "invoice.json", document)
		if isComplete {
			writeIn(t, filepath.Join(s.dir, "out", folder), ".done", "")
		}
	}
	good := func(number string) string {
		return strings.Replace(networkGood, `"data": {`, `"data": {"externalDocumentIdentifier": {"id": "`+number+`"}, "issueDate": "2026-10-31", `, 1)
	}
	put("not yet", good("R-1"), false)
	put("first", good("R-2"), true)
	put("wrong", `{"data":{"documentCurrencyCode":"Euro"}}`, true)
	out, _ := s.vaultd("run", "--once")
	n := len(emu.SentDocuments())
	kit.Need(t, n == 1 && strings.Contains(out, "seen 2 new"), "%d documents were sent: %s", n, out)
	if reason, err := os.ReadFile(filepath.Join(s.dir, "out", "_rejected", "wrong", "_REASON.txt")); err != nil || !strings.Contains(string(reason), "documentCurrencyCode") {
		t.Errorf("%v\n%s\nwant no error, reason with \"documentCurrencyCode\"", err, reason)
	}
	put("second", strings.Replace(good("R-2"), "EUR", "CHF", 1), true)
	out, _ = s.vaultd("run", "--once")
	kit.Check(t, len(emu.SentDocuments()) == 1, "the same number was sent twice: %s", out)
	out, _ = s.vaultd("list")
	kit.Check(t, strings.Contains(out, "on hold"), "the second one is not held:\n%s", out)
}

// I24: the word of network.directory_fr decides whether recipients are checked, and what becomes of one that is not listed. Off is the default.
func TestWireRoutes_I24_DirectoryOfFrance(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]struct{ asks, sends bool }{"default": {false, true}, "off": {false, true}, "warn": {true, true}, "require": {true, false}} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			emu, s := served(t, emulator.Config{}, fast)
			s.withNetwork(s.service)
			s.edit("secret_file: "+s.dir+"/secret}}", "secret_file: "+s.dir+"/secret}, directory_fr: "+strings.Replace(word, "default", "off", 1)+"}")
			if word == "default" {
				s.edit(", directory_fr: off", "")
			}
			s.edit("drops:\n", "drops:\n  - {name: out, path: "+s.dir+"/out, route: network, settle: 100ms}\n")
			writeIn(t, filepath.Join(s.dir, "out", "one"), "document.json", `{"data": {"documentCurrencyCode": "EUR"}, "processingPreference": {"sentTo": {"id": "`+otto+`", "schemeId": "FR:ORGNR"}}}`)
			s.begin()
			kit.Await(t, "an outcome", func() bool {
				why, _ := s.vaultd("why", "one")
				return len(emu.SentDocuments()) > 0 || !want.sends && strings.Contains(why, "no valid line")
			})
			if asks, sends := emu.CountCalls("network-directory") > 0, len(emu.SentDocuments()) > 0; asks != want.asks || sends != want.sends {
				why, _ := s.vaultd("why", "one")
				t.Errorf("asks %v, sends %v, want %+v: %s", asks, sends, want, why)
			}
		})
	}
}
