package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/dropwork"
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
	for _, account := range listAccounts(wireDrops(cfg)) {
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

// listAccounts lists the accounts that the drops' vaults are called with, each once.
func listAccounts(drops []dropwork.Settings) (accounts []string) {
	for _, d := range drops {
		if d.Vault != "" && !slices.Contains(accounts, d.Account) {
			accounts = append(accounts, d.Account)
		}
	}
	return accounts
}

// listPatience is how long check waits for the archive's list of vaults.
const listPatience = 5 * time.Second

// vaultAdvice compares the drops with the archive's list of vaults. It returns
// nothing when the archive does not answer.
func (a *app) vaultAdvice(ctx context.Context, cfg config.Config) []string {
	service, err := a.newServiceClient(cfg)
	if err != nil {
		return nil // "run" reports that error
	}
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	var all []string
	drops := wireDrops(cfg)
	for _, account := range listAccounts(drops) {
		if a.isSecretOfTheUnit(accountAuth(cfg, account)) {
			continue // listed as not checked
		}
		first := slices.IndexFunc(drops, func(d dropwork.Settings) bool { return d.Account == account && d.Vault != "" })
		listed, err := service.Vaults(ctx, drops[first].Vault)
		all = append(all, adviseOnList(drops, account, listed)...)
		if text := describeListFailure(err); text != "" {
			all = append(all, strings.TrimPrefix("account "+account+": "+text, "account : "))
		}
	}
	return all
}

// describeListFailure tells what may be wrong with the configuration when the
// archive returned no list of its vaults; "" when the archive is only
// unreachable or overloaded.
func describeListFailure(err error) string {
	r, ok := errors.AsType[*apicall.Error](err)
	if !ok {
		return ""
	}
	var may string
	switch code := r.Code; {
	case code == "http-502":
		may = "service.base_url may be wrong, or the archive is away just now"
	case code == "http-404":
		may = "service.base_url may be wrong, or this archive has no list of its vaults"
	case code == "unreadable", code == "dns", code == "tls", strings.HasPrefix(code, "certificate-"):
		may = "service.base_url may be wrong, or what lies on the way to it"
	case code == "http-401", code == "http-403":
		may = "the credentials may be wrong, or this user may not see the list"
	case code == apicall.CodeStandIn:
		may = "service.base_url is wrong"
	case code == apicall.CodeProxyAuth, code == apicall.CodeProxy:
		may = "service.proxy or service.proxy_auth may be wrong"
	case code == "token":
		may = "the token endpoint is wrong, or the credentials are"
	case code == "credentials", code == "scope":
		may = "the credentials are wrong"
	default:
		return ""
	}
	return fmt.Sprintf("%s: %s. What to do: %s", may, r.Error(), present.AdviceOn(r.Code))
}

// namedVaults is how many listed vaults one advice names.
const namedVaults = 20

// adviseOnList says, in the order of drops, which vaults of an account are
// missing from the archive's list. An empty list is no list.
func adviseOnList(drops []dropwork.Settings, account string, listed []vaultapi.Vault) (advice []string) {
	if len(listed) == 0 {
		return nil
	}
	var ids []string
	for _, v := range listed {
		ids = append(ids, string(v.ID))
	}
	names := strings.Join(ids[:min(len(ids), namedVaults)], ", ")
	if more := len(ids) - namedVaults; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if account != "" {
		names += " to account " + account
	}
	said := map[archive.VaultID]bool{}
	for i, d := range drops {
		if d.Account == account && d.Vault != "" && !slices.Contains(ids, string(d.Vault)) && !said[d.Vault] {
			said[d.Vault] = true
			advice = append(advice, fmt.Sprintf("The archive lists %s, not %q. Compare drops[%d].vault letter by letter.", names, d.Vault, i))
		}
	}
	return advice
}
