package main_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// Support finds the calls that archived a document: show, the receipt and its
// file name their ids as the service and the store saw them.
func TestRequests_I12_OfWhatIsArchived(t *testing.T) {
	t.Parallel()
	emu, err := emulator.New(emulator.Config{Dir: t.TempDir(), Username: "demo", Secret: "demo", Vaults: []emulator.Vault{{ID: "ACME"}, {ID: "BETA"}},
		ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond})
	kit.Must(t, err)
	var mu sync.Mutex
	seen := map[string]string{} // last id of each kind of call
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		emu.ServeHTTP(w, r)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/documents"):
			seen["registration"] = r.Header.Get("X-SVC-REQUEST-ID")
		case r.Method == http.MethodPut:
			seen["upload"] = w.Header().Get("X-Amz-Request-Id")
		case strings.HasSuffix(r.URL.Path, "/status"):
			seen["status"] = r.Header.Get("X-SVC-REQUEST-ID")
		}
	}))
	t.Cleanup(func() { srv.Close(); kit.Must(t, emu.Close()) })
	s := newSite(t, srv.URL, fast)
	s.fill(1, 0)
	s.must(0, "run", "--once", "--wait")
	var row struct{ Key string }
	kit.Must(t, json.Unmarshal([]byte(s.must(0, "list", "--json")), &row))
	var shown struct{ Requests []ledger.Request }
	kit.Must(t, json.Unmarshal([]byte(s.must(0, "show", "--json", row.Key)), &shown))
	got := map[string]string{}
	for _, r := range shown.Requests {
		got[r.Call] = string(r.ID)
	}
	kit.Want(t, "requests", got, seen)
	all := []string{"registration " + seen["registration"], "upload " + seen["upload"], "status " + seen["status"]}
	kit.Holds(t, "show", s.must(0, "show", row.Key), all...)
	kit.Holds(t, "receipt", s.must(0, "receipt", row.Key), all...)
	written, err := filepath.Glob(filepath.Join(s.dir, "acme", "_archived", "*", "*", "_RECEIPT.json"))
	if err != nil || len(written) != 1 {
		t.Fatalf("receipts: %q, %v", written, err)
	}
	text, err := os.ReadFile(written[0])
	kit.Must(t, err)
	kit.Holds(t, "_RECEIPT.json", string(text), seen["registration"], seen["upload"], seen["status"])
}

// An entry that is open for too long is named with the request ids that support
// needs.
func TestRequests_I26_OfWhatIsOverdue(t *testing.T) {
	s := newShelf(t)
	seal, doc := sealed("Old", 1000)
	at := noon.Add(-49 * time.Hour)
	s.tell("Old", at, doc, seal)
	s.tell("Old", at.Add(time.Minute), nil, ledger.RegisterIntended{},
		ledger.TicketReceived{Ticket: archive.Ticket{Remote: "bum-9", URL: urlCanary, Sent: archive.Instant{Wall: at}, Request: "0f8fad5b-d9cb-469f-a165-70867728950e"}},
		ledger.UploadIntended{}, ledger.UploadAccepted{Sent: seal.Package.SHA256, Seal: seal.Seal, Request: "4442587FB7D0A2F9"})
	s.tell("Old", at.Add(time.Hour), nil, ledger.StatusSeen{Receipt: archive.Receipt{Remote: "bum-9", Status: archive.InProgress, Request: "s-1, answered as \u202ex"}})
	out, _, _ := s.say("status")
	kit.Holds(t, "status", out, "open for longer than 48 h", "request ids: registration 0f8fad5b-d9cb-469f-a165-70867728950e, upload 4442587FB7D0A2F9, status s-1, answered as ")
	kit.Lacks(t, "status", out, "\u202e")
}
