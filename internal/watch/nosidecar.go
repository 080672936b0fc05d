package watch

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dirState distinguishes the states of a directory. Every name that comes or goes changes its ctime, which nobody can set back.
type dirState struct {
	ino          uint64
	mtime, ctime time.Time
}

func dirStateOf(info fs.FileInfo) dirState {
	st := info.Sys().(*syscall.Stat_t)
	return dirState{ino: st.Ino, mtime: info.ModTime(), ctime: time.Unix(st.Ctim.Unix())}
}

// maxCtimeGrain is a time after which a second change surely has another ctime, on the coarsest file system.
const maxCtimeGrain = 3 * time.Second

// isOldEnough reports whether a change after now will surely give another state than s.
func (s dirState) isOldEnough(now time.Time) bool { return now.Sub(s.ctime) > maxCtimeGrain }

// noSidecarCache remembers the folders in which a rescan found no sidecar, and their states. While a state is the same the answer
// is the same, and the folder need not be opened again. The cache only saves work: a folder that is not in it is opened.
type noSidecarCache struct {
	seed      maphash.Seed
	states    map[uint64]uint64 // hash of the name: hash of the state; two names with one hash cost some work, no correctness
	names     []byte            // those of the last full read, each with a zero behind it; allUnchanged goes through them
	listMark  uint64            // 0 or 1, in turn: the last bit of a state's hash tells in which full read it was listed
	round     uint32
	roundSize int    // with more folders than this, a round looks at one group of them
	groups    uint64 // how many rounds it takes to look at each folder

	namesTruncated bool      // not all names had room
	needsFullRead  bool      // a folder was too young to tell, or is in doubt: the next round reads all
	isComplete     bool      // only the folders in the cache, or under observation, can become folders to take
	dropState      dirState  // of the drop folder when the last complete read began, or later if only vaultd changed it since
	lastFullRead   time.Time // when that read began
}

const (
	maxRememberedFolders = 100_000 // each folder beyond that is opened at each rescan
	maxRememberedNames   = 4 << 20 // bytes; with more the drop folder is read at each rescan
	maxCheckedPerRound   = 15_000  // with more folders each round looks at one group of them
)

// maxFullReadAge bounds how long a drop folder in which only vaultd changes anything is not read. A full read finds changes that
// the kernel does not report.
const maxFullReadAge = 30 * time.Minute

func newNoSidecarCache(many int) noSidecarCache {
	return noSidecarCache{seed: maphash.MakeSeed(), states: map[uint64]uint64{}, roundSize: many}
}

func (b *noSidecarCache) hashName(name string) uint64 { return maphash.String(b.seed, name) }

// beginRound begins a round. It looks at every folder, unless there are many and grouping is allowed. Grouping is allowed only
// while all of the kernel's events arrive: then only a sidecar that comes late is seen a few rescans later.
func (b *noSidecarCache) beginRound(mayGroup bool) {
	b.round++
	b.groups = 1
	if mayGroup && len(b.states) > b.roundSize {
		b.groups = uint64((len(b.states)-1)/b.roundSize) + 1
	}
}

// isSkipped reports whether a folder belongs to another group than that of this round. The hash of its name chooses the group.
func (b *noSidecarCache) isSkipped(key uint64) bool {
	return b.groups > 1 && key%b.groups != uint64(b.round)%b.groups
}

// stillHasNone reports whether the folder name in parent surely still has no sidecar, or is looked at in a later round.
func (b *noSidecarCache) stillHasNone(parent *os.File, name string) bool {
	key := b.hashName(name)
	hash, ok := b.states[key]
	if !ok || !b.isSkipped(key) && !b.isUnchanged(hash, int(parent.Fd()), name) {
		return false
	}
	b.remember(key, name, hash)
	return true
}

func (b *noSidecarCache) remember(key uint64, name string, hash uint64) {
	b.states[key] = hash&^1 | b.listMark
	if len(b.names)+len(name) >= maxRememberedNames {
		b.namesTruncated = true
		return
	}
	b.names = append(append(b.names, name...), 0)
}

// hashState hashes the state of a folder. The last bit is free for listMark.
func (b *noSidecarCache) hashState(ino uint64, ctime int64) uint64 {
	return maphash.Comparable(b.seed, [2]uint64{ino, uint64(ctime)})
}

