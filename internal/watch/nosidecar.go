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

// state tells one state of a directory from any other: every name that comes or goes changes its ctime, which nobody can set back.
type state struct {
	ino          uint64
	mtime, ctime time.Time
}

func stateOf(info fs.FileInfo) state {
	st := info.Sys().(*syscall.Stat_t)
	return state{ino: st.Ino, mtime: info.ModTime(), ctime: time.Unix(st.Ctim.Unix())}
}

// coarse is how far apart two changes are at least that surely have different ctimes, on the coarsest file system.
const coarse = 3 * time.Second

// tells reports whether a change after now will surely be seen in s.
func (s state) tells(now time.Time) bool { return now.Sub(s.ctime) > coarse }

// bare remembers the folders in which a rescan found no sidecar, and the state they were in: as long as that is the same, so is
// the answer, and nobody needs to open them again. It only saves work: what is not in it is looked at.
type bare struct {
	seed     maphash.Seed
	folders  map[uint64]uint64 // hashes of the name, and of the state; two names of one hash cost a look or a turn
	names    []byte            // as the last reading found them, each with a zero behind it: what same goes through
	reading  uint64            // 0 or 1, in turn: which of them were listed is the last bit of the state's hash
	rounds   uint32
	many     int       // in one round; beyond that they are looked at by turns
	turns    uint64    // how many rounds it takes to look at each
	cut      bool      // not all names had room
	owed     bool      // the next round reads all: one of them was too young to tell, or is in doubt
	complete bool      // nothing but what is in it, or under observation, can become a folder to take
	at       state     // of the drop folder when the last complete reading of it began, or later if only vaultd has changed it since
	whole    time.Time // when that reading began
}

const (
	mostBare  = 100_000 // remembered; beyond that each is opened at each rescan
	mostNames = 4 << 20 // bytes of their names; beyond that the drop folder is read at each rescan
	manyBare  = 15_000  // looked at in a rescan; where there are more, they have their turns
)

// wholeAtLeast is how often a drop folder is read at least in which nobody but vaultd changes anything. What the kernel tells
// nobody of is found then.
const wholeAtLeast = 30 * time.Minute

func newBare(many int) bare {
	return bare{seed: maphash.MakeSeed(), folders: map[uint64]uint64{}, many: many}
}

func (b *bare) key(name string) uint64 { return maphash.String(b.seed, name) }

// next begins a round. It looks at each folder unless turns are worth it and allowed, which they are only while all is heard that
// the kernel has to tell: a sidecar that comes late is seen a few rescans later then, and nothing else is.
func (b *bare) next(turns bool) {
	b.rounds++
	b.turns = 1
	if turns && len(b.folders) > b.many {
		b.turns = uint64((len(b.folders)-1)/b.many) + 1
	}
}

// skips reports whether it is not the turn of a folder: the hash tells which are looked at together.
func (b *bare) skips(key uint64) bool { return b.turns > 1 && key%b.turns != uint64(b.rounds)%b.turns }

// has reports whether the folder name in parent surely still has no sidecar, or has its turn in a later round.
func (b *bare) has(parent *os.File, name string) bool {
	key := b.key(name)
	hash, ok := b.folders[key]
	if !ok || !b.skips(key) && !b.holds(hash, int(parent.Fd()), name) {
		return false
	}
	b.put(key, name, hash)
	return true
}

func (b *bare) put(key uint64, name string, hash uint64) {
	b.folders[key] = hash&^1 | b.reading
	if len(b.names)+len(name) >= mostNames {
		b.cut = true
		return
	}
	b.names = append(append(b.names, name...), 0)
}

// hash is that of a folder's state, but for its last bit.
func (b *bare) hash(ino uint64, ctime int64) uint64 {
	return maphash.Comparable(b.seed, [2]uint64{ino, uint64(ctime)})
}

// holds reports whether the folder name in parent is still in the state of that hash.
func (b *bare) holds(hash uint64, parent int, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && b.hash(st.Ino, st.Ctim.Nano())|1 == hash|1
}

// note remembers that a folder had no sidecar when it was in that state, unless it is too young to tell that later. It reports
// whether there was room for it.
func (b *bare) note(name string, at state) bool {
	key := b.key(name)
	if _, had := b.folders[key]; !had && len(b.folders) >= mostBare {
		return false
	}
	if !at.tells(time.Now()) {
		b.owed = true
		return true
	}
	b.put(key, name, b.hash(at.ino, at.ctime.UnixNano()))
	return true
}

// doubt has the next round look at the folder name, whose turn it may not be.
func (b *bare) doubt(name string) {
	delete(b.folders, b.key(name))
	b.owed = true
}

// begin is for a round that reads the whole drop folder.
func (b *bare) begin() { b.names, b.cut, b.owed, b.reading = b.names[:0], false, false, 1-b.reading }

// read ends a round that read the whole drop folder, which was in that state before. complete says that it left nothing open.
func (b *bare) read(at state, now time.Time, complete bool) {
	for key, hash := range b.folders {
		if hash&1 != b.reading {
			delete(b.folders, key)
		}
	}
	b.at, b.whole, b.complete = at, now, complete && !b.cut && at.tells(now)
}

// ours takes note that the drop folder, which is in that state now, was changed by vaultd alone since the last complete reading.
// It reports whether that is settled: right after a change another one might look the same, and the next round asks once more.
func (b *bare) ours(at state, now time.Time) bool {
	if at.tells(now) {
		b.at = at
	}
	return b.at == at
}

// same reports whether all of them surely still have no sidecar, as far as it is their turn.
func (b *bare) same(root *os.Root) bool {
	if b.owed {
		return false
	}
	dir, err := root.Open(".")
	if err != nil {
		return false
	}
	defer dir.Close() // read-only
	for names := b.names; len(names) > 0; {
		n := bytes.IndexByte(names, 0)
		if key := maphash.Bytes(b.seed, names[:n]); !b.skips(key) {
			if hash, ok := b.folders[key]; !ok || !b.holds(hash, int(dir.Fd()), string(names[:n])) {
				return false
			}
		}
		names = names[n+1:]
	}
	return true
}

// mostInside is how many names of a folder are asked whether they are invoice folders themselves.
const mostInside = 8

// sidecarIn tells whether the folder name in parent has a sidecar, without looking further than needed, and else which name
// was probably meant to be one, or the sidecar of a folder inside, and in what state it was. It is a hint: only a look counts.
func (r Rules) sidecarIn(parent *os.File, name string) (has bool, near string, at state, err error) {
	if r.exactSidecar(parent, name) {
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
	at = stateOf(info)
	inside, asked := "", 0
	for seen := 0; seen < r.MaxEntries; {
		names, err := dir.Readdirnames(chunk)
		seen += len(names)
		for _, n := range names {
			if strings.EqualFold(n, r.Sidecar) {
				return true, "", at, nil
			}
			if near == "" && r.near(n) {
				near = n
			}
			if asked++; inside == "" && asked <= mostInside && r.exactSidecar(dir, n) {
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
