package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"vaultd/internal/drop"
	"vaultd/internal/durable"
)

// takenFile says, in the state directory, by which epoch this ledger's drop folders were
// taken over. It holds while that is later than the ledger's own.
const takenFile = "taken-over"

// successor is the later state of this ledger that was met in a drop folder. It is never
// forgotten: a share that is away says nothing of whose it is, and whoever took the
// folders over goes on with what is open here as well.
type successor struct {
	mu    sync.Mutex
	epoch uint64 // zero: none was met; guarded by mu
	saved uint64 // of it, what the file says; guarded by mu
}

func (s *successor) met() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// recallSuccessor reads what an earlier process met.
func (d *Daemon) recallSuccessor() error {
	epoch, err := readTaken(d.cfg.StateDir)
	d.successor.mu.Lock()
	defer d.successor.mu.Unlock()
	d.successor.epoch, d.successor.saved = max(d.successor.epoch, epoch), epoch
	return err
}

// readTaken returns the epoch that a state directory was taken over by; zero: none.
func readTaken(stateDir string) (epoch uint64, err error) {
	text, err := os.ReadFile(filepath.Join(stateDir, takenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err == nil {
		_, err = fmt.Sscan(string(text), &epoch)
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", takenFile, err)
	}
	return epoch, nil
}

// takenOver takes err down where it says that a drop folder was marked by a later state of
// this ledger. It stops everything at once; the file makes that outlast the process, and
// is tried again each time the mark is met.
func (d *Daemon) takenOver(err error) {
	foreign, ok := errors.AsType[*drop.ForeignError](err)
	ours := d.mark()
	if !ok || foreign.LedgerID != ours.LedgerID || foreign.Environment != ours.Environment || foreign.Epoch <= ours.Epoch {
		return
	}
	s := &d.successor
	s.mu.Lock()
	defer s.mu.Unlock()
	news := foreign.Epoch > s.epoch
	s.epoch = max(s.epoch, foreign.Epoch)
	if news && d.cfg.Log != nil {
		d.cfg.Log.Error("another vaultd has taken over this ledger's drop folders: nothing is taken, sent, moved or removed here any more", "epoch", s.epoch, "do", "leave this one stopped")
	}
	if s.saved >= s.epoch {
		return
	}
	switch err := saveTaken(d.cfg.StateDir, s.epoch); {
	case err == nil:
		s.saved = s.epoch
	case errors.Is(err, durable.ErrSync):
		d.die(err)
	case d.cfg.Log != nil:
		d.cfg.Log.Error("that this ledger was taken over is not on the disk yet", "err", err)
	}
}

func saveTaken(stateDir string, epoch uint64) error {
	dir, err := durable.Open(stateDir, nil)
	if err != nil {
		return fmt.Errorf("write %s: %w", takenFile, err)
	}
	defer dir.Close() // synced by WriteFile
	text := fmt.Sprintf("%d\nAnother vaultd has taken over this ledger's drop folders: leave this one stopped.\n", epoch)
	return dir.WriteFile(takenFile, []byte(text), 0o600)
}

// TakenOver returns the epoch of the vaultd that has taken over this ledger's drop
// folders; zero: none has, as far as is known.
func (d *Daemon) TakenOver() uint64 {
	if epoch := d.successor.met(); epoch > d.mark().Epoch {
		return epoch
	}
	return 0
}
