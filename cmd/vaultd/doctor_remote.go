package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/drop"
	"vaultd/internal/present"
	"vaultd/internal/vaultapi"
)

const (
	certificateSoon = 30 * 24 * time.Hour
	leastDropFree   = 1_000_000_000 // bytes; some ten of the largest invoices
)

// tryService looks at the service without credentials: whether it answers, its certificate, and its clock.
func (a *app) tryService(ctx context.Context, cfg config.Config) (all []tried) {
	met, err := apicall.Inspect(ctx, callConfig(cfg, a.env))
	now := time.Now()
	for _, c := range met.Certificates {
		all = append(all, tryCertificate(c, present.Clock{Now: now, Location: cfg.Location}))
	}
	if err != nil {
		t := failed("service", "", err.Error(), "look at the network, the proxy and base_url; see docs/troubleshooting.md")
		t.code = exitUnavailable
		return append(all, t)
	}
	all = append(all, ok("service", "", fmt.Sprintf("%s answers, after %d ms", cfg.Service.BaseURL, met.Told.Sub(met.Asked).Milliseconds())))
	return append(all, tryClock(met))
}

func tryCertificate(c apicall.Certificate, at present.Clock) tried {
	what := "certificate"
	if c.Proxy {
		what = "proxy-certificate"
	}
	until := at.Exact(c.NotAfter)
	switch left := c.NotAfter.Sub(at.Now); {
	case left <= 0:
		t := failed(what, c.Host, "it ended "+until, "whoever runs "+c.Host+" must renew it; if that is done, look at this machine's clock")
		t.code = exitUnavailable
		return t
	case at.Now.Before(c.NotBefore):
		t := failed(what, c.Host, "it begins "+at.Exact(c.NotBefore), "look at this machine's clock: timedatectl")
		t.code = exitUnavailable
		return t
	case left < certificateSoon:
		return warn(what, c.Host, "it ends "+until+", in "+present.FormatAge(left), "ask whoever runs "+c.Host+" to renew it")
	}
	return ok(what, c.Host, "valid until "+until)
}

// tryClock compares this machine's clock with the service's, whose answer is good to a second.
func tryClock(met apicall.Inspection) tried {
	if met.Date.IsZero() {
		return warn("clock", "", "the service's answer has no date, so there is nothing to compare with", "")
	}
	off := met.Date.Sub(met.Told)
	if early := met.Asked.Sub(met.Date.Add(time.Second)); early > 0 {
		off = -early
	}
	switch {
	case off > present.ClockTolerance:
		return warn("clock", "", "this machine is "+present.FormatAge(off)+" behind the service", "set it: timedatectl set-ntp true")
	case off < -present.ClockTolerance:
		return warn("clock", "", "this machine is "+present.FormatAge(-off)+" ahead of the service", "set it: timedatectl set-ntp true")
	}
	return ok("clock", "", "it agrees with the service's to "+present.FormatAge(present.ClockTolerance))
}

func accountWord(account string) string { return cmp.Or(account, "service.auth") }

// tryAccount signs in with the credentials of one account, and holds the vaults of its drops against those that the archive
// lists to it. The list is advice: no vault on it, or no list at all, is no failure.
func (a *app) tryAccount(ctx context.Context, cfg config.Config, account string) []tried {
	name := accountWord(account)
	service, err := a.service(cfg)
	if err != nil {
		return []tried{failed("credentials", name, err.Error(), "vaultd check")}
	}
	drops := slices.DeleteFunc(wireDrops(cfg), func(d daemon.Drop) bool { return d.Account != account })
	listed, err := service.Vaults(ctx, drops[0].Vault)
	if refused, isRemote := errors.AsType[*apicall.Error](err); isRemote {
		return []tried{tryRefusal(name, refused)}
	}
	if err != nil {
		return []tried{failed("credentials", name, err.Error(), "")}
	}
	return append([]tried{ok("credentials", name, "accepted")}, tryVaults(drops, listed)...)
}

func tryRefusal(name string, r *apicall.Error) tried {
	switch {
	case r.Denied:
		t := failed("credentials", name, r.Error(), "write the right secret into its file, and look at username and scopes; if they are right, ask the provider about rights")
		t.code = exitRights
		return t
	case !r.Overloaded() && (r.Outcome == apicall.NotProcessed || r.MayBeAbsent()):
		return warn("credentials", name, "the service has no list of vaults to sign in for, so that they are proven by the first document alone: "+r.Error(), "")
	}
	t := failed("service", "", r.Error(), "wait; if it lasts, look at network and service")
	t.code = exitUnavailable
	return t
}

func tryVaults(drops []daemon.Drop, listed []vaultapi.Vault) (all []tried) {
	if len(listed) == 0 {
		return []tried{warn("vaults", "", "the archive lists none", "if documents are archived, all is well; otherwise ask the provider about rights")}
	}
	seen := map[archive.VaultID]bool{}
	for _, d := range drops {
		if seen[d.Vault] {
			continue
		}
		seen[d.Vault] = true
		if slices.ContainsFunc(listed, func(v vaultapi.Vault) bool { return v.ID == d.Vault }) {
			all = append(all, ok("vault", string(d.Vault), "the archive lists it"))
			continue
		}
		all = append(all, warn("vault", string(d.Vault), fmt.Sprintf("the archive does not list it; it lists %d", len(listed)),
			"compare it letter by letter with what vaultd vaults shows; if documents are archived, all is well"))
	}
	return all
}

// tryDrop looks whether this process can work in a drop folder.
func (a *app) tryDrop(cfg config.Config, d config.Drop) []tried {
	if a.inside != nil {
		for _, s := range a.inside.State().Drops { // a share that is known to hang is not touched
			if s.Name == d.Name && s.Paused != "" {
				return []tried{failed("drop", d.Name, s.Paused, cmp.Or(s.Do, "see docs/troubleshooting.md"))}
			}
		}
	}
	if trouble := troubleAt(d.Path); trouble != "" {
		return []tried{failed("drop", d.Name, trouble, "mend it, then vaultd doctor again")}
	}
	err := drop.TryWrite(d.Path)
	if errors.Is(err, drop.ErrNeverUsed) {
		return []tried{warn("drop", d.Name, "nothing was tried in "+d.Path+": "+err.Error(), "start vaultd, then vaultd doctor again")}
	}
	if err != nil {
		_, hint := judge(err)
		return []tried{failed("drop", d.Name, "a test file cannot be written, read back and removed: "+err.Error(),
			cmp.Or(hint, "see docs/samba.md for the rights; with the unit, ReadWritePaths= must name the folder"))}
	}
	all := []tried{ok("drop", d.Name, "a test file was written, read back and removed in "+d.Path)}
	if free := diskFree(d.Path); free >= 0 && free < leastDropFree {
		all = append(all, warn("drop", d.Name, present.FormatSize(free)+" free in "+d.Path, "free space: people cannot drop what has no room"))
	} else {
		all[0].Text += "; " + present.FormatSize(free) + " free"
	}
	if to := d.AfterArchive.To; to != "" {
		if trouble := troubleAt(to); trouble != "" {
			all = append(all, failed("drop", d.Name, "after_archive.to: "+trouble, "mend it: archived folders stay in _archived until then"))
		}
	}
	return all
}
