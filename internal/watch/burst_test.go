package watch

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// openWorld is a folder "in" that is watched from the first scan of "in/Huber 88" on.
type openWorld struct {
	t     *testing.T
	path  string
	root  *os.Root
	files *OpenFiles
}

func newOpenWorld(t *testing.T) *openWorld {
	w := &openWorld{t: t, path: t.TempDir(), files: NewOpenFiles()}
	if w.files == nil {
		kit.Missing(t, "the kernel has no room for a watcher")
	}
	write(t, w.path, "Huber 88/sub/", "Huber 88/early.pdf", "aside/")
	var err error
	w.root, err = os.OpenRoot(w.path)
	kit.Must(t, err)
	t.Cleanup(func() { w.root.Close() })
	_, err = Rules{Sidecar: "metadata.json", Opens: w.files}.ScanFolder(w.root, "Huber 88")
	kit.Must(t, err)
	return w
}

func (w *openWorld) open(flags int, rel string) *os.File {
	w.t.Helper()
	f := kit.Value(os.OpenFile(filepath.Join(w.path, rel), flags, 0o660))(w.t)
	w.t.Cleanup(func() { f.Close() })
	return f
}

func (w *openWorld) want(what, want string) {
	w.t.Helper()
	kit.Want(w.t, "open "+what, w.files.FindOpen(w.root, "Huber 88", func(name string) bool { return name == "Thumbs.db" }), want)
}

func (w *openWorld) move(from, to string) {
	w.t.Helper()
	kit.Must(w.t, os.Rename(filepath.Join(w.path, from), filepath.Join(w.path, to)))
}

// I17: what was created or written to and not closed since is open, under
// whatever name it has by then, also after the claim's rename.
func TestOpenFiles_I17_CreatedOrWritten(t *testing.T) {
	w := newOpenWorld(t)
	w.want("at first", "")
	made := w.open(os.O_CREATE|os.O_WRONLY, "Huber 88/sub/new.pdf")
	w.want("while its maker has it, and nothing is written", "Huber 88/sub/new.pdf")
	w.open(os.O_RDONLY, "Huber 88/early.pdf").Close()
	w.want("after somebody read another file", "Huber 88/sub/new.pdf")
	kit.Value(made.WriteString("page 1"))(t)
	w.open(os.O_RDONLY, "Huber 88/sub/new.pdf").Close()
	w.want("after somebody read it", "Huber 88/sub/new.pdf")
	w.move("Huber 88/sub/new.pdf", "Huber 88/renamed.pdf")
	w.want("after it was renamed", "Huber 88/renamed.pdf")
	w.move("Huber 88", "claimed")
	kit.Want(t, "open after the claim", w.files.FindOpen(w.root, "claimed", func(string) bool { return false }), "claimed/renamed.pdf")
	w.move("claimed", "Huber 88")
	kit.Must(t, made.Close())
	w.want("once it is closed", "")
}

// I17: a file that was open before its folder was seen counts from its next
// write on; one that ends as a hard link, or is removed, is not open.
func TestOpenFiles_I17_OpenBefore(t *testing.T) {
	w := newOpenWorld(t)
	early := w.open(os.O_WRONLY, "Huber 88/early.pdf")
	w.want("without a write: nobody knows", "")
	kit.Value(early.WriteString("page 1"))(t)
	w.want("after a write", "Huber 88/early.pdf")
	kit.Must(t, early.Close())
	kit.Must(t, os.Link(filepath.Join(w.path, "Huber 88/early.pdf"), filepath.Join(w.path, "Huber 88/linked.pdf")))
	w.want("a hard link", "")
	w.open(os.O_RDONLY, "Huber 88/linked.pdf").Close()
	w.want("a hard link that was read", "")
	junk := w.open(os.O_CREATE|os.O_WRONLY, "Huber 88/Thumbs.db")
	w.want("what a system leaves behind", "")
	kit.Must(t, junk.Close())
	gone := w.open(os.O_CREATE|os.O_WRONLY, "Huber 88/gone.pdf")
	kit.Must(t, os.Remove(filepath.Join(w.path, "Huber 88/gone.pdf")))
	w.want("a removed file", "")
	kit.Must(t, gone.Close())
	w.open(os.O_CREATE|os.O_WRONLY, "aside/moved.pdf")
	w.move("aside/moved.pdf", "Huber 88/moved.pdf")
	w.want("moved in from where nobody looks", "")
}

