package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/vaultapi"
)

func (a *app) vaultsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "vaults",
		Short: "the vaults that the credentials reach, and which of them are configured",
		Long: `Asks the archive which vaults the configured credentials reach, each account that a
drop names with its own, and marks those that drops are configured for. The list is
advice: a vault that is missing from it may work all the same, and one that is on it
may be closed for uploads.

With --json each line is an object. It sends nothing.`,
		Example: `  vaultd vaults
  vaultd vaults --json | jq -r 'select(.configured | not) | .id'`,
		Args: expectArgs(),
		// Before the first start there is no ledger, and none is needed.
		RunE: func(c *cobra.Command, args []string) error { return a.runWithoutLedger(c, args, a.askVaults) },
	}
}

// askVaults asks for the list of vaults with the credentials of each account that a drop names. One that fails does not stop the others.
func (a *app) askVaults(ctx context.Context, cfg config.Config) error {
	service, err := a.newServiceClient(cfg)
	if err != nil {
		return err
	}
	var rows []vaultRow
	var failed []error
	for _, account := range daemon.ListAccounts(wireDrops(cfg)) {
		of := cfg
		of.Drops = slices.DeleteFunc(cfg.VaultDrops(), func(d config.Drop) bool { return d.Account != account })
		listed, err := service.Vaults(ctx, archive.VaultID(of.Drops[0].Vault))
		switch {
		case err == nil:
			rows = append(rows, vaultRows(of, listed)...)
		case account == "":
			failed = append(failed, err)
		default:
			failed = append(failed, fmt.Errorf("account %s: %w", account, err))
		}
	}
	if len(rows) > 0 {
		failed = append(failed, a.runVaults(rows))
	}
	return errors.Join(failed...)
}

// vaultRow is one object of "vaults --json".
type vaultRow struct {
	ID         string   `json:"id"`
	Account    string   `json:"account"` // that was asked with; empty: the main one
	Name       string   `json:"name"`
	Listed     bool     `json:"listed"` // by the archive
	Configured bool     `json:"configured"`
	Drops      []string `json:"drops"`
}

// vaultRows joins what the archive lists to one account with that account's drops, in the archive's order.
func vaultRows(c config.Config, listed []vaultapi.Vault) []vaultRow {
	rows := []vaultRow{}
	find := func(id string) *vaultRow {
		i := slices.IndexFunc(rows, func(r vaultRow) bool { return r.ID == id })
		if i < 0 {
			rows, i = append(rows, vaultRow{ID: id, Account: c.Drops[0].Account, Drops: []string{}}), len(rows)
		}
		return &rows[i]
	}
	for _, v := range listed {
		r := find(string(v.ID))
		r.Name, r.Listed = v.Name, true
	}
	for _, d := range c.VaultDrops() {
		r := find(d.Vault)
		r.Configured, r.Drops = true, append(r.Drops, d.Name)
	}
	return rows
}

func (a *app) runVaults(rows []vaultRow) error {
	missing := []string{}
	t := present.NewTable(a.stdout, "VAULT", "NAME", "ACCOUNT", "DROPS", "")
	for _, r := range rows {
		if a.json {
			if err := writeJSON(a.stdout, r); err != nil {
				return err
			}
			continue
		}
		mark := ""
		switch {
		case !r.Listed:
			mark = "configured, but the archive does not list it"
			missing = append(missing, r.ID)
		case r.Configured:
			mark = "configured"
		}
		t.AppendRow(present.TableRow(sanitize.Text(r.ID), sanitize.Text(r.Name), sanitize.Text(r.Account), sanitize.Text(strings.Join(r.Drops, ", ")), mark))
	}
	if a.json {
		return nil
	}
	t.Render()
	if len(missing) > 0 {
		fmt.Fprintln(a.stderr, "the list is advice: if documents for a vault that is not on it are archived, all is well; otherwise compare the id letter by letter, or ask the provider about rights on it")
	}
	return nil
}
