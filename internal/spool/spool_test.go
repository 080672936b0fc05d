package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/statedir"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// What lies in the spool is counted once, while packages are sent: one that is to
// leave meanwhile waits for the end of the count, and nothing is packed before.
// A count that failed begins again.
func TestSpool_I21_CountedBesideTheWork(t *testing.T) {
	for _, r := range []ledger.Route{ledger.Vault, ledger.PDF} {
		t.Run(string(r), func(t *testing.T) { countBesideTheWork(t, r) })
	}
}

func countBesideTheWork(t *testing.T, r ledger.Route) {
	s := openSpool(t, t.TempDir())
	var keys []archive.Key
	for i := range 4 {
		k := archive.NewKey(time.UnixMilli(int64(i + 1)))
		keys = append(keys, k)
		kit.Must(t, os.WriteFile(s.PackagePath(r, k), make([]byte, 100+i), 0o600))
	}
	kit.Must(t, os.WriteFile(filepath.Join(s.dir, durable.TemporaryName(PackageName(r, keys[0]))), nil, 0o600))
	kit.Fails(t, "there is room before anything was counted", s.CheckSpace("V"), ingest.ErrFull)
	kit.Fails(t, "a package is begun before anything was counted", s.BeginPackage(r, keys[1], "V", 0), ingest.ErrFull)
	errRead := errors.New("a ledger that cannot be read")
	kit.Fails(t, "a count", s.CountAll(t.Context(), func(k archive.Key) (string, bool, error) { return "V", true, errRead }), errRead)
	kit.Fails(t, "there is room after a count that failed", s.CheckSpace("V"), errRead)
	var removals sync.WaitGroup
	kit.Must(t, s.CountAll(t.Context(), func(k archive.Key) (string, bool, error) {
		if k == keys[1] {
			for _, gone := range []archive.Key{keys[0], keys[2]} {
				removals.Go(func() { kit.Must(t, s.RemovePackage(r, gone, "V")) })
			}
		}
		return "V", k != keys[3], nil
	}))
	removals.Wait()
	left := kit.Value(os.ReadDir(s.dir))(t)
	kit.Len(t, "files left", left, 1)
	kit.Want(t, "bytes counted", s.Used(), 101)
	kit.Want(t, "room", s.CheckSpace("V"), nil)
	kit.Must(t, s.BeginPackage(r, keys[1], "V", 300))
	kit.Want(t, "bytes while it is packed again", s.Used(), 300)
	kit.Must(t, os.WriteFile(s.PackagePath(r, keys[1]), make([]byte, 150), 0o600))
	s.EndPackage(r, keys[1], "V", 300)
	kit.Want(t, "bytes after it was packed again", s.Used(), 150)
}

// A package is found, compared and removed under the name that its route gives it, and under no other.
func TestSpool_I19_EachRouteHasItsOwnEnding(t *testing.T) {
	s := openSpool(t, t.TempDir())
	k := archive.NewKey(time.UnixMilli(1))
	for r, ending := range map[ledger.Route]string{"": ".zip", ledger.Vault: ".zip", ledger.PDF: ".pdf"} {
		kit.Want(t, fmt.Sprintf("%q", r), PackageName(r, k), k.String()+ending)
	}
	text := []byte("%PDF-1.7 %%EOF")
	recorded := archive.Package{Size: int64(len(text)), SHA256: archive.Sum(text)}
	for _, name := range []string{PackageName(ledger.PDF, k), "foreign.pdf", k.String() + ".PDF", k.String()} {
		kit.Must(t, os.WriteFile(filepath.Join(s.dir, name), text, 0o600))
	}
	kit.Want(t, "p.Path",
		kit.Value(s.FindPackage(ledger.PDF, k, recorded))(t).Path, filepath.Join(s.dir, k.String()+".pdf"))
	kit.Fails(t, "found as a ZIP", kit.Err(s.FindPackage(ledger.Vault, k, recorded)), fs.ErrNotExist)
	if is, err := s.HasDigest(t.Context(), ledger.PDF, k, recorded, func(time.Duration) error { return nil }); !is || err != nil {
		t.Errorf("%v, %v, want is, no error", is, err)
	}
	// No entry needs it: the count removes it, and leaves what is not vaultd's.
	kit.Must(t, s.CountAll(t.Context(), func(archive.Key) (string, bool, error) { return "", false, nil }))
	left, err := os.ReadDir(s.dir)
	kit.Check(t, err == nil && len(left) == 3, "left %v, %v", left, err)
}

