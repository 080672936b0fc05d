package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"vaultd/internal/config"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "make the state directory and the ledger, once",
		Long: `Makes state_dir and an empty ledger in it, bound for ever to the environment and the
base_url of the configuration. It never touches a ledger that has an entry; one without
any that is bound to something else is set aside and made anew. Where a drop folder
belongs to a ledger that is not here, it makes none: that one was lost.

It also names each drop folder whose mount decides the modes in such a way that vaultd
could not work there, and says what to do about it.

Run it as the user that the daemon runs as, or as root: it then works as the user that
state_dir belongs to. A state_dir that it makes belongs to the user who gave the command.`,
		Example: `  sudo vaultd init
  vaultd init --config ./config.yaml`,
		Args: expectArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.initStateDir(c.Context()) },
	}
}

// initialised is the object of "init --json".
type initialised struct {
	LedgerID    string `json:"ledgerId"`
	Environment string `json:"environment"`
	BaseURL     string `json:"baseUrl"`
	StateDir    string `json:"stateDir"`

	LookAt []string `json:"lookAt"` // drop folders whose mount keeps vaultd from working there
}

func (a *app) initStateDir(ctx context.Context) error {
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	return a.asOwner(cfg.StateDir, func() error { return a.initAsOwner(ctx, cfg) })
}

func (a *app) initAsOwner(ctx context.Context, cfg config.Config) error {
	tightened, err := makeStateDir(cfg)
	if err != nil {
		return err
	}
	made := initialised{uuid.NewString(), cfg.Service.Environment, cfg.Service.BaseURL, cfg.StateDir, []string{}}
	if err := a.createLedger(ctx, cfg, &made); err != nil {
		return err
	}
	for _, d := range cfg.Drops {
		if trouble := describeModesTrouble(d); trouble != "" {
			made.LookAt = append(made.LookAt, "drop "+d.Name+": "+trouble)
		}
	}
	if a.json {
		return writeJSON(a.stdout, made)
	}
	if tightened {
		fmt.Fprintf(a.stdout, "%s was open to others; its rights are 0700 now\n", cfg.StateDir)
	}
	a.explainInit(made)
	return nil
}

// createLedger makes the ledger. An empty one that is bound to something else makes room for it and leaves it its identity.
func (a *app) createLedger(ctx context.Context, cfg config.Config, made *initialised) error {
	info := ledger.Info{ID: made.LedgerID, Environment: made.Environment, BaseURL: made.BaseURL, Others: otherAddresses(cfg), Created: time.Now()}
	if _, err := os.Lstat(filepath.Join(cfg.StateDir, "ledger.db")); err == nil {
		id, rebound, err := a.rebindEmpty(ctx, cfg)
		switch {
		case err != nil && !errors.Is(err, ledger.ErrMissing):
			return err
		case !rebound:
			return fail(exitCreate, fmt.Errorf("create ledger %q: %w", filepath.Join(cfg.StateDir, "ledger.db"), ledger.ErrExists), yours)
		}
		info.ID, made.LedgerID = id, id
	} else {
		all, err := readDropMarks(cfg)
		if err != nil {
			return err
		}
		if len(all) > 0 {
			return fail(exitCreate, fmt.Errorf("%s, which %s. A new one would know nothing of what was sent", all[0], notHere), adviceRestore)
		}
	}
	// Create makes a whole ledger or none. A crash before it leaves state_dir without a ledger, and init can be repeated.
	err := boltledger.Create(cfg.StateDir, info)
	if errors.Is(err, ledger.ErrExists) { // its head is there, or another init was faster
		return fail(exitCreate, err, yours)
	}
	return err
}

// yours is what init says of a ledger that is there, or was.
const yours = "nothing was changed. It is yours to keep: it knows what is archived. For another environment or service use another state_dir. " + adviceWrongBinding

// makeStateDir makes the state directory with rights 0700, or tightens the
// rights of one that exists. It must be on a disk that can hold a ledger.
// Another user makes no files in it: the owner could not open them.
func makeStateDir(cfg config.Config) (tightened bool, err error) {
	dir := cfg.StateDir
	problem, err := config.CheckLedgerDisk(dir, cfg.Service.Environment == "production")
	if err != nil {
		return false, err
	}
	if problem != "" {
		return false, fail(exitConfig, fmt.Errorf("state_dir %s %s", dir, problem), "write a path on a local disk, such as /var/lib/vaultd")
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o755); err != nil { // parents; the directory itself follows
			return false, fmt.Errorf("make state_dir: %w", err)
		}
		// A crash before this leaves an empty directory with wider rights, which the next init tightens.
		if err := os.Chmod(dir, 0o700); err != nil {
			return false, fmt.Errorf("set rights of state_dir: %w", err)
		}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at state_dir: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return false, fail(exitConfig, fmt.Errorf("state_dir %s is not a directory", dir), "")
	case ok && int(st.Uid) != os.Geteuid():
		return false, fail(exitRights, fmt.Errorf("state_dir %s belongs to %s, and you are %s", dir, present.UserName(st.Uid), present.UserName(uint32(os.Geteuid()))),
			"give the command as its owner, or as root: it then works as its owner")
	case info.Mode().Perm()&^0o710 != 0: // x for a group lets its members reach the socket
		if err := os.Chmod(dir, 0o700); err != nil {
			return false, fmt.Errorf("set rights of state_dir: %w", err)
		}
		return true, nil
	}
	return false, nil
}

func (a *app) explainInit(made initialised) {
	fmt.Fprintf(a.stdout, `Made a ledger in %s
  ledger       %s
  environment  %s
  service      %s
It is bound to this environment and to the addresses of its services permanently, and it
is the only record of what was sent: put it into your backup.
`, made.StateDir, made.LedgerID, made.Environment, made.BaseURL)
	if os.Geteuid() == 0 {
		fmt.Fprintf(a.stdout, "You are root: if the daemon runs as another user, give it to him first:\n  chown -R vaultd:vaultd %s\n", made.StateDir)
	}
	for _, text := range made.LookAt {
		fmt.Fprintf(a.stdout, "LOOK AT  %s\n", sanitize.Text(text))
	}
	fmt.Fprintln(a.stdout, "Next:  vaultd check   then   vaultd run")
}
