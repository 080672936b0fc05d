package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
)

// spool is the folder where sealed packages wait for their upload, and stay until
// they are archived. Each lies under its entry's key, so that what lies there can
// always be told apart. Each vault has an equal share of it: one that takes nothing
// fills its own.
//
// What lies there is counted once, beside the work, and booked from then on: nothing new is
// packed before that is done. Whatever is packed meanwhile, again or after all, is booked by
// who packs it and left out by the count.
//
// Only what bears a name of vaultd's own is ever removed: packages, packages that were not finished, and downloads. Anything else is
// told of once in a start, and stays.
//
// What a package holds is durable when it is made, that it lies here once settle returned: before
// anything is sent. After a power cut a package may be missing, and is made again.
type spool struct {
	dir     string
	names   *durable.Dir // the folder itself
	max     int64
	minFree int64
	vaults  int

	mu      sync.Mutex
	used    map[archive.VaultID]int64 // bytes; guarded by mu
	counted archive.Key               // the last one that is among them, while they are counted; guarded by mu
	swept   bool                      // all are; guarded by mu
	begun   map[archive.Key]int64     // packages that are being made, with the bytes that are booked for them; guarded by mu
	ahead   map[archive.Key]bool      // packages that were made, and booked, before the count came to them; guarded by mu
	why     error                     // why they could not be; guarded by mu
	fresh   bool                      // packages were made, here or before a crash, since the last settle; guarded by mu

	settling sync.Mutex // held while names is synced: who comes meanwhile waits for that

	log  *slog.Logger // nil: foreign files are not told of
	told bool         // they were; of sweep alone
}

var errUncounted = fmt.Errorf("%w: what lies in the spool is still being counted", ingest.ErrFull)

func newSpool(dir string, max, minFree int64, vaults int) *spool {
	return &spool{dir: dir, max: max, minFree: minFree, vaults: vaults, fresh: true, used: map[archive.VaultID]int64{}, begun: map[archive.Key]int64{}, ahead: map[archive.Key]bool{}}
}

// packageName is how the package of k is called in the spool.
func packageName(k archive.Key) string { return k.String() + packageEnd }

const packageEnd = ".zip"

func (s *spool) path(k archive.Key) string { return filepath.Join(s.dir, packageName(k)) }

// size returns the bytes of the package of k; 0: there is none.
func (s *spool) size(k archive.Key) int64 {
	info, err := s.names.Lstat(packageName(k))
	if err != nil {
		return 0
	}
	return info.Size()
}

// making says that the package of k is about to be made. made must follow, whatever becomes
// of it.
func (s *spool) making(k archive.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun[k] = 0
	if s.booked(k) {
		s.begun[k] = s.size(k)
	}
}

// made books the package of k as it lies there now, in the place of what was booked before.
func (s *spool) made(k archive.Key, v archive.VaultID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[v] += s.size(k) - s.begun[k]
	s.fresh = true
	delete(s.begun, k)
	if !s.booked(k) {
		s.ahead[k] = true
	}
}

// settle makes durable that the packages lie here which were made before it was called. A failure stays.
func (s *spool) settle() error {
	s.settling.Lock()
	defer s.settling.Unlock()
	if !s.anyFresh(false) {
		return nil
	}
	err := s.names.Sync()
	if err != nil {
		s.anyFresh(true)
	}
	return err
}

// anyFresh reports whether packages were made since the last settle, and sets what is to be reported next.
func (s *spool) anyFresh(next bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.fresh
	s.fresh = next
	return was
}

// booked reports whether the package of k is among what is used. The caller holds mu.
func (s *spool) booked(k archive.Key) bool {
	return s.swept || s.ahead[k] || bytes.Compare(k[:], s.counted[:]) <= 0
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
	s.mu.Lock()
	swept, why := s.swept, s.why
	s.mu.Unlock()
	switch {
	case why != nil:
		return why
	case !swept:
		return errUncounted
	}
	if err := s.inPlace(); err != nil {
		return err
	}
	if used, share := s.of(v), s.max/int64(max(s.vaults, 1)); used > 0 && used+archive.MaxPackage > share {
		return fmt.Errorf("%w: packages of vault %s take %s of its %s", ingest.ErrFull, v, megabytes(used), megabytes(share))
	}
	return nil
}

