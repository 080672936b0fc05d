package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

func (a *app) restoreCommand() *cobra.Command {
	var takeOver bool
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "put a backup of the ledger in its place, in safe mode",
		Long: `Puts a copy that "vaultd backup" made in the place of the ledger, which may be missing,
damaged or unwanted. The copy is checked as a whole first. What lay there before is
kept beside it. vaultd must be stopped. As root the command opens FILE as root, and then
works as the user that state_dir belongs to.

What was done since the copy was made is not known. So the ledger is in safe mode:
vaultd packs and asks, but takes, sends, moves and removes nothing until
"vaultd reconcile" has held the ledger against the archive.

With --take-over the drop folders are marked as belonging to this vaultd from now on.
Another one that still works there, on the old server most likely, sees that within
seconds, lets them go and sends nothing more. Use it when you move to another machine,
or when you are told that a later state of the ledger worked in a drop folder.`,
		Example: `  systemctl stop vaultd
  sudo vaultd restore /backup/vaultd-2026-11-20.db --reason "disk replaced"
  systemctl start vaultd
  vaultd reconcile`,
		Args: expectArgs("FILE"),
	}
	c.Flags().BoolVar(&takeOver, "take-over", false, "stop another vaultd that still works in the drop folders")
	reason := reasonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkReason(c, *reason); err != nil {
			return err
		}
		return a.runRestore(c, args[0], takeOver, strings.TrimSpace(*reason))
	}
	return c
}

// restored is the object of "restore --json".
type restored struct {
	Ledger      string     `json:"ledgerId"`
	Environment string     `json:"environment"`
	HeadLine    uint64     `json:"headLine"`
	Epoch       uint64     `json:"epoch"`
	KnownUntil  *time.Time `json:"knownUntil"` // of the copy's last line: what happened after it is not known
	Doubted     int        `json:"inDoubt"`    // entries of which it is not known what happened since
	Kept        string     `json:"keptAs"`     // the file that lay there before
	Away        []string   `json:"dropsAway"`  // drop folders that are not reachable now
}

func (a *app) runRestore(c *cobra.Command, file string, takeOver bool, reason string) error {
	backup, err := openBackup(file)
	if err != nil {
		return err
	}
	defer backup.Close() // read-only
	var dc daemon.Config
	var r daemon.Restored
	err = a.withRecoveryConfig(func(cfg daemon.Config) (err error) {
		dc = cfg
		r, err = daemon.Restore(c.Context(), dc, backup, takeOver, operator.Person{UID: a.uid, Reason: reason})
		return err
	})
	if later, ok := errors.AsType[*daemon.LaterError](err); ok {
		return fail(exitConfig, later, "use the newest backup; if there is none newer, or the old server must stop, restore with --take-over")
	}
	if broken, ok := errors.AsType[*ledger.DamageError](err); ok && r.Info.ID == "" { // the present ledger was not looked at yet
		return fail(exitIO, fmt.Errorf("the backup %s is damaged: %s; nothing was changed", sanitize.Text(file), sanitize.Text(broken.What)),
			"use an older backup; without any, vaultd rebuild")
	}
	if errors.Is(err, ledger.ErrOtherLedger) {
		return fail(exitConfig, err, adviceMoveNewLedger)
	}
	if err != nil {
		return err
	}
	out := restored{Ledger: r.Info.ID, Environment: r.Info.Environment, HeadLine: r.Head.N, Epoch: r.Info.Epoch,
		KnownUntil: present.TimeOrNil(r.Safe.KnownUntil), Doubted: r.Unreconciled, Kept: r.Kept, Away: append([]string{}, r.Away...)}
	if a.json {
		return writeJSON(a.stdout, out)
	}
	fmt.Fprintf(a.stdout, "RESTORED   %s\nLEDGER     %s%s, epoch %d, %d journal lines\n", sanitize.Text(file), sanitize.Text(out.Ledger), testMark(out.Environment != "production"), out.Epoch, out.HeadLine)
	fmt.Fprintf(a.stdout, "KNOWN      up to %s; what was done after it is not known\n", r.Safe.KnownUntil.In(dc.Location).Format("2 Jan 2006 15:04:05 MST"))
	fmt.Fprintf(a.stdout, "IN DOUBT   %s\n", present.FormatCount(out.Doubted, "entry", "entries"))
	a.tellKept(out.Kept)
	for _, name := range out.Away {
		fmt.Fprintf(a.stdout, "AWAY       drop %s is not there; safe mode lasts until it is\n", sanitize.Text(name))
	}
	a.tellSafeMode()
	return nil
}

func (a *app) tellKept(name string) {
	if name != "" {
		fmt.Fprintf(a.stdout, "KEPT       what lay there before, as %s\n", sanitize.Text(name))
	}
}

func (a *app) tellSafeMode() {
	fmt.Fprintln(a.stdout, "SAFE MODE  nothing is taken, sent, moved or removed yet. Next: start vaultd, then  vaultd reconcile")
}

// openBackup opens a backup with the rights of the caller.
func openBackup(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fail(exitRights, fmt.Errorf("open the backup: %w", err), "give the command as root: sudo vaultd restore FILE. It opens the file as root, and works as the owner of state_dir")
	case err != nil:
		return nil, fmt.Errorf("open the backup: %w", err)
	}
	return f, nil
}

// withRecoveryConfig prepares state_dir, which may be missing, for a ledger
// that is put there, and calls do as its owner.
func (a *app) withRecoveryConfig(do func(daemon.Config) error) error {
	if a.inside != nil {
		return usageError{errors.New("the daemon does not replace its own ledger; stop it first")}
	}
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	return a.asOwner(cfg.StateDir, func() error {
		if _, err := makeStateDir(cfg); err != nil {
			return err
		}
		dc, err := a.daemonConfig(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		return do(dc)
	})
}
