package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/selfcheck"
	"vaultd/internal/web"
)

// isRefusedLedger reports whether an error says that a ledger must not be
// opened: it is damaged, or its pages could not be checked in time.
func isRefusedLedger(err error) bool {
	_, damaged := errors.AsType[*ledger.DamageError](err)
	return damaged || errors.Is(err, selfcheck.ErrSlow)
}

// serveRefused tells whoever asks, until ctx ends, why the ledger is not opened.
// A process that ended instead would tell the log alone, and die again and
// again. It opens neither the ledger nor a drop folder. After a crash the next
// start looks at the ledger again.
func (a *app) serveRefused(ctx context.Context, cfg config.Config, log *slog.Logger, why error) (err error) {
	h := a.newHost(nil, cfg, log)
	lock, err := daemon.Config{StateDir: cfg.StateDir, Log: log, ExtendStart: h.notify.extendStart}.Lock(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		log.Info("stopped while another process had the ledger", "err", err)
		return nil
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, durable.CloseLock(lock)) }()
	commands, ports, groups, err := h.listen(ctx)
	if err != nil {
		return err
	}
	text, began := "SAFE MODE: the ledger is not opened: "+why.Error(), time.Now()
	_, hint := exitCodeOf(why)
	log.Error("SAFE MODE: the ledger is not opened, and nothing is taken, sent or removed", "why", why, "do", hint)
	facts := func() web.Facts {
		return web.Facts{
			NoLedger: true, At: time.Now(), Version: buildVersion(), Go: runtime.Version(), Environment: cfg.Service.Environment, SafeMode: true,
			NeedsPerson: map[string]int{"damaged": 1}, Unfit: []string{text}, Reloaded: began, ReloadGood: true,
			StateFree: diskFree(cfg.StateDir), LedgerSize: fileSize(filepath.Join(cfg.StateDir, "ledger.db")),
		}
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, text+"\n"+hint, http.StatusServiceUnavailable)
	})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return serveControl(ctx, commands, func(inside *app) { inside.refused = why }, groups)
	})
	for _, l := range ports {
		g.Go(func() error { return web.Serve(ctx, l, h.guard, facts, page, log) })
	}
	h.notify.notifyReady(text)
	g.Go(func() error {
		defer h.notify.notifyStopping()
		for ctx.Err() == nil {
			h.notify.notifyWatchdog()
			waitOrCancel(ctx, monitorInterval)
		}
		return nil
	})
	return g.Wait()
}
