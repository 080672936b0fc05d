package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/emulator"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// apart runs a test once more, next to others, in a process with mounts of its
// own. There it returns true.
func apart(t *testing.T) bool {
	t.Helper()
	t.Parallel()
	return kit.OwnMounts(t)
}

// small is a file system in memory with little room.
func small(t *testing.T, dir, options string) {
	t.Helper()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	kit.Need(t, err == nil, "mount a file system with %s: %v", options, err)
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// hog fills the file system of dir to the last byte, as a program that has run wild does, and goes on filling what is
// freed, until it is stopped and its file removed.
func hog(t *testing.T, dir string) (stop func()) {
	t.Helper()
	path := filepath.Join(dir, "hog")
	f := kit.Value(os.Create(path))(t)
	fill := func() {
		for block := make([]byte, 1<<16); len(block) > 0; {
			if _, err := f.Write(block); err != nil {
				block = block[:len(block)/2]
			}
		}
	}
	fill()
	left := freeBytes(dir)
	kit.Need(t, left == 0, "%d bytes are left", left)
	enough, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-enough:
				return
			case <-time.After(20 * time.Millisecond):
				fill()
			}
		}
	}()
	return func() {
		close(enough)
		<-ended
		kit.Must(t, errors.Join(f.Close(), os.Remove(path)))
	}
}

// begin starts the daemon and waits until commands reach it.
func (s *site) begin() *process {
	s.t.Helper()
	p := s.start("run")
	p.awaitSocket(s.t, filepath.Join(s.dir, "state"))
	return p
}

// beginProcess is begin for a daemon in a process, which may be killed.
func (s *site) beginProcess() *process {
	s.t.Helper()
	p := s.spawn("run")
	p.awaitSocket(s.t, filepath.Join(s.dir, "state"))
	return p
}

// onSmallState puts the state directory on a small file system, with an empty ledger.
func (s *site) onSmallState(options string) {
	s.t.Helper()
	text, err := os.ReadFile(s.config)
	if err == nil {
		err = os.WriteFile(s.config, []byte(strings.Replace(string(text), "min_free: 1MB", "min_free: 8MB", 1)), 0o640)
	}
	kit.Must(s.t, err)
	small(s.t, filepath.Join(s.dir, "state"), options)
	out, code := s.vaultd("init")
	kit.Need(s.t, code == 0, "init: exit %d: %s", code, out)
}

// status is what a running daemon says of itself.
func (s *site) status() (st present.StatusSummary) {
	s.t.Helper()
	out, _ := s.vaultd("status", "--json")
	err := json.Unmarshal([]byte(out), &st)
	kit.Need(s.t, err == nil, "status: %v: %s", err, out)
	return st
}

func (s *site) inState(state string, n uint64) func() bool {
	return func() bool { return s.status().Balance.States[state] == n }
}

// page waits for words in a drop's _STATUS.txt.
func (s *site) page(drop, words string) {
	s.t.Helper()
	var text []byte
	defer func() {
		if s.t.Failed() {
			s.t.Logf("%s", text)
		}
	}()
	kit.Await(s.t, fmt.Sprintf("%q in _STATUS.txt", words), func() bool {
		text, _ = os.ReadFile(filepath.Join(s.dir, drop, "_STATUS.txt")) // it may not be there yet
		return strings.Contains(string(text), words)
	})
}

// add drops n more invoices into one drop folder.
func (s *site) add(drop, prefix string, n int) {
	s.t.Helper()
	for i := range n {
		name := fmt.Sprintf("%s-%d", prefix, i)
		s.drop(drop, name, map[string][]byte{"rechnung.pdf": []byte(name)},
			map[string]any{"documentType": "Invoice", "documentId": name, "documentDate": "2026-10-31"})
	}
}

// ends stops the daemon and holds what it left against what was dropped.
func (s *site) ends(p *process, emu *emulator.Server, n int) {
	s.t.Helper()
	kit.Want(s.t, "exit", p.stop(s.t), 0)
	out, code := s.vaultd("verify", "--whole")
	kit.Check(s.t, code == 0, "verify: exit %d\n%s", code, out)
	onceEach(s.t, emu, n)
	st := s.status().Balance
	kit.Check(s.t, st.States["archived"] == uint64(n) && st.Seen == uint64(n),
		`%+v, want st.States["archived"] = %v, st.Seen = %v`, st, uint64(n), uint64(n))
}

