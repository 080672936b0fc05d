package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/proof"
	"vaultd/internal/selfcheck"
	"vaultd/internal/spool"
	"vaultd/internal/test/kit"
)

// I3, I29: what the disposal limit stopped goes on by a person's decision, which is journaled.
func TestApproveDisposal_I29(t *testing.T) {
	withDaemon(t, func(d *dropwork.Settings) { d.Disposes, d.Grace = true, 24*time.Hour }, func(h *testDaemon) {
		h.d.disposalLimit.AlwaysUsual = 1
		for _, n := range []string{"1", "2", "3"} {
			h.drop("Huber "+n, "INV-"+n, "content "+n, false)
		}
		h.pass()
		kit.Fails(t, "approval before anything is due: error",
			kit.Err(h.d.Actions().ApproveDisposal(t.Context(), "acme-in", operator.Person{UID: 1000, Reason: "too early"})), operator.ErrNothingDue)
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		p := h.d.State().Pauses
		if len(p) != 1 || p[0].Target.String() != "disposal of acme-in" || !p[0].Next.IsZero() || h.sources()[ledger.Kept] < 2 {
			t.Fatalf("pauses = %+v, sources = %v, want the disposal of acme-in paused and at least 2 kept", p, h.sources())
		}
		stopped := h.sources()[ledger.Kept] // the first may have been due alone, and gone
		n, err := h.d.Actions().ApproveDisposal(t.Context(), "acme-in", operator.Person{UID: 1000, Reason: "it is right"})
		kit.Need(t, err == nil && n == stopped, "approved = %d (error %v), want %d", n, err, stopped)
		h.pass()
		if len(h.d.State().Pauses) != 0 || h.sources()[ledger.Gone] != 3 {
			t.Errorf("pauses = %v, sources = %v, want no pause and 3 gone", h.d.State().Pauses, h.sources())
		}
		journaled := 0
		h.must(h.d.Ledger().Lines(1, func(_ uint64, line []byte) error {
			if s := string(line); strings.Contains(s, ledger.MarkDisposal) && strings.Contains(s, `"uid":1000`) && !strings.Contains(s, "it is right") {
				journaled++
			}
			return nil
		}))
		kit.Want(t, "journal lines about the approval", journaled, 1)
	})
}

// TestDispose_I18_AFolderThatIsLostIsNotCalledMoved: a user took the kept
// folder away before it was due. Its place is unknown, so the entry does not say
// that vaultd moved it.
func TestDispose_I18_AFolderThatIsLostIsNotCalledMoved(t *testing.T) {
	to := t.TempDir()
	withDaemon(t, func(d *dropwork.Settings) { d.Disposes, d.DisposeTo, d.Grace = true, to, time.Hour }, func(h *testDaemon) {
		h.drop("Huber 88", "88", "one", false)
		h.dropAndPass("Otto 19", "19", "two", false)
		lost := h.byFolder()["Otto 19"]
		kit.Want(t, "the source before its grace is over", lost.Source, ledger.Kept)
		h.must(os.Rename(filepath.Join(h.path, lost.Dest), filepath.Join(h.t.TempDir(), "taken away")))
		for range 8 {
			h.pass()
		}
		all := h.byFolder()
		kit.Want(t, "the source of the other folder", all["Huber 88"].Source, ledger.Moved)
		kit.Want(t, "the source of the lost folder", all["Otto 19"].Source, ledger.Kept)
		kit.Want(t, "the cause of the lost folder", all["Otto 19"].Cause.Code, "source-missing")
	})
}

func (h *testDaemon) sources() map[ledger.Source]int {
	h.t.Helper()
	n := map[ledger.Source]int{}
	h.must(h.d.Ledger().EntriesOldestFirst(func(e ledger.Entry) error { n[e.Source]++; return nil }))
	return n
}

// A ledger that is deleted under a running daemon is noticed within a minute.
// From then on nothing is taken. What is open is put back, and the daemon ends;
// the next start knows every document, and takes what waits.
func TestLost_I15_I26_DeletedWhileItRuns(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.dropAndPass("Otto 1", "1", "one", false)
		h.onceEach("1")
		h.must(os.Remove(filepath.Join(h.cfg.StateDir, "ledger.db")))
		time.Sleep(time.Minute)
		err := <-h.ended
		lost, ok := errors.AsType[*ledger.LostError](err)
		kit.Need(t, ok && lost.PutBack, "ended with %v, want a ledger that was put back", err)
		h.must(h.d.Close())
		h.drop("Otto 2", "2", "two", false)
		h.again()
		h.pass()
		h.onceEach("1", "2")
	})
}

