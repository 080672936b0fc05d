package spool

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/statedir"
)

// Config is what a spool is made of.
type Config struct {
	StateDir string
	Max      int64        // bytes of all packages
	Shares   int          // of them: one for each service queue, see [ledger.ServiceQueue]
	Log      *slog.Logger // nil: foreign files are not logged
	Fault    durable.Hook // nil but in tests and measurements
}

// Spool is the folder where sealed packages wait for their upload, and stay until
// they are archived. Each lies under its entry's key, so that each file names its
// document. Each service queue has an equal share of the space: a service or a vault that takes nothing
// fills only its own share.
//
// The packages that are there at the start are counted once. Nothing is packed
// before that, and who removes a package waits for the end of the count.
type Spool struct {
	dir    string
	names  *durable.Dir // the folder itself
	max    int64
	shares int
	log    *slog.Logger

	counting sync.Mutex // held while the packages are counted, and while one is removed

	mu       sync.Mutex
	used     map[string]int64   // bytes, by service queue; guarded by mu
	complete bool               // all are counted; guarded by mu
	countErr error              // why they could not be counted; guarded by mu
	waiting  map[string]Waiting // by service queue: the package that was too large for the rest of its share; guarded by mu
	unsynced bool               // packages were made, here or before a crash, since the last SyncPackages; guarded by mu

	syncing sync.Mutex // held while names is synced: who comes meanwhile waits for that

	foreignLogged bool // foreign files were logged; of CountAll alone
}

// errUncounted says that nothing can be packed yet.
var errUncounted = fmt.Errorf("%w: what lies in the spool is still being counted", ingest.ErrFull)

// Open opens the spool of a state directory, and makes its folder where it is missing. The error is a
// [*statedir.OwnFolderError] where a link or something else lies there.
func Open(cfg Config) (*Spool, error) {
	// After a crash here the folder is there or missing; the next start makes a missing one.
	names, err := openFolder(cfg.StateDir, cfg.Fault)
	if err != nil {
		return nil, err
	}
	return &Spool{
		dir: filepath.Join(cfg.StateDir, statedir.SpoolFolder), names: names, max: cfg.Max, shares: cfg.Shares, log: cfg.Log, unsynced: true,
		used: map[string]int64{}, waiting: map[string]Waiting{},
	}, nil
}

func openFolder(stateDir string, fault durable.Hook) (*durable.Dir, error) {
	dir, err := statedir.OpenFolder(stateDir, statedir.SpoolFolder, fault)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	return dir, nil
}

// Close closes the folder. What lies in it stays.
func (s *Spool) Close() error { return s.names.Close() }

// Dir is the folder that packages are made in.
func (s *Spool) Dir() *durable.Dir { return s.names }

// PackageName is the name of the package of k in the spool. Its ending says what a package of that route is.
func PackageName(r ledger.Route, k archive.Key) string {
	return k.String() + r.PackageEnding()
}

// PackagePath is the path of the package of k.
func (s *Spool) PackagePath(r ledger.Route, k archive.Key) string {
	return filepath.Join(s.dir, PackageName(r, k))
}

// packageSize returns the bytes of the package of that name; 0: there is none.
func (s *Spool) packageSize(name string) int64 {
	info, err := s.names.Lstat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Waiting is a service queue whose share is too full for its next package. More
// is packed once some have left.
type Waiting struct {
	Queue             string
	Since             time.Time
	Used, Share, Next int64 // bytes: of its other packages, of its share, and those that the next one takes at most

	booked int64       // of an older package in the place of the next one
	key    archive.Key // of the next one
	asked  time.Time   // when it asked for room last
}

// A document that waits for room may be held or closed meanwhile, and the spool
// is not notified. So a wait keeps the others of its queue out for askAgain
// only, and ends where its document has not asked again within longestWait.
const (
	askAgain    = time.Minute
	longestWait = 5 * time.Minute
)

// BeginPackage books for the package of k, which is about to be made, as much
// as it takes at most. Unless it fails, EndPackage must follow, whatever
// becomes of the package. The error is [ingest.ErrFull] where the share of the
// queue is too full for it, or the packages are not counted yet.
func (s *Spool) BeginPackage(r ledger.Route, k archive.Key, queue string, most int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.complete {
		return errUncounted
	}
	booked := s.packageSize(PackageName(r, k))
	w := Waiting{Queue: queue, Since: time.Now(), Next: most, booked: booked, key: k, asked: time.Now()}
	before, waits := s.currentWait(queue)
	if err := s.findRoom(&w); err != nil {
		if waits {
			w.Since = before.Since
		}
		s.waiting[queue] = w
		return err
	}
	if before.key == k {
		delete(s.waiting, queue)
	}
	s.used[queue] += most - booked
	return nil
}

// findRoom notes in w how full the share of its queue is, and returns
// [ingest.ErrFull] where there is no room for its package. The first package of
// a queue has room, however large it is: else it would wait permanently. The
// caller holds mu.
func (s *Spool) findRoom(w *Waiting) error {
	w.Used, w.Share = s.used[w.Queue]-w.booked, s.max/int64(max(s.shares, 1))
	if w.Used <= 0 || w.Used+w.Next <= w.Share {
		return nil
	}
	return fmt.Errorf("%w: packages for %s take %s of their %s, and the next one takes up to %s", ingest.ErrFull, w.Queue, formatMegabytes(w.Used), formatMegabytes(w.Share), formatMegabytes(w.Next))
}

// currentWait returns the wait of a queue, after it ended one whose package has
// room or has not asked for it any more. The caller holds mu.
func (s *Spool) currentWait(queue string) (w Waiting, waits bool) {
	if w, waits = s.waiting[queue]; !waits {
		return w, false
	}
	if s.findRoom(&w) == nil || time.Since(w.asked) > longestWait {
		delete(s.waiting, queue)
		return Waiting{}, false
	}
	return w, true
}

// Waiting returns the queues that wait for room.
func (s *Spool) Waiting() (all []Waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range slices.Sorted(maps.Keys(s.waiting)) {
		if w, waits := s.currentWait(queue); waits {
			all = append(all, w)
		}
	}
	return all
}

// EndPackage books the package of k for its service queue as it lies there now,
// in the place of the most that BeginPackage booked.
func (s *Spool) EndPackage(r ledger.Route, k archive.Key, queue string, most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[queue] += s.packageSize(PackageName(r, k)) - most
	s.unsynced = true
}

// SyncPackages makes the names of all packages durable that were made before this call; their contents are durable already. After a failure the next call tries again.
func (s *Spool) SyncPackages() error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.mu.Lock()
	unsynced := s.unsynced
	s.unsynced = false // before the sync: a package that is made during it needs the next one
	s.mu.Unlock()
	if !unsynced {
		return nil
	}
	// A crash before this sync ends may lose the name of a package. Nothing of it was sent, and the next start makes it again.
	err := s.names.Sync()
	if err != nil {
		s.mu.Lock()
		s.unsynced = true
		s.mu.Unlock()
	}
	return err
}

