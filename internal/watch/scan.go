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
	v := folderScanner{rules: r.withDefaults(), hash: sha256.New(), at: st}
	if above, err := statAt(parent, "", unix.AT_EMPTY_PATH); err == nil && st.isOnOtherMount(above) {
		v.recordProblem(".", errIsMount)
		return v.scan, nil
	}
	mtime := time.Unix(st.Mtim.Unix())
	v.scan.Newest = mtime
	st.Ctim = unix.Timespec{}
	v.addToFingerprint(".", &st.Stat_t)
	v.scanDir(dir, "", 0)
	if v.scan.IsTruncated && v.scan.Sidecar == "" && v.rules.hasExactSidecar(dir, ".") {
		v.scan.Sidecar = v.rules.Sidecar
	}
	return v.scan, nil
}

// hasExactSidecar asks for the sidecar by the very name of the rules: one call, however many names the folder has.
func (r Rules) hasExactSidecar(parent *os.File, name string) bool {
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
		r.Junk = isJunk
	}
	return r
}

// openFolder opens name in parent without following it when it is a link.
func openFolder(parent *os.File, name string) (*os.File, error) {
	fd, err := openDirAt(parent, name)
	if err != nil {
		return nil, &os.PathError{Op: "look at", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func openDirAt(parent *os.File, name string) (int, error) {
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
const namesPerRead = 1024

type folderScanner struct {
	rules Rules
	scan  Scan
	hash  hash.Hash
	at    fileStat // the folder
	names int
}

func (v *folderScanner) scanDir(dir *os.File, rel string, depth int) {
	for {
		names, err := dir.Readdirnames(namesPerRead)
		for _, name := range names {
			if v.names++; v.names > v.rules.MaxEntries {
				v.scan.IsTruncated = true
				return
			}
			v.scanEntry(dir, path.Join(rel, name), name, depth)
		}
		if err == io.EOF || (err == nil && len(names) == 0) {
			return
		}
		if err != nil {
			v.recordProblem(rel, err)
			return
		}
	}
}

func (v *folderScanner) scanEntry(dir *os.File, rel, name string, depth int) {
	st, err := statAt(dir, name, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		v.addToFingerprint(rel+"\x00gone", &unix.Stat_t{}) // it is changing: no later look may equal this one
		return
	}
	if err != nil {
		v.recordProblem(rel, err)
		return
	}
	v.addToFingerprint(rel, &st.Stat_t)
	if st.isOnOtherMount(v.at) { // junk as well: it goes with the folder
		v.recordProblem(rel, errIsMount)
		return
	}
	for _, t := range []unix.Timespec{st.Mtim, st.Ctim} {
		if at := time.Unix(t.Unix()); at.After(v.scan.Newest) {
			v.scan.Newest = at
		}
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case v.rules.Junk(name):
		v.scan.Junk++
		return
	case isTemporary(name) && v.scan.Temporary == "":
		v.scan.Temporary = rel
	}
	if isDir && depth == 0 && strings.EqualFold(name, v.rules.Sidecar) {
		v.scan.NearSidecar = name // wins over what was only misnamed
	}
	if isDir {
		v.scanSubdir(dir, rel, name, depth+1)
		return
	}
	v.scan.Files++
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		v.scan.Bytes += st.Size
	}
	if depth == 0 {
		v.noteTopName(name)
	}
}

func (v *folderScanner) noteTopName(name string) {
	if strings.EqualFold(name, v.rules.Sidecar) && (v.scan.Sidecar == "" || name < v.scan.Sidecar) {
		v.scan.Sidecar = name
	}
	if strings.EqualFold(name, markerName) {
		v.scan.HasMarker = true
	}
	if v.scan.NearSidecar == "" && v.rules.isNearSidecar(name) {
		v.scan.NearSidecar = name
	}
}

// isNearSidecar tells names that file managers make of the sidecar's when they hide what stands behind the dot.
func (r Rules) isNearSidecar(name string) bool {
	name, sidecar := strings.ToLower(name), strings.ToLower(r.Sidecar)
	stem := strings.TrimSuffix(sidecar, path.Ext(sidecar))
	return name != sidecar && (strings.HasPrefix(name, sidecar+".") && !isTemporary(name) || name == stem || name == stem+".txt")
}

const markerName = ".done"

func (v *folderScanner) scanSubdir(dir *os.File, rel, name string, depth int) {
	if depth > v.rules.MaxDepth {
		v.scan.IsTruncated = true
		return
	}
	fd, err := openDirAt(dir, name)
	if err != nil {
		v.recordProblem(rel, err)
		return
	}
	sub := os.NewFile(uintptr(fd), rel)
	defer sub.Close()
	v.scanDir(sub, rel, depth)
}

// addToFingerprint takes one entry into the fingerprint. Sums do not depend on the order in which a file system lists names, and so
// nothing has to be kept and sorted; paths are unique, so no two terms cancel out.
func (v *folderScanner) addToFingerprint(rel string, st *unix.Stat_t) {
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
		lane := v.scan.Fingerprint[i : i+8]
		binary.BigEndian.PutUint64(lane, binary.BigEndian.Uint64(lane)+binary.BigEndian.Uint64(sum[i:]))
	}
}

func (v *folderScanner) recordProblem(rel string, err error) {
	v.addToFingerprint(rel+"\x00problem", &unix.Stat_t{})
	if v.scan.Problem == nil {
		v.scan.Problem = fmt.Errorf("look at %q: %w", rel, err)
	}
}

// isJunk tells names that systems, or vaultd when it returned the folder, leave behind by themselves.
func isJunk(name string) bool {
	switch strings.ToLower(name) {
	case "thumbs.db", ".ds_store", "desktop.ini", "@eadir", "_reason.txt", "_receipt.txt", "_receipt.json":
		return true
	}
	return strings.HasPrefix(name, "._")
}

// isTemporary tells names that programs give to files they are still writing.
func isTemporary(name string) bool {
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
