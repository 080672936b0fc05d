package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

func TestWatcher_VanishedReplacedRefused(t *testing.T) {
	var wrong atomic.Pointer[error]
	check := func() error {
		if err := wrong.Load(); err != nil {
			return *err
		}
		return nil
	}
	inBubble(t, Config{CheckDropFolder: check}, func(b *bench) {
		write(t, b.path, "f/metadata.json", "stray")
		b.run()
		b.pass(10 * time.Second)
		aside := b.path + ".aside"
		paused := func(kind PauseKind) {
			t.Helper()
			b.pass(2 * time.Minute)
			s := b.w.Snapshot()
			kit.Check(t, s.Paused != nil && s.Paused.Kind == kind && s.Observed == 1 && time.Since(s.Paused.Since) >= time.Minute,
				"want %s: %+v, paused %v", kind, s, s.Paused)
			kit.Want(t, "a paused drop folder is shown as empty", b.waiting(LooseFile).Count, 1)
		}
		os.Rename(b.path, aside)
		paused(Vanished)
		foreign := errors.New("another ledger")
		wrong.Store(&foreign)
		write(t, b.path, "other/metadata.json")
		paused(Replaced)
		os.Rename(b.path, b.path+".wrong")
		os.Rename(aside, b.path)
		paused(Refused)
		kit.Want(t, "taken while paused", b.count(), 0)
		wrong.Store(nil)
		b.pass(2 * time.Minute)
		if _, ok := b.takenAt("f"); !ok || b.w.Snapshot().Paused != nil {
			t.Errorf("did not resume: %+v", b.w.Snapshot())
		}
	})
}

// A file system that is mounted again may come with another device: who knows the folder by its mark decides.
func TestWatcher_RightFolderUnderAnotherInode(t *testing.T) {
	inBubble(t, Config{CheckDropFolder: func() error { return nil }}, func(b *bench) {
		b.run()
		os.Rename(b.path, b.path+".aside")
		b.pass(2 * time.Minute)
		write(t, b.path, "f/metadata.json")
		b.pass(2 * time.Minute)
		if _, ok := b.takenAt("f"); !ok || b.w.Snapshot().Paused != nil {
			t.Errorf("did not resume: %+v", b.w.Snapshot())
		}
	})
}

// The watcher calls CheckDropFolder when it opens the folder and at a request;
// its regular rescans do without.
func TestWatcher_I16_AsksWhoseFolderItIs(t *testing.T) {
	var asked atomic.Int32
	var wrong atomic.Bool
	check := func() error {
		if asked.Add(1); wrong.Load() {
			return errors.New("another ledger")
		}
		return nil
	}
	inBubble(t, Config{Mode: Poll, CheckDropFolder: check}, func(b *bench) {
		b.run()
		b.pass(time.Hour)
		kit.Want(t, "calls of CheckDropFolder in an hour without a request", asked.Load(), 1)
		wrong.Store(true)
		b.w.RequestRescan()
		b.pass(time.Second)
		p := b.w.Snapshot().Paused
		kit.Check(t, p != nil && p.Kind == Refused, "after a request in a folder of another ledger: paused = %v, want %s", p, Refused)
		write(t, b.path, "f/metadata.json")
		b.pass(time.Hour)
		kit.Want(t, "folders taken while paused", b.count(), 0)
		wrong.Store(false)
		b.pass(2 * time.Minute)
		kit.Want(t, "folders taken after the pause", b.count(), 1)
	})
}

