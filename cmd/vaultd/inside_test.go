// This test is inside the package: it hangs a try, as a dead file server would.
// This test is inside the package: it holds the turn of an answer that is being
// made.
// This test is inside the package: only main keeps the memory of its process
// out of core files, and a test cannot call main.
// This test is inside the package: it counts what one look at the figures costs.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/test/fill"
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
	c := catalog.New(catalog.Config{StateDir: in.cfg.StateDir, Ledger: in.ledger, Location: in.cfg.Location, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(in.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	kit.Await(in.t, "the catalog", func() bool { return c.Status().Describe() == "" })
	stop()
	<-done
}

// A try that hangs, as on a file server that is dead, is given up and told.
func TestDoctor_TryThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, began := make(chan struct{}), time.Now()
		got := tryWithTimeout(t.Context(), "drop", "acme", func(context.Context) []tried { <-release; return nil })
		if took := time.Since(began); len(got) != 1 || got[0].Result != "FAIL" || got[0].Name != "acme" || took > 10*time.Second+time.Second {
			t.Errorf("after %v: %+v", took, got)
		}
		close(release)
	})
}

// I21: inside the daemon two answers about booked invoices are never made at once. One waits for the other, and not for ever.
func TestBooks_I21_OneAnswerAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := view{booksTurn: make(chan struct{}, 1)}
		leave := kit.Value(v.takeBooksTurn(t.Context()))(t)
		begun := time.Now()
		_, err := v.takeBooksTurn(t.Context())
		kit.Check(t, errors.Is(err, errOtherAnswer) && time.Since(begun) == booksPatience, "%v after %v", err, time.Since(begun))
		time.AfterFunc(time.Second, leave)
		second := kit.Value(v.takeBooksTurn(t.Context()))(t)
		second()
	})
}

