package daemon

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// inStorm runs a daemon whose events are those of the test.
func inStorm(t *testing.T, events func(path string) (watch.EventSource, error), change func(c *Config), test func(h *testDaemon)) {
	t.Helper()
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm") // thousands of syncs
	}
	inBubble(t, func(c *Config) {
		c.Events = events
		c.Drops[0].Mode = watch.Events
		if change != nil {
			change(c)
		}
	}, test)
}

func silent(string) (watch.EventSource, error) {
	return watch.EventSource{C: make(chan watch.Event), Stop: func() {}}, nil
}

// onTime is I22: taken within two rescans of being whole, and settling.
func (h *testDaemon) onTime(whole time.Time) {
	h.t.Helper()
	_, all := h.entries()
	for _, e := range all {
		late := e.SeenAt.Sub(whole)
		kit.Check(h.t, late <= 2*time.Minute+30*time.Second+10*time.Second, "%s was taken %v after it was whole, want at most 2m40s", e.Folder, late)
	}
}

// kept gives the files' sizes as they were archived, by path, of the folder that was archived under this name.
func (h *testDaemon) kept(folder string) map[string]int64 {
	h.t.Helper()
	sizes := map[string]int64{}
	_, all := h.entries()
	for _, e := range all {
		if e.Folder != folder || e.State != ledger.Archived {
			continue
		}
		doc, _, err := h.d.Ledger().Document(e.Key)
		h.must(err)
		for _, f := range doc.Files {
			sizes[f.Path] = f.Size
		}
	}
	return sizes
}

// Whatever becomes of the events, every whole folder is taken within two rescans, and the mode is told.
func TestStorm_I22_Events(t *testing.T) {
	var flood chan watch.Event // made in the bubble
	flooded := func(string) (watch.EventSource, error) {
		flood = make(chan watch.Event, 4096)
		return watch.EventSource{C: flood, Stop: func() {}}, nil
	}
	type row struct {
		events func(string) (watch.EventSource, error)
		during func(h *testDaemon)
		mode   watch.Mode
		why    string
	}
	kit.Rows(t, map[string]row{
		"Silent": {events: silent, mode: watch.Poll, why: "do not arrive", during: func(h *testDaemon) {
			for i := range 4 {
				h.must(os.WriteFile(fmt.Sprintf("%s/lose%d", h.path, i), nil, 0o660))
				time.Sleep(time.Minute)
			}
		}},
		"WatchLimitReached": {events: func(string) (watch.EventSource, error) {
			return watch.EventSource{}, fmt.Errorf("the limit fs.inotify.max_user_watches is reached: %w", syscall.ENOSPC)
		}, mode: watch.Poll, why: "max_user_watches"},
		"OverflowAgainAndAgain": {events: flooded, mode: watch.Poll, why: "do not arrive",
			during: func(h *testDaemon) {
				for range 20_000 {
					flood <- watch.Event{Overflow: true}
				}
			}},
		"NamesOfNothing": {events: flooded, mode: watch.Poll, why: "do not arrive",
			during: func(h *testDaemon) {
				for i := range 20_000 {
					flood <- watch.Event{Name: []string{"../../etc", "", ".", "..", "weg", ".vaultd", "_STATUS.txt", "a/b", "\x00"}[i%9]}
				}
			}},
		"Dead": {events: func(string) (watch.EventSource, error) {
			c := make(chan watch.Event, 1)
			c <- watch.Event{Dead: errors.New("the kernel ended the watch")}
			return watch.EventSource{C: c, Stop: func() {}}, nil
		}, mode: watch.Poll, why: "ended"},
	}, func(t *testing.T, row row) {
		inStorm(t, row.events, nil, func(h *testDaemon) {
			synctest.Wait()
			whole := time.Now()
			h.drop("Otto 19", "19", "one", false)
			h.drop("Huber 88", "88", "two", false)
			if row.during != nil {
				row.during(h)
			}
			h.pass()
			h.pass()
			got, _ := h.entries()
			slices.Sort(got)
			kit.Want(t, "entries", got, []string{"Huber 88 archived", "Otto 19 archived"})
			h.onTime(whole)
			if w := h.d.State().Drops[0].Watch; w.Mode != row.mode || !strings.Contains(w.ModeReason, row.why) {
				t.Errorf("mode = %s because %q, want %s because %q", w.Mode, w.ModeReason, row.mode, row.why)
			}
		})
	})
}

func TestStorm_I22_FilledBeforeTheWatch(t *testing.T) {
	inStorm(t, silent, func(c *Config) {
		h := &testDaemon{t: t, path: c.Drops[0].Path}
		h.drop("Otto 19", "19", "one", false)
		old := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
		h.must(os.Chtimes(h.path+"/Otto 19/rechnung.pdf", old, old))
	}, func(h *testDaemon) {
		whole := time.Now()
		h.becomes("Otto 19 archived")
		h.onTime(whole)
	})
}

