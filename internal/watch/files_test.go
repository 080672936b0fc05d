package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"vaultd/internal/durable"
	"vaultd/internal/test/kit"
)

// endsWell says that a file is complete once it has its mark at the end.
func endsWell(_ context.Context, root *os.Root, f Item) error {
	data, err := root.ReadFile(f.Name)
	if err == nil && !bytes.Contains(data, []byte("%%EOF")) {
		err = errors.New("looks cut off")
	}
	return err
}

const whole = "%PDF-1.7 %%EOF"

func (b *bench) write(name, content string) {
	b.t.Helper()
	kit.Must(b.t, os.WriteFile(filepath.Join(b.path, name), []byte(content), 0o660))
}

// reasonOf returns why a name is not taken; empty: it is not listed.
func (b *bench) reasonOf(name string) (r Reason, detail string) {
	for _, g := range b.w.Snapshot().NotTaken {
		for _, n := range g.Items {
			if n.Name == name {
				return g.Reason, n.Detail
			}
		}
	}
	return "", ""
}

// I22: single files settle alone, with events and without; what is no file is named and stays.
func TestFiles_I22_SettleAndAreTaken(t *testing.T) {
	for _, mode := range []Mode{Events, Poll} {
		inBubble(t, Config{Kind: Files, Mode: mode, IsComplete: endsWell}, func(b *bench) {
			b.write("scan1.pdf", whole)
			write(b.t, b.path, "Mai/x.pdf", "@eaDir/", "Thumbs.db", "lost+found/", ".stignore")
			os.Symlink("scan1.pdf", b.path+"/link.pdf")
			syscall.Mkfifo(b.path+"/fifo.pdf", 0o600)
			b.run()
			b.write("scan2.pdf", whole)
			b.events <- Event{Name: "scan2.pdf"}
			b.pass(3 * time.Minute)
			for _, name := range []string{"scan1.pdf", "scan2.pdf"} {
				at, ok := b.takenAt(name)
				kit.Check(b.t, ok && at >= 30*time.Second, "%s %s: taken %v after %v", mode, name, ok, at)
			}
			kit.Want(b.t, fmt.Sprint(mode), b.count(), 2)
			for name, detail := range map[string]string{"Mai": FolderDetail, "link.pdf": LinkDetail, "fifo.pdf": "neither file nor folder"} {
				r, d := b.reasonOf(name)
				kit.Check(b.t, r == NotFile && d == detail, "%s %s: %q, %q, want r = %v, d = %v", mode, name, r, d, NotFile, detail)
			}
			for _, name := range []string{"@eaDir", "Thumbs.db", "lost+found", ".stignore"} {
				r, _ := b.reasonOf(name)
				kit.Check(b.t, r == "", `%s %s: %q, want r = ""`, mode, name, r)
			}
		})
	}
}

// A file that grows, is touched, exchanged or has a temporary name waits, whatever its times say.
func TestFiles_I17_WaitWhileTheyChange(t *testing.T) {
	old := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	kit.Rows(t, map[string]func(b *bench, n int){
		"Grows": func(b *bench, n int) { b.write("scan.pdf", whole+strings.Repeat("x", n)) },
		"SameSize": func(b *bench, n int) {
			b.write("scan.pdf", whole+fmt.Sprint(n%10))
			os.Chtimes(b.path+"/scan.pdf", old, old)
		},
		"Exchanged":    func(b *bench, n int) { b.write("new.part", whole); os.Rename(b.path+"/new.part", b.path+"/scan.pdf") },
		"RightsChange": func(b *bench, n int) { os.Chmod(b.path+"/scan.pdf", 0o600+os.FileMode(n%2)*0o60) },
	}, func(t *testing.T, change func(b *bench, n int)) {
		inBubble(t, Config{Kind: Files, Mode: Poll, IsComplete: endsWell}, func(b *bench) {
			b.write("scan.pdf", whole)
			b.run()
			for n := range 12 {
				b.pass(20 * time.Second)
				if change(b, n); b.count() > 0 {
					t.Fatalf("taken while it changed, pass %d", n)
				}
			}
			b.pass(2 * time.Minute)
			kit.Want(t, "not taken once it was quiet", b.count(), 1)
		})
	})
}

func TestFiles_TemporaryNamesWait(t *testing.T) {
	inBubble(t, Config{Kind: Files, Mode: Poll, IsComplete: endsWell}, func(b *bench) {
		for _, name := range []string{"scan.pdf.part", "scan.tmp", "~$scan.pdf", "scan.pdf.crdownload"} {
			b.write(name, whole)
		}
		b.run()
		b.pass(time.Hour)
		if r, d := b.reasonOf("scan.tmp"); r != Temporary || d != "scan.tmp" || b.count() != 0 {
			b.t.Errorf("%q, %q, %d taken", r, d, b.count())
		}
		os.Rename(b.path+"/scan.tmp", b.path+"/scan.pdf")
		b.pass(3 * time.Minute)
		_, ok := b.takenAt("scan.pdf")
		kit.Check(b.t, ok, "not taken under its last name")
	})
}

