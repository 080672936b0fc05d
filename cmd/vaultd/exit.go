package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"vaultd/internal/apicall"
	"vaultd/internal/catalog"
	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/selfcheck"
	"vaultd/internal/statedir"
)

// Exit codes by cause. Scripts must treat an unknown code as a failure.
const (
	exitDone        = 0
	exitFailed      = 1
	exitPerson      = 3  // done in part, or a person is needed
	exitDifferences = 4  // a check found differences
	exitUsage       = 64 // wrong command line
	exitData        = 65 // data that was given is wrong
	exitUnavailable = 69 // the service cannot be reached
	exitInternal    = 70 // a mistake in vaultd
	exitCreate      = 73 // cannot write
	exitIO          = 74 // an input or output failed
	exitTemporary   = 75 // try again later, or already running
	exitRights      = 77 // rights missing, or credentials refused
	exitConfig      = 78 // configuration
)

// codedError is an error with its exit code and a hint what to do.
type codedError struct {
	code int
	hint string
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// whenDamaged is the hint for a damaged ledger.
const whenDamaged = "stop vaultd, keep a copy of state_dir, then docs/recovery.md#the-ledger-file-is-damaged"

// fail wraps an error with its exit code and a hint, which may be empty.
func fail(code int, err error, hint string) error { return &codedError{code, hint, err} }

// usageError is a command line that was not understood.
type usageError struct{ error }

// Unwrap returns what is wrong with it.
func (e usageError) Unwrap() error { return e.error }

// withUsageHint adds the help of the command whose command line was wrong.
func withUsageHint(c *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[usageError](err); ok && c.HasParent() {
		return fail(exitUsage, wrong, fmt.Sprintf("see %q", "vaultd help "+strings.TrimPrefix(c.CommandPath(), "vaultd ")))
	}
	return err
}

// toldError is an error under --json.
type toldError struct {
	Error string `json:"error"`
	Hint  string `json:"hint"` // what to do; may be empty
	Code  int    `json:"code"` // the exit code
}

// reportError prints an error for a person, or with --json for a program, and returns the exit code.
func (a *app) reportError(err error) int {
	code, hint := exitCodeOf(err)
	if a.json && err.Error() != "" {
		if err := json.NewEncoder(a.stderr).Encode(toldError{strings.TrimRight(err.Error(), "\n"), hint, code}); err != nil {
			return exitIO
		}
		return code
	}
	if text := err.Error(); text != "" {
		for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
			if i == 0 {
				line = "vaultd: " + line
			}
			fmt.Fprintln(a.stderr, line)
		}
	}
	if hint != "" {
		fmt.Fprintln(a.stderr, "vaultd: hint: "+hint)
	}
	return code
}

// exitCodeOf finds the exit code and the hint of an error.
func exitCodeOf(err error) (code int, hint string) {
	if c, ok := errors.AsType[*codedError](err); ok {
		return c.code, c.hint
	}
	if _, ok := errors.AsType[usageError](err); ok || strings.HasPrefix(err.Error(), "unknown command") {
		return exitUsage, `see "vaultd help"`
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return exitConfig, ""
	}
	if _, ok := errors.AsType[*statedir.InUseError](err); ok {
		return exitTemporary, "stop the other one first; commands like status and list work beside it"
	}
	if _, ok := errors.AsType[*drop.LockedError](err); ok {
		return exitTemporary, "one drop folder is worked in by one vaultd"
	}
	if _, ok := errors.AsType[*daemon.BindingError](err); ok {
		return exitConfig, "a ledger is bound to one environment and one address of each service; use another state_dir for another one. " + adviceWrongBinding
	}
	if errors.Is(err, drop.ErrGroupUnusable) {
		return exitConfig, `make the daemon's user a member of that group and start it again, or name another one as the drop's "group"; see docs/samba.md`
	}
	if f, ok := errors.AsType[*drop.ForeignError](err); ok && f.IsLaterEpoch() {
		return exitConfig, present.AdviseOnTakeover(f.Epoch)
	} else if ok {
		return exitConfig, "this drop folder belongs to another ledger: check path and state_dir; " + adviceMoveNewLedger
	}
	if _, ok := errors.AsType[*catalog.IncompleteError](err); ok {
		return exitTemporary, `ask again when "vaultd status" names the catalog no more; until then "vaultd show" finds by key, clientUUID and bumId`
	}
	if r, ok := errors.AsType[*apicall.Error](err); ok {
		return exitCodeOfRemote(r), present.AdviceOn(r.Code)
	}
	return exitCodeOfLocal(err)
}

func exitCodeOfRemote(r *apicall.Error) int {
	switch {
	case r.Overloaded():
		return exitTemporary
	case apicall.IsOnTheWay(r.Code):
		return exitUnavailable
	case r.Denied: // includes a refused token and an unreadable secret, where no call was made
		return exitRights
	case r.Outcome == apicall.NotProcessed || r.Outcome == apicall.Refused:
		return exitFailed
	}
	return exitUnavailable
}

func exitCodeOfLocal(err error) (code int, hint string) {
	switch {
	case errors.Is(err, ledger.ErrMissing):
		if strings.Contains(err.Error(), "ledger.head") {
			return exitConfig, `it was there before: "vaultd restore FILE" puts a backup in its place; without any, "vaultd rebuild"; see docs/recovery.md`
		}
		return exitConfig, `for a new installation run "vaultd init"; if there was one, check state_dir, then "vaultd restore FILE" or "vaultd rebuild" (docs/recovery.md)`
	case errors.Is(err, ledger.ErrLocked):
		return exitTemporary, "another process has the ledger open"
	case errors.Is(err, ledger.ErrLeftOpen):
		return exitTemporary, "start vaultd, which checks them first; where it must not run, vaultd verify checks them"
	case errors.Is(err, ledger.ErrRolledBack):
		return exitIO, "an older copy of the ledger lies in state_dir, most likely because the machine was set back. Put the newest one back if there is one; else start vaultd, which works in safe mode, then vaultd reconcile"
	case errors.Is(err, ledger.ErrNewerSchema):
		return exitConfig, "install the newer vaultd again, or restore a backup that was made before the upgrade"
	case errors.Is(err, ledger.ErrDevelopment):
		return exitConfig, "use the version that made it; or move ledger.db and ledger.head.* out of state_dir and keep them, then vaultd rebuild makes a new ledger of the drop folders and the archive (docs/recovery.md)"
	case errors.Is(err, context.Canceled):
		return exitTemporary, ""
	case errors.Is(err, fs.ErrPermission):
		return exitRights, "look at the owner and the rights of what is named (ls -ld). What root made in state_dir or in a drop's .vaultd belongs to vaultd's user: chown it. A command of root works as the owner of state_dir"
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EDQUOT):
		return exitCreate, "free space on the disk, or make it writable"
	case errors.Is(err, syscall.EIO):
		return exitIO, ""
	}
	if errors.Is(err, selfcheck.ErrSlow) {
		return exitIO, "nothing is sent before this is clear. Look at the disk (dmesg, SMART), move state_dir to a faster one, then restart vaultd, which tries again; or vaultd restore FILE, without any backup vaultd rebuild (docs/recovery.md)"
	}
	if _, ok := errors.AsType[*ledger.DamageError](err); ok {
		return exitIO, "nothing is sent before this is clear. Keep the file: vaultd restore FILE puts a backup in its place; without any, vaultd rebuild (docs/recovery.md)"
	}
	return exitFailed, ""
}
