package watch

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// Event is a hint that something changed.
type Event struct {
	Name     string // directly in the drop folder; empty: the drop folder itself
	IsOther  bool   // false: the name appeared or its rights changed; true: something else happened to it
	Overflow bool   // events were lost
	Dead     error  // not nil: no more events will come, and why
}

// EventSource delivers events on C until Stop is called, which ends its goroutine and waits for it. C need not be closed.
type EventSource struct {
	C    <-chan Event
	Stop func()
}

// errEventsEnded is for a source that closed its channel without an event that says why.
var errEventsEnded = errors.New("the source of events ended")

// kernelEvents listens with inotify.
func kernelEvents(path string) (EventSource, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return EventSource{}, explainLimit(err)
	}
	if err := w.Add(path); err != nil {
		return EventSource{}, errors.Join(explainLimit(err), w.Close())
	}
	// The buffer collects events while a pass runs, so that a burst is handled in few passes.
	c, done := make(chan Event, maxEventsPerPass), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { forwardEvents(w, filepath.Clean(path), c, done) })
	return EventSource{C: c, Stop: func() {
		close(done)
		_ = w.Close() // nothing was written
		wg.Wait()
	}}, nil
}

// forwardEvents translates the kernel's events until done is closed or no more will come.
func forwardEvents(w *fsnotify.Watcher, path string, c chan<- Event, done <-chan struct{}) {
	for {
		var out Event
		select {
		case <-done:
			return
		case e, ok := <-w.Events:
			switch {
			case !ok:
				out.Dead = errors.New("the kernel ended the watch")
			case e.Name == path && e.Has(fsnotify.Remove|fsnotify.Rename):
				out.Dead = errors.New("the watched folder was moved or removed")
			case e.Name != path:
				out.Name, out.IsOther = filepath.Base(e.Name), !e.Has(fsnotify.Create|fsnotify.Chmod)
			}
		case err, ok := <-w.Errors:
			// ErrEventOverflow or another error: events may be lost after any of them.
			_ = err
			out.Overflow = ok
			if !ok {
				out.Dead = errors.New("the kernel ended the watch")
			}
		}
		select {
		case c <- out:
		case <-done:
			return
		}
		if out.Dead != nil {
			return
		}
	}
}

// explainLimit names the kernel's limit that an error of inotify means.
func explainLimit(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the limit fs.inotify.max_user_watches is reached: %w", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("the limit fs.inotify.max_user_instances is reached: %w", err)
	}
	return err
}

// networkFileSystems names the file systems where other machines change things without local events, or events are not to be relied on.
var networkFileSystems = map[uint32]string{
	unix.NFS_SUPER_MAGIC: "nfs", unix.CIFS_SUPER_MAGIC: "cifs", unix.SMB2_SUPER_MAGIC: "smb", unix.SMB_SUPER_MAGIC: "smb",
	unix.FUSE_SUPER_MAGIC: "fuse", unix.V9FS_MAGIC: "9p", unix.CEPH_SUPER_MAGIC: "ceph", unix.AFS_SUPER_MAGIC: "afs",
	unix.AFS_FS_MAGIC: "afs", unix.CODA_SUPER_MAGIC: "coda", unix.NCP_SUPER_MAGIC: "ncp", unix.OCFS2_SUPER_MAGIC: "ocfs2",
	0x47504653: "gpfs", 0x01161970: "gfs2", 0x0BD00BD0: "lustre", 0x19830326: "beegfs", 0x786f4256: "vboxsf", 0xBACBACBC: "vmhgfs",
}

// networkFileSystem returns the name of the network file system that path lies on. It is empty for a local one.
func networkFileSystem(path string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "", err
	}
	return networkFileSystems[uint32(st.Type)], nil
}