// I24, I11: another program fills the disk of the ledger to the last byte while documents are on their way. Nothing new
// is taken, in words for everybody; what is on its way is archived all the same, for its outcomes are recorded in room
// that was set aside; and with room again the rest goes on by itself.
func TestDisk_I24_StateDiskFillsToTheLastByte(t *testing.T) {
	if !apart(t) {
		return
	}
	emu, s := newServed(t, emulator.Config{Window: time.Minute, ArchiveMin: 3 * time.Second, ArchiveMax: 4 * time.Second}, fast)
	s.onSmallState("size=24m")
	p := s.begin()
	s.add("acme", "early", 40)
	kit.Await(t, "all to be with the service", s.inState("uploaded", 40))
	give := hog(t, filepath.Join(s.dir, "state"))
	s.add("acme", "late", 3)
	s.add("beta", "late", 2)
	kit.Await(t, "the outcomes on the full disk", s.inState("archived", 40))
	s.page("acme", "WAITING FOR ROOM (3)")
	s.page("acme", "  late-2                waits: the archive server's disk is full")
	s.page("beta", "DELAYED since")
	out, code := s.vaultd("status")
	if code != exitPerson || !regexp.MustCompile(`the disk of state_dir has .+ left, below spool.min_free \(8.0 MB\): nothing new is taken, uploads go on`).MatchString(out) ||
		!strings.Contains(out, "NOT TAKEN YET 5\n  acme: no room 3\n") {
		t.Errorf("status: exit %d\n%s", code, out)
	}
	if left := freeBytes(filepath.Join(s.dir, "state")); left > 100_000 { // the spool empties itself
		t.Errorf("%d bytes are left: the disk was not full", left)
	}
	give()
	kit.Await(t, "the others to be archived", s.inState("archived", 45))
	s.ends(p, emu, 45)
	for words, times := range map[string]int{"nothing new is taken or packed": 1, "has room again": 1, "folder not taken": 0} {
		kit.Want(t, fmt.Sprintf("%q was logged", words), strings.Count(p.out.String(), words), times)
	}
}

// I5: a start on a full disk where nothing was set aside. With an outcome to record it ends with 74, once; the start
// after it waits for room instead of failing again and again, answers meanwhile, and goes on by itself.
func TestDisk_I5_StartOnAFullDisk(t *testing.T) {
	if !apart(t) {
		return
	}
	emu, s := newServed(t, emulator.Config{Window: time.Minute, ArchiveMin: time.Second, ArchiveMax: 2 * time.Second}, fast)
	s.onSmallState("size=24m")
	state := filepath.Join(s.dir, "state")
	s.add("acme", "early", 10)
	p := s.begin()
	kit.Await(t, "all to be on their way", s.inState("uploaded", 10))
	p.stop(t)
	s.forgetReserve()
	give := hog(t, state)
	kit.Holds(t, "run --once: exit",
		s.must(exitIO, "run", "--once"), "nothing was begun: the disk of state_dir has 0.0 MB left")
	p = s.begin()
	kit.Await(t, "status to say what it waits for", func() bool {
		out, code := s.vaultd("status")
		return code == exitPerson && strings.Contains(out, "not even the ledger has room, so that nothing is taken, sent or asked")
	})
	b := s.status().Balance
	kit.Check(t, b.States["uploaded"] == 10, `%+v, want b.States["uploaded"] = 10`, b)
	give()
	kit.Await(t, "all to be archived", s.inState("archived", 10))
	s.ends(p, emu, 10)
	kit.Want(t, "waiting was logged", strings.Count(p.out.String(), "it goes on by itself"), 1)
}

// forgetReserve gives back what is set aside for the ledger, as a copy of the file would not have it.
func (s *site) forgetReserve() {
	s.t.Helper()
	name := filepath.Join(s.dir, "state", "ledger.db")
	out, err := exec.Command("cp", "--sparse=always", name, name+".copy").CombinedOutput()
	kit.Need(s.t, err == nil, "%v: %s", err, out)
	kit.Must(s.t, os.Rename(name+".copy", name))
}

