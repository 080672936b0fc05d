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

// Position says where a place lies: a folder, told by what it is and not by its name, and the path from there to the place.
type Position struct {
	Folder string // a device and an inode, or a file system; to be compared only
	Below  string // clean, and begins with "/"; "/" is the folder itself
}

// FindPositions gives the positions of an absolute path, which need not exist: one for each folder on the way to it, and one in its file
// system. Two places with the same Folder whose Below is the same, or lies in the other, are the same or lie in one another, whatever
// links and mounts lead there.
func FindPositions(path string) ([]Position, error) {
	real, below, err := resolve(path)
	if err != nil {
		return nil, err
	}
	var all []Position
	for at, rest := real, below; ; at, rest = filepath.Dir(at), filepath.Join("/", filepath.Base(at), rest) {
		seen, err := lookAt(at)
		if err != nil {
			return nil, err
		}
		if seen.stat.Ino != 0 { // some file systems of users give no inodes
			all = append(all, Position{fmt.Sprintf("folder %d:%d", seen.stat.Dev, seen.stat.Ino), rest})
		}
		if at == real {
			if p, ok := inFileSystem(seen.mount, real, below); ok {
				all = append(all, p)
			}
		}
		if at == "/" {
			return all, nil
		}
	}
}

const mostLinks = 40 // as in the kernel

// resolve follows all links in path. real exists; below is what of path, or of where a link leads, does not exist.
func resolve(path string) (real, below string, err error) {
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
		// A link to what does not exist yet: where it leads is where the folder will be made.
		if links++; links > mostLinks {
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

// lookAt looks at a file by its path, without the right to read it.
func lookAt(path string) (*FileStat, error) {
	file, err := os.OpenFile(path, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() // read-only
	return Fstat(file)
}

// inFileSystem gives the position in the file system that is mounted as number mount. ok is false where the kernel does not tell.
func inFileSystem(mount uint64, real, below string) (p Position, ok bool) {
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil || mount == 0 {
		return p, false
	}
	defer table.Close() // read-only
	return positionIn(table, mount, real, below)
}

// positionIn reads a table as /proc/self/mountinfo has it: number, parent, device, folder in the file system, where it is mounted.
func positionIn(table io.Reader, mount uint64, real, below string) (p Position, ok bool) {
	lines := bufio.NewScanner(table)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 || fields[0] != fmt.Sprint(mount) {
			continue
		}
		rel, err := filepath.Rel(unescaped(fields[4]), real)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			return p, false
		}
		return Position{"file system " + fields[2], filepath.Join(unescaped(fields[3]), rel, below)}, true
	}
	return p, false
}
