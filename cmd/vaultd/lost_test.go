package main_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// Where the whole state is gone, every command names the way out, no new ledger is made, and that way leads back.
func TestLost_I15_TheWholeStateIsGone(t *testing.T) {
	_, s := served(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond}, fast)
	s.fill(2, 1)
	s.must(0, "run", "--once", "--wait")
	state, gone := filepath.Join(s.dir, "state"), filepath.Join(s.dir, "gone")
	kit.Must(t, os.Rename(state, gone))
	const way = `without any, "vaultd rebuild"`
	for args, code := range map[string]int{"run --once": exitConfig, "status": exitConfig, "init": exitCreate, "check --offline": 0} {
		if out := s.must(code, strings.Fields(args)...); !strings.Contains(out, "drop acme belongs to the ledger ") || !strings.Contains(out, "or a vaultd with another state_dir works on this drop folder") || !strings.Contains(out, way) || strings.Contains(out, "vaultd init") {
			t.Errorf("vaultd %s:\n%s", args, out)
		}
	}
	s.must(0, "rebuild", "--reason", "state lost")
	s.must(0, "reconcile")
	kit.Lacks(t, "the way out leads nowhere", s.must(0, "run", "--once", "--wait"), "safe mode")
}

// A new ledger in place of a lost one: each command that refuses says how to get out, and that works.
func TestLost_I15_ANewLedgerInPlaceOfALostOne(t *testing.T) {
	t.Parallel()
	_, url := serveEmulator(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond})
	s, other := newSite(t, url, fast), newSite(t, url, fast)
	s.fill(2, 1)
	s.must(0, "run", "--once", "--wait")
	copied := filepath.Join(s.dir, "copy.db")
	s.must(0, "backup", copied)
	state := filepath.Join(s.dir, "state")
	for _, move := range [][2]string{{state, filepath.Join(s.dir, "gone")}, {filepath.Join(other.dir, "state"), state}} {
		kit.Must(t, os.Rename(move[0], move[1]))
	}
	const way = "move ledger.db and ledger.head.* out of it"
	for args, code := range map[string]int{"run --once": exitConfig, "rebuild --reason lost": exitCreate, "restore --take-over --reason lost " + copied: exitConfig,
		"status": exitPerson, "check --offline": 0} {
		kit.Holds(t, "vaultd "+args, s.must(code, strings.Fields(args)...), way)
	}
	for _, name := range []string{"ledger.db", "ledger.head.1"} {
		kit.Must(t, os.Rename(filepath.Join(state, name), filepath.Join(s.dir, name)))
	}
	s.must(0, "restore", "--reason", "lost", copied)
}

// An empty ledger that was bound to the wrong service is bound anew; one that knows anything is not.
func TestInit_AnEmptyLedgerIsBoundAnew(t *testing.T) {
	t.Parallel()
	_, url := serveEmulator(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond})
	s := newSite(t, "http://127.0.0.1:1", fast)
	text := kit.Value(os.ReadFile(s.config))(t)
	bindTo := func(address string) {
		kit.Must(t, os.WriteFile(s.config, []byte(strings.Replace(string(text), "http://127.0.0.1:1", address, 1)), 0o640))
	}
	kit.Holds(t, "bound as it should be", s.must(exitCreate, "init"), "exists already")
	bindTo(url)
	for args, code := range map[string]int{"check --offline": 0, "status": exitPerson} {
		if out := s.must(code, strings.Fields(args)...); !strings.Contains(out, `the ledger was made for service "http://127.0.0.1:1", the configuration says "`+url) {
			t.Errorf("vaultd %s:\n%s", args, out)
		}
	}
	s.must(0, "init")
	s.fill(1, 0)
	s.must(0, "run", "--once", "--wait")
	bindTo("http://127.0.0.1:2")
	kit.Holds(t, "one that knows something", s.must(exitCreate, "init"), "nothing was changed")
}

// I19: a look with check leaves no lock in a state directory that is another user's: its daemon could not open that.
func TestCheck_I19_LeavesNothingInAnothersStateDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can give a directory to another user")
	}
	s := newSite(t, "http://127.0.0.1:1", fast)
	state := filepath.Join(s.dir, "state")
	kit.Must(t, os.Chown(state, 1, 1))
	s.must(0, "check", "--offline")
	kit.Fails(t, "a lock", kit.Err(os.Lstat(filepath.Join(state, "vaultd.lock"))), os.ErrNotExist)
}

// A death of init between its steps: the next one goes on.
func TestInit_I5_DiesWhileItMakesRoomForAnEmptyLedger(t *testing.T) {
	t.Parallel()
	kit.Rows(t, map[string][]string{"AfterTheHead": {"ledger.head.1"}, "AfterBoth": {"ledger.head.1", "ledger.db"}}, func(t *testing.T, moved []string) {
		t.Parallel()
		_, url := serveEmulator(t, emulator.Config{})
		s := newSite(t, "http://127.0.0.1:1", fast)
		text, err := os.ReadFile(s.config)
		if err == nil {
			err = os.WriteFile(s.config, []byte(strings.Replace(string(text), "http://127.0.0.1:1", url, 1)), 0o640)
		}
		for _, file := range moved {
			file = filepath.Join(s.dir, "state", file)
			err = errors.Join(err, os.Rename(file, file+".empty-1"))
		}
		kit.Must(t, err)
		s.must(0, "init")
		s.must(0, "run", "--once", "--wait")
	})
}

