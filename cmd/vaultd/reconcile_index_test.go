package main_test

import (
	"vaultd/internal/test/kit"

	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
)

// I15, I29, I32: an index that never tells the right number keeps safe mode, and says so with both numbers, until a person
// accepts it. Every audit and verify say so from then on. Inside the daemon and beside none.
func TestReconcile_I15_I29_I32_AcceptedIndex(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]bool{"InsideTheDaemon": true, "BesideNone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond, Readings: emulator.Readings{IndexFound: "more"}})
			s := newSite(t, url, fast)
			s.dropped("acme", "before", 2)
			p := s.start("run")
			s.calm(2)
			backup := filepath.Join(s.dir, "backup.db")
			s.must(0, "backup", backup)
			s.dropped("acme", "after", 1)
			s.calm(3)
			waitFor(t, "all folders to be kept", func() bool { // one that lies claimed would be taken for one that is not archived
				kept, err := filepath.Glob(filepath.Join(s.dir, "acme", "_archived", "*", "*"))
				return err == nil && len(kept) == 3
			})
			p.stop(t)
			s.move("state", "lost")
			s.must(0, "restore", backup)
			if inside {
				s.start("run")
				s.listens()
			}
			out := s.must(exitPerson, "reconcile")
			kit.Holds(t, "reconcile", out, "Vault ACME: the index gave 3 of 1003 documents. Nothing is concluded from it; safe mode stays. Run reconcile again; if it lasts, show the provider request ",
				"INCOMPLETE the index gave 0 of 1000 documents", "RESULT     SAFE MODE stays", "an index was not read to its end")
			for _, wrong := range [][]string{
				{"reconcile", "--accept-index", "ACME=3/1003"},
				{"reconcile", "--accept-index", "3/1003", "--reason", "two vaults are configured"},
				{"reconcile", "--accept-index", "ACME=3", "--reason", "no second number"},
				{"reconcile", "--accept-index", "OTHER=3/1003", "--reason", "not configured"},
				{"reconcile", "--accept-index", "ACME=3/1003", "--accept-index", "ACME=0/1000", "--reason", "twice"},
			} {
				s.must(exitUsage, wrong...)
			}
			if out := s.must(exitPerson, "reconcile", "--accept-index", "ACME=3/1003", "--accept-index", "BETA=0/999", "--reason", "half"); !strings.Contains(out, "It is not accepted: --accept-index names 0 of 999 documents.") {
				t.Errorf("an index was accepted that lacks more than was said:\n%s", out)
			}
			var told struct {
				Safe   bool `json:"safeMode"`
				Vaults []struct {
					Index struct {
						Read, Found        int
						Complete, Accepted bool
						RequestID          string
					}
				}
			}
			kit.Must(t, json.Unmarshal([]byte(strings.SplitN(s.must(exitPerson, "reconcile", "--json"), "\n", 2)[0]), &told))
			if i := told.Vaults[0].Index; !told.Safe || i.Read != 3 || i.Found != 1003 || i.Complete || i.Accepted || i.RequestID == "" {
				t.Errorf(`%+v, want told.Safe, i.Read = 3, i.Found = 1003, not i.Complete, not i.Accepted, i.RequestID other than ""`, told)
			}
			out = s.must(0, "reconcile", "--accept-index", "ACME=3/1003", "--accept-index", "BETA=0/1000", "--reason", "the provider counts deleted ones, ticket 4711")
			kit.Holds(t, "accepted", out, "safe mode is over", "ACCEPTED   the index gave 3 of 1003 documents")
			if out := s.must(0, "verify"); !strings.Contains(out, "  3 times an index") || !strings.Contains(out, "vault ACME gave 3 of 1003 documents; accepted by uid") {
				t.Errorf("verify:\n%s", out)
			}
			if out, _ := s.vaultd("audit", "--json"); !strings.Contains(out, "the archive's index of vault BETA gave 0 of 1000 documents. A person") || !strings.Contains(out, "ticket 4711") {
				t.Errorf("audit:\n%s", out)
			}
			onceEach(t, emu, 3)
		})
	}
}
