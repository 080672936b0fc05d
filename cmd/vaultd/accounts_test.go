package main_test

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/config"
	"vaultd/internal/emulator"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// accounts puts named accounts into the small configuration, and a second drop with more keys under it.
func accounts(named, drop string) string {
	text := strings.Replace(smallConfig, "drops:", "  accounts: "+named+"\ndrops:", 1)
	if drop != "" {
		text += "  - {name: b, path: /srv/b, " + drop + "}\n"
	}
	return text
}

// What check says of an account never shows the secret that was written into the file by mistake.
func TestCheck_I7_AccountSecretsAreNotShown(t *testing.T) {
	kit.Rows(t, map[string]string{
		"NotASection": "{beta: S3cr3t-canary}",
		"IsText":      "S3cr3t-canary",
		"Secret":      "{beta: {method: basic, username: u, secret_file: S3cr3t-canary}}",
		"Password":    "{beta: {method: basic, username: u, key: S3cr3t-canary, secret_file: /s}}",
	}, func(t *testing.T, named string) {
		out, errs, code := runHere("check", "--offline", "--config", writeConfig(t, accounts(named, "")))
		kit.Check(t, code == exitConfig && !strings.Contains(out+errs, "S3cr3t-canary"),
			"exit %d: %s%s", code, out, errs)
	})
}

// Each vault is called with its own account by every command; neither sees the other's. An account whose secret is wrong
// stops its own vaults alone, and its renewed secret counts while vaultd runs.
func TestAccounts_EachVaultWithItsOwn(t *testing.T) {
	t.Parallel()
	const secretOfBeta = "CANARY-beta-R7/=x"
	emu, err := emulator.New(emulator.Config{Dir: t.TempDir(), Username: "demo", Secret: "demo", Window: 10 * time.Second, ArchiveMax: 100 * time.Millisecond,
		Vaults: []emulator.Vault{{ID: "ACME"}, {ID: "BETA", Account: emulator.Account{Name: "beta-user", Secret: secretOfBeta}}}})
	kit.Must(t, err)
	srv := httptest.NewServer(emu)
	t.Cleanup(func() {
		srv.Close()
		kit.Want(t, "the error of Close", emu.Close(), nil)
	})
	s := newSite(t, srv.URL, fast)
	s.edit("\nstate_dir:", "\n  accounts: {other: {method: basic, username: beta-user, secret_file: "+s.dir+"/secret-beta}}\nstate_dir:")
	s.edit("vault: BETA,", "vault: BETA, account: other,")
	secretFile := filepath.Join(s.dir, "secret-beta")
	write := func(text string) {
		kit.Must(t, os.WriteFile(secretFile, []byte(text+"\n"), 0o600))
	}
	kit.Holds(t, "check without the secret: exit", s.must(exitConfig, "check"), "service.accounts.other.secret_file")
	write("CANARY-last-year's")
	for i, drop := range []string{"acme", "beta"} {
		s.drop(drop, "Rechnung "+drop, map[string][]byte{"a.pdf": []byte("%PDF " + drop)}, numbered(i))
	}
	p := s.begin()
	kit.Await(t, "ACME's invoice", func() bool {
		st := s.status()
		return st.Balance.States["archived"] == 1 && slices.ContainsFunc(st.Pauses, func(p present.PausedTarget) bool { return p.Route == "vault BETA" })
	})
	kit.Len(t, "pauses", s.status().Pauses, 1)
	if out, code := s.vaultd("vaults"); code != exitRights || !strings.Contains(out, "account other: ") || !strings.Contains(out, "ACME") || strings.Contains(out, "CANARY") {
		t.Errorf("vaults with a wrong secret of one account: exit %d: %s", code, out)
	}
	write(secretOfBeta)
	kit.Await(t, "BETA's invoice", func() bool { return s.status().Balance.States["archived"] == 2 })

	out, code := s.vaultd("vaults", "--json")
	type vaultRow struct {
		ID, Account        string
		Listed, Configured bool
	}
	var rows []vaultRow
	for line := range strings.Lines(out) {
		var r vaultRow
		err := json.Unmarshal([]byte(line), &r)
		kit.Need(t, err == nil, "vaults: exit %d: %s", code, out)
		rows = append(rows, r)
	}
	if len(rows) != 2 || rows[0].ID != "ACME" || rows[0].Account != "" || rows[1].ID != "BETA" || rows[1].Account != "other" || !rows[1].Listed || !rows[1].Configured {
		t.Errorf("vaults: %+v", rows)
	}
	for _, args := range []string{"check", "reconcile", "fetch|Rechnung beta|-o|" + filepath.Join(s.dir, "out.zip"), "fetch|Rechnung acme|-o|" + filepath.Join(s.dir, "out2.zip"), "verify"} {
		out, code := s.vaultd(strings.Split(args, "|")...)
		kit.Check(t, code == exitDone && !strings.Contains(out, "ADVICE") && !strings.Contains(out, "CANARY"),
			"%s: exit %d: %s", args, code, out)
	}
	code = p.stop(t)
	kit.Check(t, code == exitDone && !strings.Contains(p.out.String(), "CANARY"), "run: exit %d: %s", code, p.out)
}

