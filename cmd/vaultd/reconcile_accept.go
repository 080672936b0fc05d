package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/operator"
	"vaultd/internal/sanitize"
)

// acceptedIndexes reads what --accept-index gives, each as [VAULT=]READ/FOUND. The vault may be left out where drops are
// configured for one alone.
func acceptedIndexes(c config.Config, texts []string) (all []operator.AcceptedIndex, err error) {
	var vaults []string
	for _, d := range c.Drops {
		if !slices.Contains(vaults, d.Vault) {
			vaults = append(vaults, d.Vault)
		}
	}
	for _, text := range texts {
		one, err := acceptedIndex(text, vaults)
		if err != nil {
			return nil, usageError{fmt.Errorf("--accept-index %q: %w", sanitize.Text(text), err)}
		}
		if slices.ContainsFunc(all, func(a operator.AcceptedIndex) bool { return a.Vault == one.Vault }) {
			return nil, usageError{fmt.Errorf("--accept-index %q: vault %s is named twice", sanitize.Text(text), sanitize.Text(string(one.Vault)))}
		}
		all = append(all, one)
	}
	return all, nil
}

func acceptedIndex(text string, vaults []string) (a operator.AcceptedIndex, err error) {
	numbers, vault := text, ""
	if i := strings.LastIndexByte(text, '='); i >= 0 {
		vault, numbers = text[:i], text[i+1:]
	} else if len(vaults) == 1 {
		vault = vaults[0]
	}
	switch {
	case vault == "":
		return a, fmt.Errorf("say of which vault, as in VAULT=898/900; configured are %s", sanitize.Text(strings.Join(vaults, ", ")))
	case !slices.Contains(vaults, vault):
		return a, fmt.Errorf("no drop is configured for vault %s", sanitize.Text(vault))
	}
	read, found, ok := strings.Cut(numbers, "/")
	a = operator.AcceptedIndex{Vault: archive.VaultID(vault), Found: operator.FoundNotTold}
	a.Read, err = strconv.Atoi(read)
	if err == nil && found != "unknown" {
		a.Found, err = strconv.Atoi(found)
		ok = ok && a.Found >= 0
	}
	if err != nil || !ok || a.Read < 0 {
		return a, fmt.Errorf("give both numbers as reconcile shows them, as in 898/900, or 898/unknown where the index does not say how many there are")
	}
	return a, nil
}