// I12: an examination that ends early says how far it came in the file.
func TestSpool_I12_SaysHowFarItRead(t *testing.T) {
	s, k := openSpool(t, t.TempDir()), archive.NewKey(time.UnixMilli(1))
	kit.Must(t, os.WriteFile(filepath.Join(s.dir, PackageName(ledger.Vault, k)), make([]byte, 5<<20), 0o600))
	pieces := 0
	_, err := s.HasDigest(t.Context(), ledger.Vault, k, archive.Package{}, func(time.Duration) error {
		if pieces++; pieces == 3 {
			return errors.New("not now")
		}
		return nil
	})
	kit.Holds(t, "error", fmt.Sprint(err), "after 3145728 bytes: not now")
}

// openSpool opens the spool of a state directory.
func openSpool(t *testing.T, stateDir string) *Spool {
	t.Helper()
	s := kit.Value(Open(Config{StateDir: stateDir, Max: 1e9, Shares: 1}))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// putPackage puts a package of so many bytes into the spool.
func putPackage(t *testing.T, s *Spool, k archive.Key, bytes int) {
	t.Helper()
	kit.Must(t, os.WriteFile(s.PackagePath(ledger.Vault, k), make([]byte, bytes), 0o600))
}

// Where another folder lies in the place of the spool, none of its files is taken for a package, and none is removed. What is missing
// there is not made again.
func TestSpool_I3_I19_AnotherFolderInItsPlace(t *testing.T) {
	const theirs = "theirs"
	base := t.TempDir()
	dir, away := filepath.Join(base, "spool"), filepath.Join(base, "away")
	s := openSpool(t, base)
	keys := make([]archive.Key, 4)
	for i := range keys {
		if keys[i] = archive.NewKey(time.UnixMilli(int64(i + 1))); i < 3 { // the last one is missing
			putPackage(t, s, keys[i], len(theirs))
		}
	}
	sweep := func(kept archive.Key) {
		t.Helper()
		kit.Must(t, s.CountAll(context.Background(), func(k archive.Key) (string, bool, error) { return "V", k == kept || kept.IsZero(), nil }))
	}
	sweep(archive.Key{})
	recorded := archive.Package{Size: int64(len(theirs))}
	stays := fill.Replaced(t, dir, away, theirs, PackageName(ledger.Vault, keys[0]), PackageName(ledger.Vault, keys[1]), PackageName(ledger.Vault, keys[2]), PackageName(ledger.Vault, keys[3]), "."+PackageName(ledger.Vault, keys[1])+".tmp", downloadName(7))
	for _, k := range keys {
		if p, err := s.FindPackage(ledger.Vault, k, recorded); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "restart vaultd") {
			t.Errorf(`%s: %+v, %v, want an error, not errors.Is(err, fs.ErrNotExist), err with "restart vaultd"`, k, p, err)
		}
	}
	err := s.CheckSpace("V")
	kit.Check(t, err != nil && !errors.Is(err, ingest.ErrFull), "room: %v", err)
	recorded.SHA256 = archive.Sum(make([]byte, recorded.Size))
	is, err := s.HasDigest(t.Context(), ledger.Vault, keys[2], recorded, func(time.Duration) error { return nil })
	kit.Check(t, is && err == nil, "what lies in its place was examined: %v, %v", is, err)
	kit.Must(t, s.RemovePackage(ledger.Vault, keys[0], "V"))
	sweep(keys[2])
	stays()
	left, err := os.ReadDir(away)
	kit.Check(t, err == nil && len(left) == 1 && left[0].Name() == PackageName(ledger.Vault, keys[2]), "left in the spool: %v %v", left, err)
	kit.Must(t, errors.Join(os.Rename(dir, filepath.Join(base, "theirs")), os.Rename(away, dir)))
	kit.Want(t, "in its place again",
		kit.Value(s.FindPackage(ledger.Vault, keys[2], recorded))(t).Path, s.PackagePath(ledger.Vault, keys[2]))
	kit.Fails(t, "missing", kit.Err(s.FindPackage(ledger.Vault, keys[3], recorded)), fs.ErrNotExist)
}