// A file that looks cut off waits ten times settle after its last change, then it is taken, and packing says what is wrong.
func TestFiles_CutOffWaitsTenTimesSettle(t *testing.T) {
	inBubble(t, Config{Kind: Files, Mode: Poll, IsComplete: endsWell}, func(b *bench) {
		b.write("scan.pdf", "%PDF-1.7")
		b.write("empty.pdf", "")
		b.write("slow.pdf", "%PDF-1.7")
		b.run()
		b.pass(4 * time.Minute)
		r, d := b.reasonOf("scan.pdf")
		kit.Check(b.t, r == Incomplete && d == "looks cut off", `%q, %q, want r = %v, d = "looks cut off"`, r, d, Incomplete)
		b.write("slow.pdf", whole) // its writer only paused
		b.pass(100 * time.Second)
		at, ok := b.takenAt("slow.pdf")
		kit.Check(b.t, ok, "complete and not taken: %v", at)
		b.pass(5 * time.Minute)
		for _, name := range []string{"scan.pdf", "empty.pdf"} {
			at, ok := b.takenAt(name)
			kit.Check(b.t, ok && at >= 5*time.Minute && at <= 5*time.Minute+15*time.Second, "%s: taken %v after %v", name, ok, at)
		}
	})
}

// I24: a file that may not be read stays, with the reason, and is taken once it may; it never runs out of patience.
func TestFiles_I24_UnreadableStays(t *testing.T) {
	var isReadable atomic.Bool
	ask := func(context.Context, *os.Root, Item) error {
		if isReadable.Load() {
			return nil
		}
		return &os.PathError{Op: "open", Path: "scan.pdf", Err: syscall.EACCES}
	}
	inBubble(t, Config{Kind: Files, Mode: Poll, IsComplete: ask}, func(b *bench) {
		b.write("scan.pdf", whole)
		b.run()
		b.pass(time.Hour)
		if r, _ := b.reasonOf("scan.pdf"); r != NoRight || b.count() != 0 {
			b.t.Errorf("%q, %d taken", r, b.count())
		}
		isReadable.Store(true)
		b.pass(2 * time.Minute)
		kit.Want(b.t, "not taken once it may be read", b.count(), 1)
	})
}

// I21: ten thousand and more files are taken with bounded observation, and one that is refused delays none.
func TestFiles_I21_MoreThanFit(t *testing.T) {
	inBubble(t, Config{Kind: Files, Mode: Poll, MaxObserved: 50, MaxTakes: 4}, func(b *bench) {
		b.refuse = func(name string) error {
			if name == "scan0.pdf" {
				return syscall.EBUSY
			}
			return nil
		}
		for i := range 300 {
			b.write(fmt.Sprintf("scan%d.pdf", i), whole)
		}
		b.run()
		b.pass(30 * time.Minute)
		n := b.count()
		kit.Check(b.t, n == 299 && b.peak <= 50, "%d taken, %d under observation", n, b.peak)
		r, _ := b.reasonOf("scan0.pdf")
		kit.Check(b.t, r == Busy, "%q, want r = %v", r, Busy)
	})
}

func TestFiles_ScanSeesNoLink(t *testing.T) {
	base := t.TempDir()
	write(t, base, "a.pdf", "Mai/")
	os.Symlink("a.pdf", base+"/link")
	root := kit.Value(os.OpenRoot(base))(t)
	defer root.Close()
	for name, want := range map[string]error{"link": syscall.ENOTDIR, "Mai": syscall.ENOTDIR, "gone": os.ErrNotExist} {
		kit.Fails(t, name, kit.Err(rules.scanFile(root, name)), want)
	}
	s, err := rules.scanFile(root, "a.pdf")
	info, _ := os.Lstat(base + "/a.pdf")
	kit.Must(t, err)
	kit.Want(t, "file", s.File, durable.IDOf(info))
	kit.Want(t, "problem", s.Problem, nil)
}

// TestWatcher_I22_MoreNamesThanOneReadGives: a rescan reads the drop folder to
// its end, though folders that stay fill more than one read.
func TestWatcher_I22_MoreNamesThanOneReadGives(t *testing.T) {
	inBubble(t, Config{Mode: Poll}, func(b *bench) {
		const n, one = 3 * namesPerRead, 100 // one in so many has a sidecar: the file system chooses the order
		whole := 0
		for i := range n {
			name := fmt.Sprintf("f%d/a.pdf", i)
			if i%one == 0 {
				name = fmt.Sprintf("f%d/metadata.json", i)
				whole++
			}
			write(t, b.path, name)
		}
		b.run()
		b.pass(2*time.Minute + 35*time.Second)
		kit.Want(t, "folders taken", b.count(), whole)
	})
}

