package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/apicall"
	"vaultd/internal/config"
	"vaultd/internal/present"
)

// tryExtracts tries whether the service of the extracts answers, and whether its account may list them. A list changes nothing there.
func (a *app) tryExtracts(ctx context.Context, cfg config.Config) (all []tried) {
	met, err := apicall.Inspect(ctx, extractCallConfig(cfg, a.env))
	for _, c := range met.Certificates {
		all = append(all, tryCertificate(c, present.Clock{Now: time.Now(), Location: cfg.Location}))
	}
	if err != nil {
		t := newFailure("extracts", "", err.Error(), "look at extracts.base_url, the network and the proxy; see docs/troubleshooting.md")
		t.code = exitUnavailable
		return append(all, t)
	}
	client, err := newExtractClient(cfg, a.env)
	if err != nil {
		return append(all, newFailure("extracts", "", err.Error(), "see extracts in the configuration"))
	}
	list, err := client.List(ctx, "")
	if e := apicall.AsError(err); err != nil && apicall.IsOnTheWay(e.Code) {
		return append(all, newFailure("extracts", "", err.Error(), present.AdviceOn(e.Code)))
	} else if err != nil && e.Denied {
		return append(all, newFailure("extracts", "", err.Error(),
			"look at extracts.auth: extracts have an API user of their own, which needs the right to read them; a change of rights takes five minutes"))
	}
	if err != nil {
		return append(all, newFailure("extracts", "", err.Error(), "look at extracts.base_url; if it is right, ask the provider"))
	}
	if !list.Whole {
		return append(all, newWarning("extracts", "", "a part of the list of extracts cannot be read", "ask the provider"))
	}
	return append(all, newSuccess("extracts", "", fmt.Sprintf("%s answers; extracts listed: %d", cfg.Extracts.BaseURL, len(list.Extracts))))
}

// tryCustody looks at the folder that keeps extracts. It writes nothing: the first start marks the folder.
func tryCustody(cfg config.Config) tried {
	path := cfg.Extracts.Custody
	info, err := os.Stat(path)
	const make = "make the folder for the user of vaultd, who must be able to write in it"
	switch {
	case err != nil:
		return newFailure("custody", "", err.Error(), make)
	case !info.IsDir():
		return newFailure("custody", "", path+" is no folder", make)
	case unix.Access(path, unix.W_OK|unix.X_OK) != nil:
		return newFailure("custody", "", path+" cannot be written by "+present.UserName(uint32(os.Geteuid())), "give it to the user of vaultd; or ask as root: sudo vaultd doctor")
	}
	free := diskFree(path)
	if free >= 0 && free < cfg.Spool.MinFree {
		return newFailure("custody", "", fmt.Sprintf("%s free in %s; below spool.min_free (%s) nothing is downloaded", present.FormatSize(free), path, present.FormatSize(cfg.Spool.MinFree)), "free space")
	}
	return newSuccess("custody", "", present.FormatSize(free)+" free in "+path)
}
