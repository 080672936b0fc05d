package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

// bench runs a watcher over a real directory in a bubble: time is virtual, events are what the test says.
type bench struct {
	t      *testing.T
	path   string
	events chan Event
	w      *Watcher
	start  time.Time
	refuse func(name string) error // nil: everything can be taken; set before run

	mu    sync.Mutex
	taken map[string]time.Duration // since start
	tries map[string]int
	total int // taken and forgotten
	peak  int // of folders under observation
	end   func()
}

func inBubble(t *testing.T, cfg Config, test func(b *bench)) {
	base := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, path: filepath.Join(base, "in"), events: make(chan Event, 100), start: time.Now(),
			taken: map[string]time.Duration{}, tries: map[string]int{}}
		write(t, b.path, "/")
		os.Mkdir(base+"/claimed", 0o770)
		cfg.Path = b.path
		if cfg.Settle == 0 {
			cfg.Settle = 30 * time.Second
		}
		if cfg.Rescan == 0 {
			cfg.Rescan = time.Minute
		}
		cfg.Rules = rules
		if cfg.OpenEvents == nil {
			cfg.OpenEvents = func(string) (EventSource, error) { return EventSource{C: b.events, Stop: func() {}}, nil }
		}
		var err error
		if b.w, err = New(cfg); err != nil {
			t.Fatal(err)
		}
		b.end = func() {}
		defer func() { b.end() }()
		test(b)
	})
}

func (b *bench) run() {
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.w.Run(ctx, b.take) }()
	b.end = func() {
		cancel()
		kit.Fails(b.t, "Run", <-ended, context.Canceled)
	}
	synctest.Wait()
}

func (b *bench) take(ctx context.Context, f Item) error {
	b.mu.Lock()
	b.tries[f.Name]++
	refuse := b.refuse
	b.peak = max(b.peak, b.w.Snapshot().Observed)
	b.mu.Unlock()
	if refuse != nil {
		if err := refuse(f.Name); err != nil {
			return err
		}
	}
	if err := os.Rename(filepath.Join(b.path, f.Name), filepath.Join(b.path, "../claimed", f.Name)); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken[f.Name] = time.Since(b.start)
	return nil
}

func (b *bench) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (b *bench) takenAt(name string) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, ok := b.taken[name]
	return d, ok
}

// takenNames gives what was taken and forgets it, so that a name can be used again.
func (b *bench) takenNames() map[string]time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := b.taken
	b.taken = map[string]time.Duration{}
	for name := range names {
		b.total++
		os.Rename(filepath.Join(b.path, "../claimed", name), filepath.Join(b.path, "../claimed", fmt.Sprintf("%s.%d", name, b.total)))
	}
	return names
}

func (b *bench) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.taken)
}

func (b *bench) waiting(r Reason) NotTakenGroup {
	for _, w := range b.w.Snapshot().NotTaken {
		if w.Reason == r {
			return w
		}
	}
	return NotTakenGroup{}
}

func TestWatcher_I22_EveryEventLost(t *testing.T) {
	for _, mode := range []Mode{Poll, Events} {
		t.Run(string(mode), func(t *testing.T) {
			inBubble(t, Config{Mode: mode}, func(b *bench) {
				write(t, b.path, "early/metadata.json")
				b.run()
				b.pass(10*time.Minute + 17*time.Second)
				write(t, b.path, "late/metadata.json", "late/a.pdf")
				dropped := time.Since(b.start)
				b.pass(2 * time.Minute)
				at, ok := b.takenAt("early")
				kit.Check(t, ok && at >= 30*time.Second, "early: taken %v at %v", ok, at)
				at, ok = b.takenAt("late")
				kit.Check(t, ok && at >= dropped+30*time.Second, "late: taken %v at %v, dropped %v", ok, at, dropped)
			})
		})
	}
}

func TestWatcher_OldMtimesProveNothing(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		write(t, b.path, "old/metadata.json")
		past := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		os.Chtimes(b.path+"/old/metadata.json", past, past)
		os.Chtimes(b.path+"/old", past, past)
		b.run()
		b.pass(29 * time.Second)
		_, ok := b.takenAt("old")
		kit.Need(t, !ok, "taken after one look")
		b.pass(2 * time.Second)
		_, ok = b.takenAt("old")
		kit.Check(t, ok, "not taken after settle")
	})
}