// A writer that keeps its file open is never cut off where the kernel does not
// tell which files are open: not by pauses longer than settle, not by an hour
// of work, not where it puts the old mtime back after each write.
func TestStorm_I17_SlowWriters(t *testing.T) {
	type row struct {
		every  time.Duration
		times  int
		oldest bool
	}
	kit.Rows(t, map[string]row{
		"Pauses":           {50 * time.Second, 20, false}, // settle is 30 s
		"AppendsForAnHour": {10 * time.Second, 360, false},
		"KeepsOldMtimes":   {25 * time.Second, 40, true},
	}, func(t *testing.T, row row) {
		inStorm(t, silent, withoutLeases, func(h *testDaemon) {
			h.drop("Wagner 5", "5", "first part", false)
			h.drop("Otto 19", "19", "a good neighbour", false)
			f, err := os.OpenFile(filepath.Join(h.path, "Wagner 5/rechnung.pdf"), os.O_WRONLY|os.O_APPEND, 0)
			h.must(err)
			defer f.Close()
			began := time.Now()
			for range row.times {
				time.Sleep(row.every)
				_, err := f.WriteString("and more\n")
				h.must(err)
				if row.oldest {
					h.must(syscall.Futimes(int(f.Fd()), []syscall.Timeval{{Sec: 1e9}, {Sec: 1e9}}))
				}
			}
			info := kit.Value(f.Stat())(h.t)
			h.pass()
			h.pass()
			kit.Want(t, "bytes that were archived", h.kept("Wagner 5")["rechnung.pdf"], info.Size())
			kit.Want(t, "archived files of the neighbour", len(h.kept("Otto 19")), 1)
			_, all := h.entries()
			for _, e := range all {
				kit.Check(t, e.Folder != "Otto 19" || e.ArchivedAt.Sub(began) <= 20*time.Minute,
					"the neighbour was archived after %v, want at most 20 minutes", e.ArchivedAt.Sub(began))
			}
		})
	})
}

// Folders are moved in and out while they are looked at and taken: each ends archived exactly once, none is lost.
func TestStorm_I1_RenamesInAndOut(t *testing.T) {
	inStorm(t, silent, nil, func(h *testDaemon) {
		r := rand.New(rand.NewPCG(7, 7))
		out := h.path + ".out"
		h.must(os.Mkdir(out, 0o770))
		const n = 40
		name := func(i int) string { return fmt.Sprintf("Huber %d", i) }
		for i := range n {
			h.drop(name(i), fmt.Sprint(i), fmt.Sprint("content ", i), false)
		}
		moves := 0
		for range 600 {
			i := r.IntN(n)
			if os.Rename(filepath.Join(h.path, name(i)), filepath.Join(out, name(i))) == nil ||
				os.Rename(filepath.Join(out, name(i)), filepath.Join(h.path, name(i))) == nil {
				moves++
			}
			time.Sleep(time.Duration(r.IntN(1200)) * time.Millisecond)
		}
		for i := range n {
			if _, err := os.Lstat(filepath.Join(out, name(i))); err == nil {
				h.must(os.Rename(filepath.Join(out, name(i)), filepath.Join(h.path, name(i))))
			}
		}
		h.pass()
		h.pass()
		got, _ := h.entries()
		want := map[string]bool{}
		for _, w := range got {
			kit.Check(t, !want[w] && strings.HasSuffix(w, " archived"), "entry = %q, want each folder archived once", w)
			want[w] = true
		}
		kit.Check(t, len(want) == n && moves >= 200,
			"%d archived after %d moves, want %d after at least 200", len(want), moves, n)
	})
}

