package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/packager"
	"vaultd/internal/pdfapi"
	"vaultd/internal/vaultapi"
	"vaultd/internal/watch"
)

// newServiceClient makes the client of the archive service. It reads the secret of an account again
// each time it signs in, so that the secret can be renewed while vaultd runs.
func (a *app) newServiceClient(cfg config.Config) (*vaultapi.Client, error) {
	now, err := daemon.Clock()
	if err != nil {
		return nil, err
	}
	return newService(cfg, a.env, now)
}

func newService(cfg config.Config, env config.Env, now func() archive.Instant) (*vaultapi.Client, error) {
	api, store, err := apicall.New(callConfig(cfg, env))
	if err != nil {
		return nil, fail(exitConfig, err, "see service in the configuration")
	}
	accounts, err := wireAccounts(cfg, api, env)
	if err != nil {
		return nil, err
	}
	return vaultapi.New(vaultapi.Config{API: api, Store: store, Now: now, Accounts: accounts, Window: cfg.Upload.Window, ContentType: cfg.Upload.ContentType}), nil
}

// pdfCallConfig says where the service of the PDF flow is and how to reach it.
func pdfCallConfig(cfg config.Config, env config.Env) apicall.Config {
	calls := callConfig(cfg, env)
	calls.BaseURL, calls.Auth = cfg.PDF.BaseURL, wireAuth(cfg.PDF.Auth, env)
	if len(calls.Auth.Scopes) == 0 {
		calls.Auth.Scopes = []string{pdfapi.Scope}
	}
	return calls
}

// callConfig says where the service is and how to reach it.
func callConfig(cfg config.Config, env config.Env) apicall.Config {
	s := cfg.Service
	refused := ""
	if s.Environment == "production" {
		refused = emulator.Header
	}
	return apicall.Config{RefusedHeader: refused, ProxyAuth: apicall.ProxyAuth{Username: s.ProxyAuth.Username, Secret: secretReader(s.ProxyAuth.SecretFile, env)},
		BaseURL: s.BaseURL, RequestIDHeader: s.RequestIDHeader, AllowedHosts: s.AllowedHosts, RedirectHosts: s.RedirectHosts,
		CAFile: s.CAFile, Proxy: s.Proxy, UserAgent: "vaultd/" + buildVersion(), Auth: wireAuth(s.Auth, env),
	}
}

// wireAccounts makes one client for each account that a drop names, and maps each vault to its client.
func wireAccounts(cfg config.Config, api *apicall.API, env config.Env) (map[archive.VaultID]*apicall.API, error) {
	byName, byVault := map[string]*apicall.API{}, map[archive.VaultID]*apicall.API{}
	for _, d := range cfg.Drops {
		if d.Account == "" {
			continue
		}
		if byName[d.Account] == nil {
			account, err := api.WithAuth(wireAuth(cfg.Service.Accounts[d.Account], env))
			if err != nil {
				return nil, fail(exitConfig, fmt.Errorf("account %s: %w", d.Account, err), "see service.accounts in the configuration")
			}
			byName[d.Account] = account
		}
		byVault[archive.VaultID(d.Vault)] = byName[d.Account]
	}
	return byVault, nil
}

func wireAuth(a config.Auth, env config.Env) apicall.Auth {
	return apicall.Auth{
		Method: a.Method, Username: a.Username, Scopes: a.Scopes, TokenURL: a.TokenURL, Encoding: a.BasicEncoding,
		Secret: secretReader(a.SecretFile, env),
	}
}

func secretReader(file string, env config.Env) func() (string, error) {
	return func() (string, error) {
		sec, err := config.ReadSecret(file, env)
		return string(sec), err
	}
}

// openDaemon opens a daemon with a configuration that was checked against this machine.
func (a *app) openDaemon(ctx context.Context, cfg config.Config, log *slog.Logger) (*daemon.Daemon, error) {
	dc, err := a.daemonConfig(cfg, log)
	if err != nil {
		return nil, err
	}
	d, err := daemon.Open(ctx, dc)
	return d, explainMissingLedger(cfg, err)
}

// daemonConfig picks from the configuration what a daemon needs.
func (a *app) daemonConfig(cfg config.Config, log *slog.Logger) (daemon.Config, error) {
	now, err := daemon.Clock()
	if err != nil {
		return daemon.Config{}, err
	}
	client, err := newService(cfg, a.env, now)
	if err != nil {
		return daemon.Config{}, err
	}
	dc := daemon.Config{
		StateDir: cfg.StateDir, Program: buildVersion(), Environment: cfg.Service.Environment, BaseURL: cfg.Service.BaseURL, Others: otherAddresses(cfg),
		Location: cfg.Location, Vault: client, Archive: client, CheckEvery: checkEvery, Executable: thisProgram, ExtendStart: notifier{log}.extendStart, Now: now, Log: log,
		SpoolMax: cfg.Spool.Max, SpoolMinFree: cfg.Spool.MinFree,
		Workers: cfg.Upload.Workers, BatchSize: cfg.Upload.BatchSize, BatchWait: cfg.Upload.BatchWait,
		PollMin: cfg.Status.PollMin, PollMax: cfg.Status.PollMax, Grace: cfg.Status.UnclearGrace,
		LedgerFault: ledgerFault(), FileFault: a.syncs.CountSync, CatalogDir: cfg.StateDir,
	}
	dc.Drops = wireDrops(cfg)
	if dc.Routes, err = wireRoutes(cfg, a.env, now); err != nil {
		return dc, err
	}
	if dc.Notices, err = wireNotices(cfg, a.env); err != nil {
		return dc, err
	}
	dc.ArchiveSent = cfg.Network.ArchiveSent.Into
	dc.Extracts, err = wireExtracts(cfg, a.env)
	return dc, err
}

