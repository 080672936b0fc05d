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

// dirState tells one state of a directory from any other: every name that comes or goes changes its ctime, which nobody can set back.
type dirState struct {
	ino          uint64
	mtime, ctime time.Time
}

func dirStateOf(info fs.FileInfo) dirState {
	st := info.Sys().(*syscall.Stat_t)
	return dirState{ino: st.Ino, mtime: info.ModTime(), ctime: time.Unix(st.Ctim.Unix())}
}

// coarse is how far apart two changes are at least that surely have different ctimes, on the coarsest file system.
const maxCtimeGrain = 3 * time.Second

// isOldEnough reports whether a change after now will surely be seen in s.
func (s dirState) isOldEnough(now time.Time) bool { return now.Sub(s.ctime) > maxCtimeGrain }

// noSidecarCache remembers the folders in which a rescan found no sidecar, and the state they were in: as long as that is the same, so is
// the answer, and nobody needs to open them again. It only saves work: what is not in it is looked at.
type noSidecarCache struct {
	seed           maphash.Seed
	states         map[uint64]uint64 // hashes of the name, and of the state; two names of one hash cost a look or a turn
	names          []byte            // as the last reading found them, each with a zero behind it: what same goes through
	listMark       uint64            // 0 or 1, in turn: which of them were listed is the last bit of the state's hash
	round          uint32
	roundSize      int       // in one round; beyond that they are looked at by turns
	groups         uint64    // how many rounds it takes to look at each
	namesTruncated bool      // not all names had room
	needsFullRead  bool      // the next round reads all: one of them was too young to tell, or is in doubt
	isComplete     bool      // nothing but what is in it, or under observation, can become a folder to take
	dropState      dirState  // of the drop folder when the last complete reading of it began, or later if only vaultd has changed it since
	lastFullRead   time.Time // when that reading began
}

const (
	maxRememberedFolders = 100_000 // remembered; beyond that each is opened at each rescan
	maxRememberedNames   = 4 << 20 // bytes of their names; beyond that the drop folder is read at each rescan
	maxCheckedPerRound   = 15_000  // looked at in a rescan; where there are more, they have their turns
)

// maxFullReadAge is how often a drop folder is read at least in which nobody but vaultd changes anything. What the kernel tells
// nobody of is found then.
const maxFullReadAge = 30 * time.Minute

func newNoSidecarCache(many int) noSidecarCache {
	return noSidecarCache{seed: maphash.MakeSeed(), states: map[uint64]uint64{}, roundSize: many}
}

func (b *noSidecarCache) hashName(name string) uint64 { return maphash.String(b.seed, name) }

// beginRound begins a round. It looks at each folder unless turns are worth it and allowed, which they are only while all is heard that
// the kernel has to tell: a sidecar that comes late is seen a few rescans later then, and nothing else is.
func (b *noSidecarCache) beginRound(turns bool) {
	b.round++
	b.groups = 1
	if turns && len(b.states) > b.roundSize {
		b.groups = uint64((len(b.states)-1)/b.roundSize) + 1
	}
}

// isSkipped reports whether it is not the turn of a folder: the hash tells which are looked at together.
func (b *noSidecarCache) isSkipped(key uint64) bool {
	return b.groups > 1 && key%b.groups != uint64(b.round)%b.groups
}

// stillHasNone reports whether the folder name in parent surely still has no sidecar, or has its turn in a later round.
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

// hashState is that of a folder's state, but for its last bit.
func (b *noSidecarCache) hashState(ino uint64, ctime int64) uint64 {
	return maphash.Comparable(b.seed, [2]uint64{ino, uint64(ctime)})
}

// isUnchanged reports whether the folder name in parent is still in the state of that hash.
func (b *noSidecarCache) isUnchanged(hash uint64, parent int, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && b.hashState(st.Ino, st.Ctim.Nano())|1 == hash|1
}

// noteNoSidecar remembers that a folder had no sidecar when it was in that state, unless it is too young to tell that later. It reports
// whether there was room for it.
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

// forgetFolder has the next round look at the folder name, whose turn it may not be.
func (b *noSidecarCache) forgetFolder(name string) {
	delete(b.states, b.hashName(name))
	b.needsFullRead = true
}

// beginFullRead is for a round that reads the whole drop folder.
func (b *noSidecarCache) beginFullRead() {
	b.names, b.namesTruncated, b.needsFullRead, b.listMark = b.names[:0], false, false, 1-b.listMark
}

// endFullRead ends a round that read the whole drop folder, which was in that state before. complete says that it left nothing open.
func (b *noSidecarCache) endFullRead(at dirState, now time.Time, complete bool) {
	for key, hash := range b.states {
		if hash&1 != b.listMark {
			delete(b.states, key)
		}
	}
	b.dropState, b.lastFullRead, b.isComplete = at, now, complete && !b.namesTruncated && at.isOldEnough(now)
}

// acceptOwnChange takes note that the drop folder, which is in that state now, was changed by vaultd alone since the last complete reading.
// It reports whether that is settled: right after a change another one might look the same, and the next round asks once more.
func (b *noSidecarCache) acceptOwnChange(at dirState, now time.Time) bool {
	if at.isOldEnough(now) {
		b.dropState = at
	}
	return b.dropState == at
}

// allUnchanged reports whether all of them surely still have no sidecar, as far as it is their turn.
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

// maxInsideChecked is how many names of a folder are asked whether they are invoice folders themselves.
const maxInsideChecked = 8

// findSidecar tells whether the folder name in parent has a sidecar, without looking further than needed, and else which name
// was probably meant to be one, or the sidecar of a folder inside, and in what state it was. It is a hint: only a look counts.
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
	for seen := 0; seen < r.MaxEntries; {
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