// isUnchanged reports whether the folder name in parent is still in the state with that hash.
func (b *noSidecarCache) isUnchanged(hash uint64, parent int, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && b.hashState(st.Ino, st.Ctim.Nano())|1 == hash|1
}

// noteNoSidecar remembers that a folder in that state has no sidecar. A state that is too young is not remembered: a change
// right after it could give the same one. It reports whether there was room.
func (b *noSidecarCache) noteNoSidecar(name string, at dirState) bool {
	key := b.hashName(name)
	if _, had := b.states[key]; !had && len(b.states) >= maxRememberedFolders {
		return false
	}
	if !at.isOldEnough(time.Now()) {
		b.needsFullRead = true
		return true
	}
	b.remember(key, name, b.hashState(at.ino, at.ctime.UnixNano()))
	return true
}

// forgetFolder makes the next round open the folder name, whatever its group.
func (b *noSidecarCache) forgetFolder(name string) {
	delete(b.states, b.hashName(name))
	b.needsFullRead = true
}

// beginFullRead is called before the whole drop folder is read.
func (b *noSidecarCache) beginFullRead() {
	b.names, b.namesTruncated, b.needsFullRead, b.listMark = b.names[:0], false, false, 1-b.listMark
}

// endFullRead is called after the whole drop folder was read. at is its state before. complete says that every folder was looked at.
func (b *noSidecarCache) endFullRead(at dirState, now time.Time, complete bool) {
	for key, hash := range b.states {
		if hash&1 != b.listMark {
			// It was not listed, so it is gone or has a sidecar.
			delete(b.states, key)
		}
	}
	b.dropState, b.lastFullRead, b.isComplete = at, now, complete && !b.namesTruncated && at.isOldEnough(now)
}

// acceptOwnChange records that only vaultd changed the drop folder since the last full read; at is its present state. It
// reports whether that is certain. Right after a change a second one could give the same state, so the next round asks again.
func (b *noSidecarCache) acceptOwnChange(at dirState, now time.Time) bool {
	if at.isOldEnough(now) {
		b.dropState = at
	}
	return b.dropState == at
}

// allUnchanged reports whether all folders of this round surely still have no sidecar.
func (b *noSidecarCache) allUnchanged(root *os.Root) bool {
	if b.needsFullRead {
		return false
	}
	dir, err := root.Open(".")
	if err != nil {
		return false
	}
	defer dir.Close() // read-only
	for names := b.names; len(names) > 0; {
		n := bytes.IndexByte(names, 0)
		if key := maphash.Bytes(b.seed, names[:n]); !b.isSkipped(key) {
			if hash, ok := b.states[key]; !ok || !b.isUnchanged(hash, int(dir.Fd()), string(names[:n])) {
				return false
			}
		}
		names = names[n+1:]
	}
	return true
}

// maxInsideChecked is how many names in a folder are checked for being invoice folders themselves.
const maxInsideChecked = 8

// findSidecar reports whether the folder name in parent has a sidecar, and reads no further than needed for that. If it has
// none, near is the name that was probably meant to be one, or the sidecar of a folder inside, and at is the state of the folder.
// The answer is a hint: only a scan decides.
func (r Rules) findSidecar(parent *os.File, name string) (has bool, near string, at dirState, err error) {
	if r.hasExactSidecar(parent, name) {
		return true, "", at, nil
	}
	dir, err := openFolder(parent, name)
	if err != nil {
		return false, "", at, err
	}
	defer dir.Close() // read-only
	info, err := dir.Stat()
	if err != nil {
		return false, "", at, err
	}
	at = dirStateOf(info)
	inside, asked := "", 0
	for seen := 0; seen < r.maxEntries; {
		names, err := dir.Readdirnames(namesPerRead)
		seen += len(names)
		for _, n := range names {
			if strings.EqualFold(n, r.Sidecar) {
				return true, "", at, nil
			}
			if near == "" && r.isNearSidecar(n) {
				near = n
			}
			if asked++; inside == "" && asked <= maxInsideChecked && r.hasExactSidecar(dir, n) {
				inside = n + "/" + r.Sidecar
			}
		}
		if err == io.EOF || (err == nil && len(names) == 0) {
			break
		}
		if err != nil {
			return false, "", at, &os.PathError{Op: "look at", Path: name, Err: err}
		}
	}
	return false, cmp.Or(near, inside), at, nil
}
