package daemon

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// mounts plays a mount on every folder of that name, as long as on is true. also is asked about each other operation.
func (h *testDaemon) mounts(name string, on *atomic.Bool, also func(op, name string)) {
	f := durable.Hook(func(op, n string, do func() error) error {
		if op == "mount" && n == name && on.Load() {
			return &durable.MountError{Path: n}
		}
		err := do()
		if also != nil && err == nil {
			also(op, n)
		}
		return err
	})
	h.files.Store(&f)
}

// withAttachment drops a folder that has another one in it.
func (h *testDaemon) withAttachment(folder, number string, bad bool) {
	h.t.Helper()
	h.must(os.MkdirAll(filepath.Join(h.path, folder, "Anlagen"), 0o770))
	h.must(os.WriteFile(filepath.Join(h.path, folder, "Anlagen", "vertrag.pdf"), []byte("%PDF "+number), 0o660))
	h.drop(folder, number, "%PDF", bad)
}

// lies tells where a folder lies, relative to the drop folder.
func (h *testDaemon) lies(folder string) string {
	h.t.Helper()
	for _, pattern := range []string{"", "_archived/*", "_rejected", ".vaultd/claimed/*"} {
		if found, err := filepath.Glob(filepath.Join(h.path, pattern, folder, "Anlagen", "vertrag.pdf")); err == nil && len(found) > 0 {
			rel := kit.Value(filepath.Rel(h.path, filepath.Dir(filepath.Dir(filepath.Dir(found[0])))))(h.t)
			return strings.Split(rel, string(filepath.Separator))[0]
		}
	}
	return "nowhere"
}

func (h *testDaemon) pauses() (all []string) {
	for _, p := range h.d.State().Pauses {
		all = append(all, p.Target.String()+" "+p.Cause.Code)
	}
	return all
}

// A mount that was there before the claim: the folder is not taken, and people are told.
func TestMount_I19_NotTaken(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		var on atomic.Bool
		on.Store(true)
		h.mounts("Anlagen", &on, nil)
		h.withAttachment("Huber 88", "88", false)
		h.drop("Otto 19", "19", "%PDF", false)
		h.becomes("Otto 19 archived")
		kit.Want(t, "place of the folder", h.lies("Huber 88"), ".")
		not := h.d.State().Drops[0].Watch.NotTaken
		if len(not) != 1 || not[0].Reason != watch.OtherDevice || not[0].Items[0].Name != "Huber 88" || !strings.Contains(not[0].Items[0].Detail, "Anlagen") {
			t.Errorf("not taken = %+v, want Huber 88 for a mount in Anlagen", not)
		}
		kit.Holds(t, "status file", h.status(), "Huber 88", "mount")
		on.Store(false)
		h.becomes("Otto 19 archived", "Huber 88 archived")
	})
}

// A mount that came between the claim and the packing: quarantined, and the folder goes nowhere, whatever people decide.
func TestMount_I18_QuarantinedAfterTheClaim(t *testing.T) {
	t.Parallel()
	for _, bad := range []bool{false, true} { // a faulty folder with a mount in it is not given back either
		inBubble(t, func(*Config) {}, func(h *testDaemon) {
			var on atomic.Bool
			h.mounts("Anlagen", &on, func(op, name string) {
				if op == "rename" && name == "Huber 88" {
					on.Store(true)
				}
			})
			h.withAttachment("Huber 88", "88", bad)
			e := h.becomes("Huber 88 quarantined")[0]
			if e.Cause.Code != ingest.CauseMounted || !strings.Contains(e.Cause.Text, filepath.Join(h.path, ".vaultd/claimed", e.Key.String(), "Huber 88/Anlagen")) || e.Posts != 0 {
				t.Errorf("entry = %+v, want the cause to name the mount in the claimed folder, and no registration", e)
			}
			kit.Want(t, "place of the folder", h.lies("Huber 88"), ".vaultd")
			if _, err := h.d.Actions().Act(t.Context(), e, operator.Person{UID: 7}, func(by ledger.Operator) ledger.Event { return ledger.Closed{By: by} }); err != nil {
				t.Fatal(err)
			}
			h.becomes("Huber 88 rejected resolved")
			kit.Want(t, "place of the closed folder", h.lies("Huber 88"), ".vaultd")
			kit.Want(t, "pauses", h.pauses(), []string{"folder " + e.Key.String() + " " + ingest.CauseMounted})
			on.Store(false)
			h.mounts("Anlagen", &on, nil)
			h.pass()
			if at, p := h.lies("Huber 88"), h.pauses(); at != "_rejected" || len(p) != 0 {
				t.Errorf("the folder is in %s, pauses = %q, want _rejected and none", at, p)
			}
		})
	}
}

