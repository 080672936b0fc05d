package watch

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// burst is a drop folder in memory, with the kernel's events, into which folders are moved as fast as can be.
type burst struct {
	t       *testing.T
	aside   string
	path    string
	claimed string

	mu     sync.Mutex
	moved  map[string]time.Time     // when each was moved in; guarded by mu
	waited map[string]time.Duration // from then until it was taken; guarded by mu
	twice  int                      // guarded by mu
}

func newBurst(t *testing.T, n int) *burst {
	base := t.TempDir()
	if dir, err := os.MkdirTemp("/dev/shm", "burst"); err == nil {
		base = dir
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	b := &burst{t: t, aside: filepath.Join(base, "aside"), path: filepath.Join(base, "in"), claimed: filepath.Join(base, "claimed"),
		moved: map[string]time.Time{}, waited: map[string]time.Duration{}}
	write(t, base, "aside/", "in/", "claimed/")
	for i := range n {
		dir := filepath.Join(b.aside, fmt.Sprintf("Huber %06d", i))
		kit.Must(t, os.Mkdir(dir, 0o770))
		for _, name := range []string{"/metadata.json", "/.done"} {
			kit.Must(t, os.WriteFile(dir+name, nil, 0o660))
		}
	}
	return b
}

// move puts the folders from..to into the drop folder.
func (b *burst) move(from, to int) {
	for i := from; i < to; i++ {
		name := fmt.Sprintf("Huber %06d", i)
		b.mu.Lock()
		b.moved[name] = time.Now()
		b.mu.Unlock()
		kit.Want(b.t, "the error of Rename", os.Rename(filepath.Join(b.aside, name), filepath.Join(b.path, name)), nil)
	}
}

// noise makes two events each of n times, that nothing comes of.
func (b *burst) noise(n int) {
	name := filepath.Join(b.path, "loose")
	for range n {
		kit.Must(b.t, os.WriteFile(name, nil, 0o660))
		kit.Must(b.t, os.Remove(name))
	}
}

func (b *burst) take(_ context.Context, f Item) error {
	if err := os.Rename(filepath.Join(b.path, f.Name), filepath.Join(b.claimed, f.Name)); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, had := b.waited[f.Name]; had {
		b.twice++
	}
	b.waited[f.Name] = time.Since(b.moved[f.Name])
	return nil
}

func (b *burst) taken() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waited)
}

// G11: a burst that overflows the kernel's queue of events loses none, though no regular rescan comes to help, and never more
// than Max are under observation. With VAULTD_LONG it has 100,000 folders.
func TestBurst_I22_NoneIsLost(t *testing.T) {
	kit.Waits(t, 3, "the kernel has no virtual time")
	n, most := 6000, 2500
	if os.Getenv("VAULTD_LONG") != "" {
		n, most = 100_000, 10_000
	}
	for _, complete := range []Completeness{Marker, Quiet} {
		t.Run(string(complete), func(t *testing.T) {
			b := newBurst(t, n)
			var overflows atomic.Int64
			heed := make(chan struct{})
			w, end := b.watch(Config{Settle: 200 * time.Millisecond, Rescan: time.Hour, Complete: complete, MaxObserved: most, OpenEvents: held(heed, &overflows)})
			began := time.Now()
			b.move(0, n/2)
			b.noise(15_000)
			b.move(n/2, n)
			close(heed)
			moved, peak := time.Now(), 0
			// A listing may find all of them before the queue is read to its end, where it says that it overflowed.
			for (b.taken() < n || overflows.Load() == 0) && time.Since(moved) < 4*time.Minute {
				peak = max(peak, w.Snapshot().Observed)
				time.Sleep(50 * time.Millisecond)
			}
			t.Logf("%d moved in within %v, all taken %v after the last", n, moved.Sub(began), time.Since(moved))
			end()
			kit.Check(t, overflows.Load() != 0, "the queue of events did not overflow")
			got := b.taken()
			kit.Check(t, got == n && b.twice <= 0 && peak <= most, "%d of %d taken, %d twice; %d under observation", got, n, b.twice, peak)
		})
	}
}

// held gives the kernel's events from when heed is closed on, and counts those that tell of a loss.
func held(heed <-chan struct{}, overflows *atomic.Int64) func(path string) (EventSource, error) {
	return func(path string) (EventSource, error) {
		kernel, err := kernelEvents(path)
		if err != nil {
			return EventSource{}, err
		}
		c, done := make(chan Event), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			select {
			case <-heed:
			case <-done:
				return
			}
			for {
				select {
				case e := <-kernel.C:
					if e.Overflow {
						overflows.Add(1)
					}
					select {
					case c <- e:
					case <-done:
						return
					}
				case <-done:
					return
				}
			}
		})
		return EventSource{C: c, Stop: func() {
			close(done)
			wg.Wait()
			kernel.Stop()
		}}, nil
	}
}

// G11: with nothing else to do, a folder that is moved in whole is noticed at once, however many others lie there.
func TestBurst_I22_NoticedAtOnce(t *testing.T) {
	const n, lying = 200, 2000
	b := newBurst(t, n)
	for i := range lying {
		write(t, b.path, fmt.Sprintf("bare %d/a.pdf", i))
	}
	_, end := b.watch(Config{Settle: 200 * time.Millisecond, Rescan: time.Hour, Complete: Marker})
	for i := range n {
		b.move(i, i+1)
		kit.Await(t, "the folder to be taken", func() bool { return b.taken() > i })
	}
	end()
	waits := slices.Sorted(maps.Values(b.waited))
	kit.Need(t, len(waits) == n, "%d of %d taken without a rescan", len(waits), n)
	t.Logf("noticed and taken: median %v, 99 of 100 within %v", waits[n/2], waits[n*99/100])
}

// watch starts a watcher and waits for its first rescan.
func (b *burst) watch(cfg Config) (w *Watcher, end func()) {
	cfg.Path, cfg.Rules = b.path, rules
	w = kit.Value(New(cfg))(b.t)
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, b.take) }()
	kit.Await(b.t, "the first rescan", func() bool { return !w.Snapshot().LastRescan.IsZero() })
	return w, func() {
		cancel()
		<-ended
	}
}
