package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/emulator"
)

// accounts puts named accounts into the small configuration, and a second drop with more keys under it.
func accounts(named, drop string) string {
	text := strings.Replace(smallConfig, "drops:", "  accounts: "+named+"\ndrops:", 1)
	if drop != "" {
		text += "  - {name: b, path: /srv/b, " + drop + "}\n"
	}
	return text
}

const goodAccount = "{method: basic, username: b, secret_file: /etc/vaultd/secret-b}"

func TestConfig_AccountFaults(t *testing.T) {
	for name, row := range map[string]struct {
		named, drop string
		want        []string
	}{
		"Unknown":         {"{beta: " + goodAccount + "}", "vault: V-2, account: bta", []string{"7:50 drops[1].account: is none of service.accounts; did you mean beta?"}},
		"UnknownFar":      {"{beta: " + goodAccount + "}", "vault: V-2, account: other", []string{"7:50 drops[1].account: is none of service.accounts; service.accounts has beta"}},
		"NoneThere":       {"{}", "vault: V-2, account: beta", []string{"7:50 drops[1].account: is none of service.accounts; write it under service.accounts, *"}},
		"TwoOfOneVault":   {"{beta: " + goodAccount + "}", "vault: V-1, account: beta", []string{"7:50 drops[1].account: is another account than that of drops[0], which has the same vault; a vault has one account: write the same in both"}},
		"BadName":         {"{'be ta': " + goodAccount + "}", "", []string{"4:14 service.accounts.be ta: is no name of an account; *"}},
		"Missing":         {"{beta: {method: basic}}", "vault: V-2, account: beta", []string{"4:14 service.accounts.beta.secret_file: is missing; *", "4:14 service.accounts.beta.username: is missing; *"}},
		"ScopesMissing":   {"{beta: {method: oauth2, username: u, secret_file: /s}}", "", []string{"4:14 service.accounts.beta.scopes: is empty, *"}},
		"ColonInUserName": {"{beta: {method: basic, username: 'a:b', secret_file: /s}}", "", []string{"4:46 service.accounts.beta.username: has a colon, *"}},
		"TokenURL": {"{beta: {method: oauth2, username: u, secret_file: /s, scopes: [a], token_url: 'http://t.example'}}", "",
			[]string{"4:91 service.accounts.beta.token_url: is plain http to another machine; *"}},
		"UnknownKey":  {"{beta: {method: basic, usrname: u, username: u, secret_file: /s}}", "", []string{"4:36 service.accounts.beta.usrname: is not a known key; did you mean username?"}},
		"NotASection": {"{beta: S3cr3t-canary}", "vault: V-2, account: beta", []string{"4:20 service.accounts.beta: is not a section; *"}},
		"IsText":      {"S3cr3t-canary", "", []string{"4:13 service.accounts: is not a section; *"}},
		"Secret":      {"{beta: {method: basic, username: u, secret_file: S3cr3t-canary}}", "", []string{"4:62 service.accounts.beta.secret_file: is not the absolute path *"}},
		"Password":    {"{beta: {method: basic, username: u, key: S3cr3t-canary, secret_file: /s}}", "", []string{"4:49 service.accounts.beta.key: is not a known key; *"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := accounts(row.named, row.drop)
			_, faults := load(t, text, nil)
			wantFaults(t, faults, row.want)
			if out, errs, _ := runHere("check", "--offline", "--config", writeConfig(t, text)); strings.Contains(out+errs, "S3cr3t-canary") {
				t.Errorf("a secret that was written into the file is shown: %s%s", out, errs)
			}
		})
	}
}

// An account has the defaults of auth, and is shown without who signs in.
func TestConfig_AccountDefaults(t *testing.T) {
	cfg := mustLoad(t, accounts("\n    beta: {method: basic, username: somebody, secret_file: /etc/./vaultd/b}", "vault: V-2, account: beta"))
	got := cfg.Service.Accounts["beta"]
	if got.BasicEncoding != "raw" || got.Scopes == nil || got.SecretFile != "/etc/vaultd/b" || cfg.Drops[1].Account != "beta" || cfg.Drops[0].Account != "" {
		t.Errorf("account %+v, drops %+v", got, cfg.Drops)
	}
	all, err := cfg.settings()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s setting) bool { return s.Key == "service.accounts.beta.username" })
	if i < 0 || all[i].Value != hidden || all[i].Line != 5 {
		t.Errorf("settings %+v", all)
	}
}

// Each vault is called with its own account by every command; neither sees the other's. An account whose secret is wrong
// stops its own vaults alone, and its renewed secret counts while vaultd runs.
func TestAccounts_EachVaultWithItsOwn(t *testing.T) {
	const secretOfBeta = "CANARY-beta-R7/=x"
	emu, err := emulator.New(emulator.Config{Dir: t.TempDir(), Username: "demo", Secret: "demo", Window: 10 * time.Second, ArchiveMax: 100 * time.Millisecond,
		Vaults: []emulator.Vault{{ID: "ACME"}, {ID: "BETA", Account: emulator.Account{Name: "beta-user", Secret: secretOfBeta}}}})
	if err != nil {
		t.Fatal(err)
	}
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
		if err := os.WriteFile(secretFile, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
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
		return st.Balance.States["archived"] == 1 && slices.ContainsFunc(st.Pauses, func(p pauseLine) bool { return p.Route == "vault BETA" })
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
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(t, 40*time.Second); code != exitDone || strings.Contains(p.out.String(), "CANARY") {
		t.Errorf("run: exit %d: %s", code, p.out)
	}
}
