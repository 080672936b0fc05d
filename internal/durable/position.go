package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Position says where a place lies: a folder, identified by its inode and not by its name, and the path from there.
type Position struct {
	Folder string // a device and an inode, or a file system; only for comparing
	Below  string // clean, and begins with "/"; "/" is the folder itself
}

// FindPositions returns the positions of an absolute path, which need not exist: one for each folder on the way to it, and one
// in its file system. Two places are the same, or one lies in the other, when they have positions with the same Folder whose
// Below is the same or lies in the other. Links and mounts on the way make no difference.
func FindPositions(path string) ([]Position, error) {
	real, below, err := resolvePath(path)
	if err != nil {
		return nil, err
	}
	var all []Position
	for at, rest := real, below; ; at, rest = filepath.Dir(at), filepath.Join("/", filepath.Base(at), rest) {
		stat, err := statPath(at)
		if err != nil {
			return nil, err
		}
		// Some FUSE file systems give no inode numbers.
		if stat.stat.Ino != 0 {
			all = append(all, Position{fmt.Sprintf("folder %d:%d", stat.stat.Dev, stat.stat.Ino), rest})
		}
		if at == real {
			if p, ok := findPositionInFileSystem(stat.mount, real, below); ok {
				all = append(all, p)
			}
		}
		if at == "/" {
			return all, nil
		}
	}
}

const maxLinks = 40 // as in the kernel

// resolvePath follows all links in path. real is the part that exists, below the rest.
func resolvePath(path string) (real, below string, err error) {
	below, links := "/", 0
	for {
		real, err = filepath.EvalSymlinks(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || path == "/" {
			return real, below, err
		}
		target, linkErr := os.Readlink(path)
		if linkErr != nil {
			path, below = filepath.Dir(path), filepath.Join("/", filepath.Base(path), below)
			continue
		}
		// The link leads to a place that does not exist yet: the folder will be made there.
		if links++; links > maxLinks {
			return "", "", &fs.PathError{Op: "resolve", Path: path, Err: unix.ELOOP}
		}
		if !filepath.IsAbs(target) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", "", err
			}
			target = filepath.Join(dir, target)
		}
		path = target
	}
}

// statPath describes the file at path. It needs no right to read it.
func statPath(path string) (FileStat, error) {
	file, err := os.OpenFile(path, unix.O_PATH, 0)
	if err != nil {
		return FileStat{}, err
	}
	defer file.Close() // read-only
	return Fstat(file)
}

// findPositionInFileSystem returns the position in the file system with that mount number. ok is false where the kernel
// does not tell it.
func findPositionInFileSystem(mount uint64, real, below string) (p Position, ok bool) {
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil || mount == 0 {
		return p, false
	}
	defer table.Close() // read-only
	return parsePositionInTable(table, mount, real, below)
}

// parsePositionInTable reads a table in the format of /proc/self/mountinfo: mount number, parent, device, folder in the file
// system, mount point.
func parsePositionInTable(table io.Reader, mount uint64, real, below string) (p Position, ok bool) {
	lines := bufio.NewScanner(table) //lint:ignore scannererr a table that was read in part gives the same answer as one without the mount
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 || fields[0] != fmt.Sprint(mount) {
			continue
		}
		rel, err := filepath.Rel(unescapeOctal(fields[4]), real)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			return p, false
		}
		return Position{"file system " + fields[2], filepath.Join(unescapeOctal(fields[3]), rel, below)}, true
	}
	return p, false
}
