package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/spool"
	"vaultd/internal/statedir"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

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
				stays := fill.Replaced(t, dir, away, strings.Repeat("z", int(e.Package.Size)), spool.PackageName(e.Route, e.Key))
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

// I21: a download begins while its disk has min_free bytes or more, or will not
// say what it has. The refusal names the disk, and the setting to look at.
func TestCheckRoom_I21_DownloadsLeaveMinFree(t *testing.T) {
	t.Parallel()
	for free, isRefused := range map[int64]bool{0: true, 999e6: true, 1000e6: false, 1 << 50: false, -1: false} {
		d := &Daemon{cfg: Config{SpoolMinFree: 1000e6}, shared: &dropwork.Shared{FreeBytes: func(path string) int64 {
			kit.Want(t, "path", path, "/custody")
			return free
		}}}
		err := d.checkRoom("the custody folder", "/custody")
		kit.Want(t, fmt.Sprintf("%d bytes free: refused", free), err != nil, isRefused)
		if err != nil {
			kit.Holds(t, "refusal", err.Error(), "disk of the custody folder", "spool.min_free (1000.0 MB)", "make room")
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
				h.dropAndPass("Huber 2", "2", "b", false)
				kit.Want(t, "entries", h.d.ledger.Balance().Seen, 0)
				kit.Holds(t, "status file", h.status(), row.words)
				n := strings.Count(h.log.String(), "level=ERROR")
				kit.Check(t, n != 0 && n <= 2, "%d errors were logged, want 1 or 2:\n%s", n, h.log.String())
				broken.Store(false)
				h.pass()
				kit.Want(t, "archived", h.d.ledger.Balance().States[ledger.Archived], 2)
			})
		})
	}
}

// A link in the place of one of vaultd's own folders is a fault in words, and what it leads to stays as it is.
func TestOpen_I19_AFolderOfItsOwnIsALink(t *testing.T) {
	t.Parallel()
	for _, name := range []string{statedir.SpoolFolder, statedir.DropsFolder} {
		t.Run(name, func(t *testing.T) {
			foreign := t.TempDir()
			key := archive.NewKey(time.Now()).String()
			files := []string{"photo.jpg", "half.tmp", key + ".zip", "." + key + ".zip.tmp"}
			for _, file := range files {
				kit.Must(t, os.WriteFile(filepath.Join(foreign, file), []byte("theirs"), 0o600))
			}
			withDaemon(t, nil, func(h *testDaemon) {
				h.stop()
				h.must(<-h.ended)
				h.must(h.d.Close())
				synctest.Wait()
				place := filepath.Join(h.cfg.StateDir, name)
				h.must(os.Rename(place, place+".away"))
				h.must(os.Symlink(foreign, place))
				d, err := Open(h.t.Context(), h.cfg)
				own, is := errors.AsType[*statedir.OwnFolderError](err)
				if !is || !own.Link || own.Path != place || !strings.Contains(own.Error(), "is a link") ||
					!strings.Contains(own.Advice(), "mount --bind") || !strings.Contains(own.Advice(), "state_dir") {
					t.Errorf("error = %v, want one that says that %s is a link, with advice on mount --bind and state_dir", err, place)
				}
				if err == nil {
					h.must(d.Close())
				}
				kit.Fails(t, "the folder was opened without the check before",
					kit.Err(statedir.OpenFolder(h.cfg.StateDir, name, nil)))
				if _, err := spool.NamelessFile(h.cfg.StateDir); name == statedir.SpoolFolder && err == nil {
					t.Error("a download was written through the link, want an error")
				}
				h.must(os.Remove(place))
				h.must(os.Rename(place+".away", place))
				h.d, err = Open(h.t.Context(), h.cfg)
				h.must(err)
				h.run()
			})
			var left []string
			entries, err := os.ReadDir(foreign)
			for _, e := range entries {
				left = append(left, e.Name())
			}
			slices.Sort(files)
			kit.Check(t, err == nil && slices.Equal(left, files),
				"left of foreign files: %q (error %v), want %q", left, err, files)
		})
	}
}

