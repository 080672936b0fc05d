package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vaultd/internal/daemon"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/test/outside"
)

// administrator does by hand what vaultd leaves to people.
var administrator = operator.Person{UID: 1000, Reason: "as the runbook says"}

// Administer lets the administrator look once at what waits for a person: a ledger in
// safe mode is compared with the archive, a disposal that was stopped is let go. What
// does not succeed is tried again the next time.
func (w *World) Administer() {
	w.t.Helper()
	if w.life == nil || w.life.isDead() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if _, is := w.d.Ledger().SafeMode(); is {
		c, err := w.d.Reconcile(ctx, administrator)
		w.log.newLogger().Info("the administrator compared", "left", c.Left, "why", c.Why, "waits", c.Waits, "err", err)
	}
	w.allowDownloads(ctx)
	for _, p := range w.d.State().Pauses {
		if p.Target.Purpose == ingest.ToDispose {
			n, err := w.d.Actions().ApproveDisposal(ctx, p.Target.Drop, administrator)
			w.log.newLogger().Info("the administrator let disposals go", "drop", p.Target.Drop, "folders", n, "err", err)
		}
	}
}

// SetBack is how a machine is set back.
type SetBack uint8

// The ways.
const (
	LedgerAlone SetBack = iota // the ledger file is an old one; vaultd notices by itself
	WholeState                 // the whole state directory is; a person restores the ledger from it
	MadeAnew                   // the ledger is lost; a person has it made anew of what lies in the folders
)

// Snapshot takes a copy of the state directory, as it stands on the disk while no process
// runs: the daemon dies for it and is started anew, as on a machine that freezes.
func (w *World) Snapshot() {
	w.t.Helper()
	w.deaths++
	w.tearDown()
	w.copies++
	w.failOn(copyTree(w.stateDir(), w.copied()))
	w.Start()
}

// SetBack lets the daemon die, puts the last copy in the place of the ledger or of the
// whole state directory, and starts the daemon again: the drop folders and the service
// have gone on meanwhile.
func (w *World) SetBack(how SetBack) {
	w.t.Helper()
	w.deaths++
	w.tearDown()
	l, done := w.openLedger()
	lost := l.Head()
	w.failOn(done())
	lostPath := fmt.Sprintf("%s lost %d", w.copied(), w.setBacks)
	switch how {
	case LedgerAlone:
		w.failOn(os.Rename(filepath.Join(w.stateDir(), "ledger.db"), lostPath))
		w.failOn(copyFile(filepath.Join(w.copied(), "ledger.db"), filepath.Join(w.stateDir(), "ledger.db")))
	case MadeAnew:
		w.failOn(os.Rename(filepath.Join(w.stateDir(), "ledger.db"), lostPath))
		_, err := daemon.Rebuild(context.Background(), w.commandConfig(), administrator)
		w.failOn(err)
	case WholeState:
		w.failOn(os.Rename(w.stateDir(), lostPath))
		w.failOn(copyTree(w.copied(), w.stateDir()))
		backup, err := os.Open(filepath.Join(w.copied(), "ledger.db"))
		w.failOn(err)
		_, err = daemon.Restore(context.Background(), w.commandConfig(), backup, false, administrator)
		w.failOn(errors.Join(err, backup.Close()))
	}
	w.setBacks++
	w.Start()
	head := w.d.Ledger().Head()
	if _, safe := w.d.Ledger().SafeMode(); !safe && head.N < lost.N && !w.life.isDead() {
		w.t.Errorf("I15: set back from line %d to %d, and not in safe mode", lost.N, head.N)
	}
}

// commandConfig is the configuration for a command that works while no daemon does. No fault befalls it.
func (w *World) commandConfig() daemon.Config {
	w.life = &life{w: w, death: make(chan struct{})}
	cfg := w.daemonConfig(w.life)
	cfg.LedgerFault, cfg.FileFault, w.life = nil, nil, nil
	return cfg
}

func (w *World) copied() string { return filepath.Join(w.dir, fmt.Sprintf("copy %d", w.copies)) }

func copyTree(from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		one := copyFile
		if e.IsDir() {
			one = copyTree
		}
		if err := one(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() // read-only
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// isArchivedAtService reports whether the service has archived a document of that number.
func (w *World) isArchivedAtService(number string) bool {
	for _, s := range w.emulator.Registrations() {
		if number != "" && s.DocumentID == number && !s.ArchivedAt.IsZero() {
			return true
		}
	}
	return false
}

// hasEntryFor reports whether a folder that is in no ledger any more lies where ended ones
// do, or is archived: it is what holds of the disk although the ledger was set back.
func (w *World) hasEntryFor(d Dropped) bool {
	lies := func(f outside.Folder) bool {
		ended := strings.HasPrefix(f.Path, "_") || path.IsAbs(f.Path)
		return ended && f.Drop == w.dropName(d.Drop) && strings.HasPrefix(path.Base(f.Path), d.Name)
	}
	return slices.ContainsFunc(w.listFolders(), lies) || w.isArchivedAtService(d.Number)
}

// unaccounted names the folders that nobody has.
func (w *World) unaccounted(entries []ledger.Entry) (lost []string) {
	taken := map[string]bool{}
	for _, e := range entries {
		taken[e.Drop+"/"+e.Folder] = true
	}
	for _, d := range w.dropped {
		if name := w.dropName(d.Drop) + "/" + d.Name; !taken[name] && !w.hasEntryFor(d) {
			lost = append(lost, fmt.Sprintf("I1: %q is neither in the ledger, nor on the disk, nor archived", name))
		}
	}
	return lost
}
