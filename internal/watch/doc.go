// Package watch reports which folders, or which single files, of a drop folder changed and have settled, and what is not taken yet
// and why. A drop folder has items of one kind.
//
// Events are a hint, the rescan is the truth. A watcher whose events are lost, or that gets none, finds the same folders,
// only later. An item has settled when two scans of ours, at least Settle apart, saw the same state; an old mtime proves
// nothing.
//
// Memory and work are bounded. Only the drop folder itself is watched, not its
// sub-folders. Names are read in chunks, and at most MaxObserved items are under
// observation at a time. The watcher remembers at most 100,000 folders without a
// sidecar, in some 4 MiB for each drop folder. An item that cannot be taken is
// tried again at its own times and delays no other.
//
// The package changes nothing on disk, opens no file and follows no link. A drop folder that vanished, was replaced or is not
// mounted is paused; it is never seen as empty.
//
// Nothing is kept over a crash: a new watcher scans everything again and lets it settle once more. The caller can tell it since
// when each item was there (Config.FirstSeen).
//
// The package has more exported names than usual, because each reason for not taking a folder has one, for the pages that
// show it.
package watch
