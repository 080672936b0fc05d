package watch

import (
	"cmp"
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

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// errIsMount says that a folder, or something in it, is a mount of its own. It
// cannot be taken, and the mount is not entered.
var errIsMount = fmt.Errorf("is a mount of its own: %w", unix.EXDEV)

// Rules say how a folder is scanned.
type Rules struct {
	Sidecar string            // name of the file that makes a folder an invoice, compared without case
	IsJunk  func(string) bool // names that are neither content nor a reason to wait; nil: what systems leave behind

	Opens *OpenFiles // watches each folder that is scanned; may be nil

	maxEntries int // most names that are read; 0: 20,000, fewer in tests
}

// Fingerprint identifies the state of a folder tree: names, kinds, rights, owners, sizes, mtimes, ctimes and inodes of all it
// holds. The folder's own name and ctime are left out, so the fingerprint survives the rename of the claim. The rest of the
// folder's own state is in it: a folder whose rights are being set, from the top down, is not taken half way.
type Fingerprint [32]byte

// Scan is the result of one scan of a folder or of a single file.
type Scan struct {
	Fingerprint Fingerprint
	File        durable.FileID // of a single file; zero for a folder
	Sidecar     string         // its name as it is written on disk; may be empty
	NearSidecar string         // a name at the top that was probably meant to be the sidecar's, as metadata.json.txt, or a folder with the sidecar's name; may be empty
	HasMarker   bool           // there is a file ".done" at the top
	Temporary   string         // path of one file that is not finished, or of a placeholder of a cloud folder; may be empty
	Files       int            // everything that is neither folder nor junk
	Junk        int            // names that Rules call junk
	IsTruncated bool           // the folder is deeper or larger than the bounds: the rest was not read
	Problem     error          // the first thing inside that could not be looked at
}

// ScanFolder scans the folder name in root ("." for root itself) once, by lstat alone: it opens no file, follows no link and
// enters no mount. Memory does not grow with the number of files. The error says that the folder itself cannot be looked at:
// fs.ErrNotExist, fs.ErrPermission, ENOTDIR (also for a link).
func (r Rules) ScanFolder(root *os.Root, name string) (Scan, error) {
	parent, err := root.Open(".")
	if err != nil {
		return Scan{}, err
	}
	defer parent.Close() // read-only
	dir, err := openFolder(parent, name)
	if err != nil {
		return Scan{}, err
	}
	defer dir.Close() // read-only
	st, err := durable.Fstat(dir)
	if err != nil {
		return Scan{}, &os.PathError{Op: "look at", Path: name, Err: errors.Unwrap(err)}
	}
	v := folderScanner{rules: r.withDefaults(), hash: sha256.New(), at: st}
	if above, err := durable.Fstat(parent); err == nil && st.IsOnOtherMount(above) {
		v.recordProblem(".", errIsMount)
		return v.scan, nil
	}
	id := st.ID()
	id.Ctime = 0 // the claim's rename changes it
	v.addToFingerprint(".", id)
	v.scanDir(dir, "", 0)
	if v.scan.IsTruncated && v.scan.Sidecar == "" && v.rules.hasExactSidecar(dir, ".") {
		v.scan.Sidecar = v.rules.Sidecar
	}
	return v.scan, nil
}

// scanFile scans the single file name in root by one lstat. Its fingerprint has the ctime, so it changes with the claim's rename. The
// error says that there is no such file: fs.ErrNotExist, fs.ErrPermission, or ENOTDIR for something else in its place.
func (r Rules) scanFile(root *os.Root, name string) (Scan, error) {
	parent, err := root.Open(".")
	if err != nil {
		return Scan{}, err
	}
	defer parent.Close() // read-only
	st, err := durable.Lstat(parent, name)
	if err != nil {
		return Scan{}, &os.PathError{Op: "look at", Path: name, Err: errors.Unwrap(err)}
	}
	if !st.Mode().IsRegular() {
		return Scan{}, &os.PathError{Op: "look at", Path: name, Err: unix.ENOTDIR}
	}
	r.Opens.watchFolder(parent)
	v := folderScanner{rules: r, hash: sha256.New()}
	v.scan.File = st.ID()
	v.addToFingerprint(".", v.scan.File)
	v.scan.Files = 1
	if above, err := durable.Fstat(parent); err == nil && st.IsOnOtherMount(above) {
		v.recordProblem(".", errIsMount)
	}
	// A companion in a drop of single files would be sent as if it were one itself.
	if isWaitedFor(name) || archive.CompanionOf(name) != "" {
		v.scan.Temporary = name
	}
	return v.scan, nil
}

// hasExactSidecar asks for the sidecar by its exact name: one system call, however many names the folder has.
func (r Rules) hasExactSidecar(parent *os.File, name string) bool {
	var st unix.Stat_t
	defer runtime.KeepAlive(parent)
	return unix.Fstatat(int(parent.Fd()), name+"/"+r.Sidecar, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

func (r Rules) withDefaults() Rules {
	r.maxEntries = cmp.Or(r.maxEntries, 20_000)
	if r.IsJunk == nil {
		r.IsJunk = archive.IsSystemJunk
	}
	return r
}

// openFolder opens name in parent without following a link.
func openFolder(parent *os.File, name string) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		runtime.KeepAlive(parent)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), name), nil
		case unix.EINTR:
			continue
		case unix.ELOOP:
			err = unix.ENOTDIR // a link
		}
		return nil, &os.PathError{Op: "look at", Path: name, Err: err}
	}
}