// What a sweep meets while a fault keeps it from its end is not told of again and again.
func TestSpool_I19_ForeignFilesToldOnce(t *testing.T) {
	s := openSpool(t, t.TempDir())
	kit.Must(t, os.WriteFile(filepath.Join(s.dir, "photo.jpg"), nil, 0o600))
	var log bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	for range 3 {
		kit.Must(t, s.CountAll(t.Context(), func(archive.Key) (string, bool, error) { return "V", true, nil }))
	}
	n := strings.Count(log.String(), "photo.jpg")
	kit.Check(t, n == 1, "told %d times: %s", n, &log)
}

// I21, I23: a share is booked by what the next package takes at most, before it
// is made. So small packages continue where a large one would be too much, two
// packers together stay within it, and the first package of a queue always
// proceeds. A waiting queue is named, with since when, until there is room.
func TestSpool_I21_I23_ReservesWhatIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openSpool(t, t.TempDir())
		s.max, s.shares = 500e6, 5 // 100 MB each
		kit.Must(t, s.CountAll(t.Context(), func(archive.Key) (string, bool, error) { return "V", true, nil }))
		key := func(i int) archive.Key { return archive.Key{1, byte(i)} }
		for i := range 4 { // all at the same time
			kit.Must(t, s.CheckSpace("V"))
			kit.Must(t, s.BeginPackage(ledger.Vault, key(i), "V", 20e6))
		}
		err := s.BeginPackage(ledger.Vault, key(4), "V", 21e6)
		kit.Want(t, "a fifth has no room", errors.Is(err, ingest.ErrFull), true)
		kit.Holds(t, "why", err.Error(), "packages for V take 80.0 MB of their 100.0 MB, and the next one takes up to 21.0 MB")
		since := time.Now()
		time.Sleep(askAgain - time.Second)
		kit.Want(t, "others wait with it", errors.Is(s.CheckSpace("V"), ingest.ErrFull), true)
		kit.Want(t, "another queue goes on", s.CheckSpace("W"), nil)
		kit.Want(t, "what waits", s.Waiting(), []Waiting{{"V", since, 80e6, 100e6, 21e6, 0, key(4), since}})
		for i := range 4 {
			putPackage(t, s, key(i), 10+i)
			s.EndPackage(ledger.Vault, key(i), "V", 20e6)
		}
		kit.Want(t, "small ones leave room", errors.Join(s.CheckSpace("V"), s.BeginPackage(ledger.Vault, key(4), "V", 21e6)), nil)
		kit.Want(t, "nothing waits", len(s.Waiting()), 0)
		s.EndPackage(ledger.Vault, key(4), "V", 21e6)
		kit.Want(t, "bytes booked", s.Used(), 10+11+12+13)

		kit.Must(t, s.BeginPackage(ledger.Vault, key(5), "W", 300e6)) // larger than the share, and alone
		kit.Want(t, "a second beside it has no room", errors.Is(s.BeginPackage(ledger.Vault, key(6), "W", 1), ingest.ErrFull), true)
		s.EndPackage(ledger.Vault, key(5), "W", 300e6) // it was left out
		kit.Want(t, "nothing waits once it is gone", len(s.Waiting()), 0)
	})
}

// I23: a large document that waits for room and is held, closed or changed
// meanwhile keeps the smaller ones of its vault out for a bounded time, also
// where the packages that fill the share never leave. One that still waits keeps
// its place and its time.
func TestSpool_I23_AWaitEndsWithItsDocument(t *testing.T) {
	large, small := archive.Key{1, 1}, archive.Key{1, 2}
	type row struct {
		asks, removed bool
		waits         int // at the end
	}
	kit.Rows(t, map[string]row{
		"HeldOrClosed": {waits: 0},
		"Removed":      {removed: true, waits: 0},
		"StillWaits":   {asks: true, waits: 1},
	}, func(t *testing.T, row row) {
		synctest.Test(t, func(t *testing.T) {
			s := openSpool(t, t.TempDir())
			s.max, s.shares = 100e6, 1
			kit.Must(t, s.CountAll(t.Context(), func(archive.Key) (string, bool, error) { return "V", true, nil }))
			kit.Must(t, s.BeginPackage(ledger.Vault, archive.Key{1}, "V", 60e6)) // of an unclear entry: it stays
			since := time.Now()
			kit.Fails(t, "the large one has room", s.BeginPackage(ledger.Vault, large, "V", 50e6), ingest.ErrFull)
			kit.Fails(t, "a small one passes it", s.CheckSpace("V"), ingest.ErrFull)
			if row.removed {
				kit.Must(t, s.RemovePackage(ledger.Vault, large, "V"))
			} else {
				time.Sleep(askAgain)
			}
			kit.Want(t, "room for a try", s.CheckSpace("V"), nil)
			if row.asks {
				kit.Fails(t, "the large one has room", s.BeginPackage(ledger.Vault, large, "V", 50e6), ingest.ErrFull)
				kit.Fails(t, "a small one passes it", s.CheckSpace("V"), ingest.ErrFull)
			}
			kit.Must(t, s.BeginPackage(ledger.Vault, small, "V", 1e6)) // it was admitted before
			if time.Sleep(longestWait); row.asks {
				kit.Want(t, "the wait is there while it may ask", len(s.Waiting()), 1)
				kit.Want(t, "it waits since", s.Waiting()[0].Since, since)
			}
			if !row.asks {
				time.Sleep(time.Second)
			}
			kit.Want(t, "queues that wait", len(s.Waiting()), row.waits)
			kit.Want(t, "room for the next", s.CheckSpace("V"), nil)
		})
	})
}

