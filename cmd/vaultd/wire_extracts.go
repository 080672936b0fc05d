package main

import (
	"fmt"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/extractapi"
)

// extractCallConfig says where the service of the extracts is and how to reach it.
func extractCallConfig(cfg config.Config, env config.Env) apicall.Config {
	calls := callConfig(cfg, env)
	calls.BaseURL, calls.Auth = cfg.Extracts.BaseURL, wireAuth(cfg.Extracts.Auth, env)
	if cfg.Extracts.Auth.Method == "oauth2" && len(calls.Auth.Scopes) == 0 {
		calls.Auth.Scopes = []string{extractapi.ReadScope}
		if cfg.Extracts.Acknowledge {
			calls.Auth.Scopes = append(calls.Auth.Scopes, extractapi.WriteScope)
		}
	}
	return calls
}

// newExtractClient makes the client of the extracts, which have an address and an account of their own.
func newExtractClient(cfg config.Config, env config.Env) (*extractapi.Client, error) {
	api, _, err := apicall.New(extractCallConfig(cfg, env))
	if err != nil {
		return nil, fail(exitConfig, err, "see extracts in the configuration")
	}
	return extractapi.New(api), nil
}

// allowedHosts returns a digest of the hosts that redirects of extracts may lead to.
func allowedHosts(cfg config.Config) string {
	return archive.Sum(fmt.Append(nil, cfg.Extracts.BaseURL, cfg.Service.AllowedHosts, cfg.Service.RedirectHosts)).String()[:16]
}

// wireExtracts says how extracts are taken in; nil: none are.
func wireExtracts(cfg config.Config, env config.Env) (*daemon.Extracts, error) {
	if cfg.Extracts.BaseURL == "" {
		return nil, nil
	}
	client, err := newExtractClient(cfg, env)
	if err != nil {
		return nil, err
	}
	x := &daemon.Extracts{Service: client, Custody: cfg.Extracts.Custody, Every: cfg.Extracts.Every, Workers: cfg.Extracts.Workers,
		MaxDownloads: uint16(cfg.Extracts.MaxDownloads), Hosts: allowedHosts(cfg), ToDrop: cfg.Extracts.ToDrop, DocumentType: cfg.Extracts.ToDropType}
	if cfg.Extracts.Acknowledge {
		x.Acknowledger = client
	}
	return x, nil
}
