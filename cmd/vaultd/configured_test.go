package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/config"
	"vaultd/internal/test/kit"
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
	_, errs, code := runHere("--config", path+".typo", "list")
	kit.Check(t, code == exitConfig && strings.Contains(errs, "does not exist"), "another file: exit %d\n%s", code, errs)
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

// check --show says of every value what it is and where it comes from, and
// keeps the names of users to itself.
func TestCheckShow_I7_OriginsWithoutCredentials(t *testing.T) {
	dir := t.TempDir()
	path, pw := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "secret")
	text := `service:
  base_url: https://vault.example
  auth: {method: basic, username: somebody, secret_file: ` + pw + `}
state_dir: ` + dir + `/state
drops:
  - {name: acme-in, path: /srv/acme, vault: V-1, defaults: {senderName: "ACME: GmbH"}}
`
	kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	kit.Must(t, os.WriteFile(pw, []byte("hunter2\n"), 0o600))
	show := func(args ...string) string {
		var out, errs bytes.Buffer
		env := envOf(map[string]string{"VAULTD_UPLOAD_WORKERS": "3"})
		if code := program.Run(t.Context(), append([]string{"--config", path, "check", "--show"}, args...), strings.NewReader(""), &out, &errs, env); code != 0 {
			t.Fatalf("exit %d: %s", code, errs.String())
		}
		kit.Lacks(t, "who signs in is shown", out.String(), "somebody", "hunter2")
		return out.String()
	}
	lines := show()
	for _, want := range [][]string{
		{"service.base_url", "https://vault.example", path + ":2"}, {"service.auth.username", "[hidden]", path + ":3"},
		{"upload.workers", "3", "VAULTD_UPLOAD_WORKERS"}, {"spool.max", "20GB", "default"}, {"drops[0].settle", "30s", "default"},
		{"drops[0].name", "acme-in", path + ":6"}, {"drops[0].after_archive.grace", "720h", "default"}, {"http.listen", `"127.0.0.1:8970"`, "default"},
	} {
		found := false
		for line := range strings.Lines(lines) {
			f := strings.Fields(line)
			found = found || len(f) == 3 && f[0] == want[0] && strings.Trim(f[1], `"`) == strings.Trim(want[1], `"`) && f[2] == want[2]
		}
		kit.Check(t, found, "no line %q in\n%s", want, lines)
	}
	var all struct{ Settings []config.Setting }
	kit.Must(t, json.Unmarshal([]byte(show("--json")), &all))
	n := strings.Count(lines, "\n") - 1
	kit.Check(t, len(all.Settings) == n && n >= 40, "%d settings in JSON, %d in text", len(all.Settings), n)
}
