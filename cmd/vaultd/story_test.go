package main_test

import (
	"vaultd/internal/test/kit"

	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vaultd/internal/emulator"
)

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

// While the daemon runs, what people decide is done at once: the folder that was corrected is
// taken again, the one that was held goes on.
func TestRetry_InTheRunningDaemon(t *testing.T) {
	t.Parallel()
	_, url := serveEmulator(t, emulator.Config{ArchiveMin: 10 * time.Millisecond, ArchiveMax: 50 * time.Millisecond})
	s := newSite(t, url, fast)
	s.drop("acme", "Huber 88", map[string][]byte{"a.pdf": []byte("a")}, map[string]any{"documentType": "Invoice", "documentId": "88", "documentDate": "31.10.2026"})
	p := s.start("run")
	place := filepath.Join(s.dir, "acme", "_rejected", "Huber 88")
	waitFor(t, "the folder to be given back", func() bool { _, err := os.Stat(filepath.Join(place, "_REASON.txt")); return err == nil })
	right := []byte(`{"documentType": "Invoice", "documentId": "88", "documentDate": "2026-10-31"}`)
	kit.Must(t, os.WriteFile(filepath.Join(place, "metadata.json"), right, 0o660))
	waitFor(t, "the entry to know it", func() bool {
		out, code := s.vaultd("retry", "Huber 88")
		return code == 0 || !strings.Contains(out, "on its way back")
	})
	if out, code := s.vaultd("hold", "Huber 88"); code != 0 {
		t.Fatalf("hold: exit %d %s", code, out)
	}
	if out, code := s.vaultd("unhold", "Huber 88", "--reason", "looked at"); code != 0 {
		t.Fatalf("unhold: exit %d %s", code, out)
	}
	began := time.Now()
	waitFor(t, "the archive", func() bool { out, _ := s.vaultd("find", "huber", "88"); return strings.Contains(out, "archived 20") })
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("it took %v: nobody woke the daemon", took)
	}
	if out, code := s.vaultd("status"); code != 0 || !strings.Contains(out, "NEEDS YOU: nothing") {
		t.Errorf("status: exit %d\n%s", code, out)
	}
	copied := filepath.Join(s.dir, "copy.db")
	if out, code := s.vaultd("backup", copied); code != 0 || !strings.Contains(out, "is whole") {
		t.Errorf("backup: exit %d\n%s", code, out)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("SIGTERM: exit %d", code)
	}
	if out, code := s.vaultd("verify"); code != 0 {
		t.Errorf("verify: exit %d\n%s", code, out)
	}
}

// Of a folder that waits for its sidecar only the daemon knows: why and find tell of it.
func TestWhy_WhatOnlyTheDaemonKnows(t *testing.T) {
	t.Parallel()
	_, url := serveEmulator(t, emulator.Config{})
	s := newSite(t, url, fast)
	s.begin()
	writeIn(t, filepath.Join(s.dir, "acme", "Meier\x1b 12"), "scan.pdf", "%PDF")
	for code, args := range map[int][]string{0: {"why", "Meier\x1b 12"}, exitFailed: {"find", "meier", "12"}} {
		waitFor(t, args[0]+" to tell of it", func() bool {
			out, got := s.vaultd(args...)
			return got == code && strings.Contains(out, `Meier\x1b 12 (acme)`) && strings.Contains(out, "not taken, seen since ") && strings.Contains(out, "no sidecar")
		})
	}
}
