package main

import (
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
	"vaultd/internal/vaultapi"
)

// I32: an archive that lists no vault at all says nothing about one. Each
// missing vault is named once, for its own account, by its first drop.
func TestAdviseOnList_I32_AnEmptyListIsNoList(t *testing.T) {
	t.Parallel()
	of := func(account, vault string) dropwork.Settings {
		return dropwork.Settings{Route: ledger.Vault, Account: account, Vault: archive.VaultID(vault)}
	}
	drops := []dropwork.Settings{of("", "ACME"), {Route: ledger.PDF}, of("", "ACNE"), of("", "ACNE"), of("beta", "BETA")}
	list := func(ids ...string) (listed []vaultapi.Vault) {
		for _, id := range ids {
			listed = append(listed, vaultapi.Vault{ID: archive.VaultID(id)})
		}
		return listed
	}
	kit.Len(t, "advice on an empty list", adviseOnList(drops, "", nil), 0)
	kit.Len(t, "advice on a whole list", adviseOnList(drops, "", list("ACNE", "ACME")), 0)
	kit.Want(t, "advice", adviseOnList(drops, "", list("ACME")), []string{`The archive lists ACME, not "ACNE". Compare drops[2].vault letter by letter.`})
	kit.Want(t, "advice on an account", adviseOnList(drops, "beta", list("ACME")), []string{`The archive lists ACME to account beta, not "BETA". Compare drops[4].vault letter by letter.`})
	many := adviseOnList(drops, "beta", list(strings.Fields(strings.Repeat("V ", 22))...))
	kit.Holds(t, "advice on a long list", many[0], "V, V and 2 more to account beta")
}
