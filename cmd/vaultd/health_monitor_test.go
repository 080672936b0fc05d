// These tests are inside the package: they watch a daemon whose loops stand
// still.
package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// resting makes a host around a daemon that was opened and never runs.
func resting(t *testing.T, log io.Writer) (*host, *daemon.Daemon) {
	t.Helper()
	dir := t.TempDir()
	kit.Must(t, errors.Join(os.Mkdir(filepath.Join(dir, "state"), 0o700), os.Mkdir(filepath.Join(dir, "acme"), 0o770),
		os.WriteFile(filepath.Join(dir, "secret"), []byte("demo\n"), 0o600)))
	cfg := loadInside(t, `service:
  base_url: https://vault.example
  auth: {method: basic, username: u, secret_file: `+dir+`/secret}
state_dir: `+dir+`/state
drops:
  - {name: acme, path: `+dir+`/acme, vault: V-1}
`)
	kit.Must(t, boltledger.Create(cfg.StateDir, ledger.Info{ID: "L", Environment: "test", BaseURL: cfg.Service.BaseURL, Created: time.Now()}))
	a := &app{stdout: log, stderr: log, env: noEnvironment}
	logger := slog.New(slog.NewTextHandler(log, nil))
	d := kit.Value(a.openDaemon(cfg, logger))(t)
	return a.newHost(d, cfg, logger), d
}

// I26: the watchdog is fed by the loops, not by the timer that writes to it: when they stand still it gets nothing more, and
// status line and log say so.
func TestHealthMonitor_I26_NoProgressNoPing(t *testing.T) {
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(shortDir(t), "notify"), Net: "unixgram"})
	kit.Must(t, err)
	defer c.Close()
	const end = "the end"
	said := make(chan string, 1000)
	go func() { // outside of the bubble, whose writes would wait for it
		defer close(said)
		for b := make([]byte, 64<<10); ; {
			n, err := c.Read(b)
			if err != nil || string(b[:n]) == end {
				return
			}
			said <- string(b[:n])
		}
	}()
	t.Setenv("NOTIFY_SOCKET", c.LocalAddr().String())
	t.Setenv("WATCHDOG_USEC", "60000000")
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		h, d := resting(t, &log)
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		kit.Must(t, newHealthMonitor(h).run(ctx))
		kit.Must(t, d.Close())
	})
	client, err := net.Dial("unixgram", c.LocalAddr().String())
	kit.Must(t, err)
	defer client.Close()
	_, err = client.Write([]byte(end))
	kit.Must(t, err)
	pings, last := 0, ""
	for text := range said {
		if last = text; strings.Contains(text, "WATCHDOG=1") {
			pings++
		}
	}
	if n := strings.Count(log.String(), "no progress"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
	kit.Check(t, pings != 0 && pings <= 60, "%d pings in an hour in which nothing moved", pings)
	kit.Holds(t, "the service manager heard last", last, "stood still")
}

// Each step nearer to the limit is said once.
func TestHealthMonitor_WarnsOncePerStep(t *testing.T) {
	var log bytes.Buffer
	p := newHealthMonitor(&host{log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, level := range []int{0, 0, 80, 80, 90, 80, 90, 100, 100} {
		p.warnOfBills([]present.Bill{{Year: 2026, Vault: "V", Level: level}, {Year: 2026, Level: 0}})
	}
	n := strings.Count(log.String(), "\n")
	kit.Check(t, n == 3 && strings.Count(log.String(), "used up") == 1, "%d lines:\n%s", n, log.String())
}

// A look that hangs keeps nobody waiting, and does not begin a second time.
func TestFlight_I21_HangsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, release := 0, make(chan struct{})
		f := inFlightCall[int]{}
		f.do = func() int {
			begun++
			if begun == 2 {
				<-release
			}
			return begun
		}
		n, at := f.getResult(t.Context(), time.Second)
		kit.Check(t, n == 1 && !at.IsZero(), "n = %v, at = %v, want n = 1, not at.IsZero()", n, at)
		for range 5 {
			if n, at := f.getResult(t.Context(), time.Second); n != 1 || time.Since(at) < time.Second {
				t.Errorf("n = %v, at = %v, want n = 1, time.Since(at) >= time.Second", n, at)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		n, _ = f.getResult(gone, time.Hour)
		kit.Check(t, n == 1, "n = %v, want n = 1", n)
		close(release)
		f.waitForEnd()
		n, _ = f.getResult(t.Context(), time.Second)
		kit.Check(t, n == 3 && begun == 3, "n = %v, begun = %v, want n = 3, begun = 3", n, begun)
	})
}