// Only rescans that find something else report a change.
func TestWatcher_ReportsWhatChanged(t *testing.T) {
	var reported atomic.Int32
	inBubble(t, Config{Mode: Poll, OnChange: func() { reported.Add(1) }}, func(b *bench) {
		write(t, b.path, "stray.pdf", "Huber 88/rechnung.pdf")
		b.run()
		b.pass(time.Minute)
		for _, change := range []struct {
			what string
			do   func()
			want bool
		}{
			{"nothing", func() {}, false},
			{"a loose file comes", func() { write(t, b.path, "other.pdf") }, true},
			{"nothing again", func() {}, false},
			{"a folder without a sidecar comes", func() { write(t, b.path, "Otto 19/rechnung.pdf") }, true},
			{"a folder says more", func() { write(t, b.path, "Otto 19/metadata.json.txt") }, true},
			{"a loose file goes", func() { os.Remove(filepath.Join(b.path, "other.pdf")) }, true},
			{"the drop folder goes", func() { os.Rename(b.path, b.path+".aside") }, true},
			{"the drop folder is there again", func() { os.Rename(b.path+".aside", b.path) }, true},
		} {
			reported.Store(0)
			change.do()
			b.pass(2 * time.Minute)
			n := reported.Load()
			kit.Check(t, n > 0 == change.want, "%s: calls of OnChange = %d, want any: %v", change.what, n, change.want)
		}
	})
}

// A clerk learns what a folder waits for, and about a sidecar whose name Explorer spoilt, also where no event tells of it.
func TestWatcher_SaysWhatIsMissing(t *testing.T) {
	var told atomic.Int32
	for _, mode := range []Mode{Poll, Events} {
		cfg := Config{Complete: List, Mode: mode, OnChange: func() { told.Add(1) },
			IsComplete: func(context.Context, *os.Root, Item) error { return errors.New("waits for rechnung.pdf") }}
		inBubble(t, cfg, func(b *bench) {
			write(t, b.path, "Meier 12/metadata.json.txt", "Kern 6/Metadata.TXT", "Huber 88/rechnung.pdf", "Wagner 5/metadata.json", "Wagner 5/~$brief.docx", "2026-11/Otto 19/metadata.json")
			b.run()
			b.pass(time.Minute)
			got := map[string]string{}
			for _, r := range []Reason{NoSidecar, Incomplete} {
				for _, n := range b.waiting(r).Items {
					got[n.Name] = n.Detail
				}
			}
			want := map[string]string{
				"Meier 12": "has metadata.json.txt: rename it to metadata.json (Explorer: View > File name extensions)",
				"Kern 6":   "has Metadata.TXT: rename it to metadata.json (Explorer: View > File name extensions)",
				"2026-11":  "has invoice folders in it, as Otto 19: move the folders inside up one level",
				"Huber 88": "", "Wagner 5": "waits for rechnung.pdf, and still has ~$brief.docx",
			}
			kit.Check(t, maps.Equal(got, want), "%s: %q, want got = %v", mode, got, want)
			kit.Check(t, told.Swap(0) != 0, "%s: nobody was told of a change", mode)
		})
	}
}

func TestWatcher_UnmountedIsAPause(t *testing.T) {
	mount := func(b *bench) {
		if err := syscall.Mount("drop", b.path, "tmpfs", 0, ""); err != nil {
			kit.Missing(b.t, "the right to mount: "+err.Error())
		}
		b.t.Cleanup(func() { syscall.Unmount(b.path, syscall.MNT_DETACH) })
	}
	inBubble(t, Config{}, func(b *bench) {
		mount(b)
		write(t, b.path, "stray.pdf")
		b.run()
		b.pass(time.Minute)
		if err := syscall.Unmount(b.path, syscall.MNT_DETACH); err != nil {
			kit.Missing(t, "the right to unmount: "+err.Error())
		}
		write(t, b.path, "below/metadata.json") // what lies under the mount is none of ours
		b.pass(time.Hour)
		if s := b.w.Snapshot(); s.Paused == nil || s.Paused.Kind != Replaced || b.count() != 0 || b.waiting(LooseFile).Count != 1 {
			t.Errorf("%+v, want s.Paused other than nil, s.Paused.Kind = %v, b.count() = 0, b.waiting(LooseFile).Count = 1", s, Replaced)
		}
	})
}

func TestWatcher_MissingAtStartIsAPause(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		os.Remove(b.path)
		b.run()
		p := b.w.Snapshot().Paused
		kit.Need(t, p != nil && p.Kind == Vanished, "paused: %v", p)
		write(t, b.path, "f/metadata.json")
		b.pass(2 * time.Minute)
		_, ok := b.takenAt("f")
		kit.Check(t, ok, "did not start")
	})
}