// A mount that came after the packing: what was archived is archived, but its folder stays in its claim. One that came where it is
// kept, or while it is being removed, is not touched.
func TestMount_I18_NothingMovedOrRemoved(t *testing.T) {
	t.Parallel()
	type row struct {
		when func(h *testDaemon, on *atomic.Bool) func(op, name string) // to mount
		at   string
	}
	kit.Rows(t, map[string]row{
		"BetweenPackAndKeep": {at: ".vaultd", when: func(_ *testDaemon, on *atomic.Bool) func(op, name string) {
			return func(op, name string) { on.Store(on.Load() || op == "rename" && strings.HasSuffix(name, ".zip")) }
		}},
		"WhileItIsKept": {at: "_archived", when: func(h *testDaemon, on *atomic.Bool) func(op, name string) {
			return func(op, name string) { on.Store(on.Load() || op == "rmdir") } // of the empty claim
		}},
		"WhileItIsRemoved": {at: ".vaultd", when: func(h *testDaemon, on *atomic.Bool) func(op, name string) {
			var renames atomic.Int32 // status files are written by a goroutine of their own
			return func(op, name string) {
				if op == "rename" && name == "Huber 88" {
					renames.Add(1)
				}
				on.Store(on.Load() || renames.Load() == 3) // claimed, kept, and back into its claim
			}
		}},
	}, func(t *testing.T, row row) {
		withDaemon(t, func(d *dropwork.Settings) { d.Disposes, d.Grace = true, time.Hour }, func(h *testDaemon) {
			var on atomic.Bool
			h.mounts("Anlagen", &on, row.when(h, &on))
			h.withAttachment("Huber 88", "88", false)
			time.Sleep(6 * time.Hour)
			synctest.Wait()
			e := h.want("Huber 88 archived")[0]
			kit.Need(t, on.Load(), "nothing was mounted, want it: the test shows nothing")
			if at, p := h.lies("Huber 88"), h.pauses(); at != row.at || len(p) != 1 || !strings.HasPrefix(p[0], "folder ") {
				t.Errorf("the folder (%s) is in %s, pauses = %q, want %s and one of the folder", e.Source, at, p, row.at)
			}
			kit.Want(t, "log lines about the mount", strings.Count(h.log.String(), "something is mounted in a folder"), 1)
			on.Store(false)
			h.mounts("Anlagen", &on, nil)
			time.Sleep(6 * time.Hour)
			synctest.Wait()
			if at, p := h.lies("Huber 88"), h.pauses(); at != "nowhere" || len(p) != 0 || h.want("Huber 88 archived")[0].Source != ledger.Gone {
				t.Errorf("unmounted: the folder is in %s, pauses = %q, want it gone, and none", at, p)
			}
		})
	})
}

// A mount that came after the packing, where the package is gone: it is not packed again through the mount.
func TestMount_I17_NotPackedAgain(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		var on atomic.Bool
		h.lost.Store(true) // nothing is registered yet
		h.mounts("Anlagen", &on, nil)
		h.withAttachment("Huber 88", "88", false)
		e := h.becomes("Huber 88 packaged")[0]
		on.Store(true)
		h.must(os.Remove(h.d.spool.PackagePath(e.Route, e.Key)))
		h.lost.Store(false)
		if e := h.becomes("Huber 88 quarantined")[0]; e.Cause.Code != ingest.CauseMounted || h.lies("Huber 88") != ".vaultd" {
			t.Errorf("cause = %+v, the folder is in %s, want %s, .vaultd", e.Cause, h.lies("Huber 88"), ingest.CauseMounted)
		}
	})
}

// A mount that comes while a folder with something strange in it goes back: its disposal is not given up while it lies in its claim, where nobody finds it.
func TestMount_I18_StrayGoesBackOnceNothingIsMounted(t *testing.T) {
	withDaemon(t, func(d *dropwork.Settings) { d.Disposes, d.Grace = true, time.Hour }, func(h *testDaemon) {
		var on atomic.Bool
		h.withAttachment("Huber 88", "88", false)
		e := h.becomes("Huber 88 archived")[0]
		h.must(os.WriteFile(filepath.Join(h.path, e.Dest, "neu.pdf"), []byte("%PDF new"), 0o660))
		looks := 0
		f := durable.Hook(func(op, n string, do func() error) error {
			if op == "mount" && n == "Huber 88" {
				if looks++; looks == 3 { // before it goes into its claim, in it, and before it goes back
					on.Store(true)
				}
				if on.Load() {
					return &durable.MountError{Path: n}
				}
			}
			return do()
		})
		h.files.Store(&f)
		time.Sleep(6 * time.Hour)
		synctest.Wait()
		kit.Need(t, on.Load(), "nothing was mounted, want it: the test shows nothing")
		e = h.want("Huber 88 archived")[0]
		if at, p := h.lies("Huber 88"), h.pauses(); at != ".vaultd" || len(p) != 1 || e.Source != ledger.Kept && e.Source != ledger.Disposing {
			t.Errorf("the folder (%s) is in %s, pauses = %q, want it kept or being removed, in .vaultd, and one pause", e.Source, at, p)
		}
		on.Store(false)
		time.Sleep(6 * time.Hour)
		synctest.Wait()
		e = h.want("Huber 88 archived")[0]
		if at, p := h.lies("Huber 88"), h.pauses(); at != "_archived" || len(p) != 0 || !strings.Contains(e.Cause.Text, "neu.pdf") {
			t.Errorf("the folder (%s) is in %s, pauses = %q, cause = %q, want _archived, none, and neu.pdf", e.Source, at, p, e.Cause.Text)
		}
	})
}

