package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// A store keeps a package that it calls refused, and the service archives both. The ledger knew of one: the comparison
// names them, until a person has seen to it.
func TestReconcile_I2_NamesWhatIsArchivedTwice(t *testing.T) {
	t.Parallel()
	emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 200 * time.Millisecond,
		Faults: emulator.Faults{Hook: func(op string, n int) emulator.Fault {
			if op == "upload" && n == 1 {
				return emulator.Fault{Kind: emulator.Status, Status: 409, IsAfterWork: true}
			}
			return emulator.Fault{}
		}}})
	s := newSite(t, url, fast)
	s.dropped("acme", "twice", 1)
	s.start("run")
	copies := func() (bumIDs []string) {
		for _, seen := range emu.Registrations() {
			if seen.State == "ArchivingSuccessful" {
				bumIDs = append(bumIDs, seen.BumID)
			}
		}
		return bumIDs
	}
	kit.Await(t, "both to be archived", func() bool { return len(copies()) == 2 })
	s.calm(1)
	// An entry that moves on during a comparison is left to the next one. The folder moves before that is committed.
	kit.Await(t, "the folder to be kept", func() bool {
		out, _ := s.vaultd("list", "--json")
		return strings.Contains(out, `"source":"kept"`)
	})
	for range 2 { // it stays until somebody closes it
		out := s.must(exitDifferences, "reconcile")
		for _, want := range append(copies(), "TWICE", "archived 2 times") {
			kit.Holds(t, "reconcile", out, want)
		}
	}
	for command, want := range map[string]string{
		"status": "1 document is archived more than once", "list": "archived TWICE", "verify": "1 is possibly double at the archive",
		"why twice 00": "ask the provider to remove all but one of", "show twice 00": "ARCHIVED TWICE",
	} {
		name, arg, _ := strings.Cut(command, " ")
		args := []string{name}
		if arg != "" {
			args = append(args, arg)
		}
		out, _ := s.vaultd(args...)
		kit.Check(t, strings.Contains(out, want), "%s does not say %q:\n%s", command, want, out)
	}
	s.must(0, "verify")
	s.must(0, "close", "twice 00", "--reason", "the provider removed the second one")
	kit.Holds(t, "after it was closed", s.must(0, "reconcile"), "nothing differs")
	kit.Lacks(t, "after it was closed", s.must(0, "status"), "more than once")
}

// Nothing is released unasked: inside the daemon and beside none.
func TestRelease_I2_AsksBeforeItSends(t *testing.T) {
	t.Parallel()
	lost := emulator.Rule{Op: "upload", Rate: 1, Fault: emulator.Fault{Kind: emulator.Abort}}
	away := emulator.Rule{Op: "status", Rate: 1, Fault: emulator.Fault{Kind: emulator.Abort}}
	emu, url := serveEmulator(t, emulator.Config{ArchiveMin: time.Millisecond, ArchiveMax: time.Millisecond, Faults: emulator.Faults{Rules: []emulator.Rule{lost}}})
	s := newSite(t, url, strings.Replace(fast, "20s", "24h", 1))
	s.dropped("acme", "lost", 1)
	p := s.start("run")
	state := func(want string) bool { out, _ := s.vaultd("list"); return strings.Contains(out, want) }
	kit.Await(t, "it to be unclear", func() bool { return state("unclear") })
	kit.Must(t, emu.SetFaults(emulator.Faults{Rules: []emulator.Rule{lost, away}}))
	registered := emu.CountCalls("register")
	refused := func(where string) {
		out := s.must(exitUnavailable, "release", "lost 00", "--reason", "nothing arrived")
		if !strings.Contains(out, "the archive must be asked first") || !state("unclear") || emu.CountCalls("register") != registered {
			t.Errorf("%s the daemon:\n%s", where, out)
		}
	}
	refused("inside")
	p.stop(t)
	refused("beside")
	kit.Must(t, emu.SetFaults(emulator.Faults{}))
	kit.Holds(t, "out", s.must(0, "release", "lost 00", "--reason", "nothing arrived"), "possibly double for ever")
	s.start("run")
	kit.Await(t, "it to be archived", func() bool { return state("archived") })
	s.must(0, "verify")
}

// I32: sixteen years on, documents that the archive has removed are expected to
// be gone where the contract's years are configured, and the audit counts them.
// Otherwise they are missing.
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
	kit.Need(t, err == nil && rs[0].Err == nil, "err = %v, rs = %v, want no error, rs[0].Err = nil", err, rs)
	kit.Must(t, l.Close())
	if out := s.must(exitDifferences, "reconcile"); !strings.Contains(out, "  MISSING    1\n") || strings.Contains(out, "ended") {
		t.Errorf("retention is not known:\n%s", out)
	}
	text := kit.Value(os.ReadFile(s.config))(t)
	kit.Must(t, os.WriteFile(s.config, []byte(strings.ReplaceAll(string(text), "settle: 300ms", "settle: 300ms, retention: 10y")), 0o640))
	if out := s.must(0, "reconcile"); !strings.Contains(out, "  ended      1 document: not in the index any more, and the retention is over\n") || !strings.Contains(out, "nothing differs") {
		t.Errorf("ten years:\n%s", out)
	}
	kit.Holds(t, "ten years", s.must(0, "reconcile", "--json"), `"retentionEnded":1`)
	s.must(0, "verify")
	if out := s.must(exitDifferences, "audit", "--json"); !strings.Contains(out, `"retentionEnded":1`) || !strings.Contains(out, "The retention of 1 archived document is over") {
		t.Errorf("audit:\n%s", out)
	}
}
