package drop

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"vaultd/internal/durable"
)

// ErrNotAsked says that the kernel does not tell of some file whether a program has it open.
var ErrNotAsked = errors.New("whether a program has it open cannot be asked")

// FindOpen looks in the folder or single file name in root (a folder, or "."
// for root itself) for a file to which a program may still write: it has the
// file open for writing, or mapped. It returns the path of the first one,
// relative to root; empty: there is none. The error wraps [ErrNotAsked] where
// some file could not be asked about and none was found. Names that isJunk
// reports do not count.
//
// The kernel is asked by a read lease, which it refuses while somebody has the
// file open for writing. The lease is given back at once: a program that opens
// the file for writing meanwhile would wait for it.
func (f *Folder) FindOpen(root *os.Root, name string, isJunk func(string) bool) (string, error) {
	if !f.hasLeases {
		return "", ErrNotAsked
	}
	s := openSearch{root: root, isJunk: isJunk, left: maxAsked}
	if open := s.findOpen(name, 0); open != "" {
		return open, nil
	}
	return "", s.unasked
}

// maxAsked and maxAskedDepth bound the search: what has more names or lies
// deeper is no invoice, and comes back.
const (
	maxAsked      = 5_000
	maxAskedDepth = 16
)

// openSearch is one search for open files.
type openSearch struct {
	root    *os.Root
	isJunk  func(string) bool
	left    int // names that it may still look at
	unasked error
}

// findOpen returns the path of an open file: rel itself or one below it.
func (s *openSearch) findOpen(rel string, depth int) string {
	info, err := s.root.Lstat(rel)
	switch {
	case err != nil: // gone, or not readable: whoever takes it says so
	case info.IsDir() && depth <= maxAskedDepth:
		return s.findOpenBelow(rel, depth)
	case info.Mode().IsRegular():
		err = s.askAbout(rel)
	}
	switch {
	case errors.Is(err, unix.EAGAIN):
		return rel
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		s.unasked = fmt.Errorf("%w: %w", ErrNotAsked, err)
	}
	return ""
}

func (s *openSearch) findOpenBelow(rel string, depth int) string {
	list, err := s.root.OpenFile(rel, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		s.unasked = fmt.Errorf("%w: %w", ErrNotAsked, err)
		return ""
	}
	names, _ := list.Readdirnames(max(s.left, 1)) // a folder that cannot be read is found by its scan
	list.Close()                                  // read-only
	slices.Sort(names)
	for _, name := range names {
		if s.left--; s.left <= 0 {
			break
		}
		if s.isJunk(name) {
			continue
		}
		if open := s.findOpen(path.Join(rel, name), depth+1); open != "" {
			return open
		}
	}
	return ""
}

// askAbout returns an error that wraps EAGAIN while somebody has a file open
// for writing. To open it may already say so: another program has a lease of
// its own on it, with which it may keep changes to itself.
func (s *openSearch) askAbout(rel string) error {
	file, _, err := durable.OpenRegular(s.root, rel)
	if err != nil {
		return err
	}
	defer file.Close() // read-only
	return tryReadLease(file)
}

// tryReadLease takes a read lease on a file that is open for reading alone, and
// gives it back. EAGAIN: somebody has it open for writing. EACCES: it is
// another user's, and vaultd has no CAP_LEASE. A signal SIGIO tells of somebody
// who waits for the lease; the runtime ignores it.
func tryReadLease(file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	ctlErr := raw.Control(func(fd uintptr) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			_, err = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
		}
		if err == nil {
			_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK) // the close that follows would end it as well
		}
	})
	return errors.Join(err, ctlErr)
}

// hasTrueLeases tries on a file of vaultd's own, in its directory, whether the
// kernel's answers are true here: a lease is refused while the file is open for
// writing, and granted once it is closed. The server of a network drive refuses
// leases for reasons of its own, so there they count as untrue.
func hasTrueLeases(dir *durable.Dir) bool {
	if name, err := dir.NetworkFileSystem(); err != nil || name != "" && name != "fuse" {
		return false
	}
	root, name := dir.Root(), testFilePrefix+rand.Text()+testFileSuffix
	writer, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	reader, _, err := durable.OpenRegular(root, name)
	// A crash before this removal leaves the file. A test of doctor removes it
	// when it is more than an hour old.
	if err = errors.Join(err, root.Remove(name)); err != nil {
		_, _ = writer.Close(), reader.Close() // still unwritten
		return false
	}
	defer reader.Close() // read-only
	whileOpen := tryReadLease(reader)
	return writer.Close() == nil && errors.Is(whileOpen, unix.EAGAIN) && tryReadLease(reader) == nil
}

// OpenCheck says how vaultd sees in a drop folder that a program has a file open.
type OpenCheck int

// The ways: by nothing but the quiet time; by the events of folders that are
// watched; by the kernel's word.
const (
	ByQuietTime OpenCheck = iota
	ByEvents
	ByLease
)

// OpenCheckAt returns how this process sees open files in the drop folder at
// path. The error is that of [TryWrite].
func OpenCheckAt(path string) (OpenCheck, error) {
	dir, err := openVaultdDir(path)
	if err != nil {
		return ByQuietTime, err
	}
	if dir == nil {
		return ByQuietTime, ErrNeverUsed
	}
	defer dir.Close() // read-only
	network, err := dir.NetworkFileSystem()
	switch {
	case hasTrueLeases(dir) && HasLeaseRight():
		return ByLease, nil
	case err == nil && network == "" && !HasLeaseRight():
		return ByEvents, nil
	}
	return ByQuietTime, nil
}

// HasLeaseRight reports whether this process may take a lease on files of other
// users. The kernel asks for CAP_LEASE in its first user namespace: a container
// with users of its own never has it.
func HasLeaseRight() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil || sets[0].Effective&(1<<unix.CAP_LEASE) == 0 {
		return false
	}
	users, err := os.ReadFile("/proc/self/uid_map")
	return err != nil || slices.EqualFunc(bytes.Fields(users), []string{"0", "0", "4294967295"}, func(a []byte, b string) bool { return string(a) == b })
}
