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
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A damaged page may end the process that reads it, and a large ledger may fill its memory. So a copy is checked by a child:
// this program again, with the copy as its descriptor 3, the question on its standard input and the answer on its
// standard output, both in the form of encoding/gob. It ends with its parent. The system ends it before any other process
// where memory is short.

// ChildCommand is the argument of a process that must call PrepareChild and RunChild.
const ChildCommand = "check-copy"

const (
	mostTime   = 6 * time.Hour // of the check of one copy
	mostStack  = 64 << 20      // bytes, of a child: a circle of pages ends here
	copyInIt   = 3             // the child's descriptor of the copy
	mostErrors = 4 << 10       // bytes of a child's error output that are kept
)

// question is what a child is asked.
type question struct {
	How  Verification
	Zone string
	At   time.Time
}

// answer is what a child found.
type answer struct {
	Found Verified
	Error string // why nothing is known
}

// verifyInChild verifies a copy in a process of its own. A child that ends by a fault of memory or a panic met damage. Any other end
// is an error: nothing is known then.
func (o Verification) verifyInChild(ctx context.Context, f *os.File, loc *time.Location) (v Verified, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, mostTime, fmt.Errorf("the check of a copy of the ledger took more than %s, and was given up", mostTime))
	defer cancel()
	c := exec.CommandContext(limited, o.Executable, ChildCommand)
	o.Executable = ""
	var in, out bytes.Buffer
	if err := gob.NewEncoder(&in).Encode(question{o, loc.String(), o.Now()}); err != nil {
		return v, err
	}
	said := &beginning{}
	c.Stdin, c.Stdout, c.Stderr, c.ExtraFiles = &in, &out, said, []*os.File{f}
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOTRACEBACK=none")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	runtime.LockOSThread() // the child ends with the thread that started it
	err = c.Run()
	runtime.UnlockOSThread()
	if limited.Err() != nil {
		return v, context.Cause(limited)
	}
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && isOfDamage(ended.Sys().(syscall.WaitStatus), said.text) {
		return damagedPages("reading them ended the process that checked a copy: " + ended.String()), nil
	}
	var a answer
	if err == nil {
		err = gob.NewDecoder(&out).Decode(&a)
	}
	if err != nil {
		return v, fmt.Errorf("the process that checks a copy of the ledger ended without an answer: %w", err)
	}
	if a.Error != "" {
		err = errors.New(a.Error)
	}
	return a.Found, err
}

// isOfDamage reports whether a child ended because of what it read.
func isOfDamage(s syscall.WaitStatus, said string) bool {
	if s.Signaled() {
		return s.Signal() == syscall.SIGSEGV || s.Signal() == syscall.SIGBUS
	}
	// Go's runtime ends so, too, where it gets no memory or no thread.
	lacks := strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory") || strings.Contains(said, "failed to create new OS thread")
	return s.ExitStatus() == 2 && !lacks
}

// beginning keeps the beginning of what is written to it.
type beginning struct{ text string }

func (t *beginning) Write(b []byte) (int, error) {
	t.text += string(b[:min(len(b), mostErrors-len(t.text))])
	return len(b), nil
}

// PrepareChild lets the process that calls it give way to all others. An error is no hindrance: a unit may forbid it.
func PrepareChild() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	_ = unix.Setpriority(unix.PRIO_PGRP, 0, 19) // its threads are a group of their own
	debug.SetMaxStack(mostStack)
}

// RunChild answers the question of the process that started this one, and returns the exit code.
func RunChild(in io.Reader, out io.Writer) (exit int) {
	var q question
	if err := gob.NewDecoder(in).Decode(&q); err != nil {
		return 1
	}
	loc, err := time.LoadLocation(q.Zone)
	if err != nil {
		return 1
	}
	var a answer
	q.How.quiet, q.How.Now = true, func() time.Time { return q.At }
	a.Found, err = q.How.verifyFile(context.Background(), os.NewFile(copyInIt, "copy"), loc)
	if a.Error = textOf(err); gob.NewEncoder(out).Encode(a) != nil {
		return 1
	}
	return 0
}