// TestProcess_I27_NotDumpable: secrets in memory are kept out of core files and
// away from other processes of the same user. It asks a process of its own:
// what is set there cannot be undone.
func TestProcess_I27_NotDumpable(t *testing.T) {
	const other = "VAULTD_TEST_NO_DUMP"
	if os.Getenv(other) != "" {
		err := leaveNoDump()
		var core unix.Rlimit
		limitErr := unix.Getrlimit(unix.RLIMIT_CORE, &core)
		dumpable, prctlErr := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		fmt.Println("dumpable", dumpable, "core", core.Cur, core.Max, "errors", err, limitErr, prctlErr)
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcess_I27_NotDumpable$", "-test.v")
	cmd.Env = append(os.Environ(), other+"=1")
	out := kit.Value(cmd.CombinedOutput())(t)
	kit.Holds(t, "the other process", string(out), "dumpable 0 core 0 0 errors <nil> <nil> <nil>")
}

// I15: a backup is called whole where the disk gives the bytes that were written,
// and in no other case.
func TestBackup_I15_IsReadBack(t *testing.T) {
	l := fill.New(t, boltledger.Config{}, ledger.Info{ID: "L", Environment: "test", Created: time.Now(), ReceiptKeys: []string{"k"}})
	l.Item("Otto 19").Archive(time.Now(), 0)
	kit.Must(t, l.Close())
	path := filepath.Join(l.Dir, "ledger.db")
	written := kit.Value(os.ReadFile(path))(t)
	for at, want := range map[int]bool{-1: true, len(written) / 2: false, len(written) - 1: false} {
		b, onDisk := backedUp{written: sha256.New()}, bytes.Clone(written)
		b.written.Write(written)
		if at >= 0 {
			onDisk[at] ^= 1
		}
		kit.Must(t, os.WriteFile(path, onDisk, 0o600))
		err := b.inspect(path)
		kit.Check(t, (err == nil) == want, "byte %d differs: %v, want it accepted: %t", at, err, want)
	}
}

// pile gives a ledger so many folders that wait, one in ten of them rejected.
func pile(t *testing.T, l *boltledger.Ledger, n int) {
	t.Helper()
	for done := 0; done < n; {
		var cs []ledger.Change
		for ; done < n && len(cs) < 500; done++ {
			now := time.Now()
			c := ledger.Change{Key: archive.NewKey(now), At: archive.Instant{Wall: now}, Events: []ledger.Event{
				ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V-1", Drop: "acme", Folder: "Huber 88", NotBefore: now.Add(time.Hour)}}}
			if done%10 == 0 {
				c.Events = append(c.Events, ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}})
			}
			cs = append(cs, c)
		}
		rs, err := l.Apply(t.Context(), cs...)
		kit.Need(t, err == nil && rs[0].Err == nil,
			"err = %v, rs[0].Err = %v, want no error, rs[0].Err = nil", err, rs[0].Err)
	}
}

// I26: the metrics have no bills of a catalog that stopped, and say that it is
// not complete.
func TestHealthMonitor_I26_BillsOfACatalogThatStopped(t *testing.T) {
	of := fill.New(t, boltledger.Config{}, ledger.Info{ID: "L", Environment: "test", BaseURL: "https://vault.example", Created: time.Now()})
	of.Item("Otto 19").Archive(time.Now(), 0)
	dir := t.TempDir()
	kit.Must(t, errors.Join(of.Close(), os.WriteFile(filepath.Join(dir, "secret"), []byte("demo\n"), 0o600), os.Mkdir(filepath.Join(dir, "acme"), 0o770)))
	cfg := loadInside(t, `service:
  base_url: https://vault.example
  auth: {method: basic, username: u, secret_file: `+dir+`/secret}
state_dir: `+of.Dir+`
drops:
  - {name: acme, path: `+dir+`/acme, vault: V-1}
`)
	a, full := &app{stdout: io.Discard, stderr: io.Discard, env: noEnvironment}, atomic.Bool{}
	dc := kit.Value(a.daemonConfig(cfg, slog.New(slog.DiscardHandler)))(t)
	dc.CheckEvery, dc.FreeBytes = 0, func(string) int64 {
		if full.Load() {
			return 0
		}
		return 1 << 40
	}
	d := kit.Value(daemon.Open(t.Context(), dc))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Catalog().Run(ctx) }()
	p := newHealthMonitor(a.newHost(d, cfg, slog.New(slog.DiscardHandler)))
	kit.Await(t, "a bill", func() bool { g := p.gatherFacts(t.Context()); return len(g.Bills) > 0 && g.CatalogComplete })
	full.Store(true)
	pile(t, d.Ledger(), 10_100)
	d.Catalog().Wake()
	kit.Await(t, "a catalog that stopped", func() bool { return d.Catalog().Status().Fault != "" })
	g := p.gatherFacts(t.Context())
	kit.Want(t, "bills", len(g.Bills), 0)
	kit.Want(t, "complete", g.CatalogComplete, false)
	stop()
	<-ended
	kit.Must(t, d.Close())
}

// What is told every few seconds is counted from the ledger's indexes: ten thousand open
// entries make it read none of them. Whoever reads an entry must allocate for it.
func TestHealthMonitor_I21_ReadsNoEntries(t *testing.T) {
	var log bytes.Buffer
	h, d := resting(t, &log)
	defer d.Close()
	p := newHealthMonitor(h)
	look := func() { p.gatherFacts(t.Context()) }
	look()
	l := d.Ledger()
	pile(t, l, 10)
	look() // what is new in the journal is read once
	few := testing.AllocsPerRun(3, look)
	const n = 10_000
	pile(t, l, n)
	look()
	many := testing.AllocsPerRun(3, look)
	kit.Check(t, many <= few+100, "%.0f allocations with 10 open entries, %.0f with %d", few, many, n)
	if g := p.gatherFacts(t.Context()); g.NeedsPerson["rejected"] != n/10+1 || g.Balance.OpenEntries() != n*9/10+9 || g.OldestOpen.IsZero() {
		t.Errorf(`%v %v %s, want g.NeedsPerson["rejected"] = %v, g.Balance.OpenEntries() = %v, not g.OldestOpen.IsZero()`, g.NeedsPerson, g.Balance, g.OldestOpen, n/10+1, n*9/10+9)
	}
}
