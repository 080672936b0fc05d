// Package faults makes each operation of a piece of work fail once: an
// operation on files, a commit of the ledger, a call to a service.
package faults

import (
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Fault is one fault at one operation: the operation fails, or it succeeds and
// reports a failure, or the disk is full.
type Fault struct {
	Done bool // the operation succeeds and reports a failure
	Full bool // the operation fails as on a full disk; only those on files count
	On   bool // operations count from now on

	mu    sync.Mutex
	at    int
	left  int
	fired string
}

// EachOperation calls run with a fault at its first operation, then step
// operations later, and so on to its last one, for each kind of fault. The test
// fails if there are fewer operations than least.
func EachOperation(t *testing.T, step, least int, run func(f *Fault)) {
	t.Helper()
	for _, kind := range []struct{ done, full bool }{{}, {done: true}, {full: true}} {
		for n := 1; ; n += step {
			f := &Fault{Done: kind.done, Full: kind.full, at: n, left: n}
			if run(f); t.Failed() {
				t.Fatalf("the fault was %s", f)
			}
			if f.fired == "" {
				if n <= least && !f.Full {
					t.Fatalf("%d operations, want at least %d: the test shows nothing", n-1, least)
				}
				break
			}
		}
	}
}

// Fired returns the operation that failed, empty before that.
func (f *Fault) Fired() string { return f.fired }

// String names the fault in messages.
func (f *Fault) String() string {
	return fmt.Sprintf("at operation %d (%s), done %t, full disk %t", f.at, f.fired, f.Done, f.Full)
}

// Hit counts an operation, and reports whether it is the one to fail.
func (f *Fault) Hit(op string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.On {
		return false
	}
	if f.left--; f.left == 0 {
		f.fired = op
	}
	return f.left == 0
}

// File is the hook of a folder of package durable.
func (f *Fault) File(op, name string, do func() error) error {
	switch {
	case !f.Hit(op + " " + name):
		return do()
	case f.Done:
		_ = do()
	case f.Full:
		return unix.ENOSPC
	}
	return unix.EIO
}

// Commit is the fault of a boltledger.Config.
func (f *Fault) Commit(op string) error {
	if op == map[bool]string{false: "commit", true: "committed"}[f.Done] && !f.Full && f.Hit(op) {
		return unix.EIO
	}
	return nil
}
