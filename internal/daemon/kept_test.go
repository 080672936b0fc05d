package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/kit"
)

// mapFile maps a file of a dropped folder as a program does that edits it in place, and changes nothing yet: what it writes later needs no
// open file and no call.
func (h *testDaemon) mapFile(path string) []byte {
	h.t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	h.must(err)
	info, err := file.Stat()
	h.must(err)
	pages, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	h.must(err)
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
	raw, err := os.ReadFile(filepath.Join(h.path, e.Dest, "_RECEIPT.json"))
	h.must(err)
	h.must(json.Unmarshal(raw, &rc))
	plain, err := os.ReadFile(filepath.Join(h.path, e.Dest, "_RECEIPT.txt"))
	h.must(err)
	return rc, string(plain)
}

// I17, I18: a program writes into its mapping of a file after the folder was
// packed, where the kernel does not tell that it has one. The archive has what
// was packed. The folder is kept for good, and receipts, ledger and log name
// the file; a folder beside it that nobody changed goes after its grace.
func TestKeep_I17_I18_AMappingIsWrittenAfterTheSeal(t *testing.T) {
	t.Parallel()
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
			if e.State != ledger.Packaged || e.Package.IsZero() {
				t.Fatalf("%s is %v, want %v", folder, e.State, ledger.Packaged)
			}
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
		if c := h.d.selfChecker().Check(h.t.Context()); !c.OK() {
			t.Errorf("check = %+v, want it to accept the receipts", c)
		}
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
	t.Parallel()
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
		if cut.Load() == 0 {
			t.Error("the work was never cut off, want it once: the test shows nothing")
		}
		if e.Source != ledger.Kept || e.Cause.Code != "source-changed" || !e.DisposeAt.IsZero() {
			t.Errorf("the folder is %v for %+v, to be disposed of at %v, want %v, source-changed, and no time", e.Source, e.Cause, e.DisposeAt, ledger.Kept)
		}
	})
}
