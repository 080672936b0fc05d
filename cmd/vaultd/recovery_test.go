package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
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
		kit.Want(t, id+" is archived", times, 1)
	}
	kit.Want(t, "len(done)", len(done), n)
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
	kit.Need(s.t, got == code, "vaultd %v: exit %d, want %d:\n%s", args, got, code, out)
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
	kit.Await(s.t, fmt.Sprintf("%d entries to end", seen), func() bool {
		var got present.StatusSummary
		last, _ = s.vaultd("status", "--json")
		return json.Unmarshal([]byte(last), &got) == nil && got.Balance.Seen == uint64(seen) && got.Balance.Open == 0 && got.Balance.Agrees
	})
}

// I15: a backup is taken, more is archived, the server burns down. What comes back sends nothing before it has asked, and then
// every document is in the archive once.
func TestRestore_I15_NothingTwiceAfterTheServerBurnedDown(t *testing.T) {
	emu, s := served(t, emulator.Config{ArchiveMin: 300 * time.Millisecond, ArchiveMax: 600 * time.Millisecond}, fast)
	s.dropped("acme", "before", 5)
	p := s.spawn("run")
	kit.Await(t, "the first to be archived", func() bool { return len(archivedAt(emu)) == 5 })
	backup := filepath.Join(s.dir, "backup.db")
	s.dropped("beta", "around", 6)
	kit.Await(t, "some to be registered", func() bool { return emu.CountCalls("register") > 1 })
	s.must(0, "backup", backup)
	s.dropped("acme", "after", 5)
	kit.Await(t, "all to be archived", func() bool { return len(archivedAt(emu)) == 16 })
	s.dropped("beta", "late", 4)
	kit.Await(t, "the last to be on their way", func() bool { return len(emu.Registrations()) > 16 })
	p.kill(t)
	s.move("state", "lost")

	kit.Holds(t, "restore", s.must(0, "restore", backup, "--reason", "the server burned down"), "SAFE MODE")
	registered, uploaded := emu.CountCalls("register"), emu.CountCalls("upload")
	s.dropped("acme", "meanwhile", 1)
	s.start("run")
	kit.Await(t, "the daemon", func() bool { out, _ := s.vaultd("status"); return strings.Contains(out, "NOT TAKEN YET 1") })
	out, code := s.vaultd("status")
	first, _, _ := strings.Cut(out, "\n")
	kit.Check(t, code == exitPerson && strings.Contains(first, "SAFE MODE"), "status: exit %d:\n%s", code, out)
	kit.Check(t, emu.CountCalls("register") == registered && emu.CountCalls("upload") == uploaded,
		"in safe mode something was sent")
	text, err := os.ReadFile(filepath.Join(s.dir, "acme", "_STATUS.txt"))
	kit.Check(t, err == nil && strings.Contains(string(text), "DELAYED"), "the clerk reads %v:\n%s", err, text)
	kit.Holds(t, "reconcile: exit", s.must(0, "reconcile"), "safe mode is over")
	kit.Await(t, "the rest to be archived", func() bool { return len(archivedAt(emu)) == 21 })
	s.calm(21)
	s.must(0, "verify")
	kit.Holds(t, "compared again", s.must(0, "reconcile"), "nothing differs")
	onceEach(t, emu, 21)
	for drop, n := range map[string]int{"acme": 11, "beta": 10} {
		kit.Await(t, fmt.Sprintf("%d folders to be kept in %s", n, drop), func() bool {
			kept, err := filepath.Glob(filepath.Join(s.dir, drop, "_archived", "*", "*"))
			return err == nil && len(kept) == n
		})
	}
}

// listens waits until the daemon answers commands.
func (s *site) listens() {
	s.t.Helper()
	kit.Await(s.t, "the daemon to answer", func() bool {
		out, code := s.vaultd("status", "--json")
		return (code == 0 || code == exitPerson) && strings.Contains(out, `"running":true`)
	})
}

