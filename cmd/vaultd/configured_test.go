package main_test

import (
	"vaultd/internal/test/kit"

	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Check names what is wrong with the file and with this machine at once.
func TestCheck_NamesMissingSecretBesideOtherFaults(t *testing.T) {
	_, errs, code := runHere("check", "--config", writeConfig(t, strings.Replace(smallConfig, "method: basic", "method: oauth2", 1)))
	if code != exitConfig || !strings.Contains(errs, "scopes") || !strings.Contains(errs, "open secret file") || !strings.Contains(errs, "2 faults") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

func TestCheck_I27_ConfigurationThatEverybodyWrites(t *testing.T) {
	path := writeConfig(t, strings.Replace(smallConfig, "/etc/vaultd/secret", secretFile(t, canary, 0o600), 1))
	kit.Must(t, os.Chmod(path, 0o666))
	if _, errs, code := runHere("check", "--config", path); code != exitConfig || !strings.Contains(errs, "can be changed by others: it has rights 0666") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

// While a daemon answers, what was written to the configuration since does not keep anybody from asking it.
func TestCommands_AskTheDaemonThoughTheConfigurationIsWrong(t *testing.T) {
	cfg, path, stop := startDaemon(t)
	for _, text := range []string{
		smallConfig + "state_dir: " + cfg.StateDir + "\nnonsense: 1\n",
		"service: {\nstate_dir: \"" + cfg.StateDir + "\" # here\n  x: [",
	} {
		kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		out, errs, code := runHere("--config", path, "list", "--json")
		if code != exitDone || !strings.Contains(out, "Otto") || !strings.Contains(errs, "the configuration on the disk has faults") {
			t.Errorf("%s: exit %d\n%s%s", text, code, out, errs)
		}
	}
	stop()
	if _, errs, code := runHere("--config", path, "list"); code != exitConfig || !strings.Contains(errs, "cannot be read as YAML") {
		t.Errorf("without a daemon: exit %d\n%s", code, errs)
	}
	if _, errs, code := runHere("--config", path+".typo", "list"); code != exitConfig || !strings.Contains(errs, "does not exist") {
		t.Errorf("another file: exit %d\n%s", code, errs)
	}
}

// Without a daemon, status is no success while folders wait; where nothing waits it is.
func TestStatus_I26_StoppedWhileFoldersWait(t *testing.T) {
	s := newShelf(t)
	drop := t.TempDir()
	s.edit("/srv/invoices/acme-in", drop)
	ask := func() (string, int) {
		out, _, code := s.say("status")
		return out, code
	}
	if out, code := ask(); code != exitDone {
		t.Errorf("nothing waits: exit %d\n%s", code, out)
	}
	for _, name := range []string{"_archived", ".vaultd", "Huber 1"} {
		kit.Must(t, os.Mkdir(filepath.Join(drop, name), 0o700))
	}
	if out, code := ask(); code != exitPerson || !strings.Contains(out, "vaultd is not running, and 1 folder waits") {
		t.Errorf("one lies in the drop: exit %d\n%s", code, out)
	}
}