// If another file is in its place nothing is replaced: the daemon holds
// everything, says so, and keeps what it has open until the place is free.
func TestLost_I15_I26_ReplacedWhileItRuns(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.dropAndPass("Otto 1", "1", "one", false)
		place := filepath.Join(h.cfg.StateDir, "ledger.db")
		h.must(errors.Join(os.Remove(place), os.WriteFile(place, []byte("another"), 0o600)))
		time.Sleep(time.Minute)
		kit.Holds(t, "held", h.d.State().HeldReason, "another file is in the place of ledger.db")
		kit.Holds(t, "state", h.d.State().LostLedger, "another file is in the place of ledger.db")
		h.dropAndPass("Otto 2", "2", "two", false)
		kit.Want(t, "entries", h.d.Ledger().Balance().Seen, 1)
		kit.Holds(t, "_STATUS.txt", h.status(), "DELAYED", "no folder is taken")
		text, err := os.ReadFile(place)
		kit.Want(t, "the other file", string(text), "another")
		saved := h.backup() // the evidence can be saved
		h.must(errors.Join(err, os.Remove(place)))
		time.Sleep(time.Minute)
		if err := <-h.ended; err == nil || !strings.Contains(err.Error(), "a copy of what vaultd had open is in its place") {
			t.Fatalf("ended with %v, want a ledger that was put back", err)
		}
		h.must(h.d.Close())
		info, err := os.Stat(saved)
		kit.Check(t, err == nil && info.Size() != 0, "backup: %v (%v), want one", info, err)
		h.again()
		h.pass()
		h.onceEach("1", "2")
	})
}

// mapFile maps a file of a dropped folder as a program does that edits it in place, and changes nothing yet: what it writes later needs no
// open file and no call.
func (h *testDaemon) mapFile(path string) []byte {
	h.t.Helper()
	file := kit.Value(os.OpenFile(path, os.O_RDWR, 0))(h.t)
	info := kit.Value(file.Stat())(h.t)
	pages := kit.Value(unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))(h.t)
	h.must(file.Close())
	h.t.Cleanup(func() { _ = unix.Munmap(pages) })
	return pages
}

// byFolder gives the entries by the names of their folders: which is taken first is chance.
func (h *testDaemon) byFolder() map[string]ledger.Entry {
	h.t.Helper()
	_, all := h.entries()
	found := map[string]ledger.Entry{}
	for _, e := range all {
		found[e.Folder] = e
	}
	return found
}

// receipts reads both receipts of a kept folder.
func (h *testDaemon) receipts(e ledger.Entry) (rc proof.Receipt, text string) {
	h.t.Helper()
	raw := kit.Value(os.ReadFile(filepath.Join(h.path, e.Dest, "_RECEIPT.json")))(h.t)
	h.must(json.Unmarshal(raw, &rc))
	plain := kit.Value(os.ReadFile(filepath.Join(h.path, e.Dest, "_RECEIPT.txt")))(h.t)
	return rc, string(plain)
}

