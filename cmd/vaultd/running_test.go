// These tests are inside the package: they watch a daemon whose loops stand
// still, and give a command the state of a daemon that no real one can be
// brought into within a test.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
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
	d := kit.Value(a.openDaemon(t.Context(), cfg, logger))(t)
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
		f.do = func(context.Context) int {
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

func TestStatus_PausesOfTheDaemon(t *testing.T) {
	v := beside(t, daemon.State{})
	noon := v.Now
	v.state = func() daemon.State {
		return daemon.State{
			Since: noon.Add(-time.Hour),
			Pauses: []ingest.Pause{
				{Target: ingest.RegisterTarget("V-1"), Since: noon.Add(-time.Hour), Next: noon.Add(time.Minute), Cause: ledger.Cause{Code: "http-403", Text: "credentials refused (403)"}},
				{Target: ingest.RegisterTarget("V-3"), Since: noon.Add(-20 * time.Second), Next: noon.Add(38 * time.Minute), Asked: noon.Add(38 * time.Minute), Cause: ledger.Cause{Code: "http-429", Text: "429 Too Many Requests"}},
				{Target: ingest.RegisterTarget("V-4"), Since: noon.Add(-20 * time.Second), Next: noon.Add(time.Second), Asked: noon, Cause: ledger.Cause{Code: "http-500", Text: "500"}},
				{Target: ingest.RegisterTarget("V-5"), Since: noon.Add(-time.Second), Next: noon.Add(time.Second), Cause: ledger.Cause{Code: "credentials", Text: "the secret cannot be read"}},
				{Target: ingest.UploadTarget("V-2"), Since: noon.Add(-time.Second), Next: noon.Add(time.Second), Cause: ledger.Cause{Code: "timeout", Text: "timed out"}},
				{Target: ingest.DisposalTarget("acme-in"), Since: noon.Add(-time.Hour), Cause: ledger.Cause{Code: "unusually-many", Text: "3000 archived folders are due"}},
			},
			Drops: []dropwork.State{{Name: "acme-in", Free: 210_000_000_000, Watch: watch.Snapshot{Mode: watch.Events, NotTaken: []watch.NotTakenGroup{
				{Reason: watch.NoSidecar, Count: 1, Items: []watch.NotTakenItem{{Name: "Meier\x1b 12"}}},
				{Reason: watch.NoRight, Count: 2, Items: []watch.NotTakenItem{{Name: "Wagner 5", Detail: "owner alice, 0755"}}},
			}}}},
		}
	}
	v.takes(nil, ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V-1", Drop: "acme-in", Folder: "Otto 19"})
	out, failed := asks(func(a *app) error { return a.runStatus(t.Context(), v.view, false) })
	kit.Check(t, failed, "status calls nobody")
	kit.Holds(t, "out", out,
		"NOW      vault V-5 paused since 14:31: the secret cannot be read; 1 wait, none lost\n         renew the secret file",
		"NOW      vault V-1 paused since 13:32: the service refuses the credentials, or a right: credentials refused (403); 1 wait, none lost\n         renew the secret file",
		"NOW      drop acme-in: 2 not taken: no right\n           Wagner 5: owner alice, 0755\n           and 1 more\n",
		"PAUSED   vault V-3 since 14:31, next try 15:10 CET: the service asks us to slow down until 15:10: 429 Too Many Requests\n",
		"PAUSED   vault V-4 since 14:31, next try 14:32 CET: the service is faulty: 500\n",
		"PAUSED   store of vault V-2 since 14:31, next try 14:32 CET: timed out\n",
		`vaultd resume "disposal of acme-in" --reason`,
		"NOT TAKEN YET 3\n  acme-in: no sidecar 1\n    Meier\\x1b 12\n",
		"acme-in  events  210 GB  0      1     1 h\n",
	)
	kit.Check(t, !regexp.MustCompile(`disposal of acme-in.*next try`).MatchString(out),
		"a pause that waits for a decision has a next try:\n%s", out)
	out, failed = asks(func(a *app) error { a.json = true; return a.runStatus(t.Context(), v.view, false) })
	var got present.StatusSummary
	if err := json.Unmarshal([]byte(out), &got); err != nil || !failed || got.Open.Total != 1 || !got.Running || !strings.Contains(out, `"next":null`) {
		t.Errorf("%v, failed %v\n%s", err, failed, out)
	}
}

// What waits behind the store of the PDF flow are PDFs alone; behind the disk of the packages everything waits.
func TestStatus_WaitingBehindThePDFStore(t *testing.T) {
	for target, want := range map[ingest.Target]int{ingest.PDFStoreTarget(): 1, ingest.PDFTarget("ap-scans"): 1, ingest.UploadTarget("V-1"): 1, ingest.SpoolTarget(): 2} {
		v := beside(t, daemon.State{Pauses: []ingest.Pause{{Target: target, Cause: ledger.Cause{Code: "http-403", Text: "refused"}}}})
		v.takes(nil, ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V-1", Drop: "acme-in", Folder: "Otto 19"})
		v.takes(nil, ledger.ClaimedFolder{Route: ledger.PDF, Drop: "ap-scans", Folder: "scan4.pdf"})
		out, _ := asks(func(a *app) error { return a.runStatus(t.Context(), v.view, false) })
		kit.Check(t, strings.Contains(out, fmt.Sprint(want, " wait, none lost")), "%s: not %d wait:\n%s", target, want, out)
	}
}

// No text that a running daemon tells of drops and routes steers a terminal or forges a line.
func TestInjection_I7_WhatTheDaemonTells(t *testing.T) {
	for _, text := range []string{"\x1b[2J\x1b]0;pwned\a", "a\nFORGED line", "harmless\rFORGED", "a\u0085FORGED\u2028FORGED\vFORGED", "\u009b31mFORGED", "\u202eDEGROF\u2066", "a\u200b\ufeff", "\xff\xfe\xc3"} {
		v := beside(t, daemon.State{})
		v.state = func() daemon.State {
			d := dropwork.State{Name: "acme-in"}
			d.Paused = text
			d.Watch.NotTaken = []watch.NotTakenGroup{{Reason: watch.NoRight, Count: 1, Items: []watch.NotTakenItem{{Name: text, Detail: text, FirstSeen: v.Now}}}}
			return daemon.State{Drops: []dropwork.State{d}, Pauses: []ingest.Pause{{Target: ingest.RegisterTarget(archive.VaultID(text)), Since: v.Now.Add(-time.Hour), Cause: ledger.Cause{Code: text, Text: text}}}}
		}
		for _, json := range []bool{false, true} {
			out, _ := asks(func(a *app) error { a.json = json; return a.runStatus(t.Context(), v.view, false) })
			for line := range strings.Lines(out) {
				if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "FORGED") || strings.ContainsFunc(line, func(r rune) bool { return !sanitize.IsPrintable(r) }) {
					t.Errorf("%q: %q", text, line)
				}
			}
		}
	}
}

// A running daemon knows how full its spool is, and status looks at none of the packages then; until they are counted, and
// without a daemon, it adds them up itself.
func TestStatus_G15_SpoolIsTheDaemons(t *testing.T) {
	for name, row := range map[string]struct {
		state func() daemon.State
		want  int64
	}{
		"NoDaemon":      {nil, 300},
		"Counted":       {func() daemon.State { return daemon.State{Spool: daemon.SpoolState{Used: 7, IsCounted: true}} }, 7},
		"NotCountedYet": {func() daemon.State { return daemon.State{Spool: daemon.SpoolState{Used: 7}} }, 300},
	} {
		v := beside(t, daemon.State{})
		v.state = row.state
		dir := filepath.Join(v.cfg.StateDir, "spool")
		kit.Must(t, os.Mkdir(dir, 0o700))
		kit.Must(t, os.WriteFile(filepath.Join(dir, "a.zip"), make([]byte, 300), 0o600))
		out, _ := asks(func(a *app) error { a.json = true; return a.runStatus(t.Context(), v.view, false) })
		var st present.StatusSummary
		if err := json.Unmarshal([]byte(out), &st); err != nil || st.Disk.SpoolUsed != row.want {
			t.Errorf("%s: %d bytes (%v), want %d", name, st.Disk.SpoolUsed, err, row.want)
		}
	}
}
