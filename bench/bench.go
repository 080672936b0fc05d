package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// bench is one use of the program: where it works, on what, and how often.
type bench struct {
	work   string // holds data sets, ledgers and programs, which are made once, and what a run needs
	quick  bool   // a tenth of everything
	pairs  int    // of a row that does not say itself
	seed   uint64 // of all data
	vaultd string // path of the program that is measured; empty: not yet built
	slow   string // and of the one with a slow ledger
	named  bool   // vaultd was named and not built, so that there is none with a slow ledger
	log    *slog.Logger

	weights map[string]weight // what sets weigh when they are packed, by set and level
}

// scaleForQuick gives n, or a tenth of it where the bench is quick.
func (b *bench) scaleForQuick(n int) int {
	if b.quick {
		return max(n/10, 1)
	}
	return n
}

// fewPairs is how many pairs a row has that takes long and only tells.
func (b *bench) fewPairs() int {
	if b.quick {
		return 1
	}
	return min(b.pairs, 2)
}

// manyPairs is how many pairs a row has whose times are short and lie far apart, whatever the others have.
func (b *bench) manyPairs() int {
	if b.quick {
		return b.pairs
	}
	return max(b.pairs, 5)
}

// costlyPairs is how many pairs a row has that is judged and would take longer than a row may.
func (b *bench) costlyPairs() int { return min(b.pairs, 3) }

// makeRunDir makes a fresh, empty directory for one run of one side. It holds nothing that is anybody else's, so drop
// removes it whole.
func (b *bench) makeRunDir(name string) (dir string, drop func() error, err error) {
	if dir, err = os.MkdirTemp(b.work, "run-"+name+"-"); err != nil {
		return "", nil, fmt.Errorf("make a directory for a run: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil //lint:ignore forbidigo made above, by us and for us
}

// lockWorkDir makes the work directory this bench's alone until release is called, and removes what runs left in it that were
// killed: their folders are named so by scratch.
func (b *bench) lockWorkDir() (release func(), err error) {
	lock, err := os.OpenFile(filepath.Join(b.work, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("claim the work directory: %w", err)
	}
	release = func() { _ = lock.Close() } // still unwritten
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		release()
		return nil, fmt.Errorf("another vaultbench works in %s: %w", b.work, err)
	}
	left, err := filepath.Glob(filepath.Join(b.work, "run-*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir)) //lint:ignore forbidigo of a run of ours that nobody ended
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("remove what earlier runs left: %w", err)
	}
	return release, nil
}

// makeOnce makes something in the work directory unless an earlier use of the bench has made it: the directory of that
// name counts as whole when a file NAME.whole lies beside it, which is written last.
func (b *bench) makeOnce(ctx context.Context, name string, fill func(ctx context.Context, dir string) error) (string, error) {
	dir := filepath.Join(b.work, name)
	whole := filepath.Join(b.work, name+".whole")
	if _, err := os.Stat(whole); err == nil {
		return dir, nil
	}
	b.log.Info("making", "what", name)
	if err := os.RemoveAll(dir); err != nil { //lint:ignore forbidigo an earlier attempt of ours that did not end
		return "", fmt.Errorf("make %s: %w", name, err)
	}
	if err := os.MkdirAll(dir, 0o770); err != nil {
		return "", fmt.Errorf("make %s: %w", name, err)
	}
	if err := fill(ctx, dir); err != nil {
		return "", fmt.Errorf("make %s: %w", name, err)
	}
	return dir, os.WriteFile(whole, nil, 0o600)
}