// state_dir itself may be a link: an administrator wrote the path.
func TestOpen_I19_StateDirMayBeALink(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.stop()
		h.must(<-h.ended)
		h.must(h.d.Close())
		link := filepath.Join(filepath.Dir(h.cfg.StateDir), "link")
		h.must(os.Symlink(h.cfg.StateDir, link))
		h.cfg.StateDir = link
		var err error
		h.d, err = Open(h.t.Context(), h.cfg)
		h.must(err)
		h.run()
		h.drop("Huber 88", "88", "one", false)
		h.becomes("Huber 88 archived")
	})
}

// Only what bears a name of vaultd's own is removed from the spool; the rest is told of once, and stays.
func TestSpool_I19_ForeignFilesStay(t *testing.T) {
	k := archive.NewKey(time.UnixMilli(1)).String()
	foreign := []string{"photo.jpg", "half.tmp", "fetch-.tmp", "fetch-12.tmp.bak", "fetch-012.tmp", "fetch-x.tmp", strings.ToUpper(k) + ".zip", k + ".zip.part", k + ".zip.tmp",
		k + ".tmp", "." + k + ".tmp", ".photo.zip.tmp", k, "new\nline"}
	ours := []string{k + ".zip", "." + k + ".zip.tmp", "fetch-12.tmp"}
	var log bytes.Buffer
	withConfiguredDaemon(t, func(c *Config) {
		dir := filepath.Join(c.StateDir, statedir.SpoolFolder)
		kit.Must(t, os.Mkdir(dir, 0o700))
		for _, name := range slices.Concat(foreign, ours) {
			kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte("theirs"), 0o600))
		}
		for _, name := range []string{"folder", archive.NewKey(time.UnixMilli(2)).String() + ".zip"} {
			kit.Must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			foreign = append(foreign, name)
		}
		link := archive.NewKey(time.UnixMilli(3)).String() + ".zip"
		kit.Must(t, os.Symlink("photo.jpg", filepath.Join(dir, link)))
		foreign = append(foreign, link)
	}, func(h *testDaemon) {
		h.drop("Huber 88", "88", "one", false)
		h.becomes("Huber 88 archived")
		left := kit.Value(os.ReadDir(filepath.Join(h.cfg.StateDir, statedir.SpoolFolder)))(h.t)
		var names []string
		for _, e := range left {
			names = append(names, e.Name())
		}
		slices.Sort(foreign)
		kit.Want(t, "files that are left", names, foreign)
		log.WriteString(h.log.String())
	})
	kit.Want(t, "log lines about foreign files", strings.Count(log.String(), "files that are not vaultd's"), 1)
	kit.Holds(t, "log", log.String(), ".photo.zip.tmp", "count=17")
}

// backlog gives the ledger so many folders that wait to be packed.
func backlog(t *testing.T, l *boltledger.Ledger, n int) {
	t.Helper()
	for done := 0; done < n; {
		var cs []ledger.Change
		for ; done < n && len(cs) < 500; done++ {
			now := time.Now()
			cs = append(cs, ledger.Change{Key: archive.NewKey(now), At: archive.Instant{Wall: now}, Events: []ledger.Event{
				ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V", Drop: "acme", Folder: "Huber 88", NotBefore: now.Add(time.Hour)}}})
		}
		rs, err := l.Apply(t.Context(), cs...)
		kit.Need(t, err == nil && rs[0].Err == nil, "not committed: %v, %v", err, rs)
	}
}

// The work of a start before it is ready stays the same however much waits:
// whoever reads an entry, or looks at a package, must allocate for it.
func TestOpen_I21_DoesNotReadTheBacklog(t *testing.T) {
	d, cfg := idle(t)
	again := func() {
		err := d.Close()
		if err == nil {
			d, err = Open(t.Context(), cfg)
		}
		kit.Must(t, err)
	}
	few := testing.AllocsPerRun(2, again)
	const n = 5000
	backlog(t, d.Ledger(), n)
	for range n / 2 {
		kit.Must(t, os.WriteFile(filepath.Join(cfg.StateDir, "spool", archive.NewKey(time.Now()).String()+".zip"), nil, 0o600))
	}
	if many := testing.AllocsPerRun(2, again); many > few+n {
		t.Errorf("a start makes %.0f allocations with %d folders that wait, want at most %.0f, which are %.0f without any and one for each", many, n, few+n, few)
	}
	kit.Must(t, d.Close())
}
