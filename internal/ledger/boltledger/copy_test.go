// The tests of this file are inside the package because they say what the file
// system does: whether it shares blocks, and how slow it is.

package boltledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"testing"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"vaultd/internal/durable"
	"vaultd/internal/test/kit"
)

var errNoClone = errors.New("this file system shares no blocks")

// unnamed makes a file for a copy of l.
func unnamed(t testing.TB, l *Ledger) *os.File {
	t.Helper()
	f := kit.Value(createUnnamed(l.dir))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

// large is a ledger file with much in it that commits can replace.
type large struct {
	*Ledger
	commits int
}

func newLarge(t testing.TB) *large {
	l := &large{Ledger: newLedger(t, Config{})}
	for range 32 {
		l.replaceSome(t)
	}
	return l
}

// replaceSome makes a commit that frees another 8 MB of pages than the last ones.
func (l *large) replaceSome(t testing.TB) {
	t.Helper()
	kit.Must(t, l.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(scanBucket).Put(fmt.Append(nil, l.commits%32), make([]byte, 4<<20)) // two on a page
	}))
	l.commits++
}

func fileSize(t testing.TB, l *Ledger) int64 { return kit.Value(l.file.Stat())(t).Size() }

// I15, I21: a process that is killed in the middle of a copy leaves nothing of
// it, or an empty file that the next start removes, and the ledger as it was.
func TestCopy_I15_I21_AKillInTheMiddle(t *testing.T) {
	const inside = "VAULTD_LEDGER_COPIES"
	if dir := os.Getenv(inside); dir != "" { // the process that is killed
		l := kit.Value(Open(Config{Dir: dir}))(t)
		half := fileSize(t, l) / 2
		kit.Must(t, l.copyMoment(t.Context(), unnamed(t, l), 0, func(to, from *os.File) error {
			kit.Value(io.CopyN(to, io.NewSectionReader(from, 0, half), half))(t)
			return unix.Kill(os.Getpid(), unix.SIGKILL)
		}))
	}
	l := newLarge(t)
	kit.Must(t, l.Close())
	before := kit.Value(os.ReadFile(pathIn(l.dir, fileName)))(t)
	killed := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	killed.Env = append(os.Environ(), inside+"="+l.dir)
	out, err := killed.CombinedOutput()
	kit.Need(t, err != nil && killed.ProcessState.String() == "signal: killed", "ended with %v, want a kill:\n%s", err, out)
	kit.Check(t, bytes.Equal(before, kit.Value(os.ReadFile(pathIn(l.dir, fileName)))(t)), "the file of the ledger changed, want it as it was")
	kit.Must(t, os.WriteFile(pathIn(l.dir, durable.TemporaryName(fileName+"-17")), nil, 0o600)) // as where a file needs a name at first
	probes := 0
	next := open(t, Config{Dir: l.dir, Probe: func(*os.File) error { probes++; return nil }})
	kit.Want(t, "probes", probes, 1)
	var names []string
	for _, e := range kit.Value(os.ReadDir(next.dir))(t) {
		names = append(names, e.Name())
	}
	kit.Want(t, "files after the next start", names, []string{fileName, headName + ".1", openingName})
}

// I15: a copy is the ledger at one moment, though the file that is cloned or
// read has pages and a head of later commits by then, and whatever becomes of
// the ledger afterwards.
func TestCopy_I15_IsOneMoment(t *testing.T) {
	for name, cloned := range map[string]bool{"Cloned": true, "Copied": false} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, Config{})
			first, later := life(1), life(2)
			apply(t, l, first...)
			apply(t, l, later[:3]...)
			want := l.Head()
			f := unnamed(t, l)
			kit.Must(t, l.copyMoment(t.Context(), f, 0, func(to, from *os.File) error {
				for _, c := range later[3:] { // several commits: each of the two meta pages is of a later one
					apply(t, l, c)
				}
				if !cloned {
					return errNoClone
				}
				_, err := io.Copy(to, io.NewSectionReader(from, 0, math.MaxInt64))
				return err
			}))
			for n := range 20 {
				apply(t, l, life(10+n)...)
			}
			kit.Must(t, CheckOpenFile(t.Context(), f, l.loc, func(c *Ledger) error {
				kit.Want(t, "the head of the copy", c.Head(), want)
				sound(t, c)
				return nil
			}))
			sound(t, l)
		})
	}
}

// committing is the context of a copy that is so slow that a commit is made between two looks of it at its context.
type committing struct {
	context.Context
	commit func()
}

func (c committing) Err() error { c.commit(); return nil }

// I21: a copy that is slower than what is committed beside it is given up before the ledger's file grew much, and the next
// ones let it grow no more.
func TestCopy_I21_TheFileDoesNotGrowBesideASlowCopy(t *testing.T) {
	l := newLarge(t)
	before := fileSize(t, l.Ledger)
	ctx := committing{context.Background(), func() {
		if l.commits < 20 { // enough where nothing gives the copy up
			l.replaceSome(t)
		}
	}}
	for range 4 {
		l.commits = 0
		err := l.copyMoment(ctx, unnamed(t, l.Ledger), 0, func(_, _ *os.File) error { return errNoClone })
		kit.Fails(t, "a copy slower than the commits", err, ErrBusy)
		kit.Check(t, l.commits >= 5, "%d commits were made beside a copy, want it to hold %d bytes", l.commits, leastHeld)
	}
	grown := fileSize(t, l.Ledger) - before
	kit.Check(t, grown <= 2*leastHeld, "the file grew by %d bytes beside four copies, want not much more than what one of them may hold (%d)", grown, leastHeld)
}

// A copy that would leave too little room on the disk is not made, and the error
// says what to do.
func TestCopy_NoRoom(t *testing.T) {
	l := newLedger(t, Config{})
	// A clone needs no room.
	err := l.copyMoment(t.Context(), unnamed(t, l), math.MaxInt64/2, func(_, _ *os.File) error { return errNoClone })
	_, noRoom := errors.AsType[*NoRoomError](err)
	kit.Need(t, noRoom, "a copy: %v, want an error that tells of no room", err)
	kit.Holds(t, "the error", err.Error(), "no room", l.dir, "free space there")
	kit.Want(t, "open transactions", l.db.Stats().OpenTxN, 0)
}

// I19, I27: what a crash leaves of a copy is nothing: it has no name while it is
// made, and nobody else may read it.
func TestCopy_I19_HasNoName(t *testing.T) {
	l := newLedger(t, Config{})
	names := func() (all []string) {
		for _, e := range kit.Value(os.ReadDir(l.dir))(t) {
			all = append(all, e.Name())
		}
		return all
	}
	kit.Must(t, os.WriteFile(pathIn(l.dir, durable.TemporaryName(fileName)), nil, 0o600)) // of a PutBack
	before := names()
	for name, create := range map[string]func(string) (*os.File, error){"Unnamed": createUnnamed, "Removed": createAndRemove} {
		f := kit.Value(create(l.dir))(t)
		kit.Want(t, name+": rights", kit.Value(f.Stat())(t).Mode(), os.FileMode(0o600))
		kit.Must(t, l.copyMoment(t.Context(), f, 0, func(_, _ *os.File) error {
			kit.Want(t, name+": files in the state directory", names(), before)
			return errNoClone
		}))
		kit.Want(t, name+": files in the state directory afterwards", names(), before)
		kit.Must(t, f.Close())
	}
}
