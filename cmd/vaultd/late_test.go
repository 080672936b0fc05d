package main_test

import (
	"vaultd/internal/test/kit"

	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
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
	waitFor(t, "both to be archived", func() bool { return len(copies()) == 2 })
	s.calm(1)
	// An entry that moves on during a comparison is left to the next one. The folder moves before that is committed.
	waitFor(t, "the folder to be kept", func() bool {
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
		"status": "1 document archived more than once", "list": "archived TWICE", "verify": "1 is possibly double at the archive",
		"why twice 00": "ask the provider to remove all but one of", "show twice 00": "ARCHIVED TWICE",
	} {
		name, arg, _ := strings.Cut(command, " ")
		args := []string{name}
		if arg != "" {
			args = append(args, arg)
		}
		if out, _ := s.vaultd(args...); !strings.Contains(out, want) {
			t.Errorf("%s does not say %q:\n%s", command, want, out)
		}
	}
	s.must(0, "verify")
	s.must(0, "close", "twice 00", "--reason", "the provider removed the second one")
	if out := s.must(0, "reconcile"); !strings.Contains(out, "nothing differs") {
		t.Errorf("after it was closed:\n%s", out)
	}
	if out := s.must(0, "status"); strings.Contains(out, "more than once") {
		t.Errorf("after it was closed:\n%s", out)
	}
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
	waitFor(t, "it to be unclear", func() bool { return state("unclear") })
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
	if out := s.must(0, "release", "lost 00", "--reason", "nothing arrived"); !strings.Contains(out, "possibly double for ever") {
		t.Errorf(`out = %v, want out with "possibly double for ever"`, out)
	}
	s.start("run")
	waitFor(t, "it to be archived", func() bool { return state("archived") })
	s.must(0, "verify")
}