// A mount on the place where all kept folders of a drop lie is one thing to mend, however many folders wait for it: it is one pause, told once. Folders
// that go elsewhere go on. Another error in its place is not called a mount, and without either all goes on by itself.
func TestMount_I18_I26_OnThePlaceOfAllKeptFolders(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		var fault atomic.Pointer[error]
		f := durable.Hook(func(op, name string, do func() error) error {
			if err := fault.Load(); op == "mount" && name == "_archived" && err != nil {
				return *err
			}
			return do()
		})
		h.files.Store(&f)
		var mount, broken error = &durable.MountError{Path: "_archived"}, &fs.PathError{Op: "statx", Path: "_archived", Err: syscall.EIO}
		fault.Store(&mount)
		for _, n := range []string{"1", "2", "3"} {
			h.withAttachment("Huber "+n, n, false)
		}
		h.pass()
		want := []string{"_archived of drop " + h.d.drops[0].Settings.Name + " " + ingest.CauseMounted}
		kit.Want(t, "pauses", h.pauses(), want)
		h.withAttachment("Otto 9", "9", true) // returned meanwhile
		h.pass()
		kit.Want(t, "pauses", h.pauses(), want)
		kit.Want(t, "places of Otto 9 and Huber 1", [2]string{h.lies("Otto 9"), h.lies("Huber 1")}, [2]string{"_rejected", ".vaultd"})
		kit.Holds(t, "cause of the pause", h.d.State().Pauses[0].Cause.Text, filepath.Join(h.path, "_archived"))
		kit.Lacks(t, "cause of the pause", h.d.State().Pauses[0].Cause.Text, "vaultd why")
		kit.Want(t, "log lines about the mount", strings.Count(h.log.String(), "something is mounted where folders are kept"), 1)
		fault.Store(&broken)
		h.pass()
		kit.Lacks(t, "pauses for another error", strings.Join(h.pauses(), "\n"), ingest.CauseMounted)
		fault.Store(&mount)
		h.pass()
		kit.Want(t, "pauses once it is mounted again", h.pauses(), want)
		fault.Store(nil)
		h.pass()
		kit.Want(t, "number of pauses", len(h.pauses()), 0)
		kit.Want(t, "place of Huber 1", h.lies("Huber 1"), "_archived")
	})
}

// I26: a share that hangs is reported within a minute, and at once to a
// command; and I23: vaultd leaves it alone meanwhile, so that all else
// continues.
func TestProbe_I26_AShareThatHangs(t *testing.T) {
	var hangs atomic.Pointer[chan struct{}]
	counted := func() {}
	withConfiguredDaemon(t, func(c *Config) {
		c.FreeBytes = func(path string) int64 {
			if dead := hangs.Load(); dead != nil {
				counted()
				<-*dead
			}
			return durable.FreeBytes(path)
		}
	}, func(h *testDaemon) {
		h.dropAndPass("Huber 1", "INV-1", "content 1", false)
		if s := h.d.State().Drops[0]; s.Paused != "" || s.Free <= 0 {
			t.Fatalf("drop before the fault = %+v, want no pause and free space", s)
		}
		looks, dead := 0, make(chan struct{})
		counted = func() { looks++ }
		hangs.Store(&dead)
		time.Sleep(time.Minute)
		synctest.Wait()
		began := time.Now()
		s := h.d.State().Drops[0]
		kit.Check(t, strings.Contains(s.Paused, "has not been answering since") && time.Since(began) <= 0,
			"drop after a minute = %+v, read in %v, want a pause because it does not answer, at once", s, time.Since(began))
		err := h.d.drops[0].Unavailable()
		kit.Check(t, err != nil && strings.Contains(err.Error(), "answering"), "error of its use = %v, want one that says that it does not answer", err)
		time.Sleep(time.Hour)
		synctest.Wait()
		kit.Want(t, "checks that hang", looks, 1)
		hangs.Store(nil)
		close(dead)
		h.dropAndPass("Huber 2", "INV-2", "content 2", false)
		s = h.d.State().Drops[0]
		kit.Check(t, s.Paused == "" && s.Free > 0, "drop after the fault = %+v, want no pause and free space", s)
		kit.Want(t, "archived", h.d.Ledger().Balance().States[ledger.Archived], 2)
	})
}
