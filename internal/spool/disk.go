package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/statedir"
)

// growingLedger is the part of the ledger that needs space on the disk.
type growingLedger interface {
	Balance() ledger.Balance
	Reserve(bytes int64) (held int64, err error)
}

// Disk watches the free space on the disk of the state directory. Below min_free nothing
// new is taken or packed; running work goes on, and its outcomes are recorded in
// space that is reserved for the ledger and that nobody else can take. Both
// go on by themselves once there is space again.
type Disk struct {
	path    string // of the spool, which may be a mount of its own
	minFree int64
	ledger  growingLedger
	now     func() time.Time
	log     *slog.Logger
	wake    chan struct{} // size 1: the ledger has grown

	mu        sync.Mutex
	fullSince time.Time // since when there is less than min_free; zero: there is more; guarded by mu
	grown     int       // changes committed since the reserve was last checked; guarded by mu
	held      int64     // bytes that are reserved for the ledger; guarded by mu
	wanted    int64     // bytes that should be; guarded by mu
	short     bool      // the disk had no more to give; guarded by mu
	trouble   string    // why the reserve is not whole, as it was logged; guarded by mu
	blocked   bool      // nothing is begun before a first reserve is held; guarded by mu
}

const (
	leastReserve     = 1 << 20
	basicReserve     = 16 << 20
	firstReserve     = 256 << 10 // less would not do for one commit
	documentReserve  = 4 << 10   // what the outcomes of one document on its way take in the ledger, and more
	reserveChanges   = 256       // committed changes after which the reserve is checked
	reserveInterval  = 5 * time.Minute
	reserveWhenShort = 5 * time.Second
)

// NewDisk watches the disk of a state directory for a ledger.
func NewDisk(stateDir string, minFree int64, l growingLedger, now func() time.Time, log *slog.Logger) *Disk {
	return &Disk{path: filepath.Join(stateDir, statedir.SpoolFolder), minFree: minFree, ledger: l, now: now, log: log, wake: make(chan struct{}, 1)}
}

// NoSpaceError says that nothing is taken or packed because the disk of the state
// directory has less than min_free. It is a syscall.ENOSPC.
type NoSpaceError struct{ Free, MinFree int64 } // bytes

// Error implements error.
func (e *NoSpaceError) Error() string {
	return fmt.Sprintf("the disk of state_dir has %s left, min_free is %s; it goes on by itself at %s",
		formatMegabytes(e.Free), formatMegabytes(e.MinFree), formatMegabytes(resumeAt(e.MinFree)))
}

// Unwrap makes it a lack of space like any other.
func (e *NoSpaceError) Unwrap() error { return syscall.ENOSPC }

// resumeAt is the free space at which work goes on: a little more than where it stopped, or each package that
// leaves would let one more in, and it would stop and go on every second.
func resumeAt(minFree int64) int64 { return minFree + minFree/20 }

func formatMegabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/archive.MB) }

// CheckMinFree returns a *NoSpaceError where the disk of a state directory has less than minFree. Like [Disk], it looks at the spool, which
// may be a mount of its own, and at the state directory itself before the spool is made.
func CheckMinFree(stateDir string, minFree int64) error {
	free := durable.FreeBytes(filepath.Join(stateDir, statedir.SpoolFolder))
	if free < 0 {
		free = durable.FreeBytes(stateDir)
	}
	if free >= 0 && free < minFree {
		return &NoSpaceError{Free: free, MinFree: minFree}
	}
	return nil
}

// CheckSpace returns a *NoSpaceError while nothing new may come in, else nil. It logs each change.
func (k *Disk) CheckSpace() error {
	free, least := durable.FreeBytes(k.path), k.minFree
	k.mu.Lock()
	defer k.mu.Unlock()
	wasFull := !k.fullSince.IsZero()
	switch {
	case free < 0 || free >= least && !wasFull || free >= resumeAt(least):
		if wasFull {
			k.fullSince = time.Time{}
			k.log.Info("the disk of state_dir has room again: taking and packing go on", "free", formatMegabytes(free))
		}
		return nil
	case !wasFull:
		k.fullSince = k.now()
		k.log.Error("nothing new is taken or packed: the disk of state_dir has less than min_free; uploads go on, their outcomes are recorded",
			"free", formatMegabytes(free), "min_free", formatMegabytes(least))
	}
	return &NoSpaceError{free, least}
}