// I17, I21: after lost events nothing is believed to be open, and the oldest watches give way.
func TestOpenFiles_I17_I21_Bounds(t *testing.T) {
	w := newOpenWorld(t)
	w.open(os.O_CREATE|os.O_WRONLY, "Huber 88/new.pdf")
	w.want("before", "Huber 88/new.pdf")
	w.files.mu.Lock()
	w.files.handleEvent(-1, unix.IN_Q_OVERFLOW, 0, "")
	w.files.mu.Unlock()
	w.want("after lost events", "")
	for i := range maxWatched + 10 {
		name := fmt.Sprintf("Otto %d", i)
		kit.Must(t, os.Mkdir(filepath.Join(w.path, name), 0o770))
		dir := w.open(os.O_RDONLY, name)
		w.files.watchFolder(dir)
		dir.Close()
	}
	if n := len(w.files.watches); n > maxWatched || n != len(w.files.folders) || n != len(w.files.oldest) {
		t.Errorf("watched = %d, %d and %d folders, want at most %d", n, len(w.files.folders), len(w.files.oldest), maxWatched)
	}
	(*OpenFiles)(nil).watchFolder(nil)
	kit.Want(t, "what nobody watches", (*OpenFiles)(nil).FindOpen(w.root, "Huber 88", nil), "")
}

// ignoredFor returns the names that are left alone for that reason, in a line.
func (b *bench) ignoredFor(reason Reason) string {
	var names []string
	for _, group := range b.w.Snapshot().Ignored {
		if group.Reason != reason {
			continue
		}
		kit.Want(b.t, string(reason), group.Count, len(group.Items))
		for _, n := range group.Items {
			names = append(names, n.Name)
		}
	}
	return strings.Join(names, " ")
}

// I32: what systems make and what a rule of the drop names is left alone and
// listed. A folder that a system might have made is picked up where it holds a
// sidecar; one that a rule names never is.
func TestWatcher_I22_I32_IgnoredNamesAreListed(t *testing.T) {
	for _, mode := range []Mode{Events, Poll} {
		inBubble(t, Config{Mode: mode, IsIgnored: func(name string) bool { return strings.HasPrefix(name, "Entwurf") }}, func(b *bench) {
			write(t, b.path, "lost+found/", "$RECYCLE.BIN/S-1-5/metadata.json", ".Trash-1000/files/", "#recycle/x.pdf", ".stignore", "Thumbs.db",
				".stfolder/metadata.json", "Entwurf 1/metadata.json", "Entwurf.txt", "Huber/", "good/metadata.json")
			kit.Must(t, os.Chmod(b.path+"/lost+found", 0))
			defer os.Chmod(b.path+"/lost+found", 0o700)
			b.run()
			b.events <- Event{Name: "lost+found"}
			b.events <- Event{Name: "Entwurf 1"}
			b.pass(5 * time.Minute)
			kit.Want(t, "by system", b.ignoredFor(IgnoredBySystem), "#recycle $RECYCLE.BIN .Trash-1000 .stignore Thumbs.db lost+found")
			kit.Want(t, "by rule", b.ignoredFor(IgnoredByRule), "Entwurf 1 Entwurf.txt")
			for _, name := range []string{".stfolder", "good"} {
				_, taken := b.takenAt(name)
				kit.Check(t, taken, "%s %s is not taken, want it taken", mode, name)
			}
			kit.Want(t, "taken", b.count(), 2)
			for _, group := range b.w.Snapshot().NotTaken {
				kit.Want(t, "reason", group.Reason, NoSidecar)
				kit.Want(t, "not taken", group.Count, 1)
			}
			// A sidecar that comes late makes it an invoice.
			write(t, b.path, "#recycle/metadata.json")
			b.pass(3 * time.Minute)
			_, taken := b.takenAt("#recycle")
			kit.Check(t, taken, "%s: #recycle with a sidecar is not taken, want it taken", mode)
		})
	}
}

// I17: an unfinished file and a placeholder keep their folder from being picked
// up, and the reason names them. In a drop of single files a companion waits too.
func TestWatcher_I17_UnfinishedNamesWait(t *testing.T) {
	names := map[string]Reason{
		".r.pdf.Xy12Zz": Temporary, "r.pdf.9f8e7d6c.partial": Temporary, ".goutputstream-AB12CD": Temporary, ".sftpgo-upload.c.r.pdf": Temporary,
		".r.pdf.icloud": Placeholder, "r.pdf.nextcloud": Placeholder,
	}
	inBubble(t, Config{Mode: Poll}, func(b *bench) {
		for name := range names {
			write(t, b.path, "of "+name+"/metadata.json", "of "+name+"/"+name)
		}
		write(t, b.path, "whole/metadata.json", "whole/metadata.json~", "whole/.metadata.json.swp")
		b.run()
		b.pass(time.Hour)
		for name, want := range names {
			got, detail := b.reasonOf("of " + name)
			kit.Want(t, name, got, want)
			kit.Want(t, "detail", detail, name)
		}
		kit.Want(t, "taken", b.count(), 1)
	})
	names["r.pdf~"], names[".~lock.r.pdf#"] = Temporary, Temporary
	inBubble(t, Config{Kind: Files, Mode: Poll}, func(b *bench) {
		for name := range names {
			write(t, b.path, name)
		}
		b.run()
		b.pass(time.Hour)
		for name, want := range names {
			got, _ := b.reasonOf(name)
			kit.Want(t, name, got, want)
		}
		kit.Want(t, "taken", b.count(), 0)
	})
}
