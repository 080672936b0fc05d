package campaign

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// power knows how to take back what was never synced. It is told of each call before it happens, and it knows from the
// calls what a disk may have lost: what was written into a file since its last sync, and each name that was made,
// changed or removed since the last sync of its directory. Only the calls of trapped processes are known to it, so that
// whatever others did counts as safe.
type power struct {
	aside string // a directory on the same file system, for what was removed and may come back
	n     int
	loose []change // in the order in which they happened
	lost  int      // changes that cuts took back
}

// node is a file's identity.
type node struct{ dev, ino uint64 }

// change is something that is not safe yet: content of a file, or a name in a directory.
type change struct {
	file node              // content: the file that is to be synced
	dir  node              // a name: the directory that is to be synced
	back func(keep []span) // takes it back; keep are the parts of the file that stay as they were written later
	span span
}

type span struct{ from, to int64 }

func nodeOf(path string) (n node, mode uint32, size int64) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return node{}, 0, 0
	}
	return node{st.Dev, st.Ino}, st.Mode & unix.S_IFMT, st.Size
}

// before is told of a call. It reports true where it has carried the call out itself.
func (w *power) before(p point) bool {
	if w == nil || p.name == "" || strings.HasSuffix(p.name, "connection") {
		return false
	}
	switch p.nr {
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		w.synced(p.path)
	case unix.SYS_PWRITE64:
		w.written(p.path, int64(p.args[3]), int64(p.args[2]))
	case unix.SYS_WRITE, unix.SYS_SENDFILE, unix.SYS_COPY_FILE_RANGE:
		w.written(p.path, -1, 0)
	case unix.SYS_FTRUNCATE:
		w.written(p.path, int64(p.args[1]), 0)
	case unix.SYS_OPENAT:
		if n, _, _ := nodeOf(p.path); n == (node{}) {
			w.made(p.path, unix.Unlink)
		} else if p.args[2]&unix.O_TRUNC != 0 {
			w.written(p.path, 0, 0)
		}
	case unix.SYS_MKDIRAT:
		if n, _, _ := nodeOf(p.path); n == (node{}) {
			w.made(p.path, unix.Rmdir)
		}
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		w.renamed(p)
	case unix.SYS_UNLINKAT:
		return w.removed(p)
	}
	return false
}

// synced makes safe what the sync of path covers.
func (w *power) synced(path string) {
	n, _, _ := nodeOf(path)
	if n == (node{}) {
		return
	}
	var left []change
	for _, c := range w.loose {
		if c.file != n && c.dir != n {
			left = append(left, c)
		}
	}
	w.loose = left
}