func (s *spool) state() SpoolState {
	return SpoolState{Used: s.all(), Max: s.max, Free: free(s.dir), MinFree: s.minFree}
}

// spooled returns the package of k as it lies on disk. Its size must be the recorded
// one. Its digest was read back when it was sealed and is taken again while it is sent.
func (s *spool) spooled(k archive.Key, recorded archive.Package) (archive.Package, error) {
	if err := s.inPlace(); err != nil { // first: what is not to be found now must not count as missing, or it would be made again and again
		return archive.Package{}, err
	}
	info, err := s.names.Lstat(packageName(k))
	if err != nil {
		return archive.Package{}, fmt.Errorf("find package: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() != recorded.Size {
		return archive.Package{}, fmt.Errorf("find package: %s has %d bytes, recorded are %d: %w", s.path(k), info.Size(), recorded.Size, fs.ErrNotExist)
	}
	recorded.Path = s.path(k)
	return recorded, nil
}

// inPlace says so where the spool is no longer the folder that was opened at the start: packages are made in that one, and sent by
// its path.
func (s *spool) inPlace() error {
	dir, err := os.Lstat(s.dir)
	if err == nil && s.isOpened(dir) {
		return nil
	}
	return fmt.Errorf("another folder lies at %s since vaultd started: restart vaultd", s.dir)
}

// isOpened reports whether info describes the folder that was opened.
func (s *spool) isOpened(info fs.FileInfo) bool {
	opened, err := s.names.Stat()
	return err == nil && os.SameFile(opened, info)
}

// intact reads the package of k and reports whether it has the recorded digest. pace is called with how long each piece
// took, and may end it.
func (s *spool) intact(ctx context.Context, k archive.Key, recorded archive.Package, pace func(took time.Duration) error) (bool, error) {
	f, _, err := durable.OpenRegular(s.names.Root(), packageName(k))
	if err != nil {
		return false, fmt.Errorf("read package: %w", err)
	}
	defer f.Close() // read-only
	h := sha256.New()
	for {
		began := time.Now()
		n, err := io.CopyN(h, f, 1<<20)
		if errors.Is(err, io.EOF) {
			return archive.Digest(h.Sum(nil)) == recorded.SHA256, nil
		}
		if err = errors.Join(err, context.Cause(ctx)); err == nil {
			err = pace(time.Since(began))
		}
		if err != nil {
			return false, fmt.Errorf("read package after %d bytes: %w", n, err)
		}
	}
}

// drop removes the package of k, if any.
func (s *spool) drop(k archive.Key, v archive.VaultID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.size(k)
	if err := s.names.Unlink(packageName(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove package: %w", err)
	}
	if s.booked(k) {
		s.used[v] -= size
	}
	return nil
}

// sweepRetry is how long a sweep that failed is waited for.
const sweepRetry = time.Minute

// sweep counts what lies in the spool, and removes what was left half made and the packages
// that nobody needs any more. It goes on while others are uploaded, and again until it is done.
func (d *Daemon) sweep(ctx context.Context) {
	for {
		err := d.spool.sweep(ctx, func(k archive.Key) (archive.VaultID, bool, error) {
			e, ok, err := d.ledger.Entry(k)
			return e.Vault, ok && (!e.State.IsFinal() || e.Source == ledger.Claimed), err
		})
		if ctx.Err() != nil {
			return
		}
		d.conductor.Wake()
		if err == nil {
			return
		}
		d.cfg.Log.Error("nothing is packed: the spool cannot be looked through", "err", err)
		if rest(ctx, sweepRetry) != nil {
			return
		}
	}
}

// sweep takes the packages in the order of their keys, so that drop can tell whether one
// is counted already.
func (s *spool) sweep(ctx context.Context, keep func(archive.Key) (archive.VaultID, bool, error)) (err error) {
	s.anew()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.swept, s.why = err == nil, err; s.swept {
			clear(s.ahead)
		}
	}()
	keys, err := s.list(ctx)
	for _, k := range keys {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = s.count(k, keep)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// anew begins the count: nothing is booked, not even of what is being made.
func (s *spool) anew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used, s.counted, s.swept = map[archive.VaultID]int64{}, archive.Key{}, false
	clear(s.ahead)
	for k := range s.begun {
		s.begun[k] = 0
	}
}

// list returns the keys of all packages in their order. What vaultd left half made goes, unless it is being made; whatever else
// lies there is not vaultd's, and stays.
func (s *spool) list(ctx context.Context) (keys []archive.Key, err error) {
	f, err := s.names.Root().Open(".")
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	defer f.Close() // read-only
	var foreign []string
	for ctx.Err() == nil {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			info, lookErr := s.names.Lstat(name)
			k, isPackage := packageOf(name)
			switch {
			case errors.Is(lookErr, fs.ErrNotExist): // gone meanwhile
			case lookErr != nil || !info.Mode().IsRegular():
				foreign = append(foreign, name)
			case isPackage:
				keys = append(keys, k)
			case isHalfMade(name):
				if err := s.removeHalf(name); err != nil {
					return nil, err
				}
			default:
				foreign = append(foreign, name)
			}
		}
		if errors.Is(err, io.EOF) {
			s.tellForeign(foreign)
			slices.SortFunc(keys, func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) })
			return keys, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read spool: %w", err)
		}
	}
	return nil, context.Cause(ctx)
}

