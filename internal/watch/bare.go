package watch

import (
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
	folders  map[string]marks
	rounds   uint32
	all      bool  // this round looks at each
	complete bool  // nothing but what is in it, or under observation, can become a folder to take
	at       state // of the drop folder when the last complete reading of it began
}

// marks say in what state a folder without a sidecar was.
type marks struct {
	ino    uint64
	ctime  int64  // 0: it was too young to tell
	listed uint32 // the round that listed it last
	odd    bool   // its turn is in odd rounds
}

const (
	mostBare = 100_000 // remembered; beyond that each is opened at each rescan
	manyBare = 10_000  // beyond that half of them are looked at by turns, and so each within two rescans
)

// next begins a round.
func (b *bare) next(all bool) {
	if b.folders == nil {
		b.folders = map[string]marks{}
	}
	b.rounds++
	b.all = all || len(b.folders) <= manyBare
}

// skips reports whether it is not the turn of a folder.
func (b *bare) skips(m marks) bool { return !b.all && m.odd != (b.rounds%2 == 1) }

// has reports whether the folder name in parent surely still has no sidecar.
func (b *bare) has(parent *os.File, name string) bool {
	m, ok := b.folders[name]
	if !ok || m.ctime == 0 || !b.skips(m) && !m.hold(int(parent.Fd()), name) {
		return false
	}
	m.listed = b.rounds
	b.folders[name] = m
	return true
}

func (m marks) hold(parent int, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Ino == m.ino && st.Ctim.Nano() == m.ctime
}

// note remembers that a folder had no sidecar when it was in that state. It reports whether there was room for it.
func (b *bare) note(name string, at state) bool {
	if _, had := b.folders[name]; !had && len(b.folders) >= mostBare {
		return false
	}
	m := marks{ino: at.ino, listed: b.rounds, odd: len(b.folders)%2 == 1}
	if at.tells(time.Now()) {
		m.ctime = at.ctime.UnixNano()
	}
	b.folders[name] = m
	return true
}

// read ends a round that read the whole drop folder, which was in that state before. complete says that it left nothing open.
func (b *bare) read(at state, now time.Time, complete bool) {
	for name, m := range b.folders {
		if m.listed != b.rounds {
			delete(b.folders, name)
		}
	}
	b.at, b.complete = at, complete && at.tells(now)
}

// same reports whether all of them surely still have no sidecar.
func (b *bare) same(root *os.Root) bool {
	dir, err := root.Open(".")
	if err != nil {
		return false
	}
	defer dir.Close() // read-only
	for name, m := range b.folders {
		if m.ctime == 0 || !b.skips(m) && !m.hold(int(dir.Fd()), name) {
			return false
		}
	}
	return true
}

// sidecarIn tells whether the folder name in parent has a sidecar, without looking further than needed, and else which name
// was probably meant to be one and in what state it was. It is a hint: only a look counts.
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
		}
		if err == io.EOF || (err == nil && len(names) == 0) {
			break
		}
		if err != nil {
			return false, "", at, &os.PathError{Op: "look at", Path: name, Err: err}
		}
	}
	return false, near, at, nil
}
