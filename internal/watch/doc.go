// Package watch says which folders of a drop folder changed and have settled, and what is not taken yet and why.
//
// Events are a hint, the rescan is the truth: a watcher whose events are lost, dead or impossible finds the same folders,
// only later. A folder has settled when two looks of ours, at least Settle apart, saw the same; an old mtime proves nothing.
// Only the drop folder itself is watched, names are read in chunks, and at most Max folders are under observation at a
// time. What is remembered of folders without a sidecar ends at 100,000 for each drop folder: about 60 bytes for each and 4 MiB
// for all their names, in all some 10 MiB. A folder that cannot be taken waits for its own next turn and delays no other.
//
// It never changes anything on disk, never opens a file and never follows a link. A drop folder that vanished, was
// replaced or unmounted is paused, never seen as empty.
//
// Nothing here is kept over a crash: a new watcher looks at everything afresh and settles it once more. Since when a thing lies
// there it can be told (Config.FirstSeen).
//
// The exported names are more than usual because every reason for not taking a folder is one, for the pages that show them.
package watch

import (
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

// Completeness says what tells that a folder is whole, beside its sidecar and the absence of temporary names.
type Completeness string

// Quiet asks for two equal looks at least Settle apart. List asks Config.IsComplete, Marker for a ".done" file; both then need no settling, unless nothing tells (ErrNoFileList).
const (
	Quiet  Completeness = "quiet"
	List   Completeness = "list"
	Marker Completeness = "marker"
)

// Folder is a folder that can be taken.
type Folder struct {
	Name      string    // a direct child of the drop folder, byte for byte as on disk
	Scan      Scan      // what the last look saw
	FirstSeen time.Time // when it was first seen
}

// ErrNoFileList is IsComplete's where nothing tells what belongs to the folder: then it settles, as with Quiet, and whoever takes
// it says what is wrong with it.
var ErrNoFileList = errors.New("nothing tells what belongs to the folder")

// Config is what a watcher of one drop folder needs. Zero values of Mode, Complete, Max and Parallel stand for their defaults.
type Config struct {
	Path     string
	Settle   time.Duration // at least 1 ms
	Rescan   time.Duration // at least 1 ms
	Mode     Mode          // default Auto
	Complete Completeness  // default Quiet
	Rules    Rules
	Max      int // folders under observation at once; default 10,000
	Parallel int // folders being taken at once, so that they share syncs of the directories above them; default 32

	// Reserved tells names directly in the drop folder that are not people's. nil: none.
	Reserved func(name string) bool

	// IsComplete tells for List whether all that belongs to the folder is there; its error says what is missing. Where
	// nothing tells that (a sidecar that makes no sense, because it is wrong or half written) it is ErrNoFileList.
	IsComplete func(ctx context.Context, root *os.Root, f Folder) error

	// Check is asked, at least before each rescan, whether this is still the right drop folder. It may accept another
	// device or inode than the one seen first: a file system that was mounted again. nil: only device and inode count.
	Check func() error

	// OnChange is told after every pass that may have changed the Snapshot; it must not block. nil: nobody listens.
	OnChange func()

	// FirstSeen says since when what lies in the drop folder was seen by the watcher before this one, by name. It counts until the
	// first rescan has ended. nil: nothing is known.
	FirstSeen map[string]time.Time

	// OpenEvents starts to listen for changes directly in path. nil: the kernel's.
	OpenEvents func(path string) (EventSource, error)
}

func (c Config) withDefaults() (Config, error) {
	if c.Mode == "" {
		c.Mode = Auto
	}
	if c.Complete == "" {
		c.Complete = Quiet
	}
	if c.Max <= 0 {
		c.Max = 10_000
	}
	if c.Parallel <= 0 {
		c.Parallel = 32
	}
	if c.Reserved == nil {
		c.Reserved = func(string) bool { return false }
	}
	if c.OnChange == nil {
		c.OnChange = func() {}
	}
	if c.OpenEvents == nil {
		c.OpenEvents = kernelEvents
	}
	c.Rules = c.Rules.withDefaults()
	switch {
	case c.Path == "" || c.Rules.Sidecar == "":
		return c, errors.New("watch: path or sidecar name missing")
	case c.Settle < time.Millisecond || c.Rescan < time.Millisecond:
		return c, fmt.Errorf("watch %q: settle %v or rescan %v too short", c.Path, c.Settle, c.Rescan)
	case c.Complete == List && c.IsComplete == nil:
		return c, fmt.Errorf("watch %q: complete: list without a way to ask", c.Path)
	}
	return c, nil
}

// scanInterval is how often a folder that is changing is looked at: what it adds to Settle in the worst case.
func (c Config) scanInterval() time.Duration {
	return min(max(c.Settle/2, 10*time.Millisecond), 5*time.Second, c.Settle)
}
