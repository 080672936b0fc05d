package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

func (a *app) runCommand() *cobra.Command {
	var once, wait, verbose bool
	c := &cobra.Command{
		Use:   "run",
		Short: "the daemon: take, pack, upload and follow until stopped",
		Long: `Works until it is stopped (SIGTERM or Ctrl-C: exit 0, nothing half-done). It never
ends for a fault of the service or of a drop folder. A damaged ledger is not opened:
it says so to whoever asks. Started by root, it works as the user that state_dir
belongs to.

With --once it takes what lies in the drop folders and has settled, sends it, asks
the service once, receives what the business network announces, and ends; with --wait
it goes on until everything is final, but for what the network is still delivering. It
ends with 3 when something needs a person.`,
		Example: `  vaultd run
  vaultd run --once --wait`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if wait && !once {
				return usageError{errors.New("--wait belongs to --once")}
			}
			return a.runDaemon(c.Context(), once, wait, verbose)
		},
	}
	c.Flags().BoolVar(&once, "once", false, "one pass, then end")
	c.Flags().BoolVar(&wait, "wait", false, "with --once: until everything is final")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "log every step of every document")
	return c
}

// runDaemon returns when the daemon has ended, or when it has not ended within
// stopLimit after ctx. A call that hangs is then left behind, and the process
// ends around it. That is the same as a crash: every intent is in the ledger,
// and the next start continues from there.
func (a *app) runDaemon(ctx context.Context, once, wait, verbose bool) error {
	ended := make(chan error, 1)
	go func() { ended <- a.runDaemonToItsEnd(ctx, once, wait, verbose) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(stopLimit):
		fmt.Fprintln(a.stderr, "vaultd: something hangs, perhaps a drop folder's file server; ended without waiting for it")
		return nil
	}
}

func (a *app) runDaemonToItsEnd(ctx context.Context, once, wait, verbose bool) error {
	hup := make(chan os.Signal, 1) // from here on SIGHUP does not end the process
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	started, _ := a.configForAsking() // of a file with faults, only state_dir is known
	owner, err := a.becomeOwner(started.StateDir)
	if err != nil {
		return err
	}
	cfg, err := config.Check(a.configPath, a.env)
	if err != nil {
		return err
	}
	log := a.newLogger(verbose, cfg.Location)
	switch {
	case owner != "":
		log.Info("root started vaultd, which works as the owner of state_dir", "user", owner)
	case a.isRoot():
		log.Warn(asRoot, "do", notAsRoot)
	}
	d, err := a.openDaemon(ctx, cfg, log)
	switch {
	case err != nil && !once && ctx.Err() != nil:
		log.Info("stopped before the ledger was open", "err", err)
		return nil
	case err != nil && !once && isRefusedLedger(err):
		return a.serveRefused(ctx, cfg, log, err)
	case err != nil:
		return err
	}
	if once {
		return errors.Join(a.runOnce(ctx, d, cfg, wait), d.Close())
	}
	h := a.newHost(d, cfg, log)
	h.hup = hup
	h.reread = func() (config.Config, error) {
		return config.Reload(a.configPath, a.env, h.currentGeneration().cfg)
	}
	err = h.serveUntilStopped(ctx)
	return errors.Join(err, h.currentGeneration().d.Close())
}

// The report about a daemon that runs as root, and the advice.
const (
	asRoot    = "vaultd runs as root, which may read and write everything"
	notAsRoot = "give state_dir and the drop folders to a user of vaultd's own, and start it as that user (docs/quickstart.md)"
)

