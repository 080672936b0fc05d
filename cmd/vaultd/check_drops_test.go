package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/config"
)

func TestCheck_TroubleAtDrops(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                        "",
		filepath.Join(dir, "away"): "is not there",
		file:                       "is not a folder",
	} {
		if got := describeDropTrouble(path); got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("%s: %q; want %q", path, got, want)
		}
	}
}

func TestCheck_HastySettle(t *testing.T) {
	for d, warned := range map[*config.Drop]bool{
		{Complete: "quiet", Settle: 2 * time.Second}:  true,
		{Complete: "quiet", Settle: 30 * time.Second}: false,
		{Complete: "list", Settle: time.Second}:       false,
	} {
		if got := warnOfShortSettle(*d); strings.Contains(got, "settle is 2s") != warned || (got != "") != warned {
			t.Errorf("%+v: %q", d, got)
		}
	}
}

// A drop whose retention is not known is named; one whose is known is not.
func TestCheck_RetentionThatIsNotKnown(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("/etc/vaultd/secret", secret, "vault: V-1}", "vault: V-1}\n  - {name: beta-in, path: /srv/invoices/beta-in, vault: V-1, retention: 10y}").Replace(smallConfig) +
		"state_dir: " + t.TempDir() + "\n"
	out, errs, code := runHere("check", "--config", writeConfig(t, text))
	if code != 0 || !strings.Contains(out, "LOOK AT  drop acme-in: "+noRetention+"\n") || strings.Contains(out, "drop beta-in: "+noRetention) {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	out, errs, code = runHere("check", "--json", "--config", writeConfig(t, text))
	if code != 0 || !strings.Contains(out, `"drop acme-in: `+noRetention) || strings.Contains(out, `"drop beta-in: `+noRetention) {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

func TestUsage_NamesTheCommandsOwnHelp(t *testing.T) {
	if _, errs, code := runHere("close", "X"); code != exitUsage || !strings.Contains(errs, `see "vaultd help close"`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestExit_DeniedBeforeAnythingLeft(t *testing.T) {
	for _, o := range []apicall.Outcome{apicall.NotSent, apicall.NotProcessed} {
		if code := exitCodeOfRemote(&apicall.Error{Outcome: o, Denied: true}); code != exitRights {
			t.Errorf("%v: exit %d; want %d", o, code, exitRights)
		}
	}
}
