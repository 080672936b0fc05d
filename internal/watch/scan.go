package watch

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Rules say how one folder is looked at. Zero numbers stand for the defaults.
type Rules struct {
	Sidecar    string            // name that makes a folder an invoice, compared without case
	MaxDepth   int               // deepest sub-folder looked into; default 16
	MaxEntries int               // most names looked at; default 20,000
	Junk       func(string) bool // names that are neither content nor a reason to wait; default: what systems leave behind
}

// Fingerprint identifies the state of a folder tree: names, kinds, rights, owners, sizes, mtimes, ctimes, inodes of all it
// holds. The folder's own ctime and name stay outside, so that it survives the claim's rename; the rest of its own is in it,
// so that a folder whose rights are just being set, from the top down, is not taken in the middle of that.
type Fingerprint [32]byte

// Scan is what one look at a folder saw.
type Scan struct {
	Fingerprint Fingerprint
	Sidecar     string    // its name as it is written on disk; empty: none
	NearSidecar string    // a name at its top that was probably meant to be the sidecar's, as metadata.json.txt, or the sidecar's own that a folder bears; empty: none
	HasMarker   bool      // a file ".done" lies at its top
	Temporary   string    // path of one temporary name; empty: none
	Files       int       // everything that is neither folder nor junk
	Bytes       int64     // of regular files among them
	Junk        int       // names that Rules call junk
	Newest      time.Time // latest mtime or ctime, by the file server's clock: for people only
	IsTruncated bool      // deeper or more than Rules allow: the rest was not seen
	Problem     error     // the first thing inside that could not be looked at
}

// ScanFolder looks once at the folder name in root ("." for root itself), by lstat alone: no file is opened, no link followed, no mount entered.
// The error tells that the folder itself cannot be looked at: fs.ErrNotExist, fs.ErrPermission, ENOTDIR (also for a link).
// Memory does not grow with the number of files.
func (r Rules) ScanFolder(root *os.Root, name string) (Scan, error) {
	parent, err := root.Open(".")
	if err != nil {
		return Scan{}, err
	}
	defer parent.Close() // read-only: its close has nothing to tell
	dir, err := openFolder(parent, name)
	if err != nil {
		return Scan{}, err
	}
	defer dir.Close()
	st, err := statAt(dir, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return Scan{}, &os.PathError{Op: "look at", Path: name, Err: err}
	}
	v := viewer{rules: r.withDefaults(), hash: sha256.New(), at: st}
	if above, err := statAt(parent, "", unix.AT_EMPTY_PATH); err == nil && st.crosses(above) {
		v.problem(".", errMount)
		return v.look, nil
	}
	mtime := time.Unix(st.Mtim.Unix())
	v.look.Newest = mtime
	st.Ctim = unix.Timespec{}
	v.add(".", &st.Stat_t)
	v.folder(dir, "", 0)
	if v.look.IsTruncated && v.look.Sidecar == "" && v.rules.exactSidecar(dir, ".") {
		v.look.Sidecar = v.rules.Sidecar
	}
	return v.look, nil
}

