package spool

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/statedir"
	"vaultd/internal/test/kit"
)

func TestReserveFor(t *testing.T) {
	for name, row := range map[string]struct {
		running uint64
		minFree int64
		want    int64
	}{
		"NothingOnItsWay":   {0, 2_000_000_000, basicReserve},
		"ThousandOnTheir":   {1000, 2_000_000_000, basicReserve + 1000*documentReserve},
		"NeverMoreThanHalf": {10_000_000, 2_000_000_000, 1_000_000_000},
		"SmallDisk":         {10, 4 << 20, leastReserve + 10*documentReserve},
		"NoLimit":           {10, 1, leastReserve},
	} {
		t.Run(name, func(t *testing.T) {
			b := ledger.Balance{}
			b.States[ledger.Sending], b.States[ledger.Discovered] = row.running, 1_000_000
			kit.Want(t, "the reserve", reserveFor(b, row.minFree), row.want)
		})
	}
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
