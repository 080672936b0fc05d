package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/test/kit"
)

// restful runs a watcher over a drop folder with n folders without a sidecar, at
// a time at which all of them are old.
func restful(t *testing.T, n int, test func(b *bench)) {
	inBubble(t, Config{Rescan: time.Minute}, func(b *bench) {
		for i := range n {
			write(t, b.path, fmt.Sprintf("bare %d/a.pdf", i))
		}
		time.Sleep(40 * 365 * 24 * time.Hour) // a bubble begins long before the files were made
		b.run()
		b.pass(10*time.Minute + time.Second)
		test(b)
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

// G10: while events report each change, rescans take at most a thousandth of the
// time. Where rescans alone find what is new, the regular time counts (I22).
func TestRescan_G10_TakesAThousandthOfTheTime(t *testing.T) {
	w := kit.Value(New(Config{Path: t.TempDir(), Settle: time.Second, Rescan: time.Minute, Rules: rules}))(t)
	began := time.Now()
	for name, c := range map[string]struct {
		isLocal, hasEvents bool
		took, want         time.Duration
	}{
		"Quick":            {true, true, 60 * time.Millisecond, time.Minute},
		"Slow":             {true, true, 170 * time.Millisecond, 170 * time.Second},
		"VerySlow":         {true, true, time.Minute, 3 * time.Minute},
		"Polled":           {true, false, time.Second, time.Minute},
		"OnANetwork":       {false, true, time.Second, time.Minute},
		"PolledOnANetwork": {false, false, time.Hour, time.Minute},
	} {
		s := &session{Watcher: w, isLocal: c.isLocal, rescans: rescanState{last: began, took: c.took}}
		if c.hasEvents {
			s.events = make(chan Event)
		}
		kit.Want(t, name+": time from one rescan to the next", s.rescanDueAt().Sub(began), c.want)
	}
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
		restful(t, 20, func(b *bench) {
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

// I22: a sidecar that comes late is found within two rescans, whatever the
// events said, however many folders have none.
func TestRescan_I22_LateSidecarIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		mode Mode
		lose func(b *bench)
	}{
		"Heard":      {Events, func(*bench) {}},
		"Polled":     {Poll, func(*bench) {}},
		"Overflowed": {Events, func(b *bench) { b.events <- Event{Overflow: true} }},
		"Dead":       {Events, func(b *bench) { b.events <- Event{Dead: syscall.EIO} }},
		"NotTold":    {Events, func(b *bench) { write(b.t, b.path, "unheard/a.pdf") }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{Mode: c.mode}, func(b *bench) {
				const n, whole = 400, 100 // more than the samples, which are opened at each rescan
				for i := range n {
					write(t, b.path, fmt.Sprintf("bare %d/a.pdf", i))
				}
				time.Sleep(40 * 365 * 24 * time.Hour) // a bubble begins long before the files were made
				b.run()
				b.pass(10*time.Minute + time.Second)
				tick(t, filepath.Dir(b.path)+"/clock")
				for i := range whole {
					write(t, b.path, fmt.Sprintf("bare %d/metadata.json", i*n/whole))
				}
				c.lose(b)
				b.pass(2*time.Minute + 32*time.Second)
				kit.Want(t, "taken", len(b.takenNames()), whole)
			})
		})
	}
}

// I21: what is remembered is bounded, however many folders there are and
// whatever their names.
func TestNoSidecar_I21_Bounded(t *testing.T) {
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, f := live(), noSidecarFolders{}
	for i := range maxNoSidecarFolders + 1000 {
		f.add(durable.FileID{Ino: uint64(i), Ctime: 1})
	}
	used := live() - before
	t.Logf("%d folders, %d bytes", len(f), used)
	kit.Check(t, len(f) == maxNoSidecarFolders && used <= 6<<20, "%d folders in %d bytes", len(f), used)
	runtime.KeepAlive(f)
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
	s := &session{Watcher: w, root: root, stop: func() {}}
	s.startEvents()
	defer s.stop()
	for range 2 {
		kit.Must(b, s.rescan(context.Background(), time.Now()))
	}
	var began, ended syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &began)
	for b.Loop() {
		kit.Must(b, s.rescan(context.Background(), time.Now()))
	}
	syscall.Getrusage(syscall.RUSAGE_SELF, &ended)
	cpu := ended.Utime.Nano() + ended.Stime.Nano() - began.Utime.Nano() - began.Stime.Nano()
	b.ReportMetric(float64(cpu)/1e6/float64(b.N), "cpu-ms/op")
}
