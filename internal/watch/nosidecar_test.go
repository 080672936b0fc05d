package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// restful runs a watcher over a drop folder in which n folders without a sidecar lie, at a time at which all of them are
// old; listed counts the names that rescans read.
func restful(t *testing.T, n int, test func(b *bench, listed *atomic.Int64)) {
	var listed atomic.Int64
	cfg := Config{Rescan: time.Minute, IsReserved: func(string) bool { listed.Add(1); return false }}
	inBubble(t, cfg, func(b *bench) {
		for i := range n {
			write(t, b.path, fmt.Sprintf("bare %d/a.pdf", i))
		}
		time.Sleep(40 * 365 * 24 * time.Hour) // a bubble begins long before the files were made
		b.run()
		b.pass(10*time.Minute + time.Second)
		listed.Store(0)
		test(b, &listed)
	})
}

// tick waits until the file system gives another time than to what was changed last.
func tick(t *testing.T, path string) {
	t.Helper()
	var before, now syscall.Stat_t
	for now.Ctim == before.Ctim {
		if before.Ctim.Sec == 0 {
			before = now
		}
		kit.Must(t, os.WriteFile(path, nil, 0o600))
		kit.Must(t, syscall.Stat(path, &now))
		if before.Ctim.Sec == 0 {
			before = now
		}
	}
}

// G10: where nothing changes, the drop folder is not read again, and the folders in it are not opened.
func TestRescan_NothingNewIsNotReadAgain(t *testing.T) {
	const n = 300
	restful(t, n, func(b *bench, listed *atomic.Int64) {
		b.pass(time.Hour)
		kit.Want(t, "names read in an hour of rest", listed.Load(), 0)
		kit.Want(t, "got.Count", b.waiting(NoSidecar).Count, n)
		since := time.Since(b.w.Snapshot().LastRescan)
		kit.Check(t, since <= time.Minute, "last rescan %v ago", since)
		b.w.RequestRescan()
		b.pass(time.Second)
		kit.Want(t, "names read", listed.Load(), n)
	})
}

// I22: whatever becomes of a folder that was not one to take, no event telling of it, is found within two rescans.
func TestRescan_I22_FindsWhatBecomesOfTheRest(t *testing.T) {
	kit.Rows(t, map[string]func(t *testing.T, path string){
		"Sidecar":       func(t *testing.T, path string) { write(t, path, "bare 7/metadata.json") },
		"SidecarInCaps": func(t *testing.T, path string) { write(t, path, "bare 7/METADATA.json") },
		"SidecarRenamed": func(t *testing.T, path string) {
			write(t, path, "bare 7/x")
			os.Rename(path+"/bare 7/x", path+"/bare 7/metadata.json")
		},
		"OldTimes": func(t *testing.T, path string) {
			write(t, path, "bare 7/metadata.json")
			old := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
			os.Chtimes(path+"/bare 7", old, old)
			os.Chtimes(path, old, old)
		},
		"Replaced": func(t *testing.T, path string) {
			write(t, filepath.Dir(path), "other/metadata.json")
			os.Rename(path+"/bare 7", filepath.Dir(path)+"/away")
			os.Rename(filepath.Dir(path)+"/other", path+"/bare 7")
		},
	}, func(t *testing.T, change func(t *testing.T, path string)) {
		restful(t, 20, func(b *bench, _ *atomic.Int64) {
			tick(t, filepath.Dir(b.path)+"/clock")
			change(t, b.path)
			b.pass(2*time.Minute + 35*time.Second)
			if _, ok := b.takenAt("bare 7"); !ok {
				t.Errorf("not taken: %+v", b.w.Snapshot().NotTaken)
			}
			kit.Want(t, "of 19 told", b.waiting(NoSidecar).Count, 19)
		})
	})
}