// written remembers what stands in a file where something else is about to be written: n bytes at off, or, with n 0,
// everything from off on; off -1: from the end on, which is where the program writes that does not say where.
func (w *power) written(path string, off, n int64) {
	file, mode, size := nodeOf(path)
	if mode != unix.S_IFREG {
		return
	}
	if off < 0 {
		off = size
	}
	if n == 0 {
		n = max(size-off, 0)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	old := make([]byte, n)
	got, _ := f.ReadAt(old, off) // beyond its end there is nothing to remember
	w.loose = append(w.loose, change{file: file, span: span{off, off + n}, back: func(keep []span) {
		for _, k := range keep {
			size = max(size, k.to)
		}
		_, err := f.WriteAt(old[:got], off)
		if errors.Join(err, f.Truncate(size)) == nil {
			w.lost++
		}
	}})
}

// made remembers a name that is about to be made.
func (w *power) made(path string, unmake func(string) error) {
	dir, err := openDir(path)
	if err != nil {
		return
	}
	w.loose = append(w.loose, change{dir: dirOf(path), back: func([]span) {
		if unmake(inside(dir, path)) == nil { // a directory in which something safe lies is safe itself
			w.lost++
		}
	}})
}

// renamed remembers both ends of a rename that is about to succeed. The sync of the directory that it leads to makes it
// safe: that of the one that it leaves does not have to tell where it went.
func (w *power) renamed(p point) {
	moved, _, _ := nodeOf(p.path)
	there, _, _ := nodeOf(p.to)
	exclusive := p.nr == unix.SYS_RENAMEAT2 && p.args[4]&unix.RENAME_NOREPLACE != 0
	from, errFrom := openDir(p.path)
	to, errTo := openDir(p.to)
	if moved == (node{}) || there != (node{}) && exclusive || errFrom != nil || errTo != nil {
		return
	}
	replaced := ""
	if there != (node{}) {
		if replaced = w.next(); unix.Link(p.to, replaced) != nil {
			replaced = ""
		}
	}
	w.loose = append(w.loose, change{dir: dirOf(p.to), back: func([]span) {
		src, dst := inside(to, p.to), inside(from, p.path)
		if now, _, _ := nodeOf(src); now != moved {
			return
		}
		if unix.Renameat2(unix.AT_FDCWD, src, unix.AT_FDCWD, dst, unix.RENAME_NOREPLACE) == nil {
			w.lost++
			if replaced != "" {
				_ = os.Rename(replaced, src)
			}
		}
	}})
}

// removed puts aside what is about to be removed, instead of removing it: a cut may bring it back.
func (w *power) removed(p point) bool {
	n, mode, _ := nodeOf(p.path)
	wantsDir := p.args[2]&unix.AT_REMOVEDIR != 0
	if n == (node{}) || wantsDir != (mode == unix.S_IFDIR) || mode != unix.S_IFDIR && mode != unix.S_IFREG {
		return false
	}
	if entries, err := os.ReadDir(p.path); wantsDir && (err != nil || len(entries) > 0) {
		return false
	}
	dir, err := openDir(p.path)
	aside := w.next()
	if err != nil || os.Rename(p.path, aside) != nil {
		return false
	}
	w.loose = append(w.loose, change{dir: dirOf(p.path), back: func([]span) {
		if unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, inside(dir, p.path), unix.RENAME_NOREPLACE) == nil {
			w.lost++
		}
	}})
	return true
}

func (w *power) next() string {
	w.n++
	return filepath.Join(w.aside, strconv.Itoa(w.n))
}

// cut takes back what is not safe: all of it, or what a draw says. Of content any part may be lost and any kept; names
// are lost from the last back to some earlier one, as a journaling file system loses them. The process must be dead.
func (w *power) cut(r *rand.Rand) (lost int) {
	all, names, w0 := r.IntN(2) == 0, 0, w.lost
	for _, c := range w.loose {
		if c.dir != (node{}) {
			names++
		}
	}
	stay := r.IntN(names + 1)
	kept := map[node][]span{}
	for i := len(w.loose) - 1; i >= 0; i-- {
		c := w.loose[i]
		switch {
		case c.dir != (node{}):
			names--
			if all || names >= stay {
				c.back(nil)
			}
		case !all && r.IntN(2) == 0 || overlaps(kept[c.file], c.span):
			kept[c.file] = append(kept[c.file], c.span)
		default:
			c.back(kept[c.file])
		}
	}
	w.forget()
	return w.lost - w0
}

func overlaps(spans []span, s span) bool {
	for _, k := range spans {
		if s.from < k.to && k.from < s.to {
			return true
		}
	}
	return false
}

// forget makes everything safe.
func (w *power) forget() {
	w.loose = nil
	entries, _ := os.ReadDir(w.aside) // what cannot be tidied up stays until the end
	for _, e := range entries {
		_ = os.Remove(filepath.Join(w.aside, e.Name()))
	}
}

// openDir opens the directory in which path lies, so that it is found again wherever it goes.
func openDir(path string) (*os.File, error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Dir(path)), nil
}

func inside(dir *os.File, path string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
}

// dirOf is the directory in which path lies.
func dirOf(path string) node {
	n, _, _ := nodeOf(filepath.Dir(path))
	return n
}
