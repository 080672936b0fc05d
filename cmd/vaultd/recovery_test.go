package main_test

import (
	"vaultd/internal/test/kit"

	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/present"
)

// archivedAt counts how often each document is archived at the service, by clientUUID.
func archivedAt(emu *emulator.Server) map[string]int {
	done := map[string]int{}
	for _, seen := range emu.Registrations() {
		if seen.State == "ArchivingSuccessful" {
			done[seen.ClientUUID]++
		}
	}
	return done
}

// onceEach fails unless n documents are archived, each once.
func onceEach(t *testing.T, emu *emulator.Server, n int) {
	t.Helper()
	done := archivedAt(emu)
	for id, times := range done {
		if times != 1 {
			t.Errorf("%s is archived %d times", id, times)
		}
	}
	if len(done) != n {
		t.Errorf("%d documents are archived, dropped were %d", len(done), n)
	}
	for _, v := range emu.Violations() {
		t.Errorf("the service saw: %s", v)
	}
}

func (s *site) dropped(drop, prefix string, n int) {
	s.t.Helper()
	for i := range n {
		name := fmt.Sprintf("%s %02d", prefix, i)
		s.drop(drop, name, map[string][]byte{"scan.bin": []byte(strings.Repeat(name, 200))},
			map[string]any{"documentType": "Invoice", "documentId": name, "documentDate": "2026-10-31"})
	}
}

// must runs a command that has to end with code.
func (s *site) must(code int, args ...string) string {
	s.t.Helper()
	out, got := s.vaultd(args...)
	if got != code {
		s.t.Fatalf("vaultd %v: exit %d, want %d:\n%s", args, got, code, out)
	}
	return out
}

func (s *site) move(from, to string) {
	s.t.Helper()
	kit.Must(s.t, os.Rename(filepath.Join(s.dir, from), filepath.Join(s.dir, to)))
}

// calm waits until nothing is open any more.
func (s *site) calm(seen int) {
	s.t.Helper()
	var last string
	defer func() {
		if s.t.Failed() {
			s.t.Log(last)
		}
	}()
	waitFor(s.t, fmt.Sprintf("%d entries to end", seen), func() bool {
		var got present.StatusSummary
		last, _ = s.vaultd("status", "--json")
		return json.Unmarshal([]byte(last), &got) == nil && got.Balance.Seen == uint64(seen) && got.Balance.Open == 0 && got.Balance.Agrees
	})
}

// I15: a backup is taken, more is archived, the server burns down. What comes back sends nothing before it has asked, and then
// every document is in the archive once.
func TestRestore_I15_NothingTwiceAfterTheServerBurnedDown(t *testing.T) {
	t.Parallel()
	emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 300 * time.Millisecond, ArchiveMax: 600 * time.Millisecond})
	s := newSite(t, url, fast)
	s.dropped("acme", "before", 5)
	p := s.spawn("run")
	waitFor(t, "the first to be archived", func() bool { return len(archivedAt(emu)) == 5 })
	backup := filepath.Join(s.dir, "backup.db")
	s.dropped("beta", "around", 6)
	waitFor(t, "some to be registered", func() bool { return emu.CountCalls("register") > 1 })
	s.must(0, "backup", backup)
	s.dropped("acme", "after", 5)
	waitFor(t, "all to be archived", func() bool { return len(archivedAt(emu)) == 16 })
	s.dropped("beta", "late", 4)
	waitFor(t, "the last to be on their way", func() bool { return len(emu.Registrations()) > 16 })
	p.kill(t)
	s.move("state", "lost")

	if out := s.must(0, "restore", backup, "--reason", "the server burned down"); !strings.Contains(out, "SAFE MODE") {
		t.Errorf("restore says:\n%s", out)
	}
	registered, uploaded := emu.CountCalls("register"), emu.CountCalls("upload")
	s.dropped("acme", "meanwhile", 1)
	s.start("run")
	waitFor(t, "the daemon", func() bool { out, _ := s.vaultd("status"); return strings.Contains(out, "NOT TAKEN YET 1") })
	out, code := s.vaultd("status")
	if first, _, _ := strings.Cut(out, "\n"); code != exitPerson || !strings.Contains(first, "SAFE MODE") {
		t.Errorf("status: exit %d:\n%s", code, out)
	}
	if emu.CountCalls("register") != registered || emu.CountCalls("upload") != uploaded {
		t.Errorf("in safe mode something was sent")
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "acme", "_STATUS.txt")); err != nil || !strings.Contains(string(text), "DELAYED") {
		t.Errorf("the clerk reads %v:\n%s", err, text)
	}
	if out, code := s.vaultd("reconcile"); code != 0 || !strings.Contains(out, "safe mode is over") {
		t.Fatalf("reconcile: exit %d:\n%s", code, out)
	}
	waitFor(t, "the rest to be archived", func() bool { return len(archivedAt(emu)) == 21 })
	s.calm(21)
	s.must(0, "verify")
	if out := s.must(0, "reconcile"); !strings.Contains(out, "nothing differs") {
		t.Errorf("compared again:\n%s", out)
	}
	onceEach(t, emu, 21)
	for drop, n := range map[string]int{"acme": 11, "beta": 10} {
		waitFor(t, fmt.Sprintf("%d folders to be kept in %s", n, drop), func() bool {
			kept, err := filepath.Glob(filepath.Join(s.dir, drop, "_archived", "*", "*"))
			return err == nil && len(kept) == n
		})
	}
}

