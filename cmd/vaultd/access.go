package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vaultd/internal/catalog"
	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/selfcheck"
	"vaultd/internal/statedir"
)

// view is what a command knows of one vaultd. The command runs inside the running daemon, or alone.
type view struct {
	present.Clock
	cfg    config.Config
	ledger *boltledger.Ledger
	state  func() daemon.State // nil: the command runs alone

	reloadFault string // why the daemon goes on with an older configuration; empty: it does not

	catalog *catalog.Catalog // of the running daemon; nil: the command runs alone

	booksTurn chan struct{} // full while the running daemon answers about booked invoices; nil: the command runs alone

	daemonIsRoot bool // the running daemon may read and write everything
}

// readChecked verifies the ledger and calls do with it and what was found: with
// a copy of the ledger where the daemon works with it, and else with the ledger
// itself.
func (v view) readChecked(ctx context.Context, what extent, do func(*boltledger.Ledger, selfcheck.Verified) error) error {
	how := v.verification(what)
	if v.state == nil {
		found, err := how.Verify(ctx, v.ledger)
		if err != nil {
			return err
		}
		return do(v.ledger, found)
	}
	copied, found, err := how.CheckCopy(ctx, v.ledger, v.cfg.Spool.MinFree)
	if err != nil {
		return err
	}
	defer copied.Close() // read-only
	if found.HasUnreadPages() {
		return &ledger.DamageError{What: found.Problems[0].What}
	}
	return boltledger.ReadOpenFile(copied, v.ledger.Location(), func(l *boltledger.Ledger) error { return do(l, found) })
}

// verification says how commands verify the ledger.
func (v view) verification(what extent) selfcheck.Verification {
	return selfcheck.Verification{StateDir: v.cfg.StateDir, Program: buildVersion(), Whole: bool(what), Now: time.Now, Executable: thisProgram}
}

// openCatalog returns the catalog, and a function that gives it back. A command
// that runs alone keeps the file itself.
func (v view) openCatalog() (c *catalog.Catalog, release func() error) {
	if v.catalog != nil {
		return v.catalog, func() error { return nil }
	}
	c = catalog.OpenStopped(catalog.Config{StateDir: v.cfg.StateDir, Ledger: v.ledger, Location: v.Location, Log: slog.New(slog.DiscardHandler),
		CheckSpace: func() error {
			return daemon.CheckCatalogSpace(durable.FreeBytes(v.cfg.StateDir), v.cfg.Spool.MinFree)
		}})
	return c, c.Close
}

// tellLongSearch tells people why they wait.
func (a *app) tellLongSearch(why string) {
	fmt.Fprintf(a.stderr, "%s; the whole ledger is read, which takes longer\n", why)
}

// lockPatience is how long a command waits for the ledger while another command has it
// open, or a daemon is starting.
const lockPatience = 3 * time.Second

// withLedger calls do with the ledger. While a daemon runs, the whole command runs inside
// the daemon instead; the error then has the exit code and no text, because the daemon's
// output was written already. Otherwise this process opens the ledger.
func (a *app) withLedger(cmd *cobra.Command, args []string, do func(context.Context, view) error) error {
	if a.inside != nil {
		err := do(cmd.Context(), a.insideView())
		if _, damaged := errors.AsType[*ledger.DamageError](err); damaged {
			a.inside.CheckNow()
		}
		return err
	}
	cfg, err := a.configForAsking()
	if err != nil {
		return err
	}
	return a.runThroughDaemon(cmd.Context(), cfg, commandLine(cmd, args, nil), a.stdout, do)
}

// runThroughDaemon runs a command inside the daemon and copies its output to stdout. When no
// daemon runs, it calls do in this process.
func (a *app) runThroughDaemon(ctx context.Context, cfg config.Config, request []string, stdout io.Writer, do func(context.Context, view) error) error {
	return a.runThroughDaemonWithInput(ctx, cfg, controlRequest{Args: request}, nil, stdout, do)
}

// runThroughDaemonWithInput is runThroughDaemon for a command that reads input.
func (a *app) runThroughDaemonWithInput(ctx context.Context, cfg config.Config, request controlRequest, input []byte, stdout io.Writer, do func(context.Context, view) error) error {
	patience, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		code, err := callControlWithInput(ctx, socketPath(cfg), request, input, stdout, a.stderr)
		switch {
		case errors.Is(err, errNoDaemon) && cfg.Unusable != nil:
			return cfg.Unusable
		case !errors.Is(err, errNoDaemon):
			a.warnOfConfigFault(cfg)
			return remoteResult(code, err)
		}
		err = a.runLocally(ctx, cfg, do)
		if _, held := errors.AsType[*statedir.InUseError](err); !held {
			return err
		}
		select { // another command has the ledger open, or a daemon starts
		case <-patience.Done():
			return err
		case <-retry.C:
		}
	}
}

// reportMemory is how much memory a report may fill before the garbage collector works as often as it otherwise does.
const reportMemory = 96 << 20

// useMemory lets the process fill so much memory and collect garbage less
// often, which makes a report of many rows a quarter faster. The returned
// function ends that. It does so only for a command that the process was
// started for: other work in the process keeps its usual settings.
func (a *app) useMemory(limit int64) (end func()) {
	if a.stderr != io.Writer(os.Stderr) {
		return func() {}
	}
	limit = min(limit, debug.SetMemoryLimit(-1)) // that of GOMEMLIMIT, where it is less
	percent, before := debug.SetGCPercent(400), debug.SetMemoryLimit(limit)
	return func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(before) }
}

