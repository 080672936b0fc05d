package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/spool"
	"vaultd/internal/test/kit"
)

// replaced puts a folder into the place of the spool in which a file of each name lies with that content, and returns a check that they all stay as
// they are. The spool itself is at away then; an empty away says that it is gone.
func replaced(t *testing.T, dir, away, content string, names ...string) (stays func()) {
	t.Helper()
	gone := os.RemoveAll
	if away != "" {
		gone = func(dir string) error { return os.Rename(dir, away) }
	}
	kit.Must(t, errors.Join(gone(dir), os.Mkdir(dir, 0o700)))
	for _, name := range names {
		kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return func() {
		t.Helper()
		left, err := os.ReadDir(dir)
		kit.Check(t, err == nil && len(left) == len(names),
			"left in the other folder: %v (error %v), want %q", left, err, names)
		for _, name := range names {
			kit.Want(t, name+" in the other folder",
				string(kit.Value(os.ReadFile(filepath.Join(dir, name)))(t)), content)
		}
	}
}

// A spool that is replaced while vaultd runs is no document's fault: nothing is sent of what lies in its place, whoever looks is told
// what to do, and all goes on when it is done.
func TestSpool_I4_I24_ReplacedWhileItRuns(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"PutBack", "Restarted", "Removed"} {
		t.Run(row, func(t *testing.T) {
			withDaemon(t, nil, func(h *testDaemon) {
				h.lost.Store(true) // nothing is registered yet
				h.drop("Huber 88", "88", "one", false)
				e := h.becomes("Huber 88 packaged")[0]
				dir, away := filepath.Join(h.cfg.StateDir, "spool"), filepath.Join(h.cfg.StateDir, "spool.away")
				if row == "Removed" {
					away = ""
				}
				stays := replaced(t, dir, away, strings.Repeat("z", int(e.Package.Size)), spool.PackageName(e.Route, e.Key))
				h.lost.Store(false)
				h.drop("Otto 19", "19", "two", false)
				const what = "restart vaultd"
				told := func() bool {
					_, all := h.entries()
					p := h.d.State().Pauses
					return len(all) == 2 && all[0].State == ledger.Registered && strings.Contains(all[0].Cause.Text, what) &&
						all[1].State == ledger.Discovered && all[1].Cause.Code == "" && len(p) == 1 && p[0].Target.String() == "spool" && strings.Contains(p[0].Cause.Text, what)
				}
				for range 60 { // the service is asked again at a time that nobody knows
					if time.Sleep(time.Minute); told() {
						break
					}
				}
				if !told() {
					_, all := h.entries()
					t.Errorf("entries = %+v, pauses = %+v, want one of them to name the spool", all, h.d.State().Pauses)
				}
				h.pass() // longer than the address is good for
				stays()
				kit.Want(t, "uploads", h.emu.CountCalls("upload"), 0)
				if row == "PutBack" {
					h.must(errors.Join(os.RemoveAll(dir), os.Rename(away, dir)))
				} else {
					h.halt()
					h.must(os.Remove(filepath.Join(dir, spool.PackageName(e.Route, e.Key))))
					h.again()
				}
				time.Sleep(6 * time.Hour)
				h.becomes("Huber 88 archived", "Otto 19 archived")
				h.onceEach("88", "19")
				kit.Want(t, "number of pauses", len(h.pauses()), 0)
			})
		})
	}
}

// The catalog stops growing before the work has to stop for want of room, on
// the disk of the state directory: the spool may be another mount. Its message
// is the same each time, so it is logged once.
func TestCheckCatalogSpace_I26_LeavesTheRoomToTheWork(t *testing.T) {
	t.Parallel()
	free := int64(0)
	d := &Daemon{cfg: Config{StateDir: "/state", SpoolMinFree: 1000e6}, shared: &dropwork.Shared{FreeBytes: func(path string) int64 {
		kit.Want(t, "the free space", path, "/state")
		return free
	}}}
	for bytes, isRefused := range map[int64]bool{0: true, 1060e6: true, 1099e6: true, 1100e6: false, 1 << 50: false, -1: false} {
		free = bytes
		if err := d.checkCatalogSpace(); isRefused != (err != nil) || err != nil && !strings.Contains(err.Error(), "less than 1100.0 MB") {
			t.Errorf("with %d bytes free: error = %v, want one about 1100.0 MB: %t", bytes, err, isRefused)
		}
	}
}

// I24: whatever the disk of a drop folder answers, every document stays and
// remains accepted; the fault is reported in words, once, and the work resumes
// automatically.
func TestDisk_I24_DropDiskFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err   error
		words string // for a clerk
	}{
		"Full":     {syscall.ENOSPC, "this share's disk is full"},
		"Quota":    {syscall.EDQUOT, "this share's disk is full"},
		"ReadOnly": {syscall.EROFS, ": this share is read-only; ask IT"},
		"IOError":  {syscall.EIO, "cannot be taken since 00:0"},
	} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Bool
			broken.Store(true)
			faulty := durable.Hook(func(op, name string, do func() error) error {
				if broken.Load() && (op == "mkdir" || op == "rename") && !strings.HasPrefix(name, "_") && name != ".vaultd" && name != "claimed" && name != "drop.json" {
					return fmt.Errorf("%s %s: %w", op, name, row.err)
				}
				return do()
			})
			withConfiguredDaemon(t, func(c *Config) { c.FileFault = faulty }, func(h *testDaemon) {
				h.drop("Huber 1", "1", "a", false)
				h.drop("Huber 2", "2", "b", false)
				h.pass()
				kit.Want(t, "entries", h.d.ledger.Balance().Seen, 0)
				kit.Holds(t, "status file", h.status(), row.words)
				if n := strings.Count(h.log.String(), "level=ERROR"); n == 0 || n > 2 {
					t.Errorf("%d errors were logged, want 1 or 2:\n%s", n, h.log.String())
				}
				broken.Store(false)
				h.pass()
				kit.Want(t, "archived", h.d.ledger.Balance().States[ledger.Archived], 2)
			})
		})
	}
}