// Used returns the bytes of all packages.
func (s *Spool) Used() (sum int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, bytes := range s.used {
		sum += bytes
	}
	return sum
}

// IsCounted reports whether everything that lay in the spool at the start is counted.
func (s *Spool) IsCounted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complete
}

// CheckSpace says why no package of a service queue may be made now: one waits
// for room in its share, or what lies there is not counted yet. Nil: one may.
func (s *Spool) CheckSpace(queue string) error {
	s.mu.Lock()
	complete, countErr := s.complete, s.countErr
	s.mu.Unlock()
	switch {
	case countErr != nil:
		return countErr
	case !complete:
		return errUncounted
	}
	if err := s.checkInPlace(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, waits := s.currentWait(queue); waits && time.Since(w.asked) < askAgain {
		return s.findRoom(&w)
	}
	return nil
}

// FindPackage returns the package of k as it lies on disk. Its size must be the recorded
// one. Its digest was read back when it was sealed and is taken again while it is sent.
func (s *Spool) FindPackage(r ledger.Route, k archive.Key, recorded archive.Package) (archive.Package, error) {
	// This comes first: where another folder lies in place of the spool, its packages must not count as missing, or each would be made
	// again and again.
	if err := s.checkInPlace(); err != nil {
		return archive.Package{}, err
	}
	info, err := s.names.Lstat(PackageName(r, k))
	if err != nil {
		return archive.Package{}, fmt.Errorf("find package: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() != recorded.Size {
		return archive.Package{}, fmt.Errorf("find package: %s has %d bytes, recorded are %d: %w", s.PackagePath(r, k), info.Size(), recorded.Size, fs.ErrNotExist)
	}
	recorded.Path = s.PackagePath(r, k)
	return recorded, nil
}

// checkInPlace returns an error where the path of the spool leads to another folder than the one that was opened at the start:
// packages are made in the opened folder, and sent by their path.
func (s *Spool) checkInPlace() error {
	dir, err := os.Lstat(s.dir)
	if err == nil && s.isOpened(dir) {
		return nil
	}
	return fmt.Errorf("another folder lies at %s since vaultd started: restart vaultd", s.dir)
}

// isOpened reports whether info describes the folder that was opened.
func (s *Spool) isOpened(info fs.FileInfo) bool {
	opened, err := s.names.Stat()
	return err == nil && os.SameFile(opened, info)
}

// HasDigest reads the package of k and reports whether it has the recorded digest. pace is called with how long each piece
// took, and may end it.
func (s *Spool) HasDigest(ctx context.Context, r ledger.Route, k archive.Key, recorded archive.Package, pace func(took time.Duration) error) (bool, error) {
	f, _, err := durable.OpenRegular(s.names.Root(), PackageName(r, k))
	if err != nil {
		return false, fmt.Errorf("read package: %w", err)
	}
	defer f.Close() // read-only
	h := sha256.New()
	for read := int64(0); ; {
		began := time.Now()
		n, err := io.CopyN(h, f, 1<<20)
		if read += n; errors.Is(err, io.EOF) {
			return archive.Digest(h.Sum(nil)) == recorded.SHA256, nil
		}
		if err = errors.Join(err, context.Cause(ctx)); err == nil {
			err = pace(time.Since(began))
		}
		if err != nil {
			return false, fmt.Errorf("read package after %d bytes: %w", read, err)
		}
	}
}

// RemovePackage removes the package of k, if any.
func (s *Spool) RemovePackage(r ledger.Route, k archive.Key, queue string) error {
	s.counting.Lock()
	defer s.counting.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	name := PackageName(r, k)
	size := s.packageSize(name)
	// After a crash here the package may still be there: its entry has ended, so the count of the next start removes it.
	if err := s.names.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove package: %w", err)
	}
	if s.complete {
		s.used[queue] -= size
	}
	if s.waiting[queue].key == k {
		delete(s.waiting, queue)
	}
	return nil
}

// NamelessFile makes a file in the spool of stateDir, the only place for contents, and removes its name: the file is gone when it is closed.
func NamelessFile(stateDir string) (*os.File, error) {
	dir, err := openFolder(stateDir, nil)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // nothing in it is to last
	name := downloadName(rand.Uint64())
	f, err := dir.Root().OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a file for the download: %w", err)
	}
	// After a crash here the next start of the daemon removes it; a daemon that starts just now may be faster.
	if err := dir.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("make a file for the download: %w", err), f.Close())
	}
	return f, nil
}