// A bind mount that goes away and comes back is a pause: nothing counts as deleted, what lies below it is not touched.
func TestStorm_I22_UnmountedAndBack(t *testing.T) {
	mount := func(from, to string) error { return syscall.Mount(from, to, "", syscall.MS_BIND, "") }
	inStorm(t, silent, func(c *Config) {
		path := c.Drops[0].Path
		if err := errors.Join(os.Mkdir(path+".disk", 0o770), mount(path+".disk", path)); err != nil {
			kit.Missing(t, "the right to mount: "+err.Error())
		}
		t.Cleanup(func() { _ = syscall.Unmount(path, syscall.MNT_DETACH) }) // it may be gone
	}, func(h *testDaemon) {
		h.dropAndPass("Otto 19", "19", "one", false)
		h.drop("Kern 6", "6", "two", true)
		h.becomes("Otto 19 archived", "Kern 6 rejected")
		h.must(syscall.Unmount(h.path, syscall.MNT_DETACH))
		h.dropAndPass("Below 1", "1", "below the mount point", false)
		s := h.d.State().Drops[0]
		kit.Check(t, s.Paused != "" && s.Watch.Paused != nil, "drop = %+v, want it paused", s)
		h.want("Otto 19 archived", "Kern 6 rejected")
		h.must(mount(h.path+".disk", h.path))
		h.drop("Wagner 5", "5", "three", false)
		h.becomes("Otto 19 archived", "Kern 6 rejected", "Wagner 5 archived")
		h.must(syscall.Unmount(h.path, syscall.MNT_DETACH))
		kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(filepath.Join(h.path, "Below 1/metadata.json"))), nil)
		h.must(mount(h.path+".disk", h.path))
	})
}

// Many folders at once: all are archived, and what is observed at a time stays bounded.
func TestStorm_I21_ThousandsAtOnce(t *testing.T) {
	n := 10_000
	if kit.Sampled(t, "folders at once") {
		n = 200
	}
	inStorm(t, silent, nil, func(h *testDaemon) {
		for i := range n {
			h.drop(fmt.Sprintf("Huber %05d", i), fmt.Sprint(i), fmt.Sprint("content ", i), false)
		}
		for range 8 {
			h.pass()
		}
		archived := 0
		h.must(h.d.Ledger().EntriesOldestFirst(func(e ledger.Entry) error {
			if e.State == ledger.Archived {
				archived++
			}
			return nil
		}))
		kit.Want(t, "archived", archived, n)
		s := h.d.State().Drops[0].Watch
		kit.Check(t, s.Observed <= 10, "%d are still observed, want at most 10", s.Observed)
	})
}

// A folder that was given back and taken away before that was committed has come to its end.
func TestPlace_I25_ReturnedAndTakenAway(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.dropAndPass("Huber 88", "88", "one", true)
		h.drop("Otto 19", "19", "two", false)
		all := h.becomes("Huber 88 rejected", "Otto 19 archived")
		for i, source := range []ledger.Source{ledger.Returning, ledger.Keeping} {
			e := all[i]
			e.Source = source // as it was committed before the crash
			doc, _, err := h.d.Ledger().Document(e.Key)
			h.must(err)
			h.must(h.d.drops[0].ForEngine().Mover.Place(t.Context(), e, doc))
			h.must(os.Rename(filepath.Join(h.path, e.Dest), filepath.Join(h.path, "..", e.Folder)))
			err = h.d.drops[0].ForEngine().Mover.Place(t.Context(), e, doc)
			refused, _ := errors.AsType[*ingest.RefusedError](err)
			if source == ledger.Returning {
				h.must(err)
			} else if refused == nil || refused.Cause.Code != ledger.CauseSourceMissing {
				t.Errorf("the end of a kept folder: %v, want a cause %q", err, ledger.CauseSourceMissing)
			}
			kit.Fails(t, "a folder was placed though its source is missing",
				kit.Err(os.Lstat(filepath.Join(h.path, e.Dest))), os.ErrNotExist)
		}
	})
}

// A drop folder that was put back from a backup has other inodes: what was claimed goes on, what was kept is disposed of
// by its content, and what is not what was archived stays.
func TestDrop_I18_PutBackFromABackup(t *testing.T) {
	withDaemon(t, func(d *dropwork.Settings) { d.Disposes, d.Grace = true, 3*time.Hour }, func(h *testDaemon) {
		h.dropAndPass("Otto 19", "19", "one", false)
		h.drop("Kern 6", "6", "two", false)
		h.becomes("Otto 19 archived", "Kern 6 archived")
		h.lost.Store(true)
		h.dropAndPass("Wagner 5", "5", "three", false)
		h.must(exec.Command("cp", "-a", h.path, h.path+".copy").Run())
		h.must(os.Rename(h.path, h.path+".old"))
		h.must(os.Rename(h.path+".copy", h.path))
		_, all := h.entries()
		h.must(os.WriteFile(filepath.Join(h.path, all[1].Dest, "rechnung.pdf"), []byte("TWO"), 0o660))
		h.lost.Store(false)
		for range 20 {
			h.pass()
		}
		all = h.want("Otto 19 archived", "Kern 6 archived", "Wagner 5 archived")
		for i, want := range []ledger.Source{ledger.Gone, ledger.Kept, ledger.Gone} {
			kit.Want(t, "source of "+all[i].Folder, all[i].Source, want)
		}
		kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(filepath.Join(h.path, all[1].Dest, "rechnung.pdf"))), nil)
	})
}