// configForAsking returns the configuration for a command about the ledger. A running daemon answers with the configuration that it
// uses, whatever was written to the file since. The command then needs only the path of the socket, so a file with faults, or one that
// the user may not read, is good enough.
func (a *app) configForAsking() (config.Config, error) {
	cfg, err := a.loadConfig()
	wrong, isFaults := errors.AsType[*config.Error](err)
	if !isFaults || errors.Is(wrong, fs.ErrNotExist) { // a missing file does not tell where the socket is
		return cfg, err
	}
	return config.NewUnusable(a.configPath, a.env, err), nil
}

// runWithoutLedger runs a command that needs the credentials and no ledger: inside the daemon, and when none runs in this process.
func (a *app) runWithoutLedger(c *cobra.Command, args []string, do func(context.Context, config.Config) error) error {
	if a.inside != nil {
		return do(c.Context(), *a.cfg)
	}
	cfg, err := a.configForAsking()
	if err != nil {
		return err
	}
	return a.askDaemonOrRun(c.Context(), cfg, commandLine(c, args, nil), a.stdout, func() error { return do(c.Context(), cfg) })
}

// askDaemonOrRun runs a command that needs no ledger inside the daemon and copies its output to stdout. Otherwise it
// calls do in this process.
func (a *app) askDaemonOrRun(ctx context.Context, cfg config.Config, request []string, stdout io.Writer, do func() error) error {
	code, err := callControl(ctx, socketPath(cfg), request, stdout, a.stderr)
	switch {
	case !errors.Is(err, errNoDaemon):
		a.warnOfConfigFault(cfg)
		return remoteResult(code, err)
	case cfg.Unusable != nil:
		return cfg.Unusable
	}
	return a.asOwner(cfg.StateDir, do)
}

// warnOfConfigFault tells that the daemon answered although the configuration file has faults.
func (a *app) warnOfConfigFault(cfg config.Config) {
	switch {
	case cfg.Unusable == nil:
	case errors.Is(cfg.Unusable, fs.ErrPermission):
	default:
		fmt.Fprintln(a.stderr, `vaultd: the configuration on the disk has faults (see "vaultd check"); the running vaultd answered with the one it works with`)
	}
}

// runLocally opens the ledger in this process and calls do with it, as the owner of state_dir.
func (a *app) runLocally(ctx context.Context, cfg config.Config, do func(context.Context, view) error) error {
	return a.asOwner(cfg.StateDir, func() error {
		l, closeLedger, err := a.openLedger(ctx, cfg)
		if err != nil {
			return explainMissingLedger(cfg, err)
		}
		if info := l.Info(); info.Environment != cfg.Service.Environment { // the output must not be taken for that of the other environment
			return errors.Join(&daemon.BindingError{What: "environment", Ledger: info.Environment, Config: cfg.Service.Environment}, closeLedger())
		}
		err = do(ctx, view{Clock: present.Clock{Now: time.Now(), Location: cfg.Location}, cfg: cfg, ledger: l})
		return errors.Join(err, closeLedger())
	})
}

// openLedger opens the ledger in this process, and tells people why they wait
// where a process left it open.
func (a *app) openLedger(ctx context.Context, cfg config.Config) (l *boltledger.Ledger, closeIt func() error, err error) {
	return statedir.OpenLedger(cfg.StateDir, cfg.Location, func(f *os.File) error {
		if l == nil { // else it is verified
			fmt.Fprintln(a.stderr, "a process ended with the ledger open: its pages are checked first, which takes long where it is large")
		}
		return selfcheck.Probe(ctx, thisProgram, f)
	})
}

func (a *app) insideView() view {
	return view{present.Clock{Now: time.Now(), Location: a.cfg.Location}, *a.cfg, a.inside.Ledger(), a.inside.State, a.reloadFault, a.inside.Catalog(), a.booksTurn, a.daemonIsRoot}
}

const socketName = "vaultd.sock"

func socketPath(cfg config.Config) string { return filepath.Join(cfg.StateDir, socketName) }

// remoteResult returns the error for the exit code of a command that ran inside the daemon.
func remoteResult(code int, err error) error {
	if err != nil || code == exitDone {
		return err
	}
	return failSilently(code)
}

// silent is an error without text: everything was printed already.
type silent struct{}

func (silent) Error() string { return "" }

// failSilently ends a command with an exit code and no further output.
func failSilently(code int) error { return fail(code, silent{}, "") }

// commandLine returns the command line for the daemon: the command's name, the flags that
// were given, except --config, and the arguments. replace sets flags to other values,
// whether they were given or not.
func commandLine(cmd *cobra.Command, args []string, replace map[string]string) []string {
	line := []string{cmd.Name()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		_, other := replace[f.Name]
		if f.Name == "config" || other {
			return
		}
		values := []string{f.Value.String()}
		if several, is := f.Value.(pflag.SliceValue); is { // its String joins the values in brackets, for people
			values = several.GetSlice()
		}
		for _, v := range values {
			line = append(line, "--"+f.Name+"="+v)
		}
	})
	for name, value := range replace {
		line = append(line, "--"+name+"="+value)
	}
	return append(append(line, "--"), args...)
}

// expectArgs checks the number of arguments; what names them for the error.
func expectArgs(what ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == len(what):
			return nil
		case len(args) < len(what):
			return usageError{fmt.Errorf("%s is missing", what[len(args)])}
		case len(what) == 1 && len(args) > 1:
			return usageError{fmt.Errorf("one argument too many: put a name with blanks in quotes: %q", strings.Join(args, " "))}
		}
		return usageError{fmt.Errorf("unexpected argument %q", args[len(what)])}
	}
}