// listens waits until the daemon answers commands.
func (s *site) listens() {
	s.t.Helper()
	waitFor(s.t, "the daemon to answer", func() bool {
		out, code := s.vaultd("status", "--json")
		return (code == 0 || code == exitPerson) && strings.Contains(out, `"running":true`)
	})
}

// I15, I16: who moves to another machine takes over; the old one notices, lets the drop folders go, says so, and sends nothing
// more, although it still runs.
func TestRestore_I15_I16_TakeOverStopsTheOldServer(t *testing.T) {
	t.Parallel()
	emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 200 * time.Millisecond})
	s := newSite(t, url, fast)
	s.dropped("acme", "before", 3)
	old := s.start("run")
	waitFor(t, "the first to be archived", func() bool { return len(archivedAt(emu)) == 3 })
	backup := filepath.Join(s.dir, "backup.db")
	s.must(0, "backup", backup)
	s.dropped("acme", "after", 2)
	waitFor(t, "more to be archived", func() bool { return len(archivedAt(emu)) == 5 })

	text, err := os.ReadFile(s.config)
	kit.Must(t, err)
	other := &site{t: t, dir: s.dir, config: filepath.Join(s.dir, "new.yaml")}
	kit.Must(t, os.WriteFile(other.config, []byte(strings.Replace(string(text), "/state\n", "/state2\n", 1)), 0o640))
	other.must(0, "restore", backup, "--take-over", "--reason", "new server")
	waitFor(t, "the old server to let both folders go", func() bool {
		out, code := s.vaultd("status")
		return code == exitPerson && strings.Contains(out, "later state of this ledger") && strings.Contains(out, "drop acme paused") && strings.Contains(out, "drop beta paused")
	})
	registered := emu.CountCalls("register")
	s.dropped("beta", "new", 2) // the old one must not take them
	other.start("run")
	other.listens()
	if n := emu.CountCalls("register"); n != registered {
		t.Errorf("%d registrations by the old server, or in safe mode", n-registered)
	}
	other.must(0, "reconcile")
	waitFor(t, "the new ones to be archived", func() bool { return len(archivedAt(emu)) == 7 })
	other.calm(7)
	other.must(0, "verify")
	onceEach(t, emu, 7)
	old.stop(t)
	if out, code := s.vaultd("run"); code != exitConfig || !strings.Contains(out, "epoch 2") {
		t.Errorf("the old server starts again: exit %d: %s", code, out)
	}
}

// I15: the ledger is gone and nobody has a backup. What lies in the folders and what the archive knows make a new one, and
// nothing differs.
func TestRebuild_I15_FromFoldersAndArchive(t *testing.T) {
	t.Parallel()
	emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 200 * time.Millisecond})
	s := newSite(t, url, fast)
	s.dropped("acme", "kept", 4)
	s.drop("acme", "wrong", map[string][]byte{"a.pdf": []byte("a")}, map[string]any{"documentType": "Invoice", "documentId": "x", "documentDate": "31.10.2026"})
	s.dropped("beta", "disposed", 3)
	p := s.start("run")
	s.calm(8)
	waitFor(t, "all to be kept", func() bool {
		a, _ := filepath.Glob(filepath.Join(s.dir, "acme", "_archived", "*", "*"))
		b, _ := filepath.Glob(filepath.Join(s.dir, "beta", "_archived", "*", "*"))
		return len(a) == 4 && len(b) == 3
	})
	for i := range 3 { // people took these folders away
		s.move(fmt.Sprintf("beta/_archived/%s/disposed %02d", month(t, s, "beta"), i), fmt.Sprintf("gone %d", i))
	}
	p.stop(t)
	claimed := filepath.Join("acme", ".vaultd", "claimed", "06gzjjvyf99r0pn4h1yst9yz9m")
	kit.Must(t, os.MkdirAll(filepath.Join(s.dir, claimed), 0o700))
	s.dropped("acme", "under way", 1)
	s.move("acme/under way 00", claimed+"/under way 00")
	if out := s.must(exitCreate, "rebuild"); !strings.Contains(out, "whole") {
		t.Errorf("a whole ledger was made anew: %s", out)
	}
	s.move("state", "lost")

	out := s.must(0, "rebuild", "--reason", "disk failed, no backup")
	kit.Holds(t, "rebuild", out, "ARCHIVED   4", "TAKEN      1", "RETURNED   1", "CANNOT BE KNOWN", "SAFE MODE", "epoch 2")
	calls := emu.CountCalls("register")
	s.start("run")
	s.listens()
	if emu.CountCalls("register") != calls {
		t.Error("something was registered before the archive was asked")
	}
	if out := s.must(0, "reconcile"); !strings.Contains(out, "safe mode is over") {
		t.Errorf("reconcile:\n%s", out)
	}
	s.calm(9) // 4 kept, 1 returned, 1 under way, 3 from the archive
	if out := s.must(0, "reconcile"); !strings.Contains(out, "nothing differs") {
		t.Errorf("compared again:\n%s", out)
	}
	s.must(0, "verify")
	onceEach(t, emu, 8)
	s.dropped("acme", "kept", 1) // dropped again: the new ledger knows it
	s.calm(10)
	onceEach(t, emu, 8)
}

