package boltledger

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// StoppedLedger is a ledger that is open for reading alone.
type StoppedLedger struct {
	db   *bbolt.DB
	info ledger.Info
}

// ReadWhileStopped lets fn read the ledger in dir while nobody works with it,
// and changes nothing: no file is made or given other rights. It refuses with
// [ledger.ErrMissing], [ledger.ErrLocked], [ledger.ErrNewerSchema],
// [ledger.ErrDevelopment] or a [ledger.DamageError], and does not hold the
// ledger against its outside head. The caller holds the state directory's lock.
func ReadWhileStopped(dir string, fn func(*StoppedLedger) error) (err error) {
	name := pathIn(dir, fileName)
	if _, err := os.Lstat(name); os.IsNotExist(err) {
		return fmt.Errorf("open ledger %q for reading: %w", name, ledger.ErrMissing)
	}
	p := &StoppedLedger{}
	err = recoverDamage(func() (err error) {
		p.db, err = bbolt.Open(name, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second, OpenFile: openForReading})
		return err
	})
	if err != nil {
		return fmt.Errorf("open ledger %q for reading: %w", name, err)
	}
	defer func() { err = errors.Join(err, p.db.Close()) }()
	err = p.view(func(tx *bbolt.Tx) (err error) { p.info, _, err = readSelf(tx); return err })
	if err != nil {
		return fmt.Errorf("open ledger %q for reading: %w", name, err)
	}
	return fn(p)
}

// openForReading opens an existing ledger file, and checks its pages before bbolt maps them.
func openForReading(name string, _ int, _ os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	// A shared lock: several readers at once, and none while the daemon works.
	if err = lockFile(f, syscall.LOCK_SH); err == nil {
		err = checkBeforeMapping(f, 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Info is what the ledger says of itself.
func (p *StoppedLedger) Info() ledger.Info { return p.info }

// EntriesNewestFirst calls fn with every entry, the newest first, and returns what fn returns first.
func (p *StoppedLedger) EntriesNewestFirst(fn func(ledger.Entry) error) error {
	return readingOf(newestFirst, openBucket, doneBucket).inParts(p.view, oneByOne(fn))
}

func (p *StoppedLedger) view(fn func(*bbolt.Tx) error) error {
	return recoverDamage(func() error { return p.db.View(fn) })
}