// I22: with more folders than are looked at in one rescan, whoever has heard of nothing looks at each, and a folder that becomes
// whole is taken within two rescans; and where all is heard it is seen within two, and settles then.
func TestRescan_I22_TurnsOnlyWhileAllIsHeard(t *testing.T) {
	for name, c := range map[string]struct {
		mode Mode
		lose func(b *bench)
		took time.Duration
	}{
		"Heard":      {Events, func(*bench) {}, 2*time.Minute + 32*time.Second},
		"Polled":     {Poll, func(*bench) {}, 92 * time.Second},
		"Overflowed": {Events, func(b *bench) { b.events <- Event{Overflow: true} }, 92 * time.Second},
		"Dead":       {Events, func(b *bench) { b.events <- Event{Dead: syscall.EIO} }, 92 * time.Second},
		"NotTold":    {Events, func(b *bench) { write(b.t, b.path, "unheard/a.pdf") }, 92 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{Mode: c.mode}, func(b *bench) {
				const n, whole = 400, 100 // the rest are more than the samples, which are opened whenever the drop folder is read
				b.w.roundSize = n / 2
				for i := range n {
					write(t, b.path, fmt.Sprintf("bare %d/a.pdf", i))
				}
				time.Sleep(40 * 365 * 24 * time.Hour) // a bubble begins long before the files were made
				b.run()
				b.pass(10*time.Minute + time.Second)
				tick(t, filepath.Dir(b.path)+"/clock")
				began := time.Since(b.start)
				for i := range whole {
					write(t, b.path, fmt.Sprintf("bare %d/metadata.json", i*n/whole))
				}
				c.lose(b)
				b.pass(c.took)
				var last time.Duration
				for _, at := range b.takenNames() {
					last = max(last, at-began)
				}
				kit.Need(t, b.total == whole, "%d of %d taken", b.total, whole)
				turns := last > 92*time.Second
				kit.Check(t, turns == (name == "Heard"), "the last was taken after %v", last)
			})
		})
	}
}

// A folder that is looked at once more keeps its turn, whatever else came and went: each has one in as many rounds as it takes.
func TestBare_EachHasItsTurn(t *testing.T) {
	const n, many = 1000, 250
	b := newNoSidecarCache(many)
	old := dirState{ino: 2, ctime: time.Now().Add(-time.Hour)}
	for range 3 {
		b.beginRound(true)
		for i := range n {
			b.noteNoSidecar(fmt.Sprint("bare ", i), old)
		}
		looked := map[int]int{}
		for round := range n / many {
			b.beginRound(true)
			before := len(looked)
			for i := range n {
				if !b.isSkipped(b.hashName(fmt.Sprint("bare ", i))) {
					looked[i]++
				}
			}
			now := len(looked) - before
			kit.Check(t, now >= many/2 && now <= many*3/2, "round %d looks at %d of %d", round, now, n)
		}
		for i := range n {
			kit.Want(t, fmt.Sprintf("%d was looked at", i), looked[i], 1)
		}
	}
}

// What vaultd changes in the drop folder itself is no reason to read all of it again; anything else is, told or not, and so is
// the time that has passed.
func TestRescan_I22_ReadsAllButForItsOwnChanges(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{"bare 1", "bare 2"} {
		kit.Must(t, os.Mkdir(filepath.Join(path, name), 0o770))
	}
	root := kit.Value(os.OpenRoot(path))(t)
	defer root.Close()
	w, err := New(Config{Path: path, Settle: time.Second, Rescan: time.Hour, Rules: rules, IsReserved: func(name string) bool { return name == "own" || name == "own~" }})
	kit.Must(t, err)
	source, err := kernelEvents(path)
	kit.Must(t, err)
	defer source.Stop()
	s := &session{Watcher: w, root: root, events: make(chan Event), stop: func() {}, isLocal: true, rescans: rescanState{noSidecar: newNoSidecarCache(w.roundSize)}}
	now := time.Now().Add(time.Minute)
	readsAll := func() bool {
		t.Helper()
		now = now.Add(time.Minute)
		kit.Must(t, s.rescan(t.Context(), now, false))
		bare := &s.rescans.noSidecar
		for _, name := range []string{"bare 1", "bare 2"} { // as if they had been there for longer
			info := kit.Value(root.Lstat(name))(t)
			at := dirStateOf(info)
			bare.remember(bare.hashName(name), name, bare.hashState(at.ino, at.ctime.UnixNano()))
		}
		bare.needsFullRead = false
		return bare.lastFullRead.Equal(now)
	}
	change := func(told func(Event)) {
		t.Helper()
		before, err := s.dropState()
		for err == nil {
			if err = os.WriteFile(filepath.Join(path, "own~"), []byte("as things stand"), 0o600); err == nil {
				err = os.Rename(filepath.Join(path, "own~"), filepath.Join(path, "own"))
			}
			for e := (Event{}); err == nil && (e.Name != "own" || e.IsOther); told(e) {
				e = <-source.C
			}
			if after, _ := s.dropState(); after != before {
				break
			}
		}
		kit.Must(t, err)
	}
	kit.Need(t, readsAll() && !readsAll(), "the first rescan reads all, and the second nothing")
	for range 3 {
		if change(s.handleEvents); readsAll() {
			t.Error("all was read for what vaultd wrote itself")
		}
	}
	change(s.handleEvents)
	now = time.Now().Add(-time.Minute) // so shortly after the change that another one might look the same
	kit.Check(t, !readsAll(), "all was read for what vaultd wrote itself a moment ago")
	now = time.Now().Add(10 * time.Minute)
	kit.Check(t, !readsAll() && s.rescans.ownEvents == 0,
		"all was read for what vaultd had written itself shortly before a rescan")
	change(func(Event) {})
	kit.Check(t, readsAll(), "nothing was read after a change that nobody told of")
	change(s.handleEvents)
	if s.handleEvents(Event{Name: "somebody's"}); !readsAll() {
		t.Error("nothing was read after a change of somebody else's")
	}
	change(s.handleEvents)
	if now = now.Add(maxFullReadAge); !readsAll() {
		t.Error("nothing was read for longer than allowed")
	}
}

