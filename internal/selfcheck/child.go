package selfcheck

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// A damaged page may end the process that reads it, and a large ledger may fill
// its memory. So a child checks a copy: this program again, with the copy as its
// descriptor 3, the question on its standard input and the answer on its
// standard output, both encoded by encoding/gob. It ends with its parent. The
// system ends it before any other process if memory is short.

// ChildCommand is the argument of a process that must call PrepareChild and RunChild.
const ChildCommand = "check-copy"

const copyInIt = 3 // the child's descriptor of the copy

// question is what a child is asked.
type question struct {
	How   Verification
	At    time.Time
	Probe bool // check the pages alone
}

// answer is what a child found.
type answer struct {
	Found  Verified
	Damage string // that kept it from being read
	Error  string // why nothing is known
}

// Longest is the longest time for the check of one file by a child.
const Longest = 6 * time.Hour

// ErrSlow says that a check took too long.
var ErrSlow = fmt.Errorf("the check of its file took more than %s and was given up: it is unchecked", Longest)

// Probe has a child check the pages of a ledger file. The error is a
// [ledger.DamageError] or [ErrSlow], or says why else the pages are unchecked.
func Probe(ctx context.Context, executable string, f *os.File) error {
	_, err := askChild(ctx, executable, f, question{Probe: true})
	return err
}

// wantError says that a child was ended before it could answer: for want of
// memory, by a limit, or by somebody.
type wantError struct{ error }

// Unwrap returns what ended it.
func (e wantError) Unwrap() error { return e.error }

// isOfWant reports whether an error is for want of time, memory or room alone.
func isOfWant(err error) bool {
	_, ended := errors.AsType[wantError](err)
	isOneOf := func(one error) bool { return errors.Is(err, one) }
	return ended || slices.ContainsFunc([]error{boltledger.ErrBusy, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOMEM, syscall.EAGAIN}, isOneOf)
}

// askChild asks a child about the file. A child that ends by a fault of memory
// or a panic met damage. After any other end than an answer the file is
// unchecked.
func askChild(ctx context.Context, executable string, f *os.File, q question) (v Verified, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Longest, ErrSlow)
	defer cancel()
	c := exec.CommandContext(ctx, executable, ChildCommand)
	q.How.Executable = ""
	var in bytes.Buffer
	if err := gob.NewEncoder(&in).Encode(q); err != nil {
		return v, err
	}
	c.Stdin, c.ExtraFiles = &in, []*os.File{f}
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOTRACEBACK=none")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	runtime.LockOSThread() // the child ends with the thread that started it
	out, err := c.Output()
	runtime.UnlockOSThread()
	var a answer
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(out)).Decode(&a)
	}
	ended, hasEnded := errors.AsType[*exec.ExitError](err)
	said := ""
	if hasEnded {
		said = string(ended.Stderr) // its beginning and end
	}
	switch {
	case ctx.Err() != nil:
		return v, wantError{context.Cause(ctx)}
	case hasEnded && isOfDamage(ended.Sys().(syscall.WaitStatus), said):
		return v, &ledger.DamageError{What: "reading its pages ended the process that checked them: " + ended.String()}
	case err != nil:
		err = fmt.Errorf("the process that checks the ledger ended without an answer: %w", err)
		if hasEnded && (ended.Sys().(syscall.WaitStatus).Signaled() || strings.Contains(said, "fatal error: ")) {
			err = wantError{err}
		}
		return v, err
	case a.Damage != "":
		return v, &ledger.DamageError{What: a.Damage}
	case a.Error != "":
		return v, errors.New(a.Error)
	}
	return a.Found, nil
}

// isOfDamage reports whether a child ended because of what it read.
func isOfDamage(s syscall.WaitStatus, said string) bool {
	if s.Signaled() {
		return s.Signal() == syscall.SIGSEGV || s.Signal() == syscall.SIGBUS
	}
	// Go's runtime also ends with this status where it lacks memory or threads.
	return s.ExitStatus() == goCrash && slices.ContainsFunc(damageSays, func(what string) bool { return strings.Contains(said, what) })
}

// goCrash is the exit status of a Go program that panics.
const goCrash = 2

// damageSays is what Go writes where a process ends because of what it read: a
// panic, an endless recursion, a fault of memory.
var damageSays = []string{"panic: ", "fatal error: stack overflow", "SIGSEGV", "SIGBUS"}

// PrepareChild lets the process that calls it give way to all others, as far as
// its unit allows that.
func PrepareChild() {
	// Where root started it for another user, its files of /proc are root's: for
	// a moment they are its own.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	// Once more: the kernel takes it back where root started this process for another user.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	_ = unix.Setpriority(unix.PRIO_PGRP, 0, 19) // its threads are a group of their own
	LimitStack()
}

// LimitStack lets a process that follows pages in a circle end before they fill
// the memory.
func LimitStack() { debug.SetMaxStack(64 << 20) }

// RunChild answers the question of the process that started this one, and returns the exit code.
func RunChild(ctx context.Context, in io.Reader, out io.Writer) (exit int) {
	var q question
	if err := gob.NewDecoder(in).Decode(&q); err != nil {
		return 1
	}
	var a answer
	var err error
	f := os.NewFile(copyInIt, "copy")
	if q.Probe {
		err = boltledger.ProbeFile(ctx, f)
	} else {
		q.How.Now = func() time.Time { return q.At }
		a.Found, err = q.How.VerifyFile(ctx, f)
	}
	if broken, ok := errors.AsType[*ledger.DamageError](err); ok {
		a.Damage, err = broken.What, nil
	}
	if a.Error = textOf(err); gob.NewEncoder(out).Encode(a) != nil {
		return 1
	}
	return 0
}