// check names a vault that the archive does not list, and ends as it does
// without it. While the archive is away it says nothing about it.
func TestVaults_AdviceInCheck(t *testing.T) {
	emu, s := served(t, emulator.Config{}, fast)
	s.edit("vault: ACME", "vault: ACNE")
	out, code := s.vaultd("check")
	kit.Want(t, "check: exit code", code, exitDone)
	kit.Holds(t, "check", out, "ADVICE   The archive lists ACME, BETA, not \"ACNE\". Compare drops[0].vault letter by letter.\n")
	kit.Want(t, "pieces of advice", strings.Count(out, "ADVICE"), 1)
	kit.Want(t, "calls for the list", emu.CountCalls("vaults"), 1)
	out, code = s.vaultd("check", "--offline", "--json")
	kit.Want(t, "check --offline: exit code", code, exitDone)
	kit.Holds(t, "check --offline", out, `"good":true`, `"advice":[]`)
	kit.Want(t, "calls for the list", emu.CountCalls("vaults"), 1)
	s.edit(s.service, "http://127.0.0.1:1")
	out, code = s.vaultd("check")
	kit.Want(t, "check with an archive that is away: exit code", code, exitDone)
	kit.Lacks(t, "check with an archive that is away", out, "ADVICE")
}

// A secret that systemd gives to the unit alone is named as not checked, by
// check and doctor, wherever the configuration has one: a command outside the
// unit cannot see it, and that is fine. Other faults are reported as always.
func TestCheck_I26_CredentialsOfTheUnit(t *testing.T) {
	emu, s := served(t, emulator.Config{}, fast)
	s.edit("secret_file: "+s.dir+"/secret", "secret_file: credential:client-secret")
	s.edit(`http: {listen: ""}`, `http: {listen: "127.0.0.1:0", access: {users_file: "credential:users"}}`)
	out, code := s.vaultd("check")
	kit.Want(t, "check: exit code", code, exitDone)
	kit.Holds(t, "check", out, "configuration is good", "NOT CHECKED  service.auth.secret_file: ", "NOT CHECKED  http.access.users_file: ", "LoadCredential=")
	kit.Lacks(t, "check", out, "ADVICE")
	kit.Want(t, "calls of the archive", emu.CountCalls("vaults"), 0)
	out, code = s.vaultd("check", "--json")
	kit.Want(t, "check --json: exit code", code, exitDone)
	kit.Holds(t, "check --json", out, `"notChecked":["service.auth.secret_file: `)
	out, code = s.vaultd("doctor")
	kit.Want(t, "doctor: exit code", code, exitDone)
	kit.Holds(t, "doctor", out, "WARN  configuration service.auth.secret_file: ", "WARN  credentials service.auth: not tried")

	s.env = map[string]string{"CREDENTIALS_DIRECTORY": s.dir} // in the unit
	out, code = s.vaultd("check")
	kit.Want(t, "in the unit: exit code", code, exitConfig)
	kit.Holds(t, "in the unit", out, "client-secret: no such file", "users: no such file")
	s.env = nil
	s.edit("settle: 300ms", "settle: soon")
	out, code = s.vaultd("check")
	kit.Want(t, "with a fault: exit code", code, exitConfig)
	kit.Holds(t, "with a fault", out, "settle")
	kit.Lacks(t, "with a fault", out, "CREDENTIALS_DIRECTORY")
}

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
	refused(runHere("check", "--config", path))(t, "check", exitConfig, "can be changed by others: it has rights 0666")
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
	refused(runHere("--config", path, "list"))(t, "without a daemon", exitConfig, "cannot be read as YAML")
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
	ended(ask())(t, "nothing waits", exitDone)
	for _, name := range []string{"_archived", ".vaultd", "Huber 1"} {
		kit.Must(t, os.Mkdir(filepath.Join(drop, name), 0o700))
	}
	ended(ask())(t, "one lies in the drop", exitPerson, "vaultd is not running, and 1 folder waits")
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
