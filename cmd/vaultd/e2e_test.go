package main_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// site is one installation: a configuration with two drops against a service.
type site struct {
	t       *testing.T
	dir     string
	config  string
	service string            // its address
	env     map[string]string // in addition to the environment of the tests
}

// newSite writes a configuration for the service at url and makes the ledger.
func newSite(t *testing.T, url, extra string) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, dir: dir, config: filepath.Join(dir, "config.yaml"), service: url}
	text := fmt.Sprintf(`service:
  environment: test
  base_url: %[2]s
  auth: {method: basic, username: demo, secret_file: %[1]s/secret}
state_dir: %[1]s/state
spool: {min_free: 1MB}
drops:
  - {name: acme, path: %[1]s/acme, vault: ACME, settle: 300ms, rescan: 1s}
  - {name: beta, path: %[1]s/beta, vault: BETA, settle: 300ms, rescan: 1s}
%[3]s
http: {listen: ""}
`, dir, url, extra)
	for _, err := range []error{
		os.WriteFile(s.config, []byte(text), 0o640),
		os.WriteFile(filepath.Join(dir, "secret"), []byte("demo\n"), 0o600),
		os.Mkdir(filepath.Join(dir, "acme"), 0o770), os.Mkdir(filepath.Join(dir, "beta"), 0o770),
	} {
		kit.Must(t, err)
	}
	out, code := s.vaultd("init")
	kit.Need(t, code == 0, "init: exit %d: %s", code, out)
	return s
}

// fast is how quickly things go in these tests.
const fast = `upload: {batch_wait: 100ms, window: 10s}
status: {poll_min: 500ms, poll_max: 2s, unclear_grace: 20s}`

// serveEmulator runs the service in this process, so that tests see what it saw.
func serveEmulator(t *testing.T, cfg emulator.Config) (*emulator.Server, string) {
	t.Helper()
	cfg.Dir, cfg.Username, cfg.Secret = t.TempDir(), "demo", "demo"
	cfg.Vaults = []emulator.Vault{{ID: "ACME"}, {ID: "BETA"}}
	emu := kit.Value(emulator.New(cfg))(t)
	l := kit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	srv := &http.Server{Handler: emu}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		<-done
		kit.Want(t, "the error of Close", emu.Close(), nil)
	})
	return emu, "http://" + l.Addr().String()
}

// served is a site at an emulator of its own, for a test that runs together
// with others.
func served(t *testing.T, cfg emulator.Config, extra string) (*emulator.Server, *site) {
	t.Helper()
	t.Parallel()
	return newServed(t, cfg, extra)
}

// newServed is served without that.
func newServed(t *testing.T, cfg emulator.Config, extra string) (*emulator.Server, *site) {
	t.Helper()
	emu, url := serveEmulator(t, cfg)
	return emu, newSite(t, url, extra)
}

// fill drops n folders of mixed size.
func (s *site) fill(n int, seed uint64) {
	s.t.Helper()
	r := rand.New(rand.NewChaCha8([32]byte{byte(seed)}))
	for i := range n {
		size := 500 + r.IntN(20_000)
		if i%40 == 7 {
			size = 300_000 + r.IntN(2_500_000)
		}
		content := make([]byte, size)
		for j := range content {
			content[j] = byte(r.Uint32())
		}
		s.drop([]string{"acme", "beta"}[i%2], fmt.Sprintf("Rechnung %04d", i), map[string][]byte{"scan.bin": content},
			map[string]any{"documentType": "Invoice", "documentId": fmt.Sprint("R-", i), "documentDate": "2026-10-31"})
	}
}

// drop makes one folder; its sidecar comes last.
func (s *site) drop(drop, folder string, files map[string][]byte, sidecar map[string]any) {
	s.t.Helper()
	dir := filepath.Join(s.dir, drop, folder)
	meta, err := json.Marshal(sidecar)
	if err == nil {
		err = os.Mkdir(dir, 0o770)
	}
	for name, content := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o660)
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "metadata.json"), meta, 0o660)
	}
	kit.Must(s.t, err)
}

// SIGTERM ends within ten seconds with 0, whatever is under way; I16: a second run on
// the same state ends at once and says who holds it.
func TestRun_I16_SignalAndSecondRun(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]emulator.Config{
		"WhileUploading":   {Faults: emulator.Faults{Rules: []emulator.Rule{{Op: "upload", Rate: 1, Fault: emulator.Fault{DelayAfter: time.Minute}}}}},
		"WhileRegistering": {Faults: emulator.Faults{Rules: []emulator.Rule{{Op: "register", Rate: 1, Fault: emulator.Fault{Delay: time.Minute}}}}},
		"WhileAsking":      {ArchiveMin: time.Hour, ArchiveMax: time.Hour, Faults: emulator.Faults{Rules: []emulator.Rule{{Op: "status", Rate: 1, Fault: emulator.Fault{Delay: time.Minute}}}}},
		"WhileIdle":        {},
	} {
		t.Run(name, func(t *testing.T) {
			emu, s := served(t, cfg, fast)
			s.fill(3, 2)
			p := s.spawn("run", "-v")
			op := map[string]string{"WhileUploading": "upload", "WhileRegistering": "register", "WhileAsking": "status", "WhileIdle": "status"}[name]
			kit.Await(t, "the service to be asked", func() bool { return emu.CountCalls(op) > 0 })
			began := time.Now()
			out, code := s.vaultd("run")
			if took := time.Since(began); code != exitTemporary || !strings.Contains(out, fmt.Sprint("process ", p.Process.Pid)) || took > 30*time.Second {
				t.Errorf("second run: exit %d after %v: %s", code, took, out)
			}
			began = time.Now()
			if code := p.stop(t); code != 0 {
				t.Errorf("SIGTERM: exit %d after %v", code, time.Since(began))
			}
			s.must(0, "verify", "--whole")
		})
	}
}

