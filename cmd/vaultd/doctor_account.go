package main

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"vaultd/internal/apicall"
	"vaultd/internal/config"
	"vaultd/internal/dropwork"
	"vaultd/internal/present"
)

func accountWord(account string) string { return cmp.Or(account, "service.auth") }

// tryAccount signs in with the credentials of one account, and compares the
// vaults of its drops with the archive's list. That is advice: a vault that is
// not on the list, or no list at all, is no failure.
func (a *app) tryAccount(ctx context.Context, cfg config.Config, account string) []tried {
	name := accountWord(account)
	service, err := a.newServiceClient(cfg)
	if err != nil {
		return []tried{newFailure("credentials", name, err.Error(), "vaultd check")}
	}
	drops := slices.DeleteFunc(wireDrops(cfg), func(d dropwork.Settings) bool { return d.Account != account || d.Vault == "" })
	listed, err := service.Vaults(ctx, drops[0].Vault)
	if refused, isRemote := errors.AsType[*apicall.Error](err); isRemote {
		return []tried{tryRefusal(name, refused)}
	}
	if err != nil {
		return []tried{newFailure("credentials", name, err.Error(), "")}
	}
	return append([]tried{newSuccess("credentials", name, "accepted")}, tryVaults(drops, listed)...)
}

func tryRefusal(name string, r *apicall.Error) tried {
	switch {
	case apicall.IsOnTheWay(r.Code):
		t := newFailure("service", name, r.Error(), present.AdviceOn(r.Code))
		t.code = exitUnavailable
		return t
	case r.Denied:
		t := newFailure("credentials", name, r.Error(), "write the right secret into its file, and look at username and scopes; if they are right, ask the provider about rights")
		t.code = exitRights
		return t
	case r.Code == "token":
		return newFailure("credentials", name, r.Error(), present.AdviceOn(r.Code))
	case !r.Overloaded() && (r.Outcome == apicall.NotProcessed || r.MayBeAbsent()):
		return newWarning("credentials", name, "the service has no list of vaults to sign in for, so that they are proven by the first document alone: "+r.Error(), "")
	}
	t := newFailure("service", "", r.Error(), "wait; if it lasts, look at network and service")
	t.code = exitUnavailable
	return t
}