// What was not taken for too long needs a person also while vaultd does not run, and says when vaultd looked.
func TestStatus_I26_NotTakenForTooLong(t *testing.T) {
	s := newShelf(t)
	put := func(since time.Time) {
		t.Helper()
		err := s.ledger.PutScans(t.Context(), ledger.Scan{Drop: "acme-in", LastScan: noon.Add(-5 * time.Minute), Pending: []ledger.PendingItem{
			{Name: "scan7.pdf", Reason: string(watch.LooseFile), Since: since, NeedsPerson: true},
			{Name: "Huber 3", Reason: string(watch.Queued), Since: since},
		}}, ledger.Scan{Drop: "left", RemindAfter: 30 * time.Minute, LastScan: noon, Pending: []ledger.PendingItem{{Name: "old.pdf", Reason: string(watch.LooseFile), Since: since, NeedsPerson: true}}})
		kit.Must(t, err)
	}
	status := func() (string, int) {
		out, _, code := s.say("status")
		return out, code
	}
	put(noon.Add(-time.Minute))
	ended(status())(t, "young", exitDone, "NOT TAKEN YET 3, as of 14:27")
	put(noon.Add(-2 * time.Hour))
	out, code := status()
	if code != exitPerson || !strings.Contains(out, "drop acme-in: 1 thing not taken for longer than 30 min") || !strings.Contains(out, "scan7.pdf: loose file, since 12:32") {
		t.Errorf("old: exit %d\n%s", code, out)
	}
	kit.Holds(t, "a drop that is configured no more", out, "drop left: 1 thing not taken", "put it back into the configuration until vaultd has seen that it is empty")
	_, errs, _ := s.audit("--format=html")
	kit.Check(t, strings.Contains(errs, "NOT COMPLETE: 3 things in the drop folders were never taken."), "audit: %s", errs)
	why, _, _ := s.say("why", "scan7.pdf")
	kit.Holds(t, "why", why, "vaultd does not run. It saw this when it last looked, 14:27 CET.")
}

// The watch's words for faults are those that the needs tell at once.
func TestPending_FaultsAreNotToldTwice(t *testing.T) {
	s := newShelf(t)
	err := s.ledger.PutScans(t.Context(), ledger.Scan{Drop: "acme-in", LastScan: noon, Pending: []ledger.PendingItem{
		{Name: "Huber", Reason: string(watch.NoRight), Since: noon.Add(-time.Hour), NeedsPerson: true},
	}})
	kit.Must(t, err)
	st := s.summary()
	kit.Check(t, len(st.Needs) == 1 && st.Needs[0].What == "not-taken" && st.Needs[0].When == "now",
		"needs %+v", st.Needs)
}

// A head that was kept is found in each form in which vaultd writes it, and the
// journal contains it as long as nobody writes the past anew.
func TestVerify_I14_KeptHeads(t *testing.T) {
	s := filled(t)
	var report struct {
		About struct {
			HeadLine uint64
			HeadHash string
		}
	}
	out, _, _ := s.say("audit", "--json")
	kit.Must(t, json.Unmarshal([]byte(out), &report))
	dir := t.TempDir()
	var status struct{ Head string }
	text, _, _ := s.say("status", "--json")
	kit.Must(t, json.Unmarshal([]byte(text), &status))
	page, _, _ := s.say("audit")
	receipt, _, _ := s.say("receipt", "Müller 4711", "--json")
	kept := map[string]string{"report.json": out, "report.html": page, "receipt.json": receipt, "vaultd.log": `{"msg":"vaultd started","head":"` + status.Head + `"}`}
	for name, text := range kept {
		kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s.send("Later 1", noon, "bum-9")
	for name := range kept {
		out, errs, code := s.say("verify", "--head", filepath.Join(dir, name))
		kit.Check(t, code == exitDone && strings.Contains(out, "KEPT HEAD line "),
			"%s: exit %d, %s%s, want 0 and the kept head", name, code, out, errs)
	}
	line, hash, _ := strings.Cut(status.Head, ":")
	for name, row := range map[string]struct {
		head, says string
		code       int
	}{
		"Kept":         {status.Head, "KEPT HEAD line " + line, exitDone},
		"OtherHash":    {line + ":" + strings.Repeat("0", 63) + "1", "line " + line + " has not the hash", exitDifferences},
		"OtherLine":    {"1:" + hash, "line 1 has not the hash", exitDifferences},
		"LinesRemoved": {"4711:" + hash, "line 4711, whose hash", exitDifferences},
		"NoHead":       {filepath.Join(dir, "none"), "read a kept head", exitData},
		"FileWithout":  {s.config, "has 0 heads", exitData},
		"WithArchive":  {"1:" + hash + " --archive=1", "", exitUsage},
	} {
		args := append([]string{"verify", "--head"}, strings.Fields(row.head)...)
		out, errs, code := s.say(args...)
		kit.Check(t, code == row.code && strings.Contains(out+errs, row.says),
			"%s: exit %d, %s%s, want exit %d and %q", name, code, out, errs, row.code, row.says)
	}
}

// A running vaultd compares heads too, and reads no file for others.
func TestVerify_I14_KeptHeadThroughTheDaemon(t *testing.T) {
	cfg, path, _ := startDaemon(t)
	var status struct{ Head string }
	out, _, _ := runHere("--config", path, "status", "--json")
	kit.Must(t, json.Unmarshal([]byte(out), &status))
	file := filepath.Join(t.TempDir(), "head")
	kit.Must(t, os.WriteFile(file, []byte(status.Head), 0o600))
	if out, errs, code := runHere("--config", path, "verify", "--head", file); code != exitDone || !strings.Contains(out, "KEPT HEAD") {
		t.Errorf("exit %d, %s%s, want 0 and the kept head", code, out, errs)
	}
	if _, errs, code := frames(t, cfg.StateDir, `{"args":["verify","--head=/etc/passwd"]}`+"\n"); code != exitUsage || !strings.Contains(errs, "reads no files for others") {
		t.Errorf("exit %d, %s, want %d", code, errs, exitUsage)
	}
}