func TestWatcher_ModeSaysWhy(t *testing.T) {
	limit := func(string) (EventSource, error) { return EventSource{}, explainLimit(syscall.ENOSPC) }
	inBubble(t, Config{OpenEvents: limit}, func(b *bench) {
		b.run()
		if s := b.w.Snapshot(); s.Mode != Poll || !strings.Contains(s.ModeReason, "max_user_watches") {
			t.Errorf(`%+v, want s.Mode = %v, s.ModeReason with "max_user_watches"`, s, Poll)
		}
	})
	inBubble(t, Config{}, func(b *bench) {
		b.run()
		s := b.w.Snapshot()
		kit.Check(t, s.Mode == Events, "%+v, want s.Mode = %v", s, Events)
		for i := range 4 { // changes, but no event ever
			write(t, b.path, fmt.Sprintf("stray%d", i))
			b.pass(time.Minute)
		}
		s = b.w.Snapshot()
		kit.Check(t, s.Mode == Poll && strings.Contains(s.ModeReason, "do not arrive"), "dead events not noticed: %+v", s)
	})
	inBubble(t, Config{}, func(b *bench) {
		b.run()
		b.events <- Event{Dead: errors.New("unmounted")}
		synctest.Wait()
		s := b.w.Snapshot()
		kit.Check(t, s.Mode == Poll && strings.Contains(s.ModeReason, "unmounted"), `%+v, want s.Mode = %v, s.ModeReason with "unmounted"`, s, Poll)
	})
}

func TestWatcher_MarkerAndListNeedNoSettling(t *testing.T) {
	inBubble(t, Config{Complete: Marker}, func(b *bench) {
		write(t, b.path, "f/metadata.json", "g/metadata.json", "g/.done")
		b.run()
		b.pass(time.Second)
		_, ok := b.takenAt("g")
		kit.Check(t, ok, "marker ignored")
		b.pass(time.Hour)
		if got := b.waiting(Incomplete); got.Count != 1 || b.count() != 1 {
			t.Errorf("taken without marker: %+v", b.w.Snapshot())
		}
	})
	var asked atomic.Int32
	list := func(_ context.Context, root *os.Root, f Item) error {
		asked.Add(1)
		if _, err := root.Lstat(f.Name + "/a.pdf"); err != nil {
			return errors.New("waits for a.pdf")
		}
		return nil
	}
	inBubble(t, Config{Complete: List, IsComplete: list}, func(b *bench) {
		write(t, b.path, "f/metadata.json")
		b.run()
		b.pass(time.Hour)
		if got := b.waiting(Incomplete); got.Count != 1 || got.Items[0].Detail != "waits for a.pdf" || asked.Load() != 1 {
			t.Errorf("asked %d times: %+v", asked.Load(), got)
		}
		write(t, b.path, "f/a.pdf")
		b.pass(time.Minute + time.Second)
		kit.Want(t, "not taken once complete", b.count(), 1)
	})
}

// I17: a sidecar that is just being written makes no sense, and says nothing of what belongs to its folder: the folder settles.
func TestWatcher_I17_AListThatMakesNoSenseYet(t *testing.T) {
	list := func(_ context.Context, root *os.Root, f Item) error {
		switch text, err := root.ReadFile(f.Name + "/metadata.json"); {
		case err != nil || len(text) == 0:
			return ErrNoFileList
		case !strings.Contains(string(text), "none"):
			return errors.New("waits for a.pdf")
		}
		return nil
	}
	inBubble(t, Config{Complete: List, IsComplete: list, Settle: 30 * time.Second, Rescan: time.Minute}, func(b *bench) {
		for _, dir := range []string{"half", "wrong"} {
			kit.Must(t, os.Mkdir(filepath.Join(b.path, dir), 0o770))
			kit.Must(t, os.WriteFile(filepath.Join(b.path, dir, "metadata.json"), nil, 0o660))
		}
		b.run()
		b.pass(5 * time.Second)
		kit.Want(t, "taken in the middle of the sidecar", b.count(), 0)
		kit.Must(t, os.WriteFile(filepath.Join(b.path, "half", "metadata.json"), []byte("a.pdf"), 0o660))
		b.pass(time.Hour)
		_, ok := b.takenAt("half")
		kit.Check(t, !ok, "taken without what its list names")
		_, ok = b.takenAt("wrong")
		kit.Check(t, ok, "what is wrong and stays so is never taken: nobody says what is wrong with it")
	})
}