func month(t *testing.T, s *site, drop string) string {
	t.Helper()
	months, err := filepath.Glob(filepath.Join(s.dir, drop, "_archived", "*"))
	if err != nil || len(months) != 1 {
		t.Fatalf("months = %v, err = %v, want no error, len(months) = 1", months, err)
	}
	return filepath.Base(months[0])
}

// I15: the machine was set back to a snapshot: an older ledger lies under the newer head. vaultd works, in safe mode, and
// says so everywhere.
func TestRun_I15_SetBackToASnapshot(t *testing.T) {
	t.Parallel()
	emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 200 * time.Millisecond})
	s := newSite(t, url, fast)
	text, err := os.ReadFile(s.config)
	kit.Must(t, err)
	const port = "127.0.0.1:18973"
	changed := strings.NewReplacer(`listen: ""`, "listen: "+port, "rescan: 1s}", "rescan: 1s, after_archive: {action: delete, grace: 2s}}").Replace(string(text))
	kit.Must(t, os.WriteFile(s.config, []byte(changed), 0o640))
	s.dropped("acme", "before", 3)
	p := s.start("run")
	s.calm(3)
	s.must(0, "backup", filepath.Join(s.dir, "snapshot.db"))
	s.dropped("acme", "after", 3)
	s.calm(6)
	p.stop(t)
	s.move("snapshot.db", "state/ledger.db")
	calls := emu.CountCalls("register")
	s.start("run")
	s.listens()
	resp, err := http.Get("http://" + port + "/readyz")
	kit.Must(t, err)
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "safe mode") {
		t.Errorf("/readyz: %d %s (%v)", resp.StatusCode, body, err)
	}
	out, code := s.vaultd("status")
	if !strings.HasPrefix(out, "SAFE MODE") || code != exitPerson {
		t.Errorf("status: exit %d\n%s", code, out)
	}
	if emu.CountCalls("register") != calls {
		t.Error("something was registered in safe mode")
	}
	s.must(0, "reconcile")
	s.calm(6)
	s.must(0, "verify")
	onceEach(t, emu, 6)
}

// I5, I15: kill -9 in the middle of restore, rebuild and reconcile, again and again: the next try ends where one without a kill does.
func TestRecover_I5_KilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		begin func(s *site)
		again []string // may be killed at any moment
	}{
		"Restore": {func(s *site) { s.move("state", "lost") }, []string{"restore", "BACKUP"}},
		"Rebuild": {func(s *site) { s.move("state", "lost") }, []string{"rebuild"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond})
			s := newSite(t, url, fast)
			s.dropped("acme", "before", 3)
			p := s.start("run")
			s.calm(3)
			backup := filepath.Join(s.dir, "backup.db")
			s.must(0, "backup", backup)
			s.dropped("acme", "after", 3)
			waitFor(t, "more to be archived", func() bool { return len(archivedAt(emu)) == 6 })
			p.stop(t)
			row.begin(s)
			var args []string
			for _, a := range row.again {
				args = append(args, strings.Replace(a, "BACKUP", backup, 1))
			}
			for i := range 6 { // the whole takes some 30 ms
				p := s.spawn(args...)
				time.Sleep(time.Duration(4+4*i) * time.Millisecond)
				_ = p.Process.Kill() // it may have ended
				<-p.done
			}
			// What was done in time is not done again: a rebuilt ledger is whole.
			if out, code := s.vaultd(args...); code != 0 && !(name == "Rebuild" && code == exitCreate) {
				t.Fatalf("%v: exit %d\n%s", args, code, out)
			}
			for range 3 { // where the daemon does not answer yet, the command works without it
				p := s.spawn("run")
				waitFor(t, "the socket", func() bool { _, err := os.Stat(filepath.Join(s.dir, "state", "vaultd.sock")); return err == nil })
				c := s.start("reconcile")
				time.Sleep(15 * time.Millisecond)
				p.kill(t)
				<-c.done
			}
			s.start("run")
			waitFor(t, "the daemon to compare", func() bool { _, code := s.vaultd("reconcile"); return code == 0 })
			s.calm(6)
			s.must(0, "verify")
			onceEach(t, emu, 6)
			s.dropped("acme", "after", 1) // dropped again
			s.calm(7)
			onceEach(t, emu, 6)
		})
	}
}
