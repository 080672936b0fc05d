package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

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
	restful(t, 3, func(b *bench, _ *atomic.Int64) {
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
	for age, want := range map[time.Duration]bool{time.Second: true, time.Hour: false} {
		b := newNoSidecarCache(10)
		b.beginRound(false)
		b.beginFullRead()
		b.noteNoSidecar("folder", dirState{ino: 2, ctime: time.Now().Add(-age)})
		kit.Want(t, fmt.Sprintf("a folder that changed %v ago is looked into again", age), b.needsFullRead, want)
	}
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
	s := &session{Watcher: w, root: root, events: make(chan Event), stop: func() {}, isLocal: true, rescans: rescanState{noSidecar: newNoSidecarCache(w.roundSize)}}
	now := time.Now()
	observed := func() int {
		t.Helper()
		now = now.Add(time.Minute)
		asNobody(t, func() { kit.Must(t, s.rescan(t.Context(), now, false)) })
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
