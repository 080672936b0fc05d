package main_test

import (
	"vaultd/internal/test/kit"

	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// I32: sixteen years on, what the archive has removed is no difference where the contract's years are configured, and
// the audit counts it. Where they are not, it is missing.
func TestReconcile_I32_SixteenYearsOn(t *testing.T) {
	t.Parallel()
	_, url := serveEmulator(t, emulator.Config{}) // its archive is empty: all has left it
	s := newSite(t, url, fast)
	l, err := boltledger.Open(boltledger.Config{Dir: filepath.Join(s.dir, "state")})
	kit.Must(t, err)
	then := time.Now().AddDate(-16, 0, 0)
	seal, doc := sealed("Otto 19", 1000)
	rs, err := l.Apply(t.Context(), ledger.Change{Key: archive.NewKey(then), At: archive.Instant{Wall: then}, Document: doc, Events: []ledger.Event{
		ledger.ClaimedFolder{Route: ledger.Vault, Vault: "ACME", Drop: "acme", Folder: "Otto 19"}, seal, ledger.RegisterIntended{},
		ledger.TicketReceived{Ticket: archive.Ticket{Remote: "bum-1", URL: urlCanary, Sent: archive.Instant{Wall: then}}}, ledger.UploadIntended{}, ledger.UploadAccepted{Sent: seal.Package.SHA256, Seal: seal.Seal},
		ledger.StatusSeen{Receipt: archive.Receipt{Remote: "bum-1", Status: archive.Successful, Updated: then, Record: []byte("{}")}, Grace: time.Hour},
		ledger.PlaceIntended{Dest: "_archived/x"}, ledger.Placed{}}})
	if err != nil || rs[0].Err != nil {
		t.Fatalf("err = %v, rs = %v, want no error, rs[0].Err = nil", err, rs)
	}
	kit.Must(t, l.Close())
	if out := s.must(exitDifferences, "reconcile"); !strings.Contains(out, "  MISSING    1\n") || strings.Contains(out, "ended") {
		t.Errorf("retention is not known:\n%s", out)
	}
	text, err := os.ReadFile(s.config)
	kit.Must(t, err)
	kit.Must(t, os.WriteFile(s.config, []byte(strings.ReplaceAll(string(text), "settle: 300ms", "settle: 300ms, retention: 10y")), 0o640))
	if out := s.must(0, "reconcile"); !strings.Contains(out, "  ended      1 document: not in the index any more, and the retention is over\n") || !strings.Contains(out, "nothing differs") {
		t.Errorf("ten years:\n%s", out)
	}
	if out := s.must(0, "reconcile", "--json"); !strings.Contains(out, `"retentionEnded":1`) {
		t.Errorf("ten years:\n%s", out)
	}
	s.must(0, "verify")
	if out := s.must(exitDifferences, "audit", "--json"); !strings.Contains(out, `"retentionEnded":1`) || !strings.Contains(out, "The retention of 1 archived document is over") {
		t.Errorf("audit:\n%s", out)
	}
}