// namesPerRead is how many names are read from a directory at a time.
const namesPerRead = 1024

// folderScanner is one scan of a folder.
type folderScanner struct {
	rules Rules
	scan  Scan
	hash  hash.Hash
	at    durable.FileStat // the folder
	names int              // read so far
}

// scanDir scans all that lies in dir, whose path inside the folder is rel.
func (v *folderScanner) scanDir(dir *os.File, rel string, depth int) {
	v.rules.Opens.watchFolder(dir)
	for {
		names, err := dir.Readdirnames(namesPerRead)
		for _, name := range names {
			if v.names++; v.names > v.rules.maxEntries {
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
	st, err := durable.Lstat(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		// The folder is changing: no later scan may equal this one.
		v.addToFingerprint(rel+"\x00gone", durable.FileID{})
		return
	}
	if err != nil {
		v.recordProblem(rel, errors.Unwrap(err))
		return
	}
	v.addToFingerprint(rel, st.ID())
	// Checked before junk: a mount would go with the folder, whatever its name is.
	if st.IsOnOtherMount(v.at) {
		v.recordProblem(rel, errIsMount)
		return
	}
	isDir := st.IsDir()
	switch {
	case v.rules.IsJunk(name):
		v.scan.Junk++
		return
	case isWaitedFor(name) && v.scan.Temporary == "":
		v.scan.Temporary = rel
	}
	if isDir && depth == 0 && strings.EqualFold(name, v.rules.Sidecar) {
		v.scan.NearSidecar = name // it wins over a misnamed file
	}
	if isDir {
		v.scanSubdir(dir, rel, name, depth+1)
		return
	}
	v.scan.Files++
	if depth == 0 {
		v.noteTopName(name)
	}
}

// noteTopName looks for the sidecar and the marker among the names at the top.
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

// isNearSidecar reports names that file managers make of the sidecar's when they hide the part behind the dot.
func (r Rules) isNearSidecar(name string) bool {
	name, sidecar := strings.ToLower(name), strings.ToLower(r.Sidecar)
	stem := strings.TrimSuffix(sidecar, path.Ext(sidecar))
	return name != sidecar && (strings.HasPrefix(name, sidecar+".") && !archive.IsUnfinished(name) || name == stem || name == stem+".txt")
}

// isWaitedFor reports the names of files that keep what they are in from being
// picked up.
func isWaitedFor(name string) bool { return archive.IsUnfinished(name) || archive.IsPlaceholder(name) }

const markerName = ".done"

// maxDepth is the deepest sub-folder that is read.
const maxDepth = 16

func (v *folderScanner) scanSubdir(dir *os.File, rel, name string, depth int) {
	if depth > maxDepth {
		v.scan.IsTruncated = true
		return
	}
	sub, err := openFolder(dir, name)
	if err != nil {
		v.recordProblem(rel, errors.Unwrap(err))
		return
	}
	defer sub.Close() // read-only
	v.scanDir(sub, rel, depth)
}

// addToFingerprint adds one entry to the fingerprint. Hashes are summed up, so the order in which a file system lists names does
// not matter and nothing must be kept and sorted. Paths are unique, so no two terms are the same.
func (v *folderScanner) addToFingerprint(rel string, id durable.FileID) {
	record := make([]byte, 0, 72+len(rel))
	for _, n := range []uint64{
		uint64(id.Mode), uint64(id.UID)<<32 | uint64(id.GID), uint64(id.Size), id.Dev, id.Ino,
		uint64(id.Mtime), uint64(id.Ctime),
	} {
		record = binary.BigEndian.AppendUint64(record, n)
	}
	record = append(record, rel...)
	v.hash.Reset()
	v.hash.Write(record)
	sum := v.hash.Sum(record[:0])
	for i := 0; i < len(sum); i += 8 {
		word := v.scan.Fingerprint[i : i+8]
		binary.BigEndian.PutUint64(word, binary.BigEndian.Uint64(word)+binary.BigEndian.Uint64(sum[i:]))
	}
}

// recordProblem notes that rel could not be looked at. The problem is part of the fingerprint.
func (v *folderScanner) recordProblem(rel string, err error) {
	v.addToFingerprint(rel+"\x00problem", durable.FileID{})
	if v.scan.Problem == nil {
		v.scan.Problem = fmt.Errorf("look at %q: %w", rel, err)
	}
}
