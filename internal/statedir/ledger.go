package statedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

const commandRole = "vaultd"

// OpenLedger takes the lock of a state directory and opens its ledger, for commands
// that work while no daemon runs. The returned function gives both back.
func OpenLedger(stateDir string, loc *time.Location, probe func(*os.File) error) (*boltledger.Ledger, func() error, error) {
	lock, err := lockForCommand(stateDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("open %s: %w", stateDir, ledger.ErrMissing)
	}
	if err != nil {
		return nil, nil, err
	}
	l, err := boltledger.Open(boltledger.Config{Dir: stateDir, Location: loc, Probe: probe})
	if err != nil {
		return nil, nil, errors.Join(err, durable.CloseLock(lock))
	}
	return l, func() error { return errors.Join(l.Close(), durable.CloseLock(lock)) }, nil
}

// PeekLedger lets fn read the ledger of a state directory while no daemon runs,
// and changes nothing of it: at once, or not at all. If no vaultd ever worked in the directory, it
// makes no lock there: that would be this user's, and the daemon of another one
// could not open it.
func PeekLedger(stateDir string, fn func(*boltledger.Ledger) error) error {
	if _, err := os.Lstat(filepath.Join(stateDir, lockName)); errors.Is(err, os.ErrNotExist) {
		return boltledger.ReadWhileStopped(stateDir, fn)
	}
	lock, err := lockForCommand(stateDir)
	if err != nil {
		return err
	}
	return errors.Join(boltledger.ReadWhileStopped(stateDir, fn), durable.CloseLock(lock))
}
