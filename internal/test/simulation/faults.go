package simulation

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
)

// Seam is where the program touches the world.
type Seam string

// The seams.
const (
	Files   Seam = "files"   // durable's operations on drop folders and spool
	Commits Seam = "commits" // of the ledger
	Calls   Seam = "calls"   // to the service and its object store
	Clock   Seam = "clock"   // readings of the machine's time

	Packages Seam = "packages" // sealed packages, once they lie in the spool
)

// Op is one operation that is about to happen.
type Op struct {
	Seam Seam
	Name string // durable's or the emulator's word for it; "commit"; "now"
	On   string // files: the name it is done to
	N    int    // counts the operations of this seam and name in the world's life, from 1
	All  int    // counts those of the seam
}

// Blow is what befalls an operation.
type Blow uint8

// The blows. Toward the clock, Fail sets it an hour wrong and FailDone suspends the
// machine for twenty minutes. Toward a package, Fail changes one byte of it and FailDone
// takes its last byte off, both after the strike's delay.
const (
	Spare    Blow = iota
	Fail          // it fails and is not done
	FailDone      // it is done and fails all the same
	Die           // the process dies instead
	DieDone       // the process dies right after
)

// String returns the blow as it stands in the name of a test's row.
func (b Blow) String() string {
	return [...]string{"Spared", "FailedAndNotDone", "FailedButDone", "ProcessDied", "DoneAndProcessDied"}[b]
}

// Strike is a blow, or for calls whatever else the emulator can do to one.
type Strike struct {
	Blow Blow
	Call emulator.Fault
}

// SetPlan decides the fate of each operation. It is asked by one goroutine at a time and
// must not block.
type Plan func(Op) Strike

// errPlayed is the cause of every failure that a plan caused.
var errPlayed = errors.New("a played fault")

// playedError looks like the disk's own.
type playedError struct{}

func (playedError) Error() string        { return syscall.EIO.Error() + " (played)" }
func (playedError) Is(target error) bool { return target == errPlayed || target == syscall.EIO }

// kind is what operations are counted by.
type kind struct {
	seam Seam
	name string
}

// fate asks the plan and counts what it does.
type fate struct {
	mu    sync.Mutex
	plan  Plan           // guarded by mu; nil: calm
	seen  map[kind]int   // guarded by mu
	all   map[Seam]int   // guarded by mu
	fired map[string]int // strikes by seam, name and kind; guarded by mu
}

func newFate() *fate {
	return &fate{seen: map[kind]int{}, all: map[Seam]int{}, fired: map[string]int{}}
}

func (f *fate) setPlan(p Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = p
}

func (f *fate) chooseStrike(seam Seam, name, on string) Strike {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := kind{seam, name}
	f.seen[k]++
	f.all[seam]++
	if f.plan == nil {
		return Strike{}
	}
	s := f.plan(Op{Seam: seam, Name: name, On: on, N: f.seen[k], All: f.all[seam]})
	if s == (Strike{}) {
		return s
	}
	what := s.Blow.String()
	if s.Blow == Spare {
		what = faultLabel(s.Call)
	}
	f.fired[string(seam)+" "+name+" "+what]++
	return s
}

func faultLabel(c emulator.Fault) string {
	s := string(c.Kind)
	if c.Kind == emulator.Status {
		s = fmt.Sprint(c.Status)
	}
	if c.IsAfterWork {
		s += "-done"
	}
	if c.Delay+c.DelayAfter > 0 {
		s += "+late"
	}
	if c.VisibleAfter > 0 {
		s += "+lag"
	}
	return s
}

func (f *fate) firedCopy() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.fired)
}

func sumCounts(counts map[string]int) (n int) {
	for c := range maps.Values(counts) {
		n += c
	}
	return n
}

func listCounts(counts map[string]int) string {
	s := ""
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		s += fmt.Sprintf("%s: %d; ", k, counts[k])
	}
	return s
}

// life is one process: all its ways to the world ask first whether it still lives.
type life struct {
	w     *World
	once  sync.Once
	death chan struct{} // closed when it died

	afterCommit Blow // what is still to befall the commit under way; only the committer's
}

func (l *life) die() { l.once.Do(func() { close(l.death) }) }

func (l *life) isDead() bool {
	select {
	case <-l.death:
		return true
	default:
		return false
	}
}

// runFileOp is the seam of the files.
func (l *life) runFileOp(op, name string, do func() error) error {
	if l.isDead() {
		return &os.PathError{Op: op, Path: name, Err: playedError{}}
	}
	if op == "mount" { // it changes nothing, and is none of the operations that a plan counts
		return l.w.mounts.checkMount(name, do)
	}
	l.w.mounts.noteChange(op, name)
	err := l.strikeFileOp(l.w.fate.chooseStrike(Files, op, name).Blow, op, name, do)
	if err == nil {
		l.w.packageSealed(op, name)
	}
	return err
}

func (l *life) strikeFileOp(b Blow, op, name string, do func() error) error {
	if b == FailDone || b == DieDone || b == Spare {
		if err := do(); b == Spare || err != nil && b != DieDone {
			return err
		}
	}
	if b == Die || b == DieDone {
		l.die()
	}
	return &os.PathError{Op: op, Path: name, Err: playedError{}}
}

// strikeCommit is the seam of the ledger.
func (l *life) strikeCommit(op string) error {
	if l.isDead() {
		return playedError{}
	}
	b := l.afterCommit
	l.afterCommit = Spare
	if op == "commit" {
		b = l.w.fate.chooseStrike(Commits, op, "").Blow
		if b == FailDone || b == DieDone {
			l.afterCommit, b = b, Spare
		}
	}
	switch b {
	case Spare:
		return nil
	case Die, DieDone:
		l.die()
	}
	return playedError{}
}

// strikeCall is the seam of the calls, as the emulator asks.
func (l *life) strikeCall(op string, _ int) emulator.Fault {
	s := l.w.fate.chooseStrike(Calls, op, "")
	switch s.Blow {
	case Die, DieDone:
		l.die()
		fallthrough
	case Fail, FailDone:
		return emulator.Fault{Kind: emulator.Abort, IsAfterWork: s.Blow == FailDone || s.Blow == DieDone}
	}
	return s.Call
}

// RoundTrip leads a call to the emulator, and its answer back to whoever still lives.
func (l *life) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.isDead() {
		return nil, playedError{}
	}
	l.w.startsLate(r)
	resp, err := l.w.interceptCall(r)
	if l.isDead() {
		return nil, playedError{}
	}
	return resp, err
}

// now is the seam of the clock.
func (l *life) now() archive.Instant {
	switch l.w.fate.chooseStrike(Clock, "now", "").Blow {
	case Fail:
		l.w.clock.setMachineClock(time.Hour)
	case FailDone:
		l.w.clock.suspend(20 * time.Minute)
	}
	return l.w.clock.machineTime()
}