// wireRoutes makes the rows of the ways that documents go beside that to the archive.
func wireRoutes(cfg config.Config, env config.Env, now func() archive.Instant) (map[ledger.Route]ingest.Route, error) {
	routes := map[ledger.Route]ingest.Route{}
	if cfg.PDF.BaseURL != "" {
		client, err := newPDFClient(cfg, env, now)
		if err != nil {
			return nil, err
		}
		// One call registers one document, and it says nothing but the addresses of the configuration.
		routes[ledger.PDF] = ingest.Route{Client: client, Workers: cfg.PDF.Workers, BatchSize: 1, RepeatsUpload: cfg.PDF.RepeatPut}
	}
	if cfg.Network.BaseURL != "" {
		client, err := newNetworkClient(cfg, env)
		if err != nil {
			return nil, err
		}
		route := ingest.Route{Sender: networkapi.Sender{Client: client, Types: cfg.Network.FileTypes}, Workers: cfg.Network.Workers, BatchSize: 1}
		if cfg.Network.DirectoryFR != config.DirectoryOff {
			route.RequiresListed = cfg.Network.DirectoryFR == config.DirectoryRequire
			if route.Recipients, err = networkapi.NewRecipientCheck(client, func() time.Time { return now().Wall }); err != nil {
				return nil, err
			}
		}
		routes[ledger.Network] = route
	}
	return routes, nil
}

// newPDFClient makes the client of the PDF upload, which has an address and an account of its own; how the network is reached is the same.
func newPDFClient(cfg config.Config, env config.Env, now func() archive.Instant) (*pdfapi.Client, error) {
	api, store, err := apicall.New(pdfCallConfig(cfg, env))
	if err != nil {
		return nil, fail(exitConfig, err, "see pdf in the configuration")
	}
	return pdfapi.New(pdfapi.Config{API: api, Store: store, Now: now, Path: cfg.PDF.Path}), nil
}

// checkEvery is how often the whole ledger is checked while vaultd works.
const checkEvery = 24 * time.Hour

func wireDrops(cfg config.Config) (drops []dropwork.Settings) {
	for _, d := range cfg.Drops {
		drops = append(drops, wireDrop(cfg, d))
	}
	return drops
}

// wireNetworkChecks says by the client of the business network what a folder for it may hold.
func wireNetworkChecks(types networkapi.FileTypes) packager.NetworkRules {
	return packager.NetworkRules{
		Check: func(document []byte) (faults []packager.DocumentFault) {
			for _, f := range networkapi.CheckDocument(document) {
				faults = append(faults, packager.DocumentFault(f))
			}
			return faults
		},
		Read: networkapi.ReadMetadata, CheckFileName: networkapi.CheckFileName, MaxDocument: networkapi.MaxDocument,
		TypeFiles: func(document []byte, folder string, names []string) ([]archive.FileType, []packager.DocumentFault) {
			is, found := types.TypeFiles(document, folder, names)
			var faults []packager.DocumentFault
			for _, f := range found {
				faults = append(faults, packager.DocumentFault(f))
			}
			return is, faults
		},
	}
}

func wireDrop(cfg config.Config, d config.Drop) dropwork.Settings {
	out := dropwork.Settings{
		Name: d.Name, Path: d.Path, Group: d.Group, AcceptsMountModes: d.Modes == "mount", Route: ledger.Route(d.Route), Vault: archive.VaultID(d.Vault), Account: d.Account,
		Receiving: d.Receiving, Notify: d.Notify, MaxPDF: cfg.PDF.MaxSize, SendsSamePDF: d.SamePDF == "send",
		Ignore: d.Ignore, Mode: watch.Mode(d.Mode), Settle: d.Settle, Rescan: d.Rescan, RemindAfter: d.RemindAfter, Retention: d.Retention,
		Holds: ingest.Holds{SameContent: d.SameContent == "hold", SameNumber: d.SameNumber == "hold", StrangeDate: d.StrangeDates == "hold", CutOff: d.LooksCutOff == "hold"},
		Rules: cfg.PackingRules(d), Network: wireNetworkChecks(cfg.Network.FileTypes),
	}
	if after := d.AfterArchive; after.Action != "keep" {
		out.Disposes, out.DisposeTo, out.Grace = true, after.To, after.Grace
	}
	return out
}
