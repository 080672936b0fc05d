package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
)

// maxWaiting bounds the packages that wait for their upload by number, as spool.max
// does by bytes: the backlog waits as folders, which cost nothing.
const maxWaiting = 5000

// spool is the folder where sealed packages wait for their upload. Each lies under
// its entry's key, so that what lies there can always be told apart.
type spool struct {
	dir     string
	max     int64
	minFree int64

	mu    sync.Mutex
	bytes map[archive.Key]int64 // what lies there; guarded by mu
	sum   int64                 // guarded by mu
}

func (s *spool) path(k archive.Key) string { return filepath.Join(s.dir, k.String()+".zip") }

// holds books a package that lies there now; zero bytes: it left.
func (s *spool) holds(k archive.Key, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum += bytes - s.bytes[k]
	if s.bytes[k] = bytes; bytes == 0 {
		delete(s.bytes, k)
	}
}

// used returns what lies there.
func (s *spool) used() (packages int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bytes), s.sum
}

// room says why nothing may be packed just now.
func (s *spool) room() error {
	if left := free(s.dir); left >= 0 && left < s.minFree {
		return fmt.Errorf("spool disk: %s left, below min_free %s; packing stopped, uploads go on. Free space; it resumes by itself",
			megabytes(left), megabytes(s.minFree))
	}
	if n, used := s.used(); n >= maxWaiting || n > 0 && used+archive.MaxPackage > s.max {
		return fmt.Errorf("%w: %d packages of %s wait for their upload", ingest.ErrFull, n, megabytes(used))
	}
	return nil
}

func (s *spool) state() SpoolState {
	_, used := s.used()
	return SpoolState{Used: used, Max: s.max, Free: free(s.dir), MinFree: s.minFree}
}

// spooled returns the package of k as it lies on disk. Its size must be the recorded
// one; its digest was read back when it was sealed and is read again by the store.
func (s *spool) spooled(k archive.Key, recorded archive.Package) (archive.Package, error) {
	info, err := os.Lstat(s.path(k))
	if err != nil {
		return archive.Package{}, fmt.Errorf("find package: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() != recorded.Size {
		return archive.Package{}, fmt.Errorf("find package: %s has %d bytes, recorded are %d: %w", s.path(k), info.Size(), recorded.Size, fs.ErrNotExist)
	}
	recorded.Path = s.path(k)
	return recorded, nil
}

// drop removes the package of k, if any.
func (s *spool) drop(k archive.Key) error {
	if err := os.Remove(s.path(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove package: %w", err)
	}
	s.holds(k, 0)
	return nil
}

// sweep removes what was left half made, and the packages that nobody needs any
// more: those for which keep is false.
func (s *spool) sweep(keep func(archive.Key) (bool, error)) error {
	f, err := os.Open(s.dir)
	if err != nil {
		return fmt.Errorf("open spool: %w", err)
	}
	defer f.Close()                  // read-only
	names, err := f.Readdirnames(-1) // bounded by spool.max
	if err != nil {
		return fmt.Errorf("read spool: %w", err)
	}
	for _, name := range names {
		stem, isPackage := strings.CutSuffix(name, ".zip")
		if k, err := archive.ParseKey(stem); isPackage && err == nil {
			needed, err := keep(k)
			if err != nil {
				return err
			}
			if needed {
				info, err := os.Lstat(s.path(k))
				if err != nil {
					return fmt.Errorf("look at package: %w", err)
				}
				s.holds(k, info.Size())
				continue
			}
		}
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			return fmt.Errorf("clear spool: %w", err)
		}
	}
	return nil
}