// Each story has a configuration for a service that works (config.yaml), and one for a
// service that mixes up its numbers (crossed.yaml).
func TestStories(t *testing.T) {
	t.Parallel()
	quick := emulator.Config{ArchiveMin: 10 * time.Millisecond, ArchiveMax: 50 * time.Millisecond}
	_, works := serveEmulator(t, quick)
	quick.Faults.Rules = []emulator.Rule{{Op: "register", Rate: 1, Fault: emulator.Fault{Kind: emulator.DoubleBumID}}}
	_, crossed := serveEmulator(t, quick)
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/story",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code},
		Setup: func(e *testscript.Env) error {
			for name, url := range map[string]string{"config.yaml": works, "crossed.yaml": crossed} {
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), []byte(storyConfig(e.WorkDir, url)), 0o600); err != nil {
					return err
				}
			}
			return os.WriteFile(filepath.Join(e.WorkDir, "secret"), []byte("demo\n"), 0o600)
		},
	})
}

func storyConfig(dir, url string) string {
	return fmt.Sprintf(`service:
  environment: test
  base_url: %[2]s
  auth: {method: basic, username: demo, secret_file: %[1]s/secret}
state_dir: %[1]s/state
spool: {min_free: 1MB}
drops:
  - {name: acme, path: %[1]s/acme, vault: ACME, settle: 100ms, rescan: 1s}
upload: {batch_wait: 50ms, window: 10s}
status: {poll_min: 200ms, poll_max: 1s, unclear_grace: 20s}
http: {listen: ""}
`, dir, url)
}

// While the daemon runs, decisions are carried out at once: a corrected folder
// is taken again, a held one continues.
func TestRetry_InTheRunningDaemon(t *testing.T) {
	_, s := served(t, emulator.Config{ArchiveMin: 10 * time.Millisecond, ArchiveMax: 50 * time.Millisecond}, fast)
	s.drop("acme", "Huber 88", map[string][]byte{"a.pdf": []byte("a")}, map[string]any{"documentType": "Invoice", "documentId": "88", "documentDate": "31.10.2026"})
	p := s.start("run")
	place := filepath.Join(s.dir, "acme", "_rejected", "Huber 88")
	kit.Await(t, "the folder to be given back", func() bool { _, err := os.Stat(filepath.Join(place, "_REASON.txt")); return err == nil })
	right := []byte(`{"documentType": "Invoice", "documentId": "88", "documentDate": "2026-10-31"}`)
	kit.Must(t, os.WriteFile(filepath.Join(place, "metadata.json"), right, 0o660))
	kit.Await(t, "the entry to know it", func() bool {
		out, code := s.vaultd("retry", "Huber 88")
		return code == 0 || !strings.Contains(out, "on its way back")
	})
	s.must(0, "hold", "Huber 88")
	s.must(0, "unhold", "Huber 88", "--reason", "looked at")
	began := time.Now()
	kit.Await(t, "the archive", func() bool { out, _ := s.vaultd("find", "huber", "88"); return strings.Contains(out, "archived 20") })
	took := time.Since(began)
	kit.Check(t, took <= 40*time.Second, "it took %v: nobody woke the daemon", took)
	kit.Holds(t, "status: exit", s.must(0, "status"), "NEEDS YOU: nothing")
	copied := filepath.Join(s.dir, "copy.db")
	kit.Holds(t, "backup: exit", s.must(0, "backup", copied), "is whole")
	kit.Want(t, "SIGTERM: exit", p.stop(t), 0)
	s.must(0, "verify")
}

// Only the daemon knows a folder that waits for its sidecar: why and find name
// it.
func TestWhy_WhatOnlyTheDaemonKnows(t *testing.T) {
	_, s := served(t, emulator.Config{}, fast)
	s.begin()
	writeIn(t, filepath.Join(s.dir, "acme", "Meier\x1b 12"), "scan.pdf", "%PDF")
	for code, args := range map[int][]string{0: {"why", "Meier\x1b 12"}, exitFailed: {"find", "meier", "12"}} {
		kit.Await(t, args[0]+" to tell of it", func() bool {
			out, got := s.vaultd(args...)
			return got == code && strings.Contains(out, `Meier\x1b 12 (acme)`) && strings.Contains(out, "not taken, seen since ") && strings.Contains(out, "no sidecar")
		})
	}
}
