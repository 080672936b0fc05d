// These tests are inside the package: they give a command the state of a daemon
// that no real one can be brought into within a test.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

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
