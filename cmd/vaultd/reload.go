package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"vaultd/internal/sanitize"
)

func (a *app) reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "let the running vaultd read its configuration again",
		Long: `Makes the running vaultd read its configuration file again, and waits for the result.
"systemctl reload vaultd" runs this command. A configuration that is wrong, or that
cannot be used by a running vaultd, is rejected: the command prints each fault, ends
with its exit code, and vaultd continues with the configuration before.

Only root and vaultd's own user may give this command.`,
		Example: `  systemctl reload vaultd
  vaultd reload`,
		Args: expectArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if a.reload != nil {
				return a.reloadInside(c.Context())
			}
			return a.askForReload(c.Context())
		},
	}
}

// reloadInside reloads the configuration of the daemon that the command runs in.
func (a *app) reloadInside(ctx context.Context) error {
	err := a.reload(ctx)
	if err == nil {
		_, err = io.WriteString(a.stdout, "configuration reloaded\n")
		return err
	}
	return fmt.Errorf("configuration not reloaded, the one before stays in use: %w", err)
}

// askForReload asks the running daemon. In a unit, $STATE_DIRECTORY names the
// directory of that unit's daemon, whatever the file says now: it may have
// faults, or name the state_dir of another vaultd.
func (a *app) askForReload(ctx context.Context) error {
	var dirs []string
	if of, isSet := a.env("STATE_DIRECTORY"); isSet {
		dirs = filepath.SplitList(of)
	}
	cfg, wrong := a.configForAsking()
	if wrong == nil {
		dirs, wrong = append(dirs, cfg.StateDir), cfg.Unusable
	}
	for _, dir := range dirs {
		code, err := callControl(ctx, filepath.Join(dir, socketName), []string{"reload"}, a.stdout, a.stderr)
		if !errors.Is(err, errNoDaemon) {
			return remoteResult(code, err)
		}
	}
	if wrong != nil {
		return wrong
	}
	return fail(exitFailed, fmt.Errorf("no vaultd is running in %s", sanitize.Text(cfg.StateDir)), "a start reads the configuration: systemctl start vaultd")
}
