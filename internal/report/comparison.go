package report

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
)

// compared is the last comparison of the ledger with the archive's index of one vault, as the report tells it.
type compared struct {
	Vault   string    `json:"vault"` // empty: all vaults, when safe mode ended
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"` // missing, differs, not-complete, same; empty: when safe mode ended everything was asked for
	Text    string    `json:"text"`    // how much was read, and how many differences there are
}

// selectsVault reports whether documents of a vault can belong to the selection.
func (c Config) selectsVault(v archive.VaultID) bool {
	for _, d := range c.Drops {
		if c.Select.Drop == d.Name && d.Vault != "" && d.Vault != v {
			return false
		}
	}
	return c.Select.Vault == "" || c.Select.Vault == v
}

// listComparisons lists the last one of each vault of the selection.
func (t *counts) listComparisons() []compared {
	list := []compared{}
	for _, v := range slices.Sorted(maps.Keys(t.acts.Compared)) {
		c := t.acts.Compared[v]
		if v == "" || t.c.selectsVault(v) {
			list = append(list, compared{string(v), c.At.UTC(), c.Outcome, c.Words})
		}
	}
	return list
}

var outcomeWords = map[string]string{
	ledger.CompareSame:       "nothing differed",
	ledger.CompareDiffers:    "SOMETHING DIFFERED",
	ledger.CompareMissing:    "ARCHIVED DOCUMENTS WERE MISSING THERE",
	ledger.CompareIncomplete: "the index was not read to its end, and nothing was concluded",
}

// listIndexDoubts says for each vault when the archive's own index was last compared with the ledger, and with what outcome,
// as the journal tells it.
func (t *counts) listIndexDoubts() (list []doubt) {
	when := func(c proof.Comparison) string { return c.At.In(t.c.Location).Format("2 Jan 2006 15:04 MST") }
	whole, all := t.acts.Compared[""]
	for _, c := range t.listComparisons() {
		if c.Vault == "" {
			continue
		}
		one := t.acts.Compared[archive.VaultID(c.Vault)]
		text := fmt.Sprintf("The archive's own index of vault %s was compared with this ledger on %s, not since: %s (%s).", c.Vault, when(one), outcomeWords[c.Outcome], c.Text)
		if !one.Aborted.IsZero() {
			text += " A later try, on " + one.Aborted.In(t.c.Location).Format("2 Jan 2006 15:04 MST") + ", was not read to its end and concluded nothing."
		}
		list = append(list, doubt{"index", 0, text})
	}
	switch {
	case all:
		list = append(list, doubt{"index", 0, "When safe mode ended, on " + when(whole) + ", the archive was asked for everything. What came later was not compared on that occasion."})
	case len(list) == 0:
		return []doubt{{"index", 0, "The archive's own index was not compared with this ledger."}}
	}
	if !all {
		for _, v := range t.vaultsNeverCompared() {
			list = append(list, doubt{"index", 0, fmt.Sprintf("The archive's own index of vault %s was not compared with this ledger.", v)})
		}
	}
	return list
}

// vaultsNeverCompared lists the vaults of the selection that have archived documents and were not compared.
func (t *counts) vaultsNeverCompared() []archive.VaultID {
	found := map[archive.VaultID]bool{}
	for k := range t.totals {
		if _, done := t.acts.Compared[k.vault]; !done && t.c.selectsVault(k.vault) {
			found[k.vault] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// findIndexNeeds asks a person to see to what the last comparisons found.
func (t *counts) findIndexNeeds() (n need) {
	k := present.KindOf("index-differs")
	n = need{What: k.What, Do: k.Do}
	for _, c := range t.listComparisons() {
		if ledger.IsDifference(c.Outcome) {
			n.Count++
			n.Names = append(n.Names, fmt.Sprintf("vault %s: %s", c.Vault, c.Text))
		}
	}
	n.Text = k.Describe(int(n.Count), 0)
	return n
}

// vaultsWithMissing names the vaults in whose index archived documents were missing at the last comparison.
func (t *counts) vaultsWithMissing() (vaults []string) {
	for _, c := range t.listComparisons() {
		if c.Outcome == ledger.CompareMissing {
			vaults = append(vaults, c.Vault)
		}
	}
	return vaults
}
