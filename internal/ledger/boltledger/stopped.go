package boltledger

import (
	"errors"
	"fmt"
	"os"

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
// ledger against its outside head. check is [Config].Probe. The caller holds the
// state directory's lock.
func ReadWhileStopped(dir string, check func(*os.File) error, fn func(*StoppedLedger) error) (err error) {
	name := pathIn(dir, fileName)
	if _, err := os.Lstat(name); os.IsNotExist(err) {
		return fmt.Errorf("open ledger %q for reading: %w", name, ledger.ErrMissing)
	}
	if _, err := os.Lstat(pathIn(dir, openingName)); err == nil {
		if err := probeLeftOpen(dir, check); err != nil {
			return fmt.Errorf("open ledger %q for reading: %w", name, err)
		}
	}
	p := &StoppedLedger{}
	p.db, _, err = openDB(name, bbolt.Options{ReadOnly: true}, func(name string, _ int) (*os.File, error) { return openToRead(name) })
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

// Info is what the ledger says of itself.
func (p *StoppedLedger) Info() ledger.Info { return p.info }

// EntriesNewestFirst calls fn with every entry, the newest first, and returns what fn returns first.
func (p *StoppedLedger) EntriesNewestFirst(fn func(ledger.Entry) error) error {
	return readingOf(newestFirst, openBucket, doneBucket).inParts(p.view, oneByOne(fn))
}

func (p *StoppedLedger) view(fn func(*bbolt.Tx) error) error {
	return recoverDamage(func() error { return p.db.View(fn) })
}