func TestWatcher_WriterAppendsForAnHour(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		b.run()
		write(t, b.path, "f/metadata.json")
		b.events <- Event{Name: "f"}
		f := kit.Value(os.OpenFile(b.path+"/f/a.pdf", os.O_CREATE|os.O_WRONLY, 0o660))(t)
		defer f.Close()
		for range 3600 / 25 {
			b.pass(25 * time.Second)
			f.WriteString("page")
			_, ok := b.takenAt("f")
			kit.Need(t, !ok, "taken while it grows")
			if got := b.waiting(Copying); got.Count != 1 || got.Items[0].Name != "f" {
				t.Fatalf("status does not say still copying: %+v", b.w.Snapshot())
			}
		}
		last := time.Since(b.start)
		b.pass(time.Minute)
		if at, ok := b.takenAt("f"); !ok || at < last+30*time.Second-5*time.Second || at > last+40*time.Second {
			t.Errorf("last change %v, taken %v at %v; want within settle + 10 s", last, ok, at)
		}
	})
}

func TestWatcher_SidecarLastAndTemporaryNames(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		b.run()
		write(t, b.path, "f/a.pdf", "f/b.pdf.crdownload", "stray.pdf", "_STATUS.txt")
		os.Symlink("/etc", b.path+"/link")
		b.events <- Event{Name: "f"}
		b.pass(3 * time.Minute)
		if got := b.waiting(NoSidecar); got.Count != 1 || got.Items[0].Name != "f" || time.Since(got.Items[0].FirstSeen) < 2*time.Minute {
			t.Errorf("no sidecar: %+v", got)
		}
		got := b.waiting(LooseFile)
		kit.Check(t, got.Count == 3, "loose: %+v", got)
		write(t, b.path, "f/Metadata.JSON")
		b.pass(5 * time.Minute)
		if got := b.waiting(Temporary); got.Count != 1 || got.Items[0].Detail != "b.pdf.crdownload" {
			t.Errorf("temporary: %+v", b.w.Snapshot())
		}
		os.Rename(b.path+"/f/b.pdf.crdownload", b.path+"/f/b.pdf")
		b.pass(2 * time.Minute)
		if _, ok := b.takenAt("f"); !ok {
			t.Errorf("not taken: %+v", b.w.Snapshot())
		}
	})
}

func TestWatcher_OverflowRescansAtOnce(t *testing.T) {
	inBubble(t, Config{Rescan: 24 * time.Hour}, func(b *bench) {
		b.run()
		b.pass(time.Hour)
		for i := range 50 {
			write(t, b.path, fmt.Sprintf("f%d/metadata.json", i))
		}
		b.events <- Event{Overflow: true}
		b.pass(32 * time.Second)
		kit.Want(t, "taken", b.count(), 50)
	})
}

// No hint is lost between two passes, however many wait: the last one that a pass has time for may be the one that matters.
func TestWatcher_I22_EveryHintIsHeeded(t *testing.T) {
	const n = 2*maxEventsPerPass + 2
	var hints chan Event // made in the bubble
	cfg := Config{Rescan: 24 * time.Hour, Complete: Marker, OpenEvents: func(string) (EventSource, error) {
		hints = make(chan Event, n)
		return EventSource{C: hints, Stop: func() {}}, nil
	}}
	inBubble(t, cfg, func(b *bench) {
		b.run()
		for _, i := range []int{maxEventsPerPass, maxEventsPerPass + 1, n - 1} {
			write(t, b.path, fmt.Sprintf("f%d/metadata.json", i), fmt.Sprintf("f%d/.done", i))
		}
		for i := range n {
			hints <- Event{Name: fmt.Sprintf("f%d", i)}
		}
		b.pass(time.Minute)
		kit.Want(t, "taken", b.count(), 3)
	})
}

func TestWatcher_I23_RefusedFolderDelaysNobody(t *testing.T) {
	for name, want := range map[error]Reason{
		syscall.EACCES: NoRight, syscall.EBUSY: Busy, syscall.EXDEV: OtherDevice, syscall.EROFS: ReadOnly, errors.New("odd"): Failed,
	} {
		t.Run(name.Error(), func(t *testing.T) {
			inBubble(t, Config{MaxTakes: 1}, func(b *bench) {
				b.refuse = func(n string) error {
					if n == "bad" {
						return fmt.Errorf("claim: %w", name)
					}
					return nil
				}
				write(t, b.path, "bad/metadata.json", "a/metadata.json", "b/metadata.json")
				b.run()
				b.pass(35 * time.Second)
				kit.Want(t, "taken", b.count(), 2)
				b.pass(time.Hour)
				if got := b.waiting(want); got.Count != 1 || got.Items[0].Name != "bad" {
					t.Errorf("status: %+v", b.w.Snapshot().NotTaken)
				}
				if n := b.tries["bad"]; n < 30 || n > 70 {
					t.Errorf("%d tries in an hour", n)
				}
				b.mu.Lock()
				b.refuse = nil
				b.mu.Unlock()
				b.pass(time.Minute + time.Second)
				_, ok := b.takenAt("bad")
				kit.Check(t, ok, "not taken once it could be")
			})
		})
	}
}

