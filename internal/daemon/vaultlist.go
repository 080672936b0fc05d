package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/present"
	"vaultd/internal/vaultapi"
)

// Lister tells which vaults the archive lists. *vaultapi.Client is one.
type Lister interface {
	// Vaults lists what the credentials of v reach.
	Vaults(ctx context.Context, v archive.VaultID) ([]vaultapi.Vault, error)
}

const (
	listFirst   = 10 * time.Second // after the start: what the service asks of its callers, such as a wait, is the work's to hear first
	listEvery   = 24 * time.Hour
	listAgain   = time.Hour // after a question that found no answer at all
	namedVaults = 20        // listed vaults that one advice names
)

// ListAccounts lists the accounts that the drops' vaults are called with, each once.
func ListAccounts(drops []dropwork.Settings) (accounts []string) {
	for _, d := range drops {
		if d.Route.HasVaults() && !slices.Contains(accounts, d.Account) {
			accounts = append(accounts, d.Account)
		}
	}
	return accounts
}

// VaultAdvice asks the archive which vaults it lists to an account and says, in the order of drops, which of the account's
// vaults is not among them. The list is advice: nothing may be refused or paused because of it. An empty list is no list.
func VaultAdvice(ctx context.Context, l Lister, drops []dropwork.Settings, account string) ([]present.UnlistedVault, error) {
	first := slices.IndexFunc(drops, func(d dropwork.Settings) bool { return d.Account == account && d.Route.HasVaults() })
	if first < 0 {
		return nil, nil
	}
	// This call only reads, and nothing of it is stored: after a crash the next start asks again.
	listed, err := l.Vaults(ctx, drops[first].Vault)
	if err != nil || len(listed) == 0 {
		return nil, err
	}
	names := vaultNames(listed)
	if account != "" {
		names += " to account " + account
	}
	var advice []present.UnlistedVault
	for i, d := range drops {
		known := slices.ContainsFunc(listed, func(v vaultapi.Vault) bool { return v.ID == d.Vault })
		told := slices.ContainsFunc(drops[:i], func(earlier dropwork.Settings) bool { return earlier.Vault == d.Vault })
		if d.Account == account && d.Route.HasVaults() && !known && !told {
			advice = append(advice, present.UnlistedVault{Vault: d.Vault, Text: fmt.Sprintf("The archive lists %s, not %q. Compare drops[%d].vault letter by letter.", names, d.Vault, i)})
		}
	}
	return advice, nil
}

func vaultNames(listed []vaultapi.Vault) string {
	var names []string
	for _, v := range listed[:min(len(listed), namedVaults)] {
		names = append(names, truncateText(string(v.ID), 100))
	}
	text := strings.Join(names, ", ")
	if more := len(listed) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// vaultList keeps what the last lists of vaults advised.
type vaultList struct {
	mu      sync.Mutex
	advice  map[string][]present.UnlistedVault // by account; guarded by mu
	soon    map[string]chan struct{}           // by account; guarded by mu
	hurried map[string]bool                    // whether that was closed; guarded by mu
}

// currentAdvice returns the advice about the vaults of all drops.
func (v *vaultList) currentAdvice(drops []dropwork.Settings) (all []present.UnlistedVault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, account := range ListAccounts(drops) {
		all = append(all, v.advice[account]...)
	}
	return all
}

func (v *vaultList) storeAdvice(account string, advice []present.UnlistedVault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.advice == nil {
		v.advice = map[string][]present.UnlistedVault{}
	}
	v.advice[account] = advice
}

// askRegularly asks about the vaults of one account soon after the start, and then again and again until ctx ends. Without an answer the advice
// stays what it was.
func (v *vaultList) askRegularly(ctx context.Context, d *Daemon, account string) {
	if d.cfg.Lister == nil {
		return
	}
	soon, timer := v.askSoonChannel(account), time.NewTimer(listFirst)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-soon:
			soon = nil
		}
		timer.Reset(v.askForList(ctx, d, account))
	}
}

// askSoonChannel returns the channel that is closed when the list of an account is asked for before its time.
func (v *vaultList) askSoonChannel(account string) chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.soon == nil {
		v.soon = map[string]chan struct{}{}
	}
	if v.soon[account] == nil {
		v.soon[account] = make(chan struct{})
	}
	return v.soon[account]
}

// askSoon asks for the list of an account soon where none was had yet: a call about one of its vaults was refused. It does so
// once, and never blocks.
func (v *vaultList) askSoon(account string) {
	soon := v.askSoonChannel(account)
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, had := v.advice[account]; had || v.hurried[account] {
		return
	}
	if v.hurried == nil {
		v.hurried = map[string]bool{}
	}
	v.hurried[account] = true
	close(soon)
}

// askForList asks once and returns how long to wait before the next time.
func (v *vaultList) askForList(ctx context.Context, d *Daemon, account string) time.Duration {
	if wait := d.askedToWait(); wait > 0 {
		return wait
	}
	advice, err := VaultAdvice(ctx, d.cfg.Lister, d.cfg.Drops, account)
	switch refusal, answered := errors.AsType[*apicall.Error](err); {
	case ctx.Err() != nil:
		return listEvery
	case err != nil && answered && !refusal.Overloaded() && (refusal.Outcome == apicall.NotProcessed || refusal.MayBeAbsent()):
		d.cfg.Log.Info("the archive does not list its vaults, and nothing follows from that", "err", err)
		return listEvery
	case err != nil:
		d.cfg.Log.Info("the archive's list of vaults could not be had, and nothing follows from that", "err", err)
		return listAgain
	}
	for _, u := range advice {
		d.cfg.Log.Warn("a vault is not on the archive's list", "advice", u.Text)
	}
	v.storeAdvice(account, advice)
	return listEvery
}

// askedToWait returns for how long the service asks to be left alone, on whatever route. Advice is no reason to disturb it.
func (d *Daemon) askedToWait() (wait time.Duration) {
	now := d.cfg.Now().Wall
	for _, p := range d.engine.Pauses() {
		wait = max(wait, p.Asked.Sub(now))
	}
	return wait
}