// I23, I24: the disk of one drop folder has room neither for bytes nor for names. What lies there waits, what is on its
// way is archived, the other drop notices nothing, and with room again everything is put where it belongs.
func TestDisk_I23_DropDiskIsFull(t *testing.T) {
	if !apart(t) {
		return
	}
	emu, s := newServed(t, emulator.Config{Window: time.Minute, ArchiveMin: 2 * time.Second, ArchiveMax: 3 * time.Second}, fast)
	acme := filepath.Join(s.dir, "acme")
	small(t, acme, "size=4m,nr_inodes=200")
	p := s.begin()
	s.add("acme", "early", 5)
	kit.Await(t, "the first to be with the service", s.inState("uploaded", 5))
	s.add("acme", "late", 3)
	names := crowd(t, acme)
	give := hog(t, acme)
	s.add("beta", "other", 4)
	kit.Await(t, "the other drop's to be archived", s.inState("archived", 9))
	kit.Await(t, "what waits to be told", func() bool {
		out, code := s.vaultd("status")
		return code == exitPerson && strings.Contains(out, "drop acme: 3 not taken: no room")
	})
	kit.Await(t, "the full disk of the drop to be a need", func() bool {
		out, _ := s.vaultd("status")
		return strings.Contains(out, "the disk of drop acme has ")
	})
	if st := s.status().Balance; st.States["rejected"]+st.States["quarantined"] != 0 {
		t.Errorf(`%+v, want st.States["rejected"]+st.States["quarantined"] = 0`, st)
	}
	give()
	names()
	kit.Await(t, "all to be archived", s.inState("archived", 12))
	kit.Await(t, "all to lie in their place", func() bool {
		receipts, err := filepath.Glob(filepath.Join(s.dir, "*", "_archived", "*", "*", "_RECEIPT.json"))
		return err == nil && len(receipts) == 12
	})
	s.ends(p, emu, 12)
	n := strings.Count(p.out.String(), "the disk of the drop folder is full")
	kit.Check(t, n == 1, "that the drop's disk is full was logged %d times", n)
}

// crowd takes all names that a file system has left, and returns how to give them back.
func crowd(t *testing.T, dir string) (give func()) {
	t.Helper()
	var names []string
	for i := 0; ; i++ {
		name := filepath.Join(dir, fmt.Sprint("crowd-", i))
		if err := os.WriteFile(name, nil, 0o600); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := os.Remove(names[len(names)-1]); err != nil { // one is the hog's
		t.Fatal(err)
	}
	return func() {
		for _, name := range names[:len(names)-1] {
			kit.Must(t, os.Remove(name))
		}
	}
}

// I23, I24: the file system of one drop folder was mounted read-only. The other drop notices nothing, and once it is
// mounted with write access the rest goes on, without a new start.
func TestDisk_I24_DropIsReadOnly(t *testing.T) {
	if !apart(t) {
		return
	}
	emu, s := newServed(t, emulator.Config{Window: time.Minute, ArchiveMin: 2 * time.Second, ArchiveMax: 3 * time.Second}, fast)
	acme := filepath.Join(s.dir, "acme")
	small(t, acme, "size=8m")
	p := s.begin()
	s.add("acme", "early", 5)
	kit.Await(t, "the first to be with the service", s.inState("uploaded", 5))
	p.stop(t)
	s.add("acme", "late", 3)
	kit.Must(t, unix.Mount("", acme, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	p = s.begin()
	s.add("beta", "other", 4)
	kit.Await(t, "all but those that lie there to be archived", s.inState("archived", 9))
	kit.Await(t, "status to name it", func() bool {
		out, code := s.vaultd("status")
		return code == exitPerson && strings.Contains(out, "drop acme paused") && strings.Contains(out, "is read-only for vaultd")
	})
	kit.Must(t, unix.Mount("", acme, "", unix.MS_REMOUNT, ""))
	kit.Await(t, "all to be archived", s.inState("archived", 12))
	s.ends(p, emu, 12)
}

// A state directory that cannot be written to is named at the start, and nothing is done.
func TestDisk_StateDirIsReadOnly(t *testing.T) {
	if !apart(t) {
		return
	}
	emu, s := newServed(t, emulator.Config{}, fast)
	s.onSmallState("size=24m")
	state := filepath.Join(s.dir, "state")
	s.add("acme", "a", 1)
	kit.Must(t, unix.Mount("", state, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	ended(s.vaultd("run"))(t, "run", exitCreate, "read-only file system", "hint: free space on the disk, or make it writable")
	kit.Want(t, "something was sent", emu.CountCalls("register"), 0)
	kit.Must(t, unix.Mount("", state, "", unix.MS_REMOUNT, ""))
	p := s.begin()
	kit.Await(t, "it to be archived", s.inState("archived", 1))
	s.ends(p, emu, 1)
}

// freeBytes returns how much room the file system of a folder has left.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return -1
	}
	return int64(st.Bavail) * st.Bsize
}
