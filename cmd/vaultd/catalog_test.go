package main_test

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/catalog"
	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// People find what was archived while vaultd runs, while it is stopped, and after it was killed, with the same answer. A command that
// they run meanwhile leaves no file behind, whoever runs it, and the next start goes on.
func TestCatalog_I27_RunningStoppedAndKilled(t *testing.T) {
	t.Parallel()
	_, s := served(t, emulator.Config{}, fast)
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
		out, code := s.vaultd("list", "--state", "archived,rejected", "--since", "1h", "--limit", "0")
		kit.Check(t, code == 0 && strings.Count(out, "Rechnung") >= 20, "%s: list: exit %d: %s", when, code, out)
		kit.Holds(t, when+": show: exit", s.must(0, "show", "rechnung 0007"), "Rechnung 0007")
		if after := s.stateFiles(); !slices.Equal(before, after) {
			t.Errorf("%s: the state directory holds %v, before the commands %v", when, after, before)
		}
	}
	kit.Await(t, "all documents in the archive", func() bool {
		out, _ := s.vaultd("list", "--state", "archived", "--limit", "0")
		return strings.Count(out, "Rechnung") >= 20
	})
	ask("running")
	if out, code := s.vaultd("doctor", "--json"); !strings.Contains(out, `"what":"catalog","name":"","result":"OK"`) {
		t.Errorf("doctor: exit %d: %s", code, out)
	}
	p.stop(t)
	if files := s.stateFiles(); !slices.Contains(files, "catalog.db") || slices.Contains(files, "catalog.db-wal") || slices.Contains(files, "catalog.db-shm") {
		t.Errorf("a clean end leaves %v", files)
	}
	ask("stopped")
	p = s.spawn("run")
	kit.Await(t, "the socket", func() bool {
		_, code := s.vaultd("status")
		return code != exitTemporary && strings.Contains(p.out.String(), "vaultd started")
	})
	s.drop("acme", "Rechnung 9999", map[string][]byte{"scan.bin": []byte("x")}, map[string]any{"documentType": "Invoice", "documentId": "R-9999", "documentDate": "2026-10-31"})
	kit.Await(t, "the new folder", func() bool { out, _ := s.vaultd("find", "R-9999"); return strings.Contains(out, "archived 20") })
	p.kill(t)
	ask("killed")
	kit.Holds(t, "killed: exit", s.must(0, "find", "9999"), "Rechnung 9999")
	p = s.start("run")
	kit.Await(t, "the catalog after the kill", func() bool { out, _ := s.vaultd("doctor"); return strings.Contains(out, "OK    catalog") })
	ask("after the kill")
	kit.Lacks(t, "a kill costs the catalog", p.out.String(), "the catalog is made anew")
}

// stateFiles lists what lies in the state directory.
func (s *site) stateFiles() (names []string) {
	s.t.Helper()
	es := kit.Value(os.ReadDir(filepath.Join(s.dir, "state")))(s.t)
	for _, e := range es {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), "catalog.db") && info.Mode() != 0o600 {
			s.t.Errorf("%s is %v", e.Name(), info.Mode())
		}
		if !strings.HasSuffix(e.Name(), ".tmp") { // which the running daemon writes for a moment
			names = append(names, e.Name())
		}
	}
	return names
}

// A catalog whose counts differ from the balance is told by verify and by audit, as what it is: no difference in the ledger, and nothing
// that changes the report.
func TestCatalog_I32_CountsAgainstTheBalance(t *testing.T) {
	t.Parallel()
	s := filled(t)
	s.makeCatalog()
	ask := func() (verify, object, page, audit string) {
		t.Helper()
		verify, errs, code := s.say("verify", "--whole")
		kit.Check(t, code == exitDone, "verify: exit %d: %s", code, errs)
		object, _, _ = s.say("verify", "--whole", "--json")
		page, audit, code = s.audit("--json", "--whole")
		kit.Check(t, code == exitDifferences && strings.Contains(audit, "NOT COMPLETE"),
			"audit: exit %d: %s", code, audit)
		return verify, object, page, audit
	}
	verify, object, page, audit := ask()
	if strings.Contains(verify, "CATALOG") || !strings.Contains(object, `"catalogDiffers":"","catalogNotCompared":""`) || strings.Contains(audit, "catalog") {
		t.Errorf("nothing differs:\n%s\n%s\n%s", verify, object, audit)
	}
	db := kit.Value(sql.Open("sqlite", filepath.Join(s.cfg.StateDir, catalog.FileName)))(t)
	kit.Value(db.Exec("DELETE FROM document WHERE id = 2"))(t)
	kit.Must(t, db.Close())
	const differs = "its rows (seen 3 = archived 1 + delivered 0 + rejected 0 + quarantined 1 + duplicate 0 + open 1  agrees) are not those of the ledger (seen 4 = "
	verify, object, same, audit := ask()
	if !strings.Contains(verify, "CATALOG   does not count as the ledger does: "+differs) || !strings.Contains(verify, "vaultd makes it anew when it starts. Audit and verify do not rest on it\n") ||
		!strings.Contains(verify, "RESULT    nothing differs") || !strings.Contains(object, `"catalogDiffers":"`+differs) {
		t.Errorf("verify:\n%s\n%s", verify, object)
	}
	kit.Check(t, strings.Contains(audit, "the catalog does not count as the ledger does: "+differs) && same == page,
		"audit, page the same: %v\n%s", same == page, audit)
	kit.Must(t, os.Remove(filepath.Join(s.cfg.StateDir, catalog.FileName)))
	if verify, _, _, audit = ask(); !strings.Contains(verify, "CATALOG   its counts were not compared: the catalog is not complete: there is none; vaultd makes it when it starts\n") || strings.Contains(audit, "catalog") {
		t.Errorf("there is none:\n%s\n%s", verify, audit)
	}
}

// makeCatalog makes the catalog of the shelf's ledger.
func (s *shelf) makeCatalog() {
	s.t.Helper()
	c := catalog.New(catalog.Config{StateDir: s.cfg.StateDir, Ledger: s.ledger.Ledger, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	kit.Await(s.t, "the catalog", func() bool { return c.Status().Describe() == "" })
	stop()
	<-done
}