// exactSidecar asks for the sidecar by the very name of the rules: one call, however many names the folder has.
func (r Rules) exactSidecar(parent *os.File, name string) bool {
	var st unix.Stat_t
	defer runtime.KeepAlive(parent)
	return unix.Fstatat(int(parent.Fd()), name+"/"+r.Sidecar, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

func (r Rules) withDefaults() Rules {
	if r.MaxDepth == 0 {
		r.MaxDepth = 16
	}
	if r.MaxEntries == 0 {
		r.MaxEntries = 20_000
	}
	if r.Junk == nil {
		r.Junk = junk
	}
	return r
}

// openFolder opens name in parent without following it when it is a link.
func openFolder(parent *os.File, name string) (*os.File, error) {
	fd, err := openat(parent, name)
	if err != nil {
		return nil, &os.PathError{Op: "look at", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func openat(parent *os.File, name string) (int, error) {
	for {
		fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		runtime.KeepAlive(parent)
		if err == unix.ELOOP {
			err = unix.ENOTDIR
		}
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// chunk is how many names are read from a directory at a time.
const chunk = 1024

type viewer struct {
	rules Rules
	look  Scan
	hash  hash.Hash
	at    stat // the folder
	seen  int
}

func (v *viewer) folder(dir *os.File, rel string, depth int) {
	for {
		names, err := dir.Readdirnames(chunk)
		for _, name := range names {
			if v.seen++; v.seen > v.rules.MaxEntries {
				v.look.IsTruncated = true
				return
			}
			v.entry(dir, path.Join(rel, name), name, depth)
		}
		if err == io.EOF || (err == nil && len(names) == 0) {
			return
		}
		if err != nil {
			v.problem(rel, err)
			return
		}
	}
}

func (v *viewer) entry(dir *os.File, rel, name string, depth int) {
	st, err := statAt(dir, name, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		v.add(rel+"\x00gone", &unix.Stat_t{}) // it is changing: no later look may equal this one
		return
	}
	if err != nil {
		v.problem(rel, err)
		return
	}
	v.add(rel, &st.Stat_t)
	if st.crosses(v.at) { // junk as well: it goes with the folder
		v.problem(rel, errMount)
		return
	}
	for _, t := range []unix.Timespec{st.Mtim, st.Ctim} {
		if at := time.Unix(t.Unix()); at.After(v.look.Newest) {
			v.look.Newest = at
		}
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case v.rules.Junk(name):
		v.look.Junk++
		return
	case temporary(name) && v.look.Temporary == "":
		v.look.Temporary = rel
	}
	if isDir && depth == 0 && strings.EqualFold(name, v.rules.Sidecar) {
		v.look.NearSidecar = name // wins over what was only misnamed
	}
	if isDir {
		v.descend(dir, rel, name, depth+1)
		return
	}
	v.look.Files++
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		v.look.Bytes += st.Size
	}
	if depth == 0 {
		v.top(name)
	}
}

func (v *viewer) top(name string) {
	if strings.EqualFold(name, v.rules.Sidecar) && (v.look.Sidecar == "" || name < v.look.Sidecar) {
		v.look.Sidecar = name
	}
	if strings.EqualFold(name, marker) {
		v.look.HasMarker = true
	}
	if v.look.NearSidecar == "" && v.rules.near(name) {
		v.look.NearSidecar = name
	}
}

// near tells names that file managers make of the sidecar's when they hide what stands behind the dot.
func (r Rules) near(name string) bool {
	name, sidecar := strings.ToLower(name), strings.ToLower(r.Sidecar)
	stem := strings.TrimSuffix(sidecar, path.Ext(sidecar))
	return name != sidecar && (strings.HasPrefix(name, sidecar+".") && !temporary(name) || name == stem || name == stem+".txt")
}

const marker = ".done"

func (v *viewer) descend(dir *os.File, rel, name string, depth int) {
	if depth > v.rules.MaxDepth {
		v.look.IsTruncated = true
		return
	}
	fd, err := openat(dir, name)
	if err != nil {
		v.problem(rel, err)
		return
	}
	sub := os.NewFile(uintptr(fd), rel)
	defer sub.Close()
	v.folder(sub, rel, depth)
}

// add takes one entry into the fingerprint. Sums do not depend on the order in which a file system lists names, and so
// nothing has to be kept and sorted; paths are unique, so no two terms cancel out.
func (v *viewer) add(rel string, st *unix.Stat_t) {
	record := make([]byte, 0, 72+len(rel))
	for _, n := range []uint64{
		uint64(st.Mode), uint64(st.Uid)<<32 | uint64(st.Gid), uint64(st.Size), uint64(st.Dev), st.Ino,
		uint64(st.Mtim.Nano()), uint64(st.Ctim.Nano()),
	} {
		record = binary.BigEndian.AppendUint64(record, n)
	}
	record = append(record, rel...)
	v.hash.Reset()
	v.hash.Write(record)
	sum := v.hash.Sum(record[:0])
	for i := 0; i < len(sum); i += 8 {
		lane := v.look.Fingerprint[i : i+8]
		binary.BigEndian.PutUint64(lane, binary.BigEndian.Uint64(lane)+binary.BigEndian.Uint64(sum[i:]))
	}
}

func (v *viewer) problem(rel string, err error) {
	v.add(rel+"\x00problem", &unix.Stat_t{})
	if v.look.Problem == nil {
		v.look.Problem = fmt.Errorf("look at %q: %w", rel, err)
	}
}

// junk tells names that systems, or vaultd when it returned the folder, leave behind by themselves.
func junk(name string) bool {
	switch strings.ToLower(name) {
	case "thumbs.db", ".ds_store", "desktop.ini", "@eadir", "_reason.txt", "_receipt.txt", "_receipt.json":
		return true
	}
	return strings.HasPrefix(name, "._")
}

// temporary tells names that programs give to files they are still writing.
func temporary(name string) bool {
	for _, prefix := range []string{"~$", ".nfs", ".smbdelete"} { // the last two are files removed while still open
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".part", ".tmp", ".filepart", ".crdownload":
		return true
	}
	return false
}
