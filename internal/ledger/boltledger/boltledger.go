// Package boltledger keeps the ledger on disk: entries, their erasable
// documents, the due index, the journal with its hash chain, and the balance,
// in one bbolt file whose form docs/ledger.md describes.
//
// It decides nothing about documents. One goroutine, the committer, takes all
// changes that are queued, asks [ledger.Transition] what each event makes of
// the stored entry, and commits entries and journal lines in one transaction.
// Only callers of Apply wait for the disk. The package never makes a ledger
// that is missing. It never opens one that is damaged, older than its outside
// head, newer than this program, or of a form that was never released. It never
// goes on after a commit that failed.
//
// After a crash every change whose callback ran is in the ledger. Each other
// change is there as a whole or not at all: the file is as a commit left it.
// The outside head (ledger.head.N) may be behind the ledger, never ahead; a
// ledger that is behind its head was rolled back and is refused.
//
// The files: open.go opens, inspect.go opens a file to read it, file.go opens
// and locks one, committer.go queues and commits, groupcommit.go builds one
// commit, sharednames.go holds what no entry can know alone, names.go finds an
// entry by its names, safemode.go commits marks, read.go, queues.go and attention.go
// answer questions, parts.go reads much in short transactions, fetches.go
// keeps the budget of downloads, verify.go checks everything, or what came
// since an earlier check, arrivals.go keeps what comes in from a service,
// headfile.go keeps the outside head, replace.go restores, place.go puts a lost
// file back, copy.go copies the file as it is at one moment, pages.go
// checks its pages, backup.go makes a backup of such a copy, record.go and
// schema.go are the stored form.
package boltledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// Config says where a ledger lies and in which time zone months and years begin.
type Config struct {
	Dir      string         // the state directory; holds ledger.db and ledger.head
	Location *time.Location // in which the months of the totals begin; nil: UTC. It is not stored: it may be another one each time.

	// CommitInterval is the least time from the beginning of one commit to that of the next,
	// so that a busy ledger commits much at a time; 0: as soon as the disk is done. A
	// ledger at rest commits the first change at once.
	CommitInterval time.Duration

	// Fault is nil in production. In tests it is called with "commit" before and
	// with "committed" after each commit: an error plays one that failed and was not
	// done, or that was done and failed all the same.
	Fault func(op string) error

	// Probe has a child check the pages of a ledger file, see [ProbeFile]: of one
	// that a process opened and did not close, before this one opens it, and of
	// one that is verified. nil: the former is opened without, and this process
	// checks the latter.
	Probe func(*os.File) error

	mapped int // 0: mapSize; less in tests of a file that outgrows its mapping
}

const (
	fileName = "ledger.db"
	headName = "ledger.head"
)

// damage returns a [ledger.DamageError].
func damage(format string, a ...any) error {
	return &ledger.DamageError{What: fmt.Sprintf(format, a...)}
}

// The buckets. docs/ledger.md tells what is in them.
var (
	metaBucket    = []byte("meta")
	openBucket    = []byte("open")
	doneBucket    = []byte("done")
	docBucket     = []byte("doc")
	dueBucket     = []byte("due")
	journalBucket = []byte("journal")
	fetchesBucket = []byte("fetches")
	namesBucket   = []byte("names")
	scanBucket    = []byte("scan")

	arrivalBucket = []byte("arrivals")
	indexBucket   = []byte("index")
	noticeBucket  = []byte("notices") // number of a notification at the network -> Notice

	buckets = [][]byte{metaBucket, openBucket, doneBucket, docBucket, dueBucket, journalBucket, fetchesBucket, namesBucket, scanBucket,
		arrivalBucket, indexBucket, noticeBucket}
)

// Keys of the meta bucket.
var (
	schemaKey  = []byte("schema") // the number in decimal, in every schema to come
	formKey    = []byte("form")   // form.digest, in every schema to come
	summaryKey = []byte("summary")
)

