package campaign

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// foreignText is a file of somebody else that lies in the catalog's place.
const foreignText = "the only copy of somebody's notes"

// spoilCatalog does to the catalog of a dead program what disks and people do to it.
func (c *campaign) spoilCatalog() {
	c.t.Helper()
	path := c.path("state", catalog.FileName)
	info, err := os.Lstat(path)
	if err != nil {
		return // a life was too short to make one
	}
	if b, err := os.ReadFile(path); err == nil && string(b) == foreignText {
		return // a life was too short to move it away: what is done to it now is not the program's doing
	}
	how := []string{"left alone", "left alone", "removed", "its log removed", "cut", "overwritten", "replaced by a foreign file", diskFull, diskFull}[c.r.IntN(9)]
	switch how {
	case "left alone":
		return
	case "removed":
		kit.Must(c.t, os.Remove(path))
	case "its log removed":
		if os.Remove(path+"-wal") != nil {
			return // there was none
		}
	case "cut":
		kit.Must(c.t, os.Truncate(path, info.Size()/2))
	case "overwritten":
		if info.Size() < 4096 {
			return // a life was too short to write its first page, which makes it ours
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		kit.Must(c.t, err)
		_, err = f.WriteAt(bytes.Repeat([]byte{0xee}, 8192), 4096*(1+c.r.Int64N(max(info.Size()/4096-1, 1))))
		kit.Must(c.t, err)
		kit.Must(c.t, f.Close())
	case "replaced by a foreign file":
		kit.Must(c.t, os.Remove(path))
		kit.Must(c.t, os.WriteFile(path, []byte(foreignText), 0o600))
		c.foreign++
	case diskFull:
		c.fillDisk()
		return // it counts once the next life has met it
	}
	c.spoilt[how]++
}

const diskFull = "on a full disk"

// leastFree is the free space below which the work stops, as the campaign configures it.
const leastFree = "min_free: 1MB"

// fillDisk lets the next life have too little room for the catalog and enough for its work: what is free lies between spool.min_free and
// a tenth more.
func (c *campaign) fillDisk() {
	c.t.Helper()
	var s syscall.Statfs_t
	kit.Must(c.t, syscall.Statfs(c.path("state"), &s))
	b := kit.Value(os.ReadFile(c.config))(c.t)
	c.roomy = b
	full := bytes.Replace(b, []byte(leastFree), fmt.Appendf(nil, "min_free: %dMB", s.Bavail*uint64(s.Bsize)/1_050_000), 1)
	kit.Must(c.t, os.WriteFile(c.config, full, 0o640))
}

// emptyDisk ends a full disk, and reports whether there was one.
func (c *campaign) emptyDisk() (wasFull bool) {
	c.t.Helper()
	if c.roomy == nil {
		return false
	}
	kit.Must(c.t, os.WriteFile(c.config, c.roomy, 0o640))
	c.roomy = nil
	return true
}

// countFull counts a life with a full disk where its catalog met it: a short life may end before, and one that found no catalog makes a
// small one without asking.
func (c *campaign) countFull(log string) {
	c.t.Helper()
	b := kit.Value(os.ReadFile(log))(c.t)
	if bytes.Contains(b, []byte("which the catalog leaves to the work")) {
		c.spoilt[diskFull]++
	}
}

// askCatalog starts a catalog on a copy of what a death left, and holds its answers against the ledger.
func (c *campaign) askCatalog(dir string, l *boltledger.Ledger, entries []ledger.Entry) error {
	ctx, stop := context.WithCancel(c.t.Context())
	zone := kit.Value(time.LoadLocation("Europe/Berlin"))(c.t) // that of a configuration without a time zone: for another one the file would be made anew
	cat := catalog.New(catalog.Config{StateDir: dir, Ledger: l, Location: zone, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	done := make(chan struct{})
	go func() { defer close(done); cat.Run(ctx) }()
	defer func() { stop(); <-done }()
	kit.Await(c.t, "the catalog", func() bool { return cat.Status().Describe() == "" })
	for range min(len(entries), 20) {
		e := entries[c.r.IntN(len(entries))]
		words := strings.Fields(e.Folder)
		if c.r.IntN(4) == 0 {
			words = []string{e.Key.String()}
		}
		q := catalog.NewQuery(words)
		var want, got []archive.Key
		for _, e := range entries {
			doc, _, err := l.Document(e.Key)
			if err != nil {
				return err
			}
			if hit, err := q.Match(e, doc); err != nil {
				return err
			} else if hit != nil {
				want = append(want, e.Key)
			}
		}
		slices.SortFunc(want, func(a, b archive.Key) int { return bytes.Compare(b[:], a[:]) })
		err := cat.Search(ctx, q, archive.Key{}, func(string) {}, func(h catalog.Hit) error { got = append(got, h.Entry.Key); return nil })
		if err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("find %q gives %v, %v, the ledger holds %v", words, got, err, want)
		}
		c.searches++
	}
	return nil
}

// countForeign holds what is not ours to its bytes: it was moved away, and nothing else was done to it.
func (c *campaign) countForeign() {
	c.t.Helper()
	moved := kit.Value(filepath.Glob(c.path("state", catalog.FileName+".foreign-*")))(c.t)
	moved = slices.DeleteFunc(moved, func(p string) bool {
		return strings.HasSuffix(p, "-wal") || strings.HasSuffix(p, "-shm") || strings.HasSuffix(p, "-journal")
	})
	for _, path := range moved {
		b := kit.Value(os.ReadFile(path))(c.t)
		kit.Check(c.t, string(b) == foreignText || bytes.HasPrefix(b, []byte{0xee}), "%s holds %q", path, b)
	}
	kit.Check(c.t, len(moved) >= c.foreign,
		"%d foreign files lay in the catalog's place, %d were moved away", c.foreign, len(moved))
}
