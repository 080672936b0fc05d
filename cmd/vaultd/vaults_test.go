package main_test

import (
	"vaultd/internal/test/kit"

	"encoding/json"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/emulator"
)

// check and status name a vault that the archive does not list, and end as they do without it. Where the archive is away
// they say nothing of it.
func TestVaults_AdviceInCheckAndStatus(t *testing.T) {
	t.Parallel()
	const want = `The archive lists ACME, BETA, not "ACNE". Compare drops[0].vault letter by letter.`
	emu, address := serveEmulator(t, emulator.Config{})
	s := newSite(t, address, fast)
	s.edit("vault: ACME", "vault: ACNE")
	out, code := s.vaultd("check")
	if code != 0 || !strings.Contains(out, "ADVICE   "+want+"\n") || strings.Count(out, "ADVICE") != 1 || emu.CountCalls("vaults") != 1 {
		t.Errorf("check: exit %d, asked %d times: %s", code, emu.CountCalls("vaults"), out)
	}
	out, code = s.vaultd("check", "--offline", "--json")
	var told struct {
		Good   bool
		Advice []string
	}
	if err := json.Unmarshal([]byte(out), &told); err != nil || code != 0 || !told.Good || told.Advice == nil || len(told.Advice) > 0 || emu.CountCalls("vaults") != 1 {
		t.Errorf("check --offline: exit %d, %v: %s", code, err, out)
	}

	p := s.begin()
	waitFor(t, "the advice", func() bool { return slices.Equal(s.status().Advice, []string{want}) })
	if out, code = s.vaultd("status"); code != 0 || !strings.Contains(out, "ADVICE   "+want+"\n") {
		t.Errorf("status: exit %d: %s", code, out)
	}
	if code := p.stop(t); code != 0 || !strings.Contains(p.out.String(), "letter by letter") {
		t.Errorf("run: exit %d, and the log says nothing of it: %s", code, p.out)
	}
	s.edit(address, "http://127.0.0.1:1")
	if out, code = s.vaultd("check"); code != 0 || strings.Contains(out, "ADVICE") {
		t.Errorf("check with an archive that is away: exit %d: %s", code, out)
	}
}

// A secret that systemd gives to the unit alone is named as not checked, by
// check and doctor, wherever the configuration has one: it is no fault that a
// command outside the unit does not see it. What else is wrong is told as ever.
func TestCheck_I26_CredentialsOfTheUnit(t *testing.T) {
	t.Parallel()
	emu, address := serveEmulator(t, emulator.Config{})
	s := newSite(t, address, fast)
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