// I15, I16: who moves to another machine takes over; the old one notices, lets the drop folders go, says so, and sends nothing
// more, although it still runs.
func TestRestore_I15_I16_TakeOverStopsTheOldServer(t *testing.T) {
	emu, s := served(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 200 * time.Millisecond}, fast)
	s.dropped("acme", "before", 3)
	old := s.start("run")
	kit.Await(t, "the first to be archived", func() bool { return len(archivedAt(emu)) == 3 })
	backup := filepath.Join(s.dir, "backup.db")
	s.must(0, "backup", backup)
	s.dropped("acme", "after", 2)
	kit.Await(t, "more to be archived", func() bool { return len(archivedAt(emu)) == 5 })

	text := kit.Value(os.ReadFile(s.config))(t)
	other := &site{t: t, dir: s.dir, config: filepath.Join(s.dir, "new.yaml")}
	kit.Must(t, os.WriteFile(other.config, []byte(strings.Replace(string(text), "/state\n", "/state2\n", 1)), 0o640))
	other.must(0, "restore", backup, "--take-over", "--reason", "new server")
	kit.Await(t, "the old server to let both folders go", func() bool {
		out, code := s.vaultd("status")
		return code == exitPerson && strings.Contains(out, "later state of this ledger") && strings.Contains(out, "drop acme paused") && strings.Contains(out, "drop beta paused")
	})
	registered := emu.CountCalls("register")
	s.dropped("beta", "new", 2) // the old one must not take them
	other.start("run")
	other.listens()
	n := emu.CountCalls("register")
	kit.Check(t, n == registered, "%d registrations by the old server, or in safe mode", n-registered)
	other.must(0, "reconcile")
	kit.Await(t, "the new ones to be archived", func() bool { return len(archivedAt(emu)) == 7 })
	other.calm(7)
	other.must(0, "verify")
	onceEach(t, emu, 7)
	old.stop(t)
	kit.Holds(t, "the old server starts again: exit", s.must(exitConfig, "run"), "epoch 2")
}

// I15: the ledger is gone and nobody has a backup. What lies in the folders and what the archive knows make a new one, and
// nothing differs.
func TestRebuild_I15_FromFoldersAndArchive(t *testing.T) {
	emu, s := served(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 200 * time.Millisecond}, fast)
	s.dropped("acme", "kept", 4)
	s.drop("acme", "wrong", map[string][]byte{"a.pdf": []byte("a")}, map[string]any{"documentType": "Invoice", "documentId": "x", "documentDate": "31.10.2026"})
	s.dropped("beta", "disposed", 3)
	p := s.start("run")
	s.calm(8)
	kit.Await(t, "all to be kept", func() bool {
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
	kit.Holds(t, "a whole ledger was made anew", s.must(exitCreate, "rebuild"), "whole")
	s.move("state", "lost")

	out := s.must(0, "rebuild", "--reason", "disk failed, no backup")
	kit.Holds(t, "rebuild", out, "ARCHIVED   4", "TAKEN      1", "RETURNED   1", "CANNOT BE KNOWN", "SAFE MODE", "epoch 2")
	calls := emu.CountCalls("register")
	s.start("run")
	s.listens()
	kit.Want(t, "something was registered before the archive was asked", emu.CountCalls("register"), calls)
	kit.Holds(t, "reconcile", s.must(0, "reconcile"), "safe mode is over")
	s.calm(9) // 4 kept, 1 returned, 1 under way, 3 from the archive
	kit.Holds(t, "compared again", s.must(0, "reconcile"), "nothing differs")
	s.must(0, "verify")
	onceEach(t, emu, 8)
	s.dropped("acme", "kept", 1) // dropped again: the new ledger knows it
	s.calm(10)
	onceEach(t, emu, 8)
}

func month(t *testing.T, s *site, drop string) string {
	t.Helper()
	months, err := filepath.Glob(filepath.Join(s.dir, drop, "_archived", "*"))
	kit.Need(t, err == nil && len(months) == 1, "months = %v, err = %v, want no error, len(months) = 1", months, err)
	return filepath.Base(months[0])
}

// I15: the machine was set back to a snapshot: an older ledger lies under the newer head. vaultd works, in safe mode, and
// says so everywhere.
func TestRun_I15_SetBackToASnapshot(t *testing.T) {
	emu, s := served(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 200 * time.Millisecond}, fast)
	text := kit.Value(os.ReadFile(s.config))(t)
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
	resp := kit.Value(http.Get("http://" + port + "/readyz"))(t)
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	kit.Check(t, err == nil && resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(body), "safe mode"),
		"/readyz: %d %s (%v)", resp.StatusCode, body, err)
	out, code := s.vaultd("status")
	kit.Check(t, strings.HasPrefix(out, "SAFE MODE") && code == exitPerson, "status: exit %d\n%s", code, out)
	kit.Want(t, "something was registered in safe mode", emu.CountCalls("register"), calls)
	s.must(0, "reconcile")
	s.calm(6)
	s.must(0, "verify")
	onceEach(t, emu, 6)
}

