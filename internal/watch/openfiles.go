package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"vaultd/internal/durable"
)

// OpenFiles knows which files programs have opened for writing and not closed
// since, in folders that it watches. It is for vaultd without the right to ask
// the kernel: what was opened before its folder was first scanned, and not
// written to since, it does not know.
//
// Its events are read when it is asked and at each scan, so it needs no
// goroutine. When the kernel drops some, nothing counts as open that was seen
// before. A nil *OpenFiles watches nothing.
type OpenFiles struct {
	mu      sync.Mutex
	fd      int                      // of inotify; it is closed when nobody has the OpenFiles any more
	buf     []byte                   // of readEvents; guarded by mu
	folders map[int32]*watchedFolder // by watch; guarded by mu
	watches map[node]int32           // guarded by mu
	oldest  []int32                  // the watches in the order in which they began; guarded by mu
	moving  map[uint32]openState     // files whose old name was left, by the cookie of the new one; guarded by mu
}

type node struct{ dev, ino uint64 }

// watchedFolder is one watched folder.
type watchedFolder struct {
	node  node
	files map[string]openState // by name
}

// openState is what is known of one file.
type openState int

const (
	isClosed  openState = iota // as far as is known
	isMade                     // and not opened since, as a hard link
	isOpened                   // by whoever made it
	isWritten                  // and not closed since
)

// maxWatched bounds the folders that are watched at once; the oldest gives way.
// The kernel needs about one kilobyte for each.
const maxWatched = 4096

// NewOpenFiles begins to watch nothing. It returns nil where the kernel has no
// room for another watcher.
func NewOpenFiles() *OpenFiles {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	o := &OpenFiles{fd: fd, buf: make([]byte, 64<<10), folders: map[int32]*watchedFolder{}, watches: map[node]int32{}, moving: map[uint32]openState{}}
	runtime.AddCleanup(o, func(fd int) { _ = unix.Close(fd) }, fd) // still unwritten
	return o
}

// watchFolder watches an open folder from now on.
func (o *OpenFiles) watchFolder(dir *os.File) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readEvents()
	st, err := durable.Fstat(dir)
	id := st.ID()
	at := node{id.Dev, id.Ino} // a folder that changes stays the same
	if _, known := o.watches[at]; err != nil || known {
		return
	}
	raw, err := dir.SyscallConn()
	if err != nil {
		return
	}
	var watch int
	// By its descriptor, so that no link in the path can lead elsewhere.
	ctlErr := raw.Control(func(fd uintptr) {
		watch, err = unix.InotifyAddWatch(o.fd, fmt.Sprintf("/proc/self/fd/%d", fd), unix.IN_ONLYDIR|unix.IN_CREATE|unix.IN_OPEN|unix.IN_MODIFY|
			unix.IN_CLOSE|unix.IN_MOVE|unix.IN_DELETE)
	})
	if errors.Join(err, ctlErr) != nil {
		return // the kernel's limit: quiet time alone counts there
	}
	o.watches[at], o.folders[int32(watch)] = int32(watch), &watchedFolder{node: at, files: map[string]openState{}}
	if o.oldest = append(o.oldest, int32(watch)); len(o.watches) > maxWatched {
		o.forget(o.oldest[0])
		o.oldest = o.oldest[1:]
	}
}

// forget ends a watch.
func (o *OpenFiles) forget(watch int32) {
	if f := o.folders[watch]; f != nil {
		_, _ = unix.InotifyRmWatch(o.fd, uint32(watch)) // it ends by itself where the folder is gone
		delete(o.watches, f.node)
		delete(o.folders, watch)
	}
}

// FindOpen returns the path of an open file in the folder or single file name
// in root, relative to root; empty: none is known.
func (o *OpenFiles) FindOpen(root *os.Root, name string, isJunk func(string) bool) string {
	if o == nil {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readEvents()
	if o.stateOf(root, name) >= isOpened {
		return name
	}
	open := ""
	// What cannot be read is found by the scan.
	_ = durable.Walk(root, name, maxWatched, func(rel string, e fs.DirEntry) error {
		switch {
		case isJunk(e.Name()):
			return fs.SkipDir
		case !e.IsDir() && o.stateOf(root, rel) >= isOpened:
			open = rel
			return fs.SkipAll
		}
		return nil
	})
	return open
}

// stateOf returns what is known of the file at rel.
func (o *OpenFiles) stateOf(root *os.Root, rel string) openState {
	info, err := root.Lstat(path.Dir(rel))
	if err != nil {
		return isClosed
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return isClosed
	}
	f := o.folders[o.watches[node{st.Dev, st.Ino}]]
	if f == nil {
		return isClosed
	}
	return f.files[path.Base(rel)]
}

// readEvents takes in what has happened since.
func (o *OpenFiles) readEvents() {
	for {
		n, err := unix.Read(o.fd, o.buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n < unix.SizeofInotifyEvent {
			return
		}
		for rest := o.buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			watch, mask := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:])
			cookie, length := binary.NativeEndian.Uint32(rest[8:]), int(binary.NativeEndian.Uint32(rest[12:]))
			name := strings.TrimRight(string(rest[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+length]), "\x00")
			rest = rest[unix.SizeofInotifyEvent+length:]
			o.handleEvent(watch, mask, cookie, name)
		}
	}
}

func (o *OpenFiles) handleEvent(watch int32, mask, cookie uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 { // a close may be among what was lost
		for _, f := range o.folders {
			clear(f.files)
		}
		return
	}
	f := o.folders[watch]
	switch {
	case f == nil:
		return
	case mask&unix.IN_IGNORED != 0:
		o.forget(watch)
		return
	case name == "" || mask&unix.IN_ISDIR != 0:
		return
	}
	now := f.files[name]
	switch {
	case mask&unix.IN_MOVED_TO != 0:
		now = o.moving[cookie]
		delete(o.moving, cookie)
	case mask&unix.IN_MOVED_FROM != 0:
		if len(o.moving) >= maxWatched { // moved out of what is watched
			clear(o.moving)
		}
		if now != isClosed {
			o.moving[cookie] = now
		}
		now = isClosed
	case mask&unix.IN_CREATE != 0:
		now = isMade
	case mask&unix.IN_OPEN != 0 && now == isMade:
		now = isOpened
	case mask&unix.IN_MODIFY != 0:
		now = isWritten
	case mask&(unix.IN_CLOSE_WRITE|unix.IN_DELETE) != 0, mask&unix.IN_CLOSE_NOWRITE != 0 && now == isOpened:
		now = isClosed
	}
	if delete(f.files, name); now != isClosed {
		f.files[name] = now
	}
}
