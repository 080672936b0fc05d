package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/page"
	"vaultd/internal/present"
	"vaultd/internal/web"
)

// host is the process around the daemon: the socket for commands, the HTML pages, the messages to the
// service manager, and the log. They keep running while a reload replaces the daemon by one with
// another configuration.
type host struct {
	a      *app
	log    *slog.Logger
	notify notifier
	reread func() (config.Config, error) // reads the configuration again
	hup    <-chan os.Signal              // nil: never
	asked  chan chan<- error             // each asks for a reload, and gets its result
	guard  *web.AccessGuard              // in front of the HTML pages; nil where there are none

	booksTurn chan struct{} // full while an answer about booked invoices is made: each one reads the whole ledger and fills much memory

	mu    sync.Mutex
	now   generation // guarded by mu
	read  time.Time  // when the configuration was last read; guarded by mu
	fault string     // why that configuration was rejected; empty: it was accepted; guarded by mu
}

// generation is a running daemon with its configuration.
type generation struct {
	d         *daemon.Daemon
	cfg       config.Config
	reopening time.Time // since when a reload is replacing the daemon, so that nothing is taken or sent; zero: none is
}

func (a *app) newHost(d *daemon.Daemon, cfg config.Config, log *slog.Logger) *host {
	return &host{a: a, log: log, notify: notifier{log}, now: generation{d: d, cfg: cfg}, read: time.Now(), booksTurn: make(chan struct{}, 1), asked: make(chan chan<- error)}
}

func (h *host) currentGeneration() generation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *host) setGeneration(r generation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = r
}

// lastReload returns when the configuration was last read, and whether it was accepted.
func (h *host) lastReload() (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.read, h.fault == ""
}

// serveUntilStopped serves until ctx ends. It reports READY once it has the ledger, the socket and the port. It
// does not wait for the service.
func (h *host) serveUntilStopped(ctx context.Context) error {
	now := h.currentGeneration()
	h.log.Info("vaultd started", "version", buildVersion(), "environment", now.cfg.Service.Environment, "service", now.cfg.Service.BaseURL,
		"drops", len(now.cfg.Drops), "balance", now.d.Ledger().Balance().String(), "head", now.d.Ledger().Head().String())
	commands, ports, groups, err := h.listen(ctx)
	if err != nil {
		return err
	}
	p := newHealthMonitor(h)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.runDaemons(ctx) })
	g.Go(func() error { return serveControl(ctx, commands, h.putInside, groups) })
	pages := page.New(newPageSource(h), h.log)
	for _, l := range ports {
		g.Go(func() error {
			return web.Serve(ctx, l, h.guard, func() web.Facts { return p.latestFacts(ctx).Facts }, pages, h.log)
		})
	}
	h.notify.notifyReady("started")
	g.Go(func() error { return p.run(ctx) })
	g.Go(func() error {
		<-ctx.Done()
		h.notify.notifyStopping()
		return nil
	})
	err = g.Wait()
	h.log.Info("vaultd stopped", "balance", h.currentGeneration().d.Ledger().Balance().String())
	return err
}

// listen opens the socket for commands, which members of the groups may use, and the ports.
func (h *host) listen(ctx context.Context) (commands *net.UnixListener, ports []net.Listener, groups []uint32, err error) {
	cfg := h.currentGeneration().cfg
	if groups, err = groupIDs(cfg.Access.Groups); err != nil {
		return nil, nil, nil, fail(exitConfig, err, "access.groups names groups of this machine")
	}
	if commands, err = listenControl(socketPath(cfg), groups); err != nil {
		return nil, nil, nil, err
	}
	if ports, err = h.listenPages(ctx, cfg.HTTP); err != nil {
		return nil, nil, nil, errors.Join(err, commands.Close())
	}
	return commands, ports, groups, nil
}

// putInside lets a command run inside the current daemon.
func (h *host) putInside(a *app) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cfg := h.now.cfg
	a.env, a.inside, a.cfg, a.reloadFault, a.booksTurn, a.reload = h.a.env, h.now.d, &cfg, h.fault, h.booksTurn, h.reload
	a.daemonIsRoot = h.a.isRoot()
}

// runDaemons runs the daemon until ctx ends, and replaces it on each reload signal.
func (h *host) runDaemons(ctx context.Context) error {
	for {
		run, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		d := h.currentGeneration().d
		go func() { ended <- d.Run(run) }()
		cfg, answer, err := h.waitForConfig(ctx, ended)
		if cfg != nil {
			d.DrainUploads(ctx)
		}
		stop()
		if cfg == nil {
			return err
		}
		h.setGeneration(generation{d: d, cfg: h.currentGeneration().cfg, reopening: time.Now()})
		// The old daemon ends before the next one opens the drop folders: two must never work in the same folder. A crash here is a
		// plain stop, and the next start reads the new configuration.
		if err := <-ended; err != nil {
			return wrapDiskFailure(err)
		}
		if ctx.Err() != nil {
			return nil
		}
		rejected, err := h.exchangeDaemon(*cfg)
		answer <- rejected
		if err != nil {
			return err
		}
	}
}