// runOnce makes one pass over all work that is due and prints its outcome.
func (a *app) runOnce(ctx context.Context, d *daemon.Daemon, cfg config.Config, wait bool) error {
	before := d.Ledger().Balance()
	if err := d.RunOnce(ctx, wait); err != nil {
		return fail(exitIO, err, "")
	}
	if ctx.Err() != nil {
		return fail(exitTemporary, errors.New("stopped before the pass was through; nothing is lost"), "")
	}
	after, state, c := d.Ledger().Balance(), d.State(), present.Clock{Now: time.Now(), Location: cfg.Location}
	if env := d.Ledger().Info().Environment; env != "production" {
		fmt.Fprintln(a.stdout, "TEST, NO EVIDENCE: what a test environment archives proves nothing")
	}
	fmt.Fprintf(a.stdout, "seen %d new; archived %d, rejected %d, duplicate %d, quarantined %d, open %d\n", after.Seen-before.Seen,
		after.States[ledger.Archived]-before.States[ledger.Archived], after.States[ledger.Rejected]-before.States[ledger.Rejected],
		after.States[ledger.Duplicate]-before.States[ledger.Duplicate], after.States[ledger.Quarantined], after.OpenEntries())
	needs := after.States[ledger.Rejected] > before.States[ledger.Rejected] || after.States[ledger.Quarantined] > 0 || after.States[ledger.Unclear] > 0
	if state.HeldReason != "" {
		needs = true
		fmt.Fprintf(a.stdout, "nothing is taken or sent: %s\n", state.HeldReason)
	}
	for _, p := range state.Pauses {
		needs = true
		fmt.Fprintf(a.stdout, "paused: %s since %s: %s\n", p.Target.String(), c.Exact(p.Since), present.DescribePause(c, p))
		fmt.Fprintf(a.stdout, "  %s\n", sanitize.Text(present.AdviseOnPause(p)+present.DescribeNextTry(c, present.TimeOrNil(p.Next))))
	}
	for _, f := range state.Incoming {
		needs = true
		fmt.Fprintf(a.stdout, "%s\n  %s\n", sanitize.Text(f.Text), f.Do)
	}
	if left, err := countUnreceived(d.Ledger()); err != nil {
		return fail(exitIO, err, "")
	} else if left > 0 {
		needs = needs || wait
		fmt.Fprintf(a.stdout, "%s not received yet: see \"vaultd arrivals\"\n", present.FormatCount(left, "document of the business network is", "documents of the business network are"))
	}
	for _, dr := range state.Drops {
		if dr.Paused != "" {
			needs = true
			fmt.Fprintf(a.stdout, "drop %s paused: %s\n", dr.Name, dr.Paused)
			if dr.Do != "" {
				fmt.Fprintf(a.stdout, "  %s\n", dr.Do)
			}
		}
		for _, w := range dr.Watch.NotTaken {
			needs = true
			fmt.Fprintf(a.stdout, "drop %s: %d not taken: %s\n", dr.Name, w.Count, w.Reason)
		}
	}
	if needs {
		return fail(exitPerson, errors.New("something needs a person"), `see "vaultd status"`)
	}
	return nil
}

// countUnreceived counts what was announced over the business network and does not lie in its drop folder yet.
func countUnreceived(l *boltledger.Ledger) (n int, err error) {
	err = l.Arrivals(func(a arrival.Arrival) error {
		if a.Kind == arrival.Received {
			n++
		}
		return nil
	}, arrival.Announced, arrival.Fetching)
	return n, err
}

// newLogger returns the log of this process. On a terminal it writes text with times in zone; into systemd's journal it writes fields;
// elsewhere it writes JSON with times in UTC.
func (a *app) newLogger(verbose bool, zone *time.Location) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	f, ok := a.stderr.(*os.File)
	if ok && term.IsTerminal(int(f.Fd())) {
		return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: timesIn(zone)}))
	}
	if native, err := journal.StderrIsJournalStream(); ok && f == os.Stderr && native && err == nil && journal.Enabled() {
		return slog.New(newJournalHandler(level))
	}
	return slog.New(slog.NewJSONHandler(a.stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: timesIn(time.UTC)}))
}

// timesIn writes every time of a log in a zone; nil means the zone of this machine.
func timesIn(zone *time.Location) func([]string, slog.Attr) slog.Attr {
	if zone == nil {
		zone = time.Local
	}
	return func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindTime {
			a.Value = slog.TimeValue(a.Value.Time().In(zone))
		}
		return a
	}
}

// logTo opens a log file that gets every step.
func logTo(path string) (*slog.Logger, func() error, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fail(exitCreate, fmt.Errorf("open log: %w", err), "")
	}
	return slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: timesIn(time.UTC)})), f.Close, nil
}

// groupIDs looks up groups by name or number.
func groupIDs(names []string) ([]uint32, error) {
	var ids []uint32
	for _, name := range names {
		id := name
		if g, err := user.LookupGroup(name); err == nil {
			id = g.Gid
		}
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("group %q does not exist", name)
		}
		ids = append(ids, uint32(n))
	}
	return ids, nil
}

// stopLimit bounds how long the daemon takes to stop after a signal. A call to a file server that does not
// answer can hang for ever and cannot be cancelled.
const stopLimit = 9 * time.Second

// leaveNoDump keeps the memory of the process (secrets, tokens, documents) out of core files, whatever GOTRACEBACK asks for, and
// away from other processes of the same user. Root can still read it.
func leaveNoDump() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core files: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid core files: %w", err)
	}
	return nil
}