// Free returns the bytes that are free on the disk; -1: unknown.
func (k *Disk) Free() int64 { return durable.FreeBytes(k.path) }

// MinFree returns the bytes that must stay free.
func (k *Disk) MinFree() int64 { return k.minFree }

// FullSince returns since when nothing is taken for want of space; zero: things are taken.
func (k *Disk) FullSince() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fullSince
}

// NoteLedgerGrowth says that the ledger has grown by n changes. It never blocks.
func (k *Disk) NoteLedgerGrowth(n int) {
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

// AwaitReserve returns true once enough is reserved for the ledger to begin with: on a disk
// that is entirely full the first commit would fail, and the start after it as well. It
// returns false when ctx ends first.
func (k *Disk) AwaitReserve(ctx context.Context) bool {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer k.unblock()
	for !k.CanBegin() {
		if wasBlocked := k.block(); !wasBlocked {
			k.log.Error("the disk of state_dir is full: nothing is taken, sent or asked before there is room; it goes on by itself")
		}
		timer.Reset(reserveWhenShort)
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
	}
	return true
}

// CanBegin reports whether the ledger can be trusted with its first commit.
func (k *Disk) CanBegin() bool {
	if k.reserveSpace() {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.short || k.held >= min(k.wanted, firstReserve)
}

// block notes that work waits for a first reserve, and reports whether it did before.
func (k *Disk) block() (wasBlocked bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wasBlocked, k.blocked = k.blocked, true
	return wasBlocked
}

// unblock notes that no work waits for a first reserve.
func (k *Disk) unblock() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.blocked = false
}

// KeepReserve keeps the ledger's reserve whole until ctx ends, and notices when there is
// space again.
func (k *Disk) KeepReserve(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		}
		whole := k.reserveSpace()
		wait := reserveInterval
		if k.CheckSpace() != nil || !whole {
			wait = reserveWhenShort
		}
		timer.Reset(wait)
	}
}

// reserveSpace reserves what the ledger may need and reports whether that is whole.
func (k *Disk) reserveSpace() bool {
	wanted := reserveFor(k.ledger.Balance(), k.minFree)
	if k.isWhole(wanted) {
		return true
	}
	// A crash here leaves what the file system gave: the next start asks for the same again.
	held, err := k.ledger.Reserve(wanted)
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
			k.log.Info("the ledger's reserve is whole again", "held", formatMegabytes(held))
		} else {
			k.log.Warn(trouble, "held", formatMegabytes(held), "wanted", formatMegabytes(wanted))
		}
	}
	return trouble == "" || errors.Is(err, errors.ErrUnsupported)
}

// reserveFor returns how much space the outcomes of all running work may take, with
// what one commit needs; never more than half of what is to stay free.
func reserveFor(b ledger.Balance, minFree int64) int64 {
	var running uint64
	for s := ledger.Packaged; s <= ledger.Unclear; s++ {
		running += b.States[s]
	}
	base := min(max(minFree/8, leastReserve), basicReserve)
	return max(base, min(base+int64(running)*documentReserve, minFree/2)) // far below 2^63
}

// isWhole reports whether all that is wanted was held at the last check, and the
// ledger has not grown since: what is reserved nobody else can take.
func (k *Disk) isWhole(wanted int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.grown == 0 && k.trouble == "" && k.wanted == wanted && k.held >= wanted
}

// IsBlocked reports whether nothing was begun yet for want of space.
func (k *Disk) IsBlocked() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.blocked
}

// Reserved returns the bytes that are reserved for the ledger, and those that should be.
func (k *Disk) Reserved() (held, wanted int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held, k.wanted
}