// I17, I18: a program writes into its mapping of a file after the folder was
// packed, where the kernel does not tell that it has one. The archive has what
// was packed. The folder is kept for good, and receipts, ledger and log name
// the file; a folder beside it that nobody changed goes after its grace.
func TestKeep_I17_I18_AMappingIsWrittenAfterTheSeal(t *testing.T) {
	withConfiguredDaemon(t, func(c *Config) {
		withoutLeases(c)
		c.Drops[0].Disposes, c.Drops[0].Grace = true, 3*time.Hour
	}, func(h *testDaemon) {
		h.lost.Store(true) // packed, and not registered before the file changed
		h.drop("Otto 19", "19", "what was archived", false)
		h.drop("Kern 6", "6", "two", false)
		pages := h.mapFile(filepath.Join(h.path, "Otto 19", "rechnung.pdf"))
		pages[0] = 'w' // the page is dirty: its next change sets no time
		h.pass()
		for folder, e := range h.byFolder() {
			kit.Need(t, e.State == ledger.Packaged && !e.Package.IsZero(),
				"%s is %v, want %v", folder, e.State, ledger.Packaged)
		}
		copy(pages, "WHAT")
		h.lost.Store(false)
		h.pass()
		h.pass()
		kern, otto := h.byFolder()["Kern 6"], h.byFolder()["Otto 19"]
		if kern.Source != ledger.Kept || kern.Cause != (ledger.Cause{}) || kern.DisposeAt.IsZero() {
			t.Errorf("the unchanged folder is %v for %+v, to be disposed of at %v, want %v, no cause, and a time", kern.Source, kern.Cause, kern.DisposeAt, ledger.Kept)
		}
		if otto.Source != ledger.Kept || otto.Cause.Code != "source-changed" || !strings.Contains(otto.Cause.Text, `"rechnung.pdf" has another content`) || !otto.DisposeAt.IsZero() {
			t.Errorf("the changed folder is %v for %+v, to be disposed of at %v, want %v, source-changed, and no time", otto.Source, otto.Cause, otto.DisposeAt, ledger.Kept)
		}
		rc, text := h.receipts(otto)
		if len(rc.Differs) != 1 || rc.Differs[0].Path != "rechnung.pdf" || rc.Files[0].SHA256 != archive.Sum([]byte("what was archived")).String() {
			t.Errorf("receipt differs in %+v, files = %+v, want rechnung.pdf, with the digest of what was archived", rc.Differs, rc.Files)
		}
		kit.Holds(t, "receipt for users", text, "THIS FOLDER IS NOT WHAT WAS ARCHIVED", "rechnung.pdf has another content")
		if rc, text := h.receipts(kern); len(rc.Differs) > 0 || !strings.HasPrefix(text, "\ufeffARCHIVED. ") {
			t.Errorf("receipt of the unchanged folder differs in %+v, want nothing, and a text that begins with ARCHIVED:\n%s", rc.Differs, text)
		}
		kit.Want(t, "attention for the changed folder", otto.Attention(), ledger.SourceChanged)
		kit.Want(t, "attention for the other folder", kern.Attention(), ledger.NoAttention)
		kit.Holds(t, "log", h.log.String(), "folder changed after it was packed")
		c := h.d.selfChecker().Check(h.t.Context())
		kit.Check(t, c.OK(), "check = %+v, want it to accept the receipts", c)
		for range 20 {
			h.pass()
		}
		if all := h.byFolder(); all["Kern 6"].Source != ledger.Gone || all["Otto 19"].Source != ledger.Kept {
			t.Errorf("after the grace: Kern 6 is %v, Otto 19 is %v, want %v, %v", all["Kern 6"].Source, all["Otto 19"].Source, ledger.Gone, ledger.Kept)
		}
		if now, err := os.ReadFile(filepath.Join(h.path, otto.Dest, "rechnung.pdf")); err != nil || string(now) != "WHAT was archived" {
			t.Errorf("the changed file = %q (error %v), want it as the user left it", now, err)
		}
		h.onceEach("19", "6")
	})
}

// I17, I25: the process ends after the folder was moved and before that was noted down: the next start still tells.
func TestKeep_I17_I25_ToldAfterACrash(t *testing.T) {
	withDaemon(t, func(d *dropwork.Settings) { d.Disposes, d.Grace = true, 3*time.Hour }, func(h *testDaemon) {
		var armed atomic.Bool
		var cut atomic.Int32
		f := durable.Hook(func(op, name string, do func() error) error {
			err := do()
			if op == "rename" && name == "Otto 19" && armed.Load() && err == nil {
				cut.Add(1)
				return fmt.Errorf("cut off behind the rename")
			}
			return err
		})
		h.files.Store(&f)
		h.lost.Store(true)
		h.drop("Otto 19", "19", "what was archived", false)
		all := h.becomes("Otto 19 packaged")
		h.must(os.WriteFile(filepath.Join(h.path, ".vaultd/claimed", all[0].Key.String(), "Otto 19", "rechnung.pdf"), []byte("WHAT was archived"), 0o660))
		armed.Store(true)
		h.lost.Store(false)
		h.pass()
		h.pass()
		armed.Store(false)
		h.pass()
		e := h.becomes("Otto 19 archived")[0]
		kit.Check(t, cut.Load() != 0, "the work was never cut off, want it once: the test shows nothing")
		if e.Source != ledger.Kept || e.Cause.Code != "source-changed" || !e.DisposeAt.IsZero() {
			t.Errorf("the folder is %v for %+v, to be disposed of at %v, want %v, source-changed, and no time", e.Source, e.Cause, e.DisposeAt, ledger.Kept)
		}
	})
}

