package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// disk watches the room on the disk of the state directory. Below min_free nothing
// new is taken or packed; what is on its way goes on, and its outcomes are recorded in
// room that the disk has set aside for the ledger and that nobody else can take. Both
// mend themselves once there is room again.
type disk struct {
	d    *Daemon
	wake chan struct{} // size 1: the ledger has grown

	mu      sync.Mutex
	since   time.Time // since when there is less than min_free; zero: there is more; guarded by mu
	grown   int       // changes committed since the reserve was last seen to; guarded by mu
	held    int64     // bytes that are set aside for the ledger; guarded by mu
	wanted  int64     // guarded by mu
	short   bool      // the disk had no more to give; guarded by mu
	trouble string    // why the reserve is not whole, as it was told; guarded by mu
	waits   bool      // nothing is begun before some of it is held; guarded by mu
}

const (
	leastReserve   = 1 << 20
	basicReserve   = 16 << 20
	firstReserve   = 256 << 10 // less would not do for one commit
	documentRoom   = 4 << 10   // what the outcomes of one document on its way take in the ledger, and more
	reserveChanges = 256       // committed changes after which the reserve is seen to
	reserveCalm    = 5 * time.Minute
	reserveTight   = 5 * time.Second
)

func newDisk(d *Daemon) *disk { return &disk{d: d, wake: make(chan struct{}, 1)} }

// NoRoomError says that nothing is taken or packed because the disk of the state
// directory has less than min_free. It is a syscall.ENOSPC.
type NoRoomError struct{ Free, MinFree int64 } // bytes

// Error implements error.
func (e *NoRoomError) Error() string {
	return fmt.Sprintf("the disk of state_dir has %s left, min_free is %s; it goes on by itself at %s",
		megabytes(e.Free), megabytes(e.MinFree), megabytes(enough(e.MinFree)))
}

// Unwrap makes it a lack of room like any other.
func (e *NoRoomError) Unwrap() error { return syscall.ENOSPC }

// enough is where it goes on: a little above where it stopped, or each package that
// goes would let one more in, and it would stop and go on every second.
func enough(minFree int64) int64 { return minFree + minFree/20 }

// room returns a *NoRoomError while nothing new may come in, else nil.
func (k *disk) room() error {
	left, least := free(k.d.spool.dir), k.d.cfg.SpoolMinFree
	k.mu.Lock()
	defer k.mu.Unlock()
	was := !k.since.IsZero()
	switch {
	case left < 0 || left >= least && !was || left >= enough(least):
		if was {
			k.since = time.Time{}
			k.d.cfg.Log.Info("the disk of state_dir has room again: taking and packing go on", "free", megabytes(left))
		}
		return nil
	case !was:
		k.since = k.d.cfg.Now().Wall
		k.d.cfg.Log.Error("nothing new is taken or packed: the disk of state_dir has less than min_free; uploads go on, their outcomes are recorded",
			"free", megabytes(left), "min_free", megabytes(least))
	}
	return &NoRoomError{left, least}
}

// roomToPack says why nothing of a vault may be packed just now.
func (d *Daemon) roomToPack(v archive.VaultID) error {
	if err := d.disk.room(); err != nil {
		return err
	}
	return d.spool.room(v)
}

// full tells since when nothing is taken for want of room; zero: it is.
func (k *disk) full() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.since
}

// committed says that the ledger has grown by n changes. It never blocks.
func (k *disk) committed(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.grown += n; k.grown < reserveChanges {
		return
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// await returns true once enough is set aside for the ledger to begin with: on a disk
// that is entirely full the first commit would fail, and the start after it as well. It
// returns false when ctx ends first.
func (k *disk) await(ctx context.Context) bool {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer k.waiting(false)
	for !k.begin() {
		if k.waiting(true) {
			k.d.cfg.Log.Error("the disk of state_dir is full: nothing is taken, sent or asked before there is room; it goes on by itself")
		}
		timer.Reset(reserveTight)
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
	}
	return true
}

// begin reports whether the ledger can be trusted with its first commit.
func (k *disk) begin() bool {
	if k.reserve() {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.short || k.held >= min(k.wanted, firstReserve)
}

// waiting notes that nothing is begun yet, and reports whether that is new.
func (k *disk) waiting(is bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.waits
	k.waits = is
	return is && !was
}

// keep holds the ledger's reserve whole until ctx ends, and notices when there is
// room again.
func (k *disk) keep(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		}
		whole := k.reserve()
		wait := reserveCalm
		if k.room() != nil || !whole {
			wait = reserveTight
		}
		timer.Reset(wait)
	}
}

// reserve sets aside what the ledger may need and reports whether it is whole.
func (k *disk) reserve() bool {
	wanted := reserveFor(k.d.ledger.Balance(), k.d.cfg.SpoolMinFree)
	if k.whole(wanted) {
		return true
	}
	held, err := k.d.ledger.Reserve(wanted)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.grown, k.held, k.wanted, k.short = 0, held, wanted, err == nil && held < wanted
	trouble := ""
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		trouble = "the file system of state_dir cannot set room aside for the ledger; should it fill up entirely, vaultd stops until there is room"
	case err != nil:
		trouble = err.Error()
	case k.short:
		trouble = "the disk of state_dir is too full to set aside what the ledger may need"
	}
	if trouble != k.trouble {
		if k.trouble = trouble; trouble == "" {
			k.d.cfg.Log.Info("the ledger's reserve is whole again", "held", megabytes(held))
		} else {
			k.d.cfg.Log.Warn(trouble, "held", megabytes(held), "wanted", megabytes(wanted))
		}
	}
	return trouble == "" || errors.Is(err, errors.ErrUnsupported)
}

// reserveFor is how much room the outcomes of all that is on its way may take, with
// what one commit needs; never more than half of what is to stay free.
func reserveFor(b ledger.Balance, minFree int64) int64 {
	var way uint64
	for s := ledger.Packaged; s <= ledger.Unclear; s++ {
		way += b.States[s]
	}
	base := min(max(minFree/8, leastReserve), basicReserve)
	return max(base, min(base+int64(way)*documentRoom, minFree/2)) //nolint:gosec // far below 2^63
}

// whole reports whether all that is wanted was held when it was last seen to, and the
// ledger has not grown since: what is set aside nobody else can take.
func (k *disk) whole(wanted int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.grown == 0 && k.trouble == "" && k.wanted == wanted && k.held >= wanted
}

// idle reports whether nothing was begun for want of room.
func (k *disk) idle() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waits
}

// state is what is set aside, and what should be.
func (k *disk) state() (held, wanted int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held, k.wanted
}
