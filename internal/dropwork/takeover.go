package dropwork

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
)

// takenOverFile says, in the state directory, by which epoch this ledger's drop folders were
// taken over. It holds while that is later than the ledger's own.
const takenOverFile = "taken-over"

// Takeover knows whether the drop folders of this ledger were taken over by another vaultd, which works with a later state of the ledger.
// A takeover is never forgotten: a share that is away does not say whose it is, and the other vaultd goes on with what is open here as
// well.
type Takeover struct {
	stateDir   string
	ledger     interface{ Info() ledger.Info }
	log        *slog.Logger
	endProcess func(error) // ends the process

	met     chan struct{} // closed once a takeover was met: each probe inspects its drop folder at once
	metOnce sync.Once     // closes met

	mu    sync.Mutex
	epoch uint64 // zero: none was met; guarded by mu
	saved uint64 // of it, what the file says; guarded by mu
}

// NewTakeover returns what is known of a state directory's ledger once Recall has read it.
func NewTakeover(stateDir string, l interface{ Info() ledger.Info }, log *slog.Logger, fail func(error)) *Takeover {
	return &Takeover{stateDir: stateDir, ledger: l, log: log, endProcess: fail, met: make(chan struct{})}
}

// Mark is what our drop folders bear.
func (t *Takeover) Mark() drop.OwnershipMark {
	info := t.ledger.Info()
	return drop.OwnershipMark{LedgerID: info.ID, Environment: info.Environment, Epoch: max(info.Epoch, 1), ReceiptKeys: info.ReceiptKeys}
}

// metEpoch returns the latest epoch that was met; zero: none.
func (t *Takeover) metEpoch() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epoch
}

// Recall reads what an earlier process met. former is what this process knew before a reload; nil: nothing. Its file may not have been written.
func (t *Takeover) Recall(former *Takeover) error {
	epoch, err := ReadTakenOver(t.stateDir)
	known := uint64(0)
	if former != nil {
		known = former.metEpoch()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch, t.saved = max(t.epoch, epoch, known), epoch
	return err
}

// ReadTakenOver returns the epoch that a state directory was taken over by; zero: none.
func ReadTakenOver(stateDir string) (epoch uint64, err error) {
	text, err := os.ReadFile(filepath.Join(stateDir, takenOverFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err == nil {
		_, err = fmt.Sscan(string(text), &epoch)
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", takenOverFile, err)
	}
	return epoch, nil
}

// NoteForeignMark records err where it says that a drop folder was marked by a later state of
// this ledger. It stops everything at once; the file makes that outlast the process, and
// is tried again each time the mark is met.
func (t *Takeover) NoteForeignMark(err error) {
	foreign, ok := errors.AsType[*drop.ForeignError](err)
	ours := t.Mark()
	if !ok || foreign.LedgerID != ours.LedgerID || foreign.Environment != ours.Environment || foreign.Epoch <= ours.Epoch {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.metOnce.Do(func() { close(t.met) })
	news := foreign.Epoch > t.epoch
	t.epoch = max(t.epoch, foreign.Epoch)
	if news && t.log != nil {
		t.log.Error("another vaultd has taken over this ledger's drop folders: nothing is taken, sent, moved or removed here any more", "epoch", t.epoch, "do", "leave this one stopped")
	}
	if t.saved >= t.epoch {
		return
	}
	switch err := writeTakenOver(t.stateDir, t.epoch); {
	case err == nil:
		t.saved = t.epoch
	case errors.Is(err, durable.ErrSync):
		t.endProcess(err)
	case t.log != nil:
		t.log.Error("that this ledger was taken over is not on the disk yet", "err", err)
	}
}

func writeTakenOver(stateDir string, epoch uint64) error {
	dir, err := durable.Open(stateDir, nil)
	if err != nil {
		return fmt.Errorf("write %s: %w", takenOverFile, err)
	}
	defer dir.Close() // synced by WriteFile
	text := fmt.Sprintf("%d\nAnother vaultd has taken over this ledger's drop folders: leave this one stopped.\n", epoch)
	// A crash before this loses what was met: the next start meets the mark of the drop folder again.
	return dir.WriteFile(takenOverFile, []byte(text), 0o600)
}

// Epoch returns the epoch of the vaultd that has taken over this ledger's drop
// folders; zero: none has, as far as is known.
func (t *Takeover) Epoch() uint64 {
	if epoch := t.metEpoch(); epoch > t.Mark().Epoch {
		return epoch
	}
	return 0
}
