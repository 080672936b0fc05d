package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Mode says how the watcher learns of changes between two rescans.
type Mode string

// The modes. With Auto and Events the watcher falls back to Poll where events do not work, and says so.
const (
	Auto   Mode = "auto"
	Events Mode = "events"
	Poll   Mode = "poll"
)

// Completeness says what shows that a folder is whole, beside its sidecar and the absence of temporary names.
type Completeness string

// Quiet: two equal scans at least Settle apart. List: Config.IsComplete says so. Marker: there is a ".done" file. With List and
// Marker a folder need not settle, except where there is no list ([ErrNoFileList]).
const (
	Quiet  Completeness = "quiet"
	List   Completeness = "list"
	Marker Completeness = "marker"
)

// Kind is the kind of the items of a drop folder: what lies directly in it and is taken.
type Kind string

// The kinds. A drop folder has one of them.
const (
	Folders Kind = "folders" // each with a sidecar
	Files   Kind = "files"   // single files, which settle alone
)

// Item is a folder, or in a drop folder of single files a file, that can be taken.
type Item struct {
	Name      string    // a direct child of the drop folder, byte for byte as on disk
	Scan      Scan      // the last one
	FirstSeen time.Time // when it was first seen
}

// ErrNoFileList is what IsComplete returns where no list says what belongs to the folder. The folder then settles as with
// [Quiet], and whoever takes it says what is wrong with it.
var ErrNoFileList = errors.New("nothing tells what belongs to the folder")

// Config is what a watcher of one drop folder needs. Zero values of Kind, Mode, Complete, MaxObserved and MaxTakes stand for their
// defaults.
type Config struct {
	Path        string
	Kind        Kind          // default Folders
	Settle      time.Duration // at least 1 ms
	Rescan      time.Duration // between two rescans; at least 1 ms
	Mode        Mode          // default Auto
	Complete    Completeness  // default Quiet
	Rules       Rules
	MaxObserved int // items under observation at once; default 10,000
	MaxTakes    int // items being taken at once, so that they share syncs of the directories above them; default 32

	// IsReserved reports the names directly in the drop folder that are vaultd's own. nil: none.
	IsReserved func(name string) bool

	// IsIgnored reports the names directly in the drop folder that are left
	// alone by a rule of the drop. nil: none.
	IsIgnored func(name string) bool

	// IsComplete is for List. It returns nil when all that belongs to the folder is there, else an error that says what is
	// missing, or ErrNoFileList where the sidecar makes no sense, because it is wrong or half written.
	//
	// With Files it is asked of each file that has settled; nil: every one is complete. A file that it says is not complete waits
	// until it did not change for ten times Settle. Then it is taken all the same, and whoever takes it says what is wrong with it.
	IsComplete func(ctx context.Context, root *os.Root, f Item) error

	// CheckDropFolder reports whether this is the right drop folder. It is
	// called when the folder is opened, also after a pause, and at each
	// RequestRescan. In between the watcher only checks that Path leads to the
	// same folder, so take has to check for itself. It may accept another
	// device or inode than the one seen first: a file system that was mounted
	// again. nil: only device and inode count.
	CheckDropFolder func() error

	// OnChange is called after each pass that may have changed the Snapshot. It must not block. nil: nobody listens.
	OnChange func()

	// FirstSeen says, by name, when the watcher before this one first saw what lies in the drop folder. It counts until the
	// first rescan has ended. nil: nothing is known.
	FirstSeen map[string]time.Time

	// OpenEvents starts to listen for changes directly in path. nil: the kernel's events.
	OpenEvents func(path string) (EventSource, error)
}

func (c Config) withDefaults() (Config, error) {
	c.Mode = cmp.Or(c.Mode, Auto)
	c.Complete = cmp.Or(c.Complete, Quiet)
	c.Kind = cmp.Or(c.Kind, Folders)
	if c.MaxObserved <= 0 {
		c.MaxObserved = 10_000
	}
	if c.MaxTakes <= 0 {
		c.MaxTakes = 32
	}
	if c.IsReserved == nil {
		c.IsReserved = func(string) bool { return false }
	}
	if c.IsIgnored == nil {
		c.IsIgnored = func(string) bool { return false }
	}
	if c.OnChange == nil {
		c.OnChange = func() {}
	}
	if c.OpenEvents == nil {
		c.OpenEvents = kernelEvents
	}
	c.Rules = c.Rules.withDefaults()
	switch {
	case c.Path == "" || c.Kind == Folders && c.Rules.Sidecar == "":
		return c, errors.New("watch: path or sidecar name missing")
	case c.Kind == Files && c.Complete != Quiet:
		return c, fmt.Errorf("watch %q: complete: %s is for folders", c.Path, c.Complete)
	case c.Settle < time.Millisecond || c.Rescan < time.Millisecond:
		return c, fmt.Errorf("watch %q: settle %v or rescan %v too short", c.Path, c.Settle, c.Rescan)
	case c.Complete == List && c.IsComplete == nil:
		return c, fmt.Errorf("watch %q: complete: list without a way to ask", c.Path)
	}
	return c, nil
}

// incompletePatience is how long a file that is not complete waits for its end, as a multiple of Settle.
const incompletePatience = 10

// scanInterval is the time between two scans of an item that is changing. In the worst case it adds to Settle.
func (c Config) scanInterval() time.Duration {
	return min(max(c.Settle/2, 10*time.Millisecond), 5*time.Second, c.Settle)
}