// A kept folder that cannot be read is told, and nothing is concluded from it: it is
// not missing, and its receipt is not wrong. The check goes on with the others.
func TestCheck_I23_AReceiptThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{unix.EACCES, unix.EIO, unix.ESTALE} {
		t.Run(fault.Error(), func(t *testing.T) {
			withDaemon(t, nil, func(h *testDaemon) {
				h.drop("Huber 88", "88", "one", false)
				h.dropAndPass("Otto 19", "19", "two", false)
				huber, otto := h.byFolder()["Huber 88"], h.byFolder()["Otto 19"]
				h.must(os.Remove(filepath.Join(h.path, otto.Dest, "_RECEIPT.json")))
				for at, unread := range map[string]int{"Huber 88": 1, "_archived": 2} {
					f := durable.Hook(func(op, name string, do func() error) error {
						if op == "mount" && name == at { // it is the look at a folder that is about to be entered
							return &fs.PathError{Op: "statx", Path: name, Err: fault}
						}
						return do()
					})
					h.files.Store(&f)
					c := h.d.selfChecker().Check(h.t.Context())
					kit.Check(t, !c.OK() && c.Failed == "" && len(c.Ledger) == 0 && len(c.Unread) == unread && len(c.Files) == 0,
						"at %s: check = %+v, want %d unread, and no fault of its own", at, c, unread)
					kit.Holds(t, "unread at "+at, strings.Join(c.Unread, "\n"), huber.Key.String(), fault.Error())
					kit.Lacks(t, "unread at "+at, strings.Join(c.Unread, "\n"), "Huber")
				}
				kit.Holds(t, "the other entry", h.byFolder()["Otto 19"].Cause.Text, `"_RECEIPT.json" is missing`)
				kit.Want(t, "the entry that could not be read", h.byFolder()["Huber 88"].Cause, ledger.Cause{})
				h.mounts("", nil, nil)
				h.must(os.RemoveAll(filepath.Join(h.path, huber.Dest)))
				if c := h.d.selfChecker().Check(h.t.Context()); len(c.Unread) != 0 || c.Kept != 1 {
					t.Errorf("a folder was removed: check = %+v, want one new finding, and all read", c)
				}
				kit.Want(t, "the removed folder", h.byFolder()["Huber 88"].IsSourceMissing(), true)
			})
		})
	}
}

// I26: a package that cannot be read is a finding of its own, and hides neither
// the next one nor that the ledger itself was found sound.
func TestCheck_I26_APackageThatCannotBeRead(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.lost.Store(true)
		h.drop("Huber 88", "88", "one", false)
		h.pass()
		h.drop("Otto 19", "19", "two", false)
		h.pass()
		h.becomes("Huber 88 packaged", "Otto 19 packaged")
		all, marker := h.byFolder(), filepath.Join(h.cfg.StateDir, "ledger.opening")
		packageOf := func(folder string) string {
			e := all[folder]
			return filepath.Join(h.cfg.StateDir, "spool", spool.PackageName(e.Route, e.Key))
		}
		h.must(errors.Join(os.Remove(packageOf("Huber 88")), os.Mkdir(packageOf("Huber 88"), 0o700),
			os.WriteFile(packageOf("Otto 19"), []byte("another"), 0o600), os.WriteFile(marker, nil, 0o600)))
		c := h.d.selfChecker().Check(h.t.Context())
		kit.Check(t, c.Failed == "" && len(c.Ledger) == 0 && len(c.Unread) == 1 && len(c.Files) == 1, "check = %+v, want one unread and one that differs", c)
		kit.Holds(t, "unread", strings.Join(c.Unread, "\n"), all["Huber 88"].Key.String(), "its package cannot be read")
		kit.Holds(t, "differs", strings.Join(c.Files, "\n"), all["Otto 19"].Key.String())
		kit.Fails(t, "the marker of a ledger that was found sound", kit.Err(os.Lstat(marker)), os.ErrNotExist)
		h.must(os.Remove(packageOf("Huber 88")))
	})
}

// The same where only the receipt in it may not be read.
func TestCheck_I23_AReceiptWithoutRights(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.dropAndPass("Huber 88", "88", "one", false)
		e := h.byFolder()["Huber 88"]
		receipt := filepath.Join(h.path, e.Dest, "_RECEIPT.json")
		for at := filepath.Dir(receipt); at != filepath.Clean(os.TempDir()); at = filepath.Dir(at) {
			h.must(os.Chmod(at, 0o777))
		}
		h.must(errors.Join(os.Chmod(receipt, 0), os.Chmod(filepath.Join(h.path, ".vaultd"), 0o755), os.Chmod(filepath.Join(h.path, ".vaultd/drop.json"), 0o644)))
		if os.Getuid() == 0 { // as an ordinary user, on this thread alone
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			h.must(errors.Join(unix.Setfsgid(65534), unix.Setfsuid(65534)))
		}
		var c selfcheck.Result
		err := h.d.selfChecker().CheckFiles(h.t.Context(), &c)
		if os.Getuid() == 0 {
			h.must(errors.Join(unix.Setfsuid(0), unix.Setfsgid(0)))
		}
		kit.Check(t, err == nil && len(c.Files) == 0 && len(c.Unread) == 1 && strings.Contains(c.Unread[0], "permission denied"),
			"check = %+v (error %v), want one unread: permission denied", c, err)
	})
}