// I21: what is remembered is bounded, however many folders lie there and whatever their names.
func TestBare_I21_Bounded(t *testing.T) {
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, long := range []int{20, 250} {
		before := live()
		b := newNoSidecarCache(maxCheckedPerRound)
		b.beginRound(true)
		b.beginFullRead()
		old := dirState{ctime: time.Now().Add(-time.Hour)}
		for i := range maxRememberedFolders + 1000 {
			b.noteNoSidecar(fmt.Sprintf("%0*d", long, i), old)
		}
		b.endFullRead(old, time.Now(), true)
		used := live() - before
		t.Logf("names of %d bytes: %d folders, %d bytes", long, len(b.states), used)
		kit.Check(t, len(b.states) == maxRememberedFolders && used <= 9<<20 && b.isComplete == (long == 20),
			"%d folders in %d bytes, complete: %v", len(b.states), used, b.isComplete)
		runtime.KeepAlive(&b)
	}
}

// I22: where nobody can tell what file system it is, nothing that the kernel says of it is relied on.
func TestNetwork_I22_Unknown(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	w := kit.Value(New(Config{Path: gone, Settle: time.Second, Rescan: time.Hour, Rules: rules}))(t)
	s := &session{Watcher: w}
	if s.startEvents(); s.isLocal {
		t.Error("a drop folder that cannot be asked is taken for a local one")
	}
}

// What many folders without a sidecar cost a rescan, as they lie there.
func BenchmarkRescanAtRest(b *testing.B) {
	path := b.TempDir()
	const n = 100_000
	for i := range n {
		kit.Must(b, os.Mkdir(fmt.Sprintf("%s/bare %06d", path, i), 0o770))
	}
	time.Sleep(maxCtimeGrain + time.Second)
	w := kit.Value(New(Config{Path: path, Settle: time.Second, Rescan: time.Hour, Rules: rules}))(b)
	root := kit.Value(os.OpenRoot(path))(b)
	defer root.Close()
	s := &session{Watcher: w, root: root, stop: func() {}, rescans: rescanState{noSidecar: newNoSidecarCache(w.roundSize)}}
	s.startEvents()
	defer s.stop()
	for range 2 {
		kit.Must(b, s.rescan(context.Background(), time.Now(), false))
	}
	var began, ended syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &began)
	for b.Loop() {
		kit.Must(b, s.rescan(context.Background(), time.Now(), false))
	}
	syscall.Getrusage(syscall.RUSAGE_SELF, &ended)
	cpu := ended.Utime.Nano() + ended.Stime.Nano() - began.Utime.Nano() - began.Stime.Nano()
	b.ReportMetric(float64(cpu)/1e6/float64(b.N), "cpu-ms/op")
}
