package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/statedir"
)

// Hints for a lost ledger, and for an empty one that was made in its place.
const (
	adviceRestore      = `"vaultd restore FILE" puts a backup in its place; without any, "vaultd rebuild" makes it anew of the drop folders and the archive (docs/recovery.md)`
	adviceWrongBinding = `Where the ledger's own base_url was wrong from the start: vaultd init binds a ledger without entries anew; one with entries: stop vaultd, ` +
		`move ledger.db and ledger.head.* out of state_dir, and keep them; then vaultd rebuild --reason "wrong base_url", start vaultd, and a minute later vaultd reconcile`
	adviceMoveNewLedger = `where state_dir holds a new ledger because the old one was lost, move ledger.db and ledger.head.* out of it, and keep them; then ` + adviceRestore
)

// dropMark is the ownership mark of a drop folder.
type dropMark struct {
	drop string
	drop.OwnershipMark
}

func (m dropMark) String() string {
	return fmt.Sprintf("drop %s belongs to the ledger %s of the %s environment", m.drop, m.LedgerID, m.Environment)
}

// notHere says what may have become of the ledger that a drop folder names.
const notHere = "is not in this state_dir: it was lost, or a vaultd with another state_dir works on this drop folder"

// readDropMarks reads to which ledger each drop folder belongs. It leaves out folders that are missing or have no mark.
func readDropMarks(cfg config.Config) (all []dropMark, err error) {
	for _, d := range cfg.Drops {
		m, ok, err := drop.ReadMark(d.Path)
		if errors.Is(err, drop.ErrUnavailable) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("drop %s: %w", d.Name, err)
		}
		if ok {
			all = append(all, dropMark{d.Name, m})
		}
	}
	return all, nil
}

// describeLostLedger names the ledger that a drop folder belongs to, when state_dir has none; empty: no drop folder names one.
func describeLostLedger(cfg config.Config) string {
	if all, err := readDropMarks(cfg); err == nil && len(all) > 0 {
		return all[0].String() + ", which " + notHere
	}
	return ""
}

// explainMissingLedger adds to ErrMissing how to recover, when a drop folder shows that the ledger was lost.
func explainMissingLedger(cfg config.Config, err error) error {
	if !errors.Is(err, ledger.ErrMissing) {
		return err
	}
	if words := describeLostLedger(cfg); words != "" {
		return fail(exitConfig, fmt.Errorf("%w; %s", err, words), adviceRestore)
	}
	return err
}

// rebindEmpty renames an empty ledger that is bound to another environment or service than the configuration names. It returns the
// identity of that ledger for the new one, because drop folders may carry it already. ok is false when the ledger has entries, or is
// bound as the configuration says.
func (a *app) rebindEmpty(ctx context.Context, cfg config.Config) (id string, ok bool, err error) {
	l, closeLedger, err := a.openLedger(ctx, cfg)
	if err != nil {
		return "", false, err
	}
	info, lines := l.Info(), l.Head().N
	if err := closeLedger(); err != nil {
		return "", false, err
	}
	if lines > 1 || checkBinding(info, cfg) == nil {
		return "", false, nil
	}
	// After a crash between the two renames the ledger is there without its head, and the next init does this again. After both,
	// none is there: the next init makes one, or names rebuild where a drop folder bears the old identity.
	stamp := time.Now().UTC().Format("20060102T150405Z")
	for _, name := range []string{"ledger.head.1", "ledger.db"} {
		old := filepath.Join(cfg.StateDir, name)
		if err := os.Rename(old, old+".empty-"+stamp); err != nil {
			return "", false, fmt.Errorf("take the empty ledger out of the way: %w", err)
		}
	}
	return info.ID, true, nil
}

// ledgerTrouble describes what about the ledger would keep "run" from working. It sees that only while no daemon has the ledger open.
func ledgerTrouble(cfg config.Config) string {
	var info ledger.Info
	err := statedir.PeekLedger(cfg.StateDir, func(p *boltledger.Ledger) error { info = p.Info(); return nil })
	if words := describeLostLedger(cfg); errors.Is(err, ledger.ErrMissing) && words != "" {
		return "the ledger is missing, and " + words + ". " + adviceRestore
	}
	if errors.Is(err, ledger.ErrNewerSchema) || errors.Is(err, ledger.ErrDevelopment) {
		_, do := exitCodeOfLocal(err)
		return err.Error() + ": " + do
	}
	if err != nil { // it was never made, a daemon has it, or it is not ours to open: they say it themselves
		return ""
	}
	text, do := bindingTrouble(info, cfg)
	if text != "" {
		text += ": " + do
	}
	return text
}

// checkBinding returns a [*daemon.BindingError] where the ledger was made for
// another environment or service than cfg names.
func checkBinding(info ledger.Info, cfg config.Config) error {
	return daemon.CheckBinding(info, cfg.Service.Environment, cfg.Service.BaseURL, otherAddresses(cfg))
}

// otherAddresses returns the addresses of the services besides the archive that cfg uses.
func otherAddresses(cfg config.Config) (all []ledger.Address) {
	for _, a := range cfg.Addresses() {
		if a.Key != "service.base_url" {
			all = append(all, ledger.Address{Key: a.Key, URL: a.URL})
		}
	}
	return all
}

// bindingTrouble describes why a ledger does not belong to this configuration and its drop folders, and what to do; empty: it does.
func bindingTrouble(info ledger.Info, cfg config.Config) (text, do string) {
	if err := checkBinding(info, cfg); err != nil {
		return err.Error(), "write the ledger's own value again, or use another state_dir. " + adviceWrongBinding
	}
	all, err := readDropMarks(cfg)
	if err != nil { // whoever works there is told so
		return "", ""
	}
	for _, m := range all {
		if m.LedgerID != info.ID {
			return fmt.Sprintf("%s; the ledger in state_dir is %s", m, info.ID), adviceMoveNewLedger
		}
	}
	return "", ""
}
