package drop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"vaultd/internal/durable"
)

// Mark says whose a drop folder is, as its drop.json does.
type Mark struct {
	LedgerID, Environment string
	Epoch                 uint64
}

// ReadMark reads the mark of the drop folder at path. It takes no lock and changes nothing. ok is false where the folder is
// there and bears no mark; the error wraps [ErrUnavailable] where there is no folder.
func ReadMark(path string) (m Mark, ok bool, err error) {
	f, err := openMark(path)
	if f == nil {
		return m, false, err
	}
	defer f.Close()
	g, err := f.readGuard()
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("read the mark of %q: %w", path, err)
	}
	return Mark(g), true, nil
}

// CheckMark compares the mark of the drop folder at path with ours, without a lock. The error is a [*ForeignError] where it is
// another's; a folder without a mark is nobody's.
func CheckMark(path string, ours Mark) error {
	m, ok, err := ReadMark(path)
	if err != nil || !ok {
		return err
	}
	f := &Folder{cfg: Config{Path: path, LedgerID: ours.LedgerID, Environment: ours.Environment, Epoch: ours.Epoch}}
	return f.compare(guard(m))
}

// TakeOverFolder writes the mark of a drop folder that is ours with a later epoch, without waiting for whoever works in it: that one
// sees it at its next step, and stops. The error is a [*ForeignError] where the folder is another ledger's or a later epoch's.
// A folder without a mark gets it when it is opened.
func TakeOverFolder(path string, m Mark) error {
	f, err := openMark(path)
	if f == nil {
		return err
	}
	defer f.Close()
	f.cfg = Config{Path: path, LedgerID: m.LedgerID, Environment: m.Environment, Epoch: m.Epoch}
	g, err := f.readGuard()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read the mark of %q: %w", path, err)
	}
	if err := f.compare(g); err != nil || Mark(g) == m {
		return err
	}
	data, err := json.Marshal(guard(m))
	if err == nil {
		err = f.vaultd.WriteFile(guardFile, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the mark of %q: %w", path, err)
	}
	return nil
}

// openMark opens no more of a drop folder than its mark needs; nil where it has no place for one.
func openMark(path string) (*Folder, error) {
	root, err := durable.Open(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err != nil {
		return nil, err
	}
	f := &Folder{cfg: Config{Path: path, Epoch: math.MaxUint64}, root: root}
	if f.vaultd, err = root.OpenDir(vaultdDir); errors.Is(err, fs.ErrNotExist) {
		return nil, f.Close()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