// TestWatcher_I22_AFolderNamedLikeJunk: a folder with a sidecar is an invoice,
// whatever its name is.
func TestWatcher_I22_AFolderNamedLikeJunk(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		names := []string{"Thumbs.db", "_RECEIPT.txt", "._Müller"}
		for _, name := range names {
			write(t, b.path, name+"/metadata.json")
		}
		b.run()
		b.pass(2*time.Minute + time.Second)
		for _, name := range names {
			_, ok := b.takenAt(name)
			kit.Check(t, ok, "%q is not taken, want it within two rescans", name)
		}
	})
}

// TestLook_I22_SidecarBehindManyNames: a folder with more names than are read has
// its sidecar wherever the file system lists it.
func TestLook_I22_SidecarBehindManyNames(t *testing.T) {
	base := t.TempDir()
	few := Rules{Sidecar: "metadata.json", maxEntries: 10}.withDefaults()
	root := kit.Value(os.OpenRoot(base))(t)
	defer root.Close()
	for _, when := range []int{0, 150, 299} {
		folder := fmt.Sprintf("written as number %d", when)
		for i := range 300 {
			name := fmt.Sprintf("%s/%03d", folder, i)
			if i == when {
				name = folder + "/metadata.json"
			}
			write(t, base, name)
		}
		scan := kit.Value(few.ScanFolder(root, folder))(t)
		kit.Want(t, "names are left unread", scan.IsTruncated, true)
		kit.Want(t, "sidecar "+folder, scan.Sidecar, "metadata.json")
	}
}

// TestRescan_I22_WhatIsNoLongerObserved: a folder without a sidecar was under
// observation and is not any more. A sidecar that comes into it later is found,
// though no event reports it and nothing changes in the drop folder itself.
func TestRescan_I22_WhatIsNoLongerObserved(t *testing.T) {
	restful(t, 3, func(b *bench) {
		write(t, b.path, "late/a.pdf")
		b.events <- Event{Name: "late"}
		b.pass(20*time.Minute + time.Second)
		kit.Want(t, "items under observation", b.w.Snapshot().Observed, 0)
		tick(t, filepath.Dir(b.path)+"/clock")
		write(t, b.path, "late/metadata.json")
		b.pass(2*time.Minute + 35*time.Second)
		if _, ok := b.takenAt("late"); !ok {
			t.Errorf("not taken, want it within two rescans: %+v", b.w.Snapshot().NotTaken)
		}
	})
}

// TestRescan_I22_WhatIsTooYoungToTell: a change right after a folder was looked
// into may leave it in the same state. The next rescan looks again.
func TestRescan_I22_WhatIsTooYoungToTell(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		kit.Must(t, os.Mkdir(b.path+"/bare", 0o770))
		root := kit.Value(os.OpenRoot(b.path))(t)
		defer root.Close()
		s := &session{Watcher: b.w, root: root, isLocal: true}
		kit.Must(t, s.rescan(t.Context(), time.Now()))
		kit.Want(t, "young folders remembered", len(s.rescans.noSidecar), 0)
		time.Sleep(40 * 365 * 24 * time.Hour) // a bubble begins long before the folder was made
		kit.Must(t, s.rescan(t.Context(), time.Now()))
		kit.Want(t, "old folders remembered", len(s.rescans.noSidecar), 1)
	})
}

// TestRescan_I22_WhatCouldNotBeLookedInto: a folder gets its rights later. That
// changes nothing in the drop folder itself, and no event may report it.
func TestRescan_I22_WhatCouldNotBeLookedInto(t *testing.T) {
	path := t.TempDir()
	write(t, path, "f/metadata.json")
	kit.Must(t, os.Chmod(path, 0o755))
	kit.Must(t, os.Chmod(path+"/f", 0))
	t.Chdir(path) // others may not reach it by its path
	root := kit.Value(os.OpenRoot("."))(t)
	defer root.Close()
	w := kit.Value(New(Config{Path: ".", Settle: time.Second, Rescan: time.Hour, Rules: rules}))(t)
	s := &session{Watcher: w, root: root, events: make(chan Event), stop: func() {}, isLocal: true}
	now := time.Now()
	observed := func() int {
		t.Helper()
		now = now.Add(time.Minute)
		asNobody(t, func() { kit.Must(t, s.rescan(t.Context(), now)) })
		return w.Snapshot().Observed
	}
	kit.Want(t, "items under observation while it cannot be looked into", observed(), 0)
	kit.Must(t, os.Chmod(path+"/f", 0o755))
	kit.Want(t, "items under observation once it can", observed(), 1)
}

// TestEvents_I22_AnyErrorMayHaveLostSome: after any error of the kernel's
// watch, events may be missing.
func TestEvents_I22_AnyErrorMayHaveLostSome(t *testing.T) {
	for _, fault := range []error{fsnotify.ErrEventOverflow, unix.EIO} {
		w := &fsnotify.Watcher{Events: make(chan fsnotify.Event), Errors: make(chan error, 1)}
		c, done := make(chan Event), make(chan struct{})
		go forwardEvents(w, "/drop", c, done)
		w.Errors <- fault
		kit.Want(t, fmt.Sprintf("event after %v", fault), <-c, Event{Overflow: true})
		close(done)
	}
}
