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

// spool is the folder where sealed packages wait for their upload, and stay until
// they are archived. Each lies under its entry's key, so that what lies there can
// always be told apart. Each vault has an equal share of it: one that takes nothing
// fills its own.
type spool struct {
	dir     string
	max     int64
	minFree int64
	vaults  int

	mu    sync.Mutex
	lying map[archive.Key]spooledPackage // guarded by mu
	used  map[archive.VaultID]int64      // bytes; guarded by mu
}

type spooledPackage struct {
	vault archive.VaultID
	bytes int64
}

func newSpool(dir string, max, minFree int64, vaults int) *spool {
	return &spool{dir: dir, max: max, minFree: minFree, vaults: vaults,
		lying: map[archive.Key]spooledPackage{}, used: map[archive.VaultID]int64{}}
}

func (s *spool) path(k archive.Key) string { return filepath.Join(s.dir, k.String()+".zip") }

// took books a package that lies there now.
func (s *spool) took(k archive.Key, v archive.VaultID, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[v] += bytes - s.lying[k].bytes
	s.lying[k] = spooledPackage{v, bytes}
}

// lost books that a package lies there no more.
func (s *spool) lost(k archive.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.lying[k]
	s.used[p.vault] -= p.bytes
	delete(s.lying, k)
}

// of returns the bytes of a vault's packages, and all returns those of every vault.
func (s *spool) of(v archive.VaultID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[v]
}

func (s *spool) all() (sum int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, bytes := range s.used {
		sum += bytes
	}
	return sum
}

// room says why nothing of a vault may be packed just now, though the disk has room.
func (s *spool) room(v archive.VaultID) error {
	if used, share := s.of(v), s.max/int64(max(s.vaults, 1)); used > 0 && used+archive.MaxPackage > share {
		return fmt.Errorf("%w: packages of vault %s take %s of its %s", ingest.ErrFull, v, megabytes(used), megabytes(share))
	}
	return nil
}

func (s *spool) state() SpoolState {
	return SpoolState{Used: s.all(), Max: s.max, Free: free(s.dir), MinFree: s.minFree}
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
	s.lost(k)
	return nil
}

// sweep removes what was left half made, and the packages that nobody needs any
// more: those for which keep is false.
func (s *spool) sweep(keep func(archive.Key) (archive.VaultID, bool, error)) error {
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
			vault, needed, err := keep(k)
			if err != nil {
				return err
			}
			if needed {
				info, err := os.Lstat(s.path(k))
				if err != nil {
					return fmt.Errorf("look at package: %w", err)
				}
				s.took(k, vault, info.Size())
				continue
			}
		}
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			return fmt.Errorf("clear spool: %w", err)
		}
	}
	return nil
}
