package ledger

import (
	"errors"
	"fmt"
)

// These errors say what is wrong with a stored ledger as a whole. boltledger returns them; code that only reports them does not import it.
var (
	// ErrMissing says that there is no ledger where one should be.
	ErrMissing = errors.New("the ledger is missing")
	// ErrExists says that a ledger is there, or was: no new one is made over it.
	ErrExists = errors.New("a ledger exists already")
	// ErrOtherLedger is returned where a ledger is to be put back and another one is, or was, in its place.
	ErrOtherLedger = errors.New("another ledger is in its place")
	// ErrLocked says that another process has the ledger open.
	ErrLocked = errors.New("the ledger is in use by another process")
	// ErrLeftOpen says that a process ended with the ledger open, and that its
	// pages are unchecked since.
	ErrLeftOpen = errors.New("a process ended with the ledger open, and its pages are unchecked since")
	// ErrRolledBack says that the ledger is older than its outside head: somebody put
	// an old copy back, or the disk lost what it had acknowledged.
	ErrRolledBack = errors.New("the ledger is older than its outside head")
	// ErrNewerSchema says that a later vaultd wrote the ledger.
	ErrNewerSchema = errors.New("the ledger was written by a newer vaultd")
	// ErrDevelopment says that the ledger has a form that was never released.
	ErrDevelopment = errors.New("the ledger was made by a development version of vaultd, and this version does not read its form")
	// ErrClosed is the result of a change that came after Close.
	ErrClosed = errors.New("the ledger is closed")
)

// DamageError says that the ledger cannot be what was written.
type DamageError struct{ What string }

// Error implements error.
func (e *DamageError) Error() string { return "the ledger is damaged: " + e.What }

// LostError says that the file that a running vaultd writes to is no longer the
// one in its state directory.
type LostError struct {
	File    string
	Gone    bool // nothing is in its place; else another file is
	PutBack bool // a copy of what was open is in its place now
}

// Error implements error.
func (e *LostError) Error() string {
	switch {
	case e.PutBack:
		return "the ledger was deleted or moved away while vaultd ran; a copy of what vaultd had open is in its place now, and the next start continues with it"
	case e.Gone:
		return e.File + " was deleted or moved away while vaultd runs"
	}
	return "another file is in the place of " + e.File + " while vaultd runs"
}

// Problem is one thing that a check found wrong with a stored ledger.
type Problem struct {
	Where string // the bucket
	What  string
}

// String returns the problem as one line of text.
func (p Problem) String() string { return p.Where + ": " + p.What }

// BudgetError says that the month has no download left.
type BudgetError struct{ Used, Allowed uint64 }

// Error implements error.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("%d of %d downloads of this month are used", e.Used, e.Allowed)
}