// I5, I15: kill -9 in the middle of restore, rebuild and reconcile, again and again: the next try ends where one without a kill does.
func TestRecover_I5_KilledAgainAndAgain(t *testing.T) {
	kit.Waits(t, 0.2, "kills a process after a few milliseconds")
	t.Parallel()
	for name, row := range map[string]struct {
		begin func(s *site)
		again []string // may be killed at any moment
	}{
		"Restore": {func(s *site) { s.move("state", "lost") }, []string{"restore", "BACKUP"}},
		"Rebuild": {func(s *site) { s.move("state", "lost") }, []string{"rebuild"}},
	} {
		t.Run(name, func(t *testing.T) {
			emu, s := served(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond}, fast)
			s.dropped("acme", "before", 3)
			p := s.start("run")
			s.calm(3)
			backup := filepath.Join(s.dir, "backup.db")
			s.must(0, "backup", backup)
			s.dropped("acme", "after", 3)
			kit.Await(t, "more to be archived", func() bool { return len(archivedAt(emu)) == 6 })
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
			out, code := s.vaultd(args...)
			kit.Need(t, code == 0 || (name == "Rebuild" && code == exitCreate), "%v: exit %d\n%s", args, code, out)
			for range 3 { // where the daemon does not answer yet, the command works without it
				p := s.spawn("run")
				kit.Await(t, "the socket", func() bool { _, err := os.Stat(filepath.Join(s.dir, "state", "vaultd.sock")); return err == nil })
				c := s.start("reconcile")
				time.Sleep(15 * time.Millisecond)
				p.kill(t)
				<-c.done
			}
			s.start("run")
			kit.Await(t, "the daemon to compare", func() bool { _, code := s.vaultd("reconcile"); return code == 0 })
			s.calm(6)
			s.must(0, "verify")
			onceEach(t, emu, 6)
			s.dropped("acme", "after", 1) // dropped again
			s.calm(7)
			onceEach(t, emu, 6)
		})
	}
}

// A disposal that was stopped for being unusual shows with what to do, and
// resumes only by an operator's decision, which is journaled.
func TestResume_I29(t *testing.T) {
	s := newShelf(t)
	for _, folder := range []string{"Müller 4711", "Huber 88"} {
		s.send(folder, noon.Add(-50*time.Hour), archive.RemoteID("bum-"+folder[:1]))
		s.says(folder, noon.Add(-49*time.Hour), archive.RemoteID("bum-"+folder[:1]), archive.Successful)
		s.tell(folder, noon.Add(-49*time.Hour), nil, ledger.PlaceIntended{Dest: "_archived/2026-11/" + folder}, ledger.Placed{DisposeAt: noon.Add(-time.Hour)})
	}
	for _, row := range []struct {
		route, reason string
		code          int
		words         string
	}{
		{"store of vault V-1", "x", exitUsage, "not a pause that waits for a person"},
		{"disposal of nowhere", "x", exitFailed, "nothing of it is due for removal"},
		{"disposal of acme-in", "first month end", 0, "2 archived folders of drop acme-in may be removed now"},
	} {
		out, errs, code := s.say("resume", row.route, "--reason", row.reason)
		kit.Check(t, code == row.code && strings.Contains(out+errs, row.words),
			"%s: exit %d\n%s%s", row.route, code, out, errs)
	}
	lines := 0
	err := s.ledger.Lines(1, func(_ uint64, line []byte) error {
		if strings.Contains(string(line), ledger.MarkDisposal) {
			lines++
		}
		kit.Lacks(t, "the reason stands in the journal", string(line), "month end")
		return nil
	})
	kit.Check(t, err == nil && lines == 1, "%d journal lines, %v", lines, err)
}
