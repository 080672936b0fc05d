package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pendingDocuments are open in the ledgers that vaultd is restarted on.
const pendingDocuments = 1000

// restartRows measure the time from the start of the process to the first yes of /readyz, with the ledger's file out of
// the page cache, and with it in. The service is not there: nobody waits for it. It is the filled ledger itself and no copy:
// vaultd has started on it before, in the warm-up at the latest, and writes next to nothing to it.
func (b *bench) restartRows() []row {
	small, large := b.scaleForQuick(smallLedger), b.scaleForQuick(largeLedger)
	pending := min(pendingDocuments, small)
	rows := []row{}
	for _, cold := range []bool{true, false} {
		word, missing := "warm", ""
		inCache := count{"ledger in memory before, MB", figureOfRow("resident_mb"), "told", nil}
		if cold {
			word = "cold"
			inCache.Want, inCache.Holds = "<= 1", atMost(1)
			if inMemory(b.work) {
				missing = "the work directory lies in memory, where no file is ever cold"
			}
		}
		rows = append(rows, row{ID: "restart-" + word, Goal: "G8", Missing: missing,
			Title: fmt.Sprintf("start to ready, file %s, %d documents under way: ledger of %s and of %s", word, pending, short(large), short(small)),
			A:     side{short(large) + " documents", b.restart(large, pending, cold)},
			B:     side{short(small) + " documents", b.restart(small, pending, cold)}, Warmup: 1, Pairs: b.manyPairs(),
			Ratios: []ratio{{"time to ready", wallRatio, "<= 2", atMost(2)}},
			Counts: []count{
				{"time to ready, ms", func(s sample) float64 { return float64(s.Wall.Microseconds()) / 1000 }, "<= 100", atMost(100)},
				{"CPU to ready, ms", func(s sample) float64 { return float64(s.CPU.Microseconds()) / 1000 }, "told", nil},
				inCache,
			}})
	}
	return rows
}

func (b *bench) restart(docs, open int, cold bool) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		state, err := b.ledger(ctx, docs, open)
		if err != nil {
			return s, err
		}
		drop := filepath.Join(dir, "drop")
		if err := os.Mkdir(drop, 0o770); err != nil {
			return s, err
		}
		in, err := b.installVaultd(ctx, dir, setup{URL: "https://" + ledgerAddress, Drops: []string{drop}, State: state, Calm: true})
		if err != nil {
			return s, err
		}
		unix.Sync() // what was written before, by others too, is not being written while it starts
		resident, err := cacheState(filepath.Join(state, "ledger.db"), cold)
		if err != nil {
			return s, err
		}
		s.noteFigure("resident_mb", float64(resident)/1e6)
		p, err := in.startDaemon(ctx)
		if err != nil {
			return s, err
		}
		defer p.kill()
		limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		if s.Wall, err = p.awaitReady(limited); err != nil {
			return s, err
		}
		if s.CPU, err = p.readCPU(); err != nil {
			return s, err
		}
		s.Docs = docs
		_, s.PeakAnon, _ = p.gauge.readMemory()
		return s, p.stop()
	}
}

// cacheState takes a file out of the page cache, or reads it all so that it is in, and returns how many of its bytes
// are in it then.
func cacheState(path string, cold bool) (resident int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() // read-only
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if cold {
		err = errors.Join(unix.Fsync(int(f.Fd())), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	} else {
		buf := make([]byte, 1<<20)
		for n := 1; n > 0; {
			n, _ = f.Read(buf)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("evict %s: %w", path, err)
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("map %s: %w", path, err)
	}
	page := int64(os.Getpagesize())
	pages := make([]byte, (info.Size()+page-1)/page)
	_, _, fault := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(len(mapped)), uintptr(unsafe.Pointer(&pages[0])))
	if fault != 0 {
		err = fmt.Errorf("ask what of %s is in memory: %w", path, fault)
	}
	for _, p := range pages {
		if p&1 != 0 {
			resident += page
		}
	}
	return resident, errors.Join(err, unix.Munmap(mapped))
}

// inMemory reports whether a directory lies on a file system that has no disk.
func inMemory(dir string) bool {
	for {
		var st unix.Statfs_t
		err := unix.Statfs(dir, &st)
		if errors.Is(err, os.ErrNotExist) && dir != "/" && dir != "." {
			dir = filepath.Dir(dir) // not made yet
			continue
		}
		return err == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC)
	}
}
