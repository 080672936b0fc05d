package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/emulator"
)

// People find what was archived while vaultd runs, while it is stopped, and after it was killed, with the same answer. A command that
// they run meanwhile leaves no file behind, whoever runs it, and the next start goes on.
func TestCatalog_I27_RunningStoppedAndKilled(t *testing.T) {
	t.Parallel()
	_, url := serveEmulator(t, emulator.Config{})
	s := newSite(t, url, fast)
	s.fill(20, 1)
	p := s.start("run")
	ask := func(when string) {
		t.Helper()
		before := s.stateFiles()
		for _, words := range [][]string{{"rechnung", "0007"}, {"R-7"}, {"0007"}} {
			if out, code := s.vaultd(append([]string{"find"}, words...)...); code != 0 || strings.Count(out, "Rechnung 0007") < 1 || strings.Contains(out, "0008") {
				t.Errorf("%s: find %v: exit %d: %s", when, words, code, out)
			}
		}
		if out, code := s.vaultd("list", "--state", "archived,rejected", "--since", "1h", "--limit", "0"); code != 0 || strings.Count(out, "Rechnung") < 20 {
			t.Errorf("%s: list: exit %d: %s", when, code, out)
		}
		if out, code := s.vaultd("show", "rechnung 0007"); code != 0 || !strings.Contains(out, "Rechnung 0007") {
			t.Errorf("%s: show: exit %d: %s", when, code, out)
		}
		if after := s.stateFiles(); !slices.Equal(before, after) {
			t.Errorf("%s: the state directory holds %v, before the commands %v", when, after, before)
		}
	}
	waitFor(t, "all documents in the archive", func() bool {
		out, _ := s.vaultd("list", "--state", "archived", "--limit", "0")
		return strings.Count(out, "Rechnung") >= 20
	})
	ask("running")
	if out, code := s.vaultd("doctor", "--json"); !strings.Contains(out, `"what":"catalog","name":"","result":"OK"`) {
		t.Errorf("doctor: exit %d: %s", code, out)
	}
	stop := func(sig os.Signal) {
		t.Helper()
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		p.end(t, 20*time.Second)
	}
	stop(syscall.SIGTERM)
	if files := s.stateFiles(); !slices.Contains(files, "catalog.db") || slices.Contains(files, "catalog.db-wal") || slices.Contains(files, "catalog.db-shm") {
		t.Errorf("a clean end leaves %v", files)
	}
	ask("stopped")
	p = s.start("run")
	waitFor(t, "the socket", func() bool {
		_, code := s.vaultd("status")
		return code != exitTemporary && strings.Contains(p.out.String(), "vaultd started")
	})
	s.drop("acme", "Rechnung 9999", map[string][]byte{"scan.bin": []byte("x")}, map[string]any{"documentType": "Invoice", "documentId": "R-9999", "documentDate": "2026-10-31"})
	waitFor(t, "the new folder", func() bool { out, _ := s.vaultd("find", "R-9999"); return strings.Contains(out, "archived 20") })
	stop(syscall.SIGKILL)
	ask("killed")
	if out, code := s.vaultd("find", "9999"); code != 0 || !strings.Contains(out, "Rechnung 9999") {
		t.Errorf("killed: exit %d: %s", code, out)
	}
	p = s.start("run")
	waitFor(t, "the catalog after the kill", func() bool { out, _ := s.vaultd("doctor"); return strings.Contains(out, "OK    catalog") })
	ask("after the kill")
	if log := p.out.String(); strings.Contains(log, "the catalog is made anew") {
		t.Errorf("a kill costs the catalog:\n%s", log)
	}
}

// stateFiles lists what lies in the state directory.
func (s *site) stateFiles() (names []string) {
	s.t.Helper()
	es, err := os.ReadDir(filepath.Join(s.dir, "state"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range es {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), "catalog.db") && info.Mode() != 0o600 {
			s.t.Errorf("%s is %v", e.Name(), info.Mode())
		}
		names = append(names, e.Name())
	}
	return names
}
