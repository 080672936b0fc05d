// Command vaultd archives invoice folders: it takes them from drop folders, packs
// each into one ZIP, registers and uploads it to an archive service, follows it
// until the service says archived, and can prove all of it.
//
// This package has what people and scripts rely on: the commands, their flags and
// texts, and the exit codes. The packages below internal do the work; the keys of the
// configuration are in internal/config. Nothing here decides what happens to a document.
//
// A command may be killed at any moment: what was done is in the ledger, and the
// next start goes on from there.
package main

import (
	"context"
	"fmt"
	"io"
	"log" //lint:ignore imports only to silence it: net/http prints with it what a peer sends unasked
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/durable"
	"vaultd/internal/selfcheck"
)

// thisProgram is what runs, whatever has its name since.
const thisProgram = "/proc/self/exe"

func main() {
	selfcheck.LimitStack()
	isChild := len(os.Args) == 2 && os.Args[1] == selfcheck.ChildCommand
	if isChild {
		selfcheck.PrepareChild() // first: leaveNoDump takes the right to write its own files of /proc
	}
	if err := leaveNoDump(); err != nil {
		fmt.Fprintln(os.Stderr, "vaultd:", err)
		os.Exit(exitFailed)
	}
	if isChild {
		os.Exit(selfcheck.RunChild(context.Background(), os.Stdin, os.Stdout))
	}
	// net/http prints what a peer sends behind its answer, which may be the rest of a list of upload addresses.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv)
	stop()
	os.Exit(code)
}

// Run executes one command line and returns its exit code. env looks up the
// variables of the environment. Several may run in one process: only main, and
// a command that has the standard streams of the process, change settings of
// the whole process.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, env: env, uid: uint32(os.Getuid())}
	return a.executeArgs(ctx, args)
}

// app is one execution of one command line.
type app struct {
	stdin          io.Reader // inside the daemon: what the client sends
	stdout, stderr io.Writer
	env            func(string) (string, bool)
	uid            uint32 // who asks

	configPath string
	json       bool

	inside  *daemon.Daemon // set when the command runs inside the daemon
	cfg     *config.Config // the daemon's, when inside
	refused error          // why the running vaultd did not open the ledger; nil: it did, or this process asks

	syncs durable.SyncCounter // of files and directories, since the process began

	reloadFault string        // why the daemon goes on with an older configuration, when inside; empty: it does not
	booksTurn   chan struct{} // of the daemon, when inside

	handover *auditHandover // what the client adds to an audit, when inside; may be nil
	reports  *handedOver    // of the daemon, when inside

	reload       func(context.Context) error // reads the configuration again, when inside
	daemonIsRoot bool                        // the daemon may read and write everything, when inside
}

func (a *app) executeArgs(ctx context.Context, args []string) int {
	root := a.newRootCommand()
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	if c, err := root.ExecuteContextC(ctx); err != nil {
		return a.reportError(withUsageHint(c, err))
	}
	return exitDone
}

func (a *app) newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "vaultd",
		Short: "archive invoice folders, and prove it",
		Long: `vaultd takes invoice folders from drop folders, packs each into one ZIP, registers
and uploads it to the archive service, follows it until the service says archived,
and can prove all of it.

Try it without any set-up:  vaultd demo`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Version:           readBuild().String(), // for --version, as people type it
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().StringVar(&a.configPath, "config", "/etc/vaultd/config.yaml", "configuration `file`")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "machine-readable output")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.refused }
	root.AddCommand(
		a.initCommand(), a.runCommand(), a.reloadCommand(), a.checkCommand(), a.doctorCommand(), a.demoCommand(), a.emulateCommand(),
		a.statusCommand(), a.listCommand(), a.showCommand(), a.fetchCommand(), a.auditCommand(), a.verifyCommand(), a.versionCommand(),
		a.whyCommand(), a.findCommand(), a.receiptCommand(), a.validateCommand(), a.vaultsCommand(), a.directoryCommand(), a.extractsCommand(), a.noticesCommand(), a.arrivalsCommand(), a.booksCommand(), a.indexCommand(), a.backupCommand(), a.completionCommand(),
		a.restoreCommand(), a.rebuildCommand(), a.reconcileCommand(), a.hashPasswordCommand(), a.suggestCommand(),
	)
	root.AddCommand(a.actCommands()...)
	root.AddCommand(a.acceptCommands()...)
	groupCommands(root)
	a.completeFlags(root)
	return root
}

// loadConfig reads the configuration. Inside the daemon it returns the one that the daemon uses.
func (a *app) loadConfig() (config.Config, error) {
	if a.cfg != nil {
		return *a.cfg, nil
	}
	return config.Load(a.configPath, a.env)
}

// commandGroups orders the commands by what people want to do. Other commands come last.
var commandGroups = []struct {
	id, title string
	commands  []string
}{
	{"look", "Look:", []string{"status", "list", "find", "show", "why", "extracts", "arrivals", "directory"}},
	{"decide", "Decide (each is journaled with who decided):", []string{"retry", "close", "release", "hold", "unhold", "resume", "accept", "reject"}},
	{"prove", "Prove:", []string{"receipt", "audit", "books", "verify", "fetch", "index", "backup"}},
	{"recover", "Recover:", []string{"restore", "rebuild", "reconcile"}},
	{"setup", "Set up and run:", []string{"init", "check", "doctor", "vaults", "validate", "hash-password", "run", "reload"}},
	{"try", "Try:", []string{"demo", "emulate"}},
}

func groupCommands(root *cobra.Command) {
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(g.commands, c.Name()) {
				c.GroupID = g.id
			}
		}
	}
}