// packageOf tells the name of a package, and whose it is.
func packageOf(name string) (archive.Key, bool) {
	stem, ends := strings.CutSuffix(name, packageEnd)
	k, err := archive.ParseKey(stem)
	return k, ends && err == nil && packageName(k) == name
}

// downloadName is how a download is called in the spool before its name is taken away.
func downloadName(n uint64) string { return downloadBegin + strconv.FormatUint(n, 10) + downloadEnd }

const downloadBegin, downloadEnd = "fetch-", ".tmp"

// isHalfMade tells the names that vaultd gives to what is not whole yet: a package that is being packed, and a download.
func isHalfMade(name string) bool {
	if number, begins := strings.CutPrefix(name, downloadBegin); begins {
		n, err := strconv.ParseUint(strings.TrimSuffix(number, downloadEnd), 10, 64)
		return err == nil && downloadName(n) == name
	}
	stem := strings.TrimSuffix(strings.TrimPrefix(name, "."), ".tmp")
	_, isPackage := packageOf(stem)
	return isPackage && durable.TemporaryName(stem) == name
}

// mostForeign bounds how many foreign files are named.
const mostForeign = 10

// tellForeign says once in a start what lies in the spool and is not vaultd's.
func (s *spool) tellForeign(names []string) {
	if len(names) == 0 || s.told || s.log == nil {
		return
	}
	s.told = true
	slices.Sort(names)
	s.log.Warn("the spool holds files that are not vaultd's; they stay, and take room from the packages: move them elsewhere",
		"spool", s.dir, "count", len(names), "names", names[:min(len(names), mostForeign)])
}

// removeHalf removes what was left half made. The temporary file of a package is named after it.
func (s *spool) removeHalf(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.begun {
		if strings.Contains(name, k.String()) {
			return nil
		}
	}
	// After a crash here the next start meets it again.
	if err := s.names.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clear spool: %w", err)
	}
	return nil
}

// count books one package, or removes it. One that is being made, or was since the count
// began, is booked by who makes it.
func (s *spool) count(k archive.Key, keep func(archive.Key) (archive.VaultID, bool, error)) error {
	vault, needed, err := keep(k)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, begun := s.begun[k]
	theirs := begun || s.ahead[k]
	switch s.counted = k; {
	case theirs:
		return nil
	case needed:
		s.used[vault] += s.size(k)
		return nil
	}
	// After a crash here the next start finds it needed by nobody once more, or gone.
	if err := s.names.Unlink(packageName(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clear spool: %w", err)
	}
	return nil
}
