package main_test

import (
	"vaultd/internal/test/kit"

	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/present"
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
	for name, named := range map[string]string{
		"NotASection": "{beta: S3cr3t-canary}",
		"IsText":      "S3cr3t-canary",
		"Secret":      "{beta: {method: basic, username: u, secret_file: S3cr3t-canary}}",
		"Password":    "{beta: {method: basic, username: u, key: S3cr3t-canary, secret_file: /s}}",
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := runHere("check", "--offline", "--config", writeConfig(t, accounts(named, "")))
			if code != exitConfig || strings.Contains(out+errs, "S3cr3t-canary") {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
		})
	}
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
		if err := emu.Close(); err != nil {
			t.Error(err)
		}
	})
	s := newSite(t, srv.URL, fast)
	s.edit("\nstate_dir:", "\n  accounts: {other: {method: basic, username: beta-user, secret_file: "+s.dir+"/secret-beta}}\nstate_dir:")
	s.edit("vault: BETA,", "vault: BETA, account: other,")
	secretFile := filepath.Join(s.dir, "secret-beta")
	write := func(text string) {
		kit.Must(t, os.WriteFile(secretFile, []byte(text+"\n"), 0o600))
	}
	if out, code := s.vaultd("check"); code != exitConfig || !strings.Contains(out, "service.accounts.other.secret_file") {
		t.Errorf("check without the secret: exit %d: %s", code, out)
	}
	write("CANARY-last-year's")
	for i, drop := range []string{"acme", "beta"} {
		s.drop(drop, "Rechnung "+drop, map[string][]byte{"a.pdf": []byte("%PDF " + drop)}, numbered(i))
	}
	p := s.begin()
	waitFor(t, "ACME's invoice", func() bool {
		st := s.status()
		return st.Balance.States["archived"] == 1 && slices.ContainsFunc(st.Pauses, func(p present.PausedTarget) bool { return p.Route == "vault BETA" })
	})
	if st := s.status(); len(st.Pauses) != 1 {
		t.Errorf("pauses %+v", st.Pauses)
	}
	if out, code := s.vaultd("vaults"); code != exitRights || !strings.Contains(out, "account other: ") || !strings.Contains(out, "ACME") || strings.Contains(out, "CANARY") {
		t.Errorf("vaults with a wrong secret of one account: exit %d: %s", code, out)
	}
	write(secretOfBeta)
	waitFor(t, "BETA's invoice", func() bool { return s.status().Balance.States["archived"] == 2 })

	out, code := s.vaultd("vaults", "--json")
	type vaultRow struct {
		ID, Account        string
		Listed, Configured bool
	}
	var rows []vaultRow
	for line := range strings.Lines(out) {
		var r vaultRow
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("vaults: exit %d: %s", code, out)
		}
		rows = append(rows, r)
	}
	if len(rows) != 2 || rows[0].ID != "ACME" || rows[0].Account != "" || rows[1].ID != "BETA" || rows[1].Account != "other" || !rows[1].Listed || !rows[1].Configured {
		t.Errorf("vaults: %+v", rows)
	}
	for _, args := range []string{"check", "reconcile", "fetch|Rechnung beta|-o|" + filepath.Join(s.dir, "out.zip"), "fetch|Rechnung acme|-o|" + filepath.Join(s.dir, "out2.zip"), "verify"} {
		out, code := s.vaultd(strings.Split(args, "|")...)
		if code != exitDone || strings.Contains(out, "ADVICE") || strings.Contains(out, "CANARY") {
			t.Errorf("%s: exit %d: %s", args, code, out)
		}
	}
	if code := p.stop(t); code != exitDone || strings.Contains(p.out.String(), "CANARY") {
		t.Errorf("run: exit %d: %s", code, p.out)
	}
}