// "chmod -R" begins at the top: from then on the folder can be taken, and what is in it not yet read.
func TestWatcher_I23_RightsAreSetFromTheTopDown(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		write(t, b.path, "f/metadata.json", "f/a.pdf")
		mode := func(name string, m os.FileMode) {
			kit.Must(t, os.Chmod(filepath.Join(b.path, name), m))
		}
		mode("f", 0o755)
		b.refuse = func(n string) error {
			info, err := os.Lstat(filepath.Join(b.path, n))
			if err == nil && info.Mode().Perm() == 0o755 {
				return syscall.EACCES
			}
			return err
		}
		b.run()
		b.pass(2 * time.Minute)
		if got := b.waiting(NoRight); got.Count != 1 {
			t.Fatalf("status: %+v", b.w.Snapshot().NotTaken)
		}
		mode("f", 0o775)
		for range 29 {
			b.events <- Event{Name: "f"}
			b.pass(time.Second)
		}
		at, ok := b.takenAt("f")
		kit.Check(t, !ok, "taken %v after the start, while its rights were being set", at)
		b.pass(time.Minute)
		_, ok = b.takenAt("f")
		kit.Check(t, ok, "not taken once it was quiet")
	})
}

// What cannot be taken is told as long as it lies there, also while it is tried once more.
func TestWatcher_I23_RefusedFolderIsToldAllTheTime(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		var tries, silent atomic.Int32
		look := func() {
			if tries.Load() > 0 && b.waiting(NoRight).Count != 1 {
				silent.Add(1)
			}
		}
		b.refuse = func(string) error {
			look()
			tries.Add(1)
			return syscall.EACCES
		}
		write(t, b.path, "bad/metadata.json")
		b.run()
		for range 600 {
			b.pass(time.Second)
			look()
		}
		kit.Check(t, silent.Load() <= 0 && tries.Load() >= 5, "not told at %d looks, %d tries", silent.Load(), tries.Load())
	})
}

func TestWatcher_I23_HangingTakeDelaysNobody(t *testing.T) {
	inBubble(t, Config{MaxTakes: 2}, func(b *bench) {
		hang := make(chan struct{})
		b.refuse = func(n string) error {
			if n == "bad" {
				<-hang
			}
			return nil
		}
		write(t, b.path, "bad/metadata.json")
		b.run()
		for i := range 20 {
			write(t, b.path, fmt.Sprintf("f%d/metadata.json", i))
			b.events <- Event{Name: fmt.Sprintf("f%d", i)}
		}
		b.pass(40 * time.Second)
		kit.Want(t, "taken", b.count(), 20)
		close(hang)
	})
}

func TestWatcher_I21_MoreThanFit(t *testing.T) {
	inBubble(t, Config{MaxObserved: 20}, func(b *bench) {
		for i := range 500 {
			write(t, b.path, fmt.Sprintf("f%d/metadata.json", i))
		}
		b.run()
		got := b.waiting(Queued)
		kit.Check(t, got.Count == 480 && len(got.Items) == 480, "queued %d, %d named", got.Count, len(got.Items))
		b.pass(25 * 40 * time.Second)
		kit.Want(t, "taken", b.count(), 500)
		kit.Check(t, b.peak <= 20, "%d under observation", b.peak)
	})
}

func TestWatcher_I23_StuckOnesDoNotFillTheRoom(t *testing.T) {
	inBubble(t, Config{MaxObserved: 10}, func(b *bench) {
		write(t, b.path, "good0/metadata.json", "good1/metadata.json") // the file system may list these last
		for i := range 60 {
			write(t, b.path, fmt.Sprintf("stuck%d/metadata.json", i), fmt.Sprintf("stuck%d/x.part", i))
			write(t, b.path, fmt.Sprintf("bare%d/x.pdf", i))
		}
		write(t, b.path, "good2/metadata.json", "good3/metadata.json", "good4/metadata.json") // or these
		b.run()
		b.pass(time.Hour)
		kit.Want(t, "taken", b.count(), 5)
		got := b.waiting(NoSidecar)
		kit.Check(t, got.Count == 60, "no sidecar: %d", got.Count)
	})
}
