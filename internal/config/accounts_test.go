package config

import (
	"slices"
	"strings"
	"testing"

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
			kit.Lacks(t, "the text", (&Error{Faults: faults}).Error(), "S3cr3t-canary")
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
	all := cfg.Settings
	i := slices.IndexFunc(all, func(s Setting) bool { return s.Key == "service.accounts.beta.username" })
	kit.Check(t, i >= 0 && all[i].Value == hidden && all[i].Line == 5, "settings %+v", all)
}

const goodAccount = "{method: basic, username: b, secret_file: /etc/vaultd/secret-b}"