func TestReserveFor(t *testing.T) {
	type row struct {
		running uint64
		minFree int64
		want    int64
	}
	kit.Rows(t, map[string]row{
		"NothingOnItsWay":   {0, 2_000_000_000, basicReserve},
		"ThousandOnTheir":   {1000, 2_000_000_000, basicReserve + 1000*documentReserve},
		"NeverMoreThanHalf": {10_000_000, 2_000_000_000, 1_000_000_000},
		"SmallDisk":         {10, 4 << 20, leastReserve + 10*documentReserve},
		"NoLimit":           {10, 1, leastReserve},
	}, func(t *testing.T, row row) {
		b := ledger.Balance{}
		b.States[ledger.Sending], b.States[ledger.Discovered] = row.running, 1_000_000
		kit.Want(t, "the reserve", reserveFor(b, row.minFree), row.want)
	})
}

// The lack of room is one kind of fault, wherever it is found.
func TestNoSpaceError(t *testing.T) {
	err := fmt.Errorf("not taken: %w", &NoSpaceError{Free: 1_900_000_000, MinFree: 2_000_000_000})
	if !errors.Is(err, syscall.ENOSPC) || err.Error() != "not taken: the disk of state_dir has 1900.0 MB left, min_free is 2000.0 MB; it goes on by itself at 2100.0 MB" {
		t.Error(err)
	}
}

// A person's act looks at the disk that the daemon looks at: the spool may be a mount of its own.
func TestCheckMinFree_LooksAtTheSpool(t *testing.T) {
	const other = "/dev/shm" // stands for the mount
	stateDir := t.TempDir()
	here, there := durable.FreeBytes(stateDir), durable.FreeBytes(other)
	if there < 0 || here-there < 100e6 && there-here < 100e6 {
		t.Skip("no second disk with another amount of free space")
	}
	kit.Fails(t, "a state directory without a spool is not looked at", CheckMinFree(stateDir, 1<<62))
	kit.Must(t, os.Symlink(other, filepath.Join(stateDir, statedir.SpoolFolder)))
	lacks, ok := errors.AsType[*NoSpaceError](CheckMinFree(stateDir, 1<<62))
	kit.Check(t, ok && lacks.Free-there <= 50e6 && there-lacks.Free <= 50e6,
		"%+v; the spool's disk has %d, the other one %d", lacks, there, here)
}

// One line for each change, however often it is asked, and a little more room than was missing before it goes on.
func TestDisk_OneLineForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		k := NewDisk(t.TempDir(), 1<<60, nil, time.Now, slog.New(slog.NewTextHandler(&log, nil)))
		kit.Must(t, os.Mkdir(k.path, 0o700))
		for range 100 {
			kit.Need(t, k.CheckSpace() != nil && !k.FullSince().IsZero(), "there is room")
			time.Sleep(3 * time.Second)
		}
		k.minFree = 1
		for range 100 {
			err := k.CheckSpace()
			kit.Need(t, err == nil && k.FullSince().IsZero(), "err = %v, want no error, k.FullSince().IsZero()", err)
		}
		for words, want := range map[string]int{"nothing new is taken or packed": 1, "has room again": 1} {
			kit.Want(t, fmt.Sprintf("%q was logged", words), strings.Count(log.String(), words), want)
		}
	})
}
