package daemon

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
)

func TestReserveFor(t *testing.T) {
	for name, row := range map[string]struct {
		way     uint64
		minFree int64
		want    int64
	}{
		"NothingOnItsWay":   {0, 2_000_000_000, basicReserve},
		"ThousandOnTheir":   {1000, 2_000_000_000, basicReserve + 1000*documentRoom},
		"NeverMoreThanHalf": {10_000_000, 2_000_000_000, 1_000_000_000},
		"SmallDisk":         {10, 4 << 20, leastReserve + 10*documentRoom},
		"NoLimit":           {10, 1, leastReserve},
	} {
		t.Run(name, func(t *testing.T) {
			b := ledger.Balance{}
			b.States[ledger.Sending], b.States[ledger.Discovered] = row.way, 1_000_000
			if got := reserveFor(b, row.minFree); got != row.want {
				t.Errorf("%d, want %d", got, row.want)
			}
		})
	}
}

// I24: whatever the disk of a drop folder answers, nothing is rejected and nothing is lost; it is told in words, once,
// and goes on by itself.
func TestDisk_I24_DropDiskFails(t *testing.T) {
	for name, row := range map[string]struct {
		err   error
		words string // for a clerk
	}{
		"Full":     {syscall.ENOSPC, "this share's disk is full"},
		"Quota":    {syscall.EDQUOT, "this share's disk is full"},
		"ReadOnly": {syscall.EROFS, ": this share is read-only; ask IT"},
		"IOError":  {syscall.EIO, "cannot be taken since 00:0"},
	} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Bool
			broken.Store(true)
			faulty := durable.Hook(func(op, name string, do func() error) error {
				if broken.Load() && (op == "mkdir" || op == "rename") && !strings.HasPrefix(name, "_") && name != ".vaultd" && name != "claimed" && name != "drop.json" {
					return fmt.Errorf("%s %s: %w", op, name, row.err)
				}
				return do()
			})
			inHouseWith(t, func(c *Config) { c.FileFault = faulty }, func(h *house) {
				h.drop("Huber 1", "1", "a", false)
				h.drop("Huber 2", "2", "b", false)
				h.pass()
				if b := h.d.ledger.Balance(); b.Seen != 0 {
					t.Errorf("%v", b)
				}
				if s := h.status(); !strings.Contains(s, row.words) {
					t.Errorf("not told: %s", s)
				}
				if n := strings.Count(h.log.String(), "level=ERROR"); n == 0 || n > 2 {
					t.Errorf("%d errors were logged: %s", n, h.log.String())
				}
				broken.Store(false)
				h.pass()
				if b := h.d.ledger.Balance(); b.States[ledger.Archived] != 2 {
					t.Errorf("%v", b)
				}
			})
		})
	}
}

// The lack of room is one kind of fault, wherever it is found.
func TestNoRoomError(t *testing.T) {
	err := fmt.Errorf("not taken: %w", &NoRoomError{Free: 1_900_000_000, MinFree: 2_000_000_000})
	if !errors.Is(err, syscall.ENOSPC) || err.Error() != "not taken: the disk of state_dir has 1900.0 MB left, min_free is 2000.0 MB; it goes on by itself at 2100.0 MB" {
		t.Error(err)
	}
}

// One line for each change, however often it is asked, and a little more room than was missing before it goes on.
func TestDisk_OneLineForEachChange(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		of := &Daemon{cfg: h.d.cfg, ledger: h.d.ledger, spool: h.d.spool} // one that nothing else asks
		k, had := newDisk(of), of.cfg.SpoolMinFree
		of.cfg.SpoolMinFree = 1 << 60
		for range 100 {
			if k.room() == nil || k.full().IsZero() {
				t.Fatal("there is room")
			}
			time.Sleep(3 * time.Second)
		}
		of.cfg.SpoolMinFree = had
		for range 100 {
			if err := k.room(); err != nil || !k.full().IsZero() {
				t.Fatal(err)
			}
		}
		for words, want := range map[string]int{"nothing new is taken or packed": 1, "has room again": 1} {
			if n := strings.Count(h.log.String(), words); n != want {
				t.Errorf("%q was logged %d times", words, n)
			}
		}
	})
}
