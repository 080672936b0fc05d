package main_test

import (
	"vaultd/internal/test/kit"

	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// onABadDisk is a ledger of which one record was changed on the disk, with the configuration that leads to it.
func onABadDisk(t *testing.T) (s *shelf, config string) {
	t.Helper()
	s = filled(t)
	kit.Must(t, s.ledger.Close())
	changeFile(t, filepath.Join(s.cfg.StateDir, "ledger.db"), "_rejected/Huber 88")
	config = filepath.Join(t.TempDir(), "config.yaml")
	kit.Must(t, os.WriteFile(config, []byte(smallConfig+"state_dir: "+s.cfg.StateDir+"\n"), 0o600))
	return s, config
}

// A copy of a damaged ledger is damaged: backup says so, names what is wrong, and keeps it, for there may be no better one.
func TestBackup_I15_OfADamagedLedgerIsNotCalledWhole(t *testing.T) {
	_, config := onABadDisk(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	out, errs, code := runHere("--config", config, "backup", copied)
	if code != exitDifferences || strings.Contains(out, "is whole") || !strings.Contains(out, "DIFFERS  open: ") || !strings.Contains(errs, "is damaged") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if _, err := os.Stat(copied); err != nil {
		t.Error(err)
	}
	out, _, code = runHere("--config", config, "backup", copied+"2", "--json")
	var b struct {
		Whole    bool
		Problems []string
	}
	if err := json.Unmarshal([]byte(out), &b); err != nil || code != exitDifferences || b.Whole || len(b.Problems) == 0 {
		t.Errorf("exit %d %v %+v", code, err, b)
	}
}

// What is wrong with a backup is not said of the ledger, and the advice is not to restore a backup.
func TestRestore_I15_TheBackupIsDamaged(t *testing.T) {
	s, config := onABadDisk(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	runHere("--config", config, "backup", copied)
	garbage := filepath.Join(t.TempDir(), "garbage.db")
	kit.Must(t, os.WriteFile(garbage, []byte(strings.Repeat("no ledger ", 5000)), 0o600))
	before, err := os.ReadFile(filepath.Join(s.cfg.StateDir, "ledger.db"))
	kit.Must(t, err)
	for _, file := range []string{copied, garbage} {
		out, errs, code := runHere("--config", config, "restore", file)
		if code != exitIO || !strings.Contains(errs, "the backup "+file+" is damaged: ") || !strings.Contains(errs, "; nothing was changed\n") ||
			!strings.Contains(errs, "use an older backup; without any, vaultd rebuild") || strings.Contains(errs, "ledger is damaged") {
			t.Errorf("exit %d\n%s%s", code, out, errs)
		}
	}
	if after, err := os.ReadFile(filepath.Join(s.cfg.StateDir, "ledger.db")); err != nil || string(after) != string(before) {
		t.Error("it was changed", err)
	}
}

// A ledger that does not know everything is not called sound without saying so.
func TestVerify_I15_SaysSafeModeAndWhatIsInDoubt(t *testing.T) {
	s := filled(t)
	s.tell("Otto 19", noon, nil, ledger.ReconcileRequired{})
	kit.Must(t, s.ledger.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkRestored, At: noon}, nil))
	out, _, code := s.say("verify", "--whole")
	for _, want := range []string{
		"SAFE MODE the ledger was put back from a backup; what was done after 2026-11-20 14:32:00 CET is not known\n",
		"  1 is in doubt: what happened to it since the ledger was put back is not known\n    " + s.keys["Otto 19"].String(),
		"it does not know everything",
	} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, out)
		}
	}
	page, errs, code := s.audit("--format=html")
	if !strings.Contains(page, "SAFE MODE: the ledger was put back from a backup; what was done after 2026-11-20 14:32:00 CET is not known") || !strings.HasPrefix(errs, "TEST, NO EVIDENCE\nSAFE MODE") {
		t.Errorf("exit %d %s", code, errs)
	}
	kit.Must(t, s.ledger.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkReconciled, At: noon}, nil))
	out, _, _ = s.say("verify", "--whole")
	if strings.Contains(out, "SAFE MODE") || !strings.Contains(out, "the ledger was put back") || !strings.Contains(out, "RESULT    nothing differs\n") {
		t.Errorf("out = %v, want out without \"SAFE MODE\", out with \"the ledger was put back\", out with \"RESULT nothing differs\\n\"", out)
	}
}

// What could not be checked is not said to agree.
func TestVerify_I14_DamageKeepsThePromisesFromBeingChecked(t *testing.T) {
	s := filled(t)
	s.damage("_rejected/Huber 88")
	out, _, code := s.say("verify", "--whole")
	if code != exitDifferences || !strings.Contains(out, "PROMISES  could not be checked\n") || strings.Contains(out, "0 entries") || strings.Contains(out, "nothing differs") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestList_NamesThatAreLongOrEndInABlank(t *testing.T) {
	for name, want := range map[string]string{
		"Wagner 5":               "Wagner 5",
		"Wagner 5 ":              `"Wagner 5 "`,
		" Wagner 5":              `" Wagner 5"`,
		strings.Repeat("ä", 40):  strings.Repeat("ä", 40),
		strings.Repeat("ä", 255): strings.Repeat("ä", 39) + "…",
	} {
		if got := present.FolderCell(name); got != want {
			t.Errorf("%q: %s, want got = %v", name, got, want)
		}
	}
	s := newShelf(t)
	long := strings.Repeat("lang ", 40) + " "
	s.tell(long, noon, nil)
	if out, _, _ := s.say("list"); strings.Contains(out, strings.Repeat("lang ", 9)) {
		t.Errorf("out = %v, want out without %q", out, strings.Repeat("lang ", 9))
	}
	if out, _, _ := s.say("list", "--json"); !strings.Contains(out, `"`+long+`"`) {
		t.Errorf("out = %v, want out with %q", out, `"`+long+`"`)
	}
}