func TestWatcher_HostileNames(t *testing.T) {
	all := []string{"new\nline", "\xff\xfe", strings.Repeat("ü", 127) + "x", " ", "-rf", `a\b`, "\x1b[31m", "...", "Huber", "HUBER"}
	inBubble(t, Config{}, func(b *bench) {
		for _, name := range all {
			write(t, b.path, name+"/metadata.json")
		}
		b.run()
		b.pass(time.Minute)
		for _, name := range all {
			_, ok := b.takenAt(name)
			kit.Check(t, ok, "%q not taken", name)
		}
	})
}

// Folders appear, fill, are renamed and vanish at random, and most hints are lost. Once it is calm every complete folder is taken
// under the name it had last, and no other.
func TestWatcher_I22_RenameStorm(t *testing.T) {
	for seed := range uint64(20) {
		inBubble(t, Config{MaxObserved: 30}, func(b *bench) {
			r := rand.New(rand.NewPCG(seed, 0))
			b.run()
			complete := map[string]bool{}
			for i := range 300 {
				name := fmt.Sprintf("f%d", r.IntN(40))
				_, err := os.Lstat(b.path + "/" + name)
				switch r.IntN(4) {
				case 0:
					write(t, b.path, name+"/a.pdf")
				case 1:
					write(t, b.path, name+"/metadata.json")
					complete[name] = true
				case 2:
					to := fmt.Sprintf("g%d", i)
					if err == nil && os.Rename(b.path+"/"+name, b.path+"/"+to) == nil {
						complete[to] = complete[name]
						delete(complete, name)
					}
				case 3:
					for _, file := range []string{"/metadata.json", "/a.pdf", ""} {
						os.Remove(b.path + "/" + name + file)
					}
					delete(complete, name)
				}
				switch r.IntN(10) {
				case 0:
					b.events <- Event{Name: name}
				case 1:
					b.events <- Event{Overflow: true}
				}
				b.pass(time.Duration(r.IntN(3000)) * time.Millisecond)
				for name := range b.takenNames() {
					kit.Check(t, complete[name], "seed %d: %s taken", seed, name)
					delete(complete, name)
				}
			}
			kit.Check(t, b.total >= 5, "seed %d: only %d taken in the storm: the test is vacuous", seed, b.total)
			b.pass(5 * time.Minute)
			for name, whole := range complete {
				if _, ok := b.takenAt(name); whole && !ok {
					t.Errorf("seed %d: %s not taken: %+v", seed, name, b.w.Snapshot())
				}
			}
		})
	}
}

// With the kernel's events and the wall clock.
func TestWatcher_KernelEvents(t *testing.T) {
	dir := t.TempDir()
	w := kit.Value(New(Config{Path: dir, Settle: 40 * time.Millisecond, Rescan: time.Hour, Rules: rules}))(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var taken []string
	ended := make(chan struct{})
	var mu sync.Mutex
	go func() {
		defer close(ended)
		w.Run(ctx, func(_ context.Context, f Item) error {
			mu.Lock()
			defer mu.Unlock()
			if taken = append(taken, f.Name); len(taken) == 3 {
				cancel()
			}
			return nil
		})
	}()
	kit.Await(t, "the first rescan", func() bool { return !w.Snapshot().LastRescan.IsZero() })
	if s := w.Snapshot(); s.Mode != Events {
		kit.Missing(t, "events of the file system: "+s.ModeReason)
	}
	elsewhere := t.TempDir()
	write(t, elsewhere, "moved/metadata.json")
	write(t, dir, "made/a.pdf", "made/metadata.json", "new\nline/metadata.json")
	kit.Must(t, os.Rename(elsewhere+"/moved", dir+"/moved"))
	<-ended
	slices.Sort(taken)
	kit.Want(t, "taken", taken, []string{"made", "moved", "new\nline"})
}