// reload makes the daemon read its configuration again, and returns why it
// was rejected. The configuration before is then in use as it was.
func (h *host) reload(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case h.asked <- answer:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitForConfig returns the next accepted configuration, or nil when the
// daemon has ended. answer has room for the result of the reload.
func (h *host) waitForConfig(ctx context.Context, ended <-chan error) (next *config.Config, answer chan<- error, err error) {
	for {
		select {
		case err := <-ended:
			return nil, nil, wrapDiskFailure(err)
		case <-h.hup:
			answer = make(chan error, 1) // a signal gets no answer
		case answer = <-h.asked:
		}
		if ctx.Err() != nil {
			return nil, nil, wrapDiskFailure(<-ended)
		}
		h.notify.notifyReloading()
		cfg, err := h.reread()
		if err == nil {
			return &cfg, answer, nil
		}
		h.noteRejectedConfig(err)
		answer <- err
	}
}

// wrapDiskFailure adds exit code and hint to the error of a daemon that ended because the disk or the ledger failed.
func wrapDiskFailure(err error) error {
	if err == nil {
		return nil
	}
	return fail(exitIO, err, "the disk or the ledger failed; what was committed is safe, and the next start goes on from it")
}

// exchangeDaemon opens a daemon with another configuration. When that fails, it opens the daemon again with the
// configuration before, and returns why the other one was rejected. After err no daemon is open.
func (h *host) exchangeDaemon(cfg config.Config) (rejected, err error) {
	old := h.currentGeneration()
	next, err := h.reopenDaemon(old.d, cfg)
	if err == nil {
		h.mu.Lock()
		h.now, h.read, h.fault = generation{d: next, cfg: cfg}, time.Now(), ""
		h.mu.Unlock()
		h.renewAccess(cfg.HTTP)
		h.log.Info("configuration reloaded", "drops", len(cfg.Drops), "balance", next.Ledger().Balance().String())
		h.notify.notifyReady("configuration reloaded")
		return nil, nil
	}
	// The file on the disk is still the rejected one: a crash from here on makes the next start fail with the same error.
	back, again := h.reopenDaemon(old.d, old.cfg)
	if again != nil {
		return err, errors.Join(err, again)
	}
	h.setGeneration(generation{d: back, cfg: old.cfg})
	h.noteRejectedConfig(err)
	return err, nil
}

func (h *host) reopenDaemon(d *daemon.Daemon, cfg config.Config) (*daemon.Daemon, error) {
	dc, err := h.a.daemonConfig(cfg, h.log)
	if err != nil {
		return nil, err
	}
	return d.Reopen(dc)
}

// noteRejectedConfig reports that a configuration was rejected and the one before stays in use.
func (h *host) noteRejectedConfig(err error) {
	h.mu.Lock()
	h.read, h.fault = time.Now(), err.Error()
	h.mu.Unlock()
	h.log.Error("configuration not reloaded", "err", err, "kept", "the one before")
	h.notify.notifyReady("configuration NOT reloaded, the one before goes on: " + firstLine(err.Error()))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// statusLine is what the service manager shows beside the service's name.
func (h *host) statusLine(f healthFacts) string {
	h.mu.Lock()
	fault, cfg := h.fault, h.now.cfg
	h.mu.Unlock()
	c := present.Clock{Now: f.At, Location: cfg.Location}
	var parts []string
	if cfg.Service.Environment != "production" {
		parts = append(parts, "TEST, NO EVIDENCE")
	}
	if fault != "" {
		parts = append(parts, "configuration NOT reloaded, the one before goes on: "+firstLine(fault))
	}
	parts = append(parts, f.Dead...)
	parts = append(parts, f.Unfit...)
	parts = append(parts, f.describeCounts())
	if !f.LastSuccess.IsZero() {
		parts = append(parts, "last archived "+c.Brief(f.LastSuccess))
	}
	return strings.Join(parts, "; ")
}

// describeCounts says in a few words what is on its way and what needs a person.
func (g healthFacts) describeCounts() string {
	text, needs := g.status.Balance.DescribeOpen(), 0
	for _, n := range g.NeedsPerson {
		needs += n
	}
	if needs > 0 {
		text += ", " + present.FormatCount(needs, "needs", "need") + " attention"
	}
	return text
}
