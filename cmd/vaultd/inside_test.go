package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// inside is what a command sees inside a daemon, over a real ledger.
type inside struct {
	view
	t *testing.T
}

// lookInside makes an empty ledger with a configuration that has more lines.
func lookInside(t *testing.T, now time.Time, more string) *inside {
	t.Helper()
	dir := t.TempDir()
	text := "service: {base_url: https://vault.example, auth: {method: basic, username: u, secret_file: /s}}\nstate_dir: " + dir +
		"\ndrops: [{name: acme-in, path: /srv/acme-in, vault: V-1}]\n" + more
	cfg := loadInside(t, text)
	in := &inside{t: t, view: view{Clock: present.Clock{Now: now, Location: cfg.Location}, cfg: cfg}}
	kit.Must(t, boltledger.Create(cfg.StateDir, ledger.Info{ID: "L-1", Environment: "test", BaseURL: cfg.Service.BaseURL, Created: now}))
	in.open()
	return in
}

func noEnvironment(string) (string, bool) { return "", false }

// loadInside reads a configuration.
func loadInside(t *testing.T, text string) config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	cfg := kit.Value(config.Load(path, noEnvironment))(t)
	return cfg
}

// open opens the ledger, until the end of the test.
func (in *inside) open() {
	in.t.Helper()
	l := kit.Value(boltledger.Open(boltledger.Config{Dir: in.cfg.StateDir, Location: in.cfg.Location}))(in.t)
	in.t.Cleanup(func() { l.Close() })
	in.ledger = l
}

// beside is what a command sees of a daemon that runs and has this state.
func beside(t *testing.T, state daemon.State) *inside {
	t.Helper()
	in := lookInside(t, time.Date(2026, 11, 20, 13, 32, 0, 0, time.UTC), "")
	in.state = func() daemon.State { return state }
	return in
}

// takes lets a new folder live through events an hour ago.
func (in *inside) takes(doc *ledger.Document, evs ...ledger.Event) {
	in.t.Helper()
	at := in.Now.Add(-time.Hour)
	rs, err := in.ledger.Apply(in.t.Context(), ledger.Change{Key: archive.NewKey(at), Events: evs, Document: doc, At: archive.Instant{Wall: at}})
	kit.Need(in.t, err == nil && rs[0].Err == nil, "err = %v, rs = %v, want no error, rs[0].Err = nil", err, rs)
}

// asks runs a command inside the daemon and returns what it wrote, and whether
// it ended with an error.
func asks(do func(a *app) error) (out string, failed bool) {
	var b bytes.Buffer
	err := do(&app{stdout: &b, stderr: &b})
	return b.String(), err != nil
}

// makeCatalog makes the catalog of the ledger.
func (in *inside) makeCatalog() {
	in.t.Helper()
	c := catalog.New(catalog.Config{StateDir: in.cfg.StateDir, Ledger: in.ledger, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(in.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	kit.Await(in.t, "the catalog", func() bool { return c.Status().Describe() == "" })
	stop()
	<-done
}