// Ledger is an open ledger. Its methods may be called from several goroutines.
type Ledger struct {
	dir   string      // where it was opened
	home  os.FileInfo // of that folder
	file  *os.File    // of db, which closes it
	db    *bbolt.DB
	loc   *time.Location
	fault func(op string) error

	commitInterval  time.Duration
	lastCommitBegan time.Time // of the last commit; used by the committer alone
	head            *headFile // used by the committer alone

	mu        sync.Mutex
	listeners []*func([]ledger.Result) // guarded by mu: called after each durable commit
	queue     []request                // guarded by mu: what is not yet committed, in order
	closing   bool                     // guarded by mu
	state     summary                  // guarded by mu: as committed; the committer alone changes it, and reads it without mu
	err       error                    // guarded by mu: why the ledger stopped

	wake    chan struct{} // holds one token when the queue may have grown
	stopped chan struct{} // closed once the committer is gone
	failed  chan struct{} // closed with err
	copying chan struct{} // full while a copy is made or checked
	isCopy  bool          // it is a copy, open for reading alone

	probe    func(*os.File) error // checks the pages in a child; nil: this process does
	isAstray bool                 // the check of its pages has found damage, and may still read them

	commits atomic.Uint64
	changes atomic.Uint64
	close   func() error
}

// view runs fn in a read transaction. What bbolt throws over a damaged page comes
// back as a [ledger.DamageError].
func (l *Ledger) view(fn func(*bbolt.Tx) error) error {
	return recoverDamage(func() error { return l.db.View(fn) })
}

// Info returns what the ledger says of itself.
func (l *Ledger) Info() ledger.Info { return l.committed().Info }

// committed returns what is in memory of the last commit.
func (l *Ledger) committed() summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// BindAddresses binds the ledger to the addresses of services that are used for
// the first time, and returns when that is durable. An address that it is bound
// to already stays.
func (l *Ledger) BindAddresses(ctx context.Context, used []ledger.Address) error {
	if now := l.Info(); len(now.Bind(used).Others) == len(now.Others) {
		return nil
	}
	return l.askCommitter(ctx, func(g *groupCommit) (refused, err error) {
		g.Info = g.Info.Bind(used)
		return nil, nil
	})
}

// Head returns the end of the journal as committed.
func (l *Ledger) Head() ledger.Head { return l.committed().Head }

// Balance returns the balance as committed.
func (l *Ledger) Balance() ledger.Balance { return l.committed().Balance }

// ClockComparison returns when the newest registration was asked for whose answer gave the service's time, by this machine's clock, and
// that time; zero: there was none. It is as committed, and cheap to ask. The service's time has a resolution of a second.
func (l *Ledger) ClockComparison() (asked, service time.Time) {
	c := l.committed().Clocks
	return c.Asked, c.Service
}

// LastSuccess returns the newest of the service's times of success, as
// committed, and of one that was still to come the time at which it was
// recorded; zero: there is none. It is cheap to ask.
func (l *Ledger) LastSuccess() time.Time { return l.committed().Success }

// CommitCounts returns how many transactions the committer committed since Open, and how
// many changes were in them.
func (l *Ledger) CommitCounts() (commits, changes uint64) { return l.commits.Load(), l.changes.Load() }

// SyncCount returns how often the committer synced a file since Open: twice a commit, and
// the outside head. The syncs of a growing file, one in 16 MB, are not counted.
func (l *Ledger) SyncCount() uint64 { return 2*l.commits.Load() + l.head.syncs.Load() }

// Failed is closed when a commit failed. Nobody knows then what is on disk, so
// nothing more is accepted: the process must stop and start again.
func (l *Ledger) Failed() <-chan struct{} { return l.failed }

// Err says why the ledger stopped; nil while it works.
func (l *Ledger) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close waits until everything queued is committed, then releases the ledger. The
// callbacks have run when it returns.
func (l *Ledger) Close() error { return l.close() }

func (l *Ledger) stopAndClose() error {
	l.mu.Lock()
	// From here on new requests are refused; what is queued is still committed.
	l.closing = true
	l.mu.Unlock()
	l.wakeCommitter()
	<-l.stopped
	// The head is synced first. A crash in between leaves the lock to the kernel, which drops it with the process.
	err := errors.Join(l.head.closeFile(), l.closeFile())
	if err == nil && l.Err() == nil {
		l.NoteSound()
	}
	return err
}

func pathIn(dir, name string) string { return filepath.Join(dir, name) }
