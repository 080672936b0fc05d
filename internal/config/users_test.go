package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vaultd/internal/test/kit"
)

// someHash has the form of a hash by bcrypt; no password leads to it.
const someHash = "$2y$12$......................0123456789012345678901234567890"

func hashOfCost(cost string) string { return strings.Replace(someHash, "$12$", "$"+cost+"$", 1) }

// A line is taken as "htpasswd -nB" prints it, with the rights behind it.
func TestParseUsers_TakesWhatHtpasswdPrints(t *testing.T) {
	text := "# people\n\n  anna:" + someHash + ":read,fetch\r\nprometheus:" + hashOfCost("10") + ":metrics\nbob@example.org:" + strings.Replace(someHash, "2y", "2a", 1) + ": read , metrics\n"
	got, err := parseUsers([]byte(text))
	want := []PageUser{
		{"anna", someHash, PageRights{Read: true, Fetch: true}},
		{"prometheus", Secret(hashOfCost("10")), PageRights{Metrics: true}},
		{"bob@example.org", Secret(strings.Replace(someHash, "2y", "2a", 1)), PageRights{Read: true, Metrics: true}},
	}
	if err != nil || !cmp.Equal(want, got, cmp.Comparer(func(a, b Secret) bool { return string(a) == string(b) })) {
		t.Error(got, err)
	}
}

// Each wrong line is told by its number, with what to do, and without what stands there.
func TestParseUsers_I7_FaultsNameTheLineAlone(t *testing.T) {
	good := "anna:" + someHash + ":read\n"
	kit.Rows(t, map[string]struct{ text, says string }{
		"Empty":         {"", "names no user"},
		"OnlyComments":  {"# CANARY\n", "names no user"},
		"OldPassword":   {"CANARY-port-password\n", "holds one password; it now holds users"},
		"OldInComments": {"# was:\nCANARY-port-password\n\n", "holds one password"},
		"TwoWords":      {"CANARY\nCANARY\n", "line 1: is not NAME:BCRYPT:RIGHTS"},
		"NoRights":      {good + "bob:" + someHash + "\n", "line 2: has no rights"},
		"EmptyRights":   {good + "bob:" + someHash + ":\n", "line 2: has a right that is not known"},
		"UnknownRight":  {"bob:" + someHash + ":read,CANARY\n", "line 1: has a right that is not known; rights are read, fetch and metrics"},
		"FetchAlone":    {"bob:" + someHash + ":fetch\n", "line 1: has the right fetch without read; fetch needs read too"},
		"PlainPassword": {"bob:CANARY:read\n", "line 1: has no hash of bcrypt"},
		"MD5":           {"bob:$apr1$CANARY$CANARYCANARYCANARYCANAR:read\n", "line 1: has no hash of bcrypt"},
		"BrokenBcrypt":  {"bob:$2x$12$" + someHash[7:] + ":read\n", "line 1: has no hash of bcrypt"},
		"CutHash":       {"bob:" + someHash[:50] + ":read\n", "line 1: has no hash of bcrypt"},
		"LongHash":      {"bob:" + someHash + "A:read\n", "line 1: has no hash of bcrypt"},
		"CheapHash":     {"bob:" + hashOfCost("05") + ":read\n", "line 1: has a hash of cost 05, which is guessed too fast; the cost is 10 to 14"},
		"Cost9":         {"bob:" + hashOfCost("09") + ":read\n", "line 1: has a hash of cost 09"},
		"Cost15":        {"bob:" + hashOfCost("15") + ":read\n", "line 1: has a hash of cost 15, which takes seconds"},
		"Cost31":        {"bob:" + hashOfCost("31") + ":read\n", "line 1: has a hash of cost 31"},
		"NoName":        {":" + someHash + ":read\n", "line 1: has a name that is not"},
		"StarAsName":    {"*:" + someHash + ":read\n", "line 1: has a name that is not"},
		"LongName":      {strings.Repeat("CANARY", 20) + ":" + someHash + ":read\n", "line 1: has a name that is not"},
		"BlankInName":   {"CANARY b:" + someHash + ":read\n", "line 1: has a name that is not"},
		"ControlInName": {"CANARY\x1b[0m:" + someHash + ":read\n", "line 1: has a name that is not"},
		"Twice":         {good + "\n" + good, "line 3: names the user of line 1 again"},
		"FourFields":    {"bob:" + someHash + ":read:CANARY\n", "line 1: is not NAME:BCRYPT:RIGHTS"},
		"ByteOrderMark": {"\ufeff" + good, "byte order mark"},
		"NotText":       {"CANARY\xff\n", "is not text in UTF-8"},
	}, func(t *testing.T, row struct{ text, says string }) {
		users, err := parseUsers([]byte(row.text))
		kit.Check(t, err != nil && strings.Contains(err.Error(), row.says) && users == nil,
			"%v, %d users", err, len(users))
		kit.Check(t, err == nil || (!strings.Contains(err.Error(), "CANARY") && !strings.Contains(err.Error(), someHash)),
			"shown: %v", err)
	})
}

// A hash prints itself no more than a password does.
func TestPageUser_I7_HashNeverPrintsItself(t *testing.T) {
	users := kit.Value(parseUsers([]byte("anna:" + someHash + ":read\n")))(t)
	kit.Lacks(t, "shown", fmt.Sprintf("%v %+v %#v %s %x", users, users, users, users[0].Hash, users[0].Hash), "0123456789", "30313233")
}

// A file of users that is too large is refused before it is read whole.
func TestReadUsers_I21_SizeIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	kit.Must(t, os.WriteFile(path, []byte(strings.Repeat("# CANARY\n", maxUsersSize)), 0o600))
	if _, err := readUsers(path, noEnv); err == nil || !strings.Contains(err.Error(), "larger than 65536 bytes") {
		t.Errorf(`err = %v, want an error, err with "larger than 65536 bytes"`, err)
	}
}

// The variable of a removed key is refused: to ignore it would open what it closed.
func TestConfig_RemovedVariableIsRefused(t *testing.T) {
	_, faults := load(t, smallConfig, map[string]string{"VAULTD_HTTP_PASSWORD_FILE": "/etc/vaultd/port-password"})
	kit.Check(t, len(faults) == 1 && faults[0].File == "VAULTD_HTTP_PASSWORD_FILE" && strings.Contains(faults[0].Hint, "http.access.users_file"),
		`faults = %v, want len(faults) = 1, faults[0].File = "VAULTD_HTTP_PASSWORD_FILE", faults[0].Hint with "http.access.users_file"`, faults)
}

// Whatever a file holds: the parser ends, gives users that can be asked for or one error of one line, and shows nothing of it.
func FuzzParseUsers(f *testing.F) {
	for _, text := range []string{"", "CANARY", "anna:" + someHash + ":read\n", "anna:" + someHash + ":read,fetch\nanna:x:y\n", "#\n\n:::\n", "\ufeffa:b:c"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		users, err := parseUsers(raw)
		switch {
		case err != nil && (len(users) > 0 || strings.ContainsAny(err.Error(), "\n\r\x00\x1b")):
			t.Errorf("%d users, %q", len(users), err)
		case err == nil && len(users) == 0:
			t.Error("no user and no error")
		}
		names := map[string]bool{}
		for _, u := range users {
			if names[u.Name] || CheckPageUserName(u.Name) != nil || !bcryptHash.MatchString(string(u.Hash)) || u.Rights.Fetch && !u.Rights.Read || u.Rights == (PageRights{}) {
				t.Errorf("%q", u.Name)
			}
			names[u.Name] = true
		}
	})
}

// accounts puts named accounts into the small configuration, and a second drop with more keys under it.
func accounts(named, drop string) string {
	text := strings.Replace(smallConfig, "drops:", "  accounts: "+named+"\ndrops:", 1)
	if drop != "" {
		text += "  - {name: b, path: /srv/b, " + drop + "}\n"
	}
	return text
}

func TestConfig_AccountFaults(t *testing.T) {
	type row struct {
		named, drop string
		want        []string
	}
	kit.Rows(t, map[string]row{
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
	}, func(t *testing.T, row row) {
		text := accounts(row.named, row.drop)
		_, faults := load(t, text, nil)
		wantFaults(t, faults, row.want)
		kit.Lacks(t, "the text", (&Error{Faults: faults}).Error(), "S3cr3t-canary")
	})
}

// An account has the defaults of auth, and is shown with its users left out.
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

// The proxy proves itself in exactly one way; each fault stands at its key, and no secret in it.
func TestConfigProxy_I7_ProvesItselfInOneWay(t *testing.T) {
	dir := t.TempDir()
	cert, key := writePair(t, dir)
	secret, long, short := secretFile(t, canary, 0o600), secretFile(t, "CANARY-secret-of-the-proxy\n", 0o600), secretFile(t, "CANARY-short\n", 0o600)
	open := filepath.Join(dir, "open")
	sticky := filepath.Join(dir, "sticky")
	for path, mode := range map[string]os.FileMode{open: 0o777, sticky: 0o777 | os.ModeSticky} {
		kit.Must(t, os.Mkdir(path, 0o700))
		kit.Must(t, os.Chmod(path, mode))
	}
	const all = `rights: {"*": [read]}`
	kit.Rows(t, map[string]struct{ proxy, says string }{
		"Secret":       {"secret_file: " + long + ", " + all, ""},
		"Socket":       {"socket: " + dir + "/pages.sock, group: www-data, " + all, ""},
		"NotYetThere":  {"socket: /run/not-there/pages.sock, group: www-data, " + all, ""},
		"Nobody":       {"", ""},
		"NamedRights":  {"secret_file: " + long + `, rights: {anna@example.org: [read, fetch], "DOMAIN\\bob": [metrics], guest: []}`, ""},
		"Both":         {"secret_file: " + long + ", socket: " + dir + "/pages.sock, group: www-data, " + all, "http.access.proxy.socket: is set, and secret_file too"},
		"NoGroup":      {"socket: " + dir + "/pages.sock, " + all, "http.access.proxy.group: is missing, and socket is there"},
		"GroupAlone":   {"secret_file: " + long + ", group: www-data, " + all, "http.access.proxy.group: is used with socket only"},
		"NoRights":     {"secret_file: " + long, "http.access.proxy.rights: is empty, so that the proxy lets nobody in"},
		"RightsAlone":  {all, "http.access.proxy.rights: is used with a proxy only"},
		"FetchAlone":   {"secret_file: " + long + ", rights: {anna: [fetch]}", "http.access.proxy.rights.anna: has fetch without read"},
		"UnknownRight": {"secret_file: " + long + ", rights: {anna: [write]}", "http.access.proxy.rights.anna[0]: is none of the words"},
		"BlankName":    {"secret_file: " + long + `, rights: {" anna": [read]}`, "http.access.proxy.rights: names a user who cannot be one"},
		"HiddenName":   {"secret_file: " + long + `, rights: {"an\u200bna": [read]}`, "http.access.proxy.rights: names a user who cannot be one"},
		"OwnHeader":    {"user_header: cookie, secret_file: " + long + ", " + all, "http.access.proxy.user_header: has another meaning"},
		"NoHeader":     {"user_header: 'X User', secret_file: " + long + ", " + all, "http.access.proxy.user_header: is not the header"},
		"ShortSecret":  {"secret_file: " + short + ", " + all, "http.access.proxy.secret_file: the secret has 12 characters; at least 24 are needed"},
		"NoSecretFile": {"secret_file: /nowhere/secret, " + all, "http.access.proxy.secret_file: open secret file"},
		"SecretItself": {"secret_file: CANARY-secret-of-the-proxy, " + all, "http.access.proxy.secret_file: is not the absolute path"},
		"OpenFolder":   {"socket: " + open + "/pages.sock, group: www-data, " + all, "http.access.proxy.socket: others could put another file in its place, because the folder " + open + " has rights 0777"},
		"StickyFolder": {"socket: " + sticky + "/pages.sock, group: www-data, " + all, "http.access.proxy.socket: others could put another socket in its place"},
		"LongPath":     {"socket: /" + strings.Repeat("a", 107) + ", group: www-data, " + all, "http.access.proxy.socket: is longer than 107 bytes"},
	}, func(t *testing.T, row struct{ proxy, says string }) {
		err := checkHTTP(t, dir, secret, "listen: 127.0.0.1:8970, access: {proxy: {"+row.proxy+"}}")
		if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)) {
			t.Error(err)
		}
		kit.Check(t, err == nil || !strings.Contains(err.Error(), "CANARY"), "a secret in %v", err)
	})
	for proxy, says := range map[string]string{
		"secret_file: " + long + ", " + all: "", "socket: " + dir + "/pages.sock, group: www-data, " + all: "needs users too", // nobody could sign in over the port
	} {
		err := checkHTTP(t, dir, secret, "listen: 0.0.0.0:8970, cert_file: "+cert+", key_file: "+key+", access: {proxy: {"+proxy+"}}")
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Error(proxy, err)
		}
	}
}

// checkHTTP checks a configuration with this section http against the machine.
func checkHTTP(t *testing.T, dir, secret, http string) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "yaml")
	text := strings.Replace(smallConfig, "/etc/vaultd/secret", secret, 1) + "state_dir: " + dir + "/state\nhttp: {" + http + "}\n"
	kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	_, err := Check(path, noEnv)
	return err
}

// What a running vaultd cannot change about its port is refused at a reload; users, rights and secrets can be renewed.
func TestReload_PortStaysAsItIs(t *testing.T) {
	const socket = "http: {access: {proxy: {socket: /run/v/s, group: www-data, rights: {x: [read]}}}}\n"
	const secret = "http: {access: {proxy: {secret_file: /s, rights: {x: [read]}}}}\n"
	for name, row := range map[string]struct{ before, after, fault string }{
		"Same": {socket, socket, ""}, "OtherRights": {socket, strings.Replace(socket, "x: [read]", "y: [read, fetch]", 1), ""}, "OtherSecretFile": {secret, strings.Replace(secret, "/s,", "/t,", 1), ""},
		"OtherSocket": {socket, strings.Replace(socket, "/v/s", "/v/t", 1), "http.access.proxy.socket"}, "OtherGroup": {socket, strings.Replace(socket, "www-data", "nginx", 1), "http.access.proxy.group"},
		"ProxyGone": {secret, "", "http.access.proxy.secret_file"}, "ProxyNew": {"", secret, "http.access.proxy.secret_file"},
		"UsersNew": {"", "http: {access: {users_file: /u}}\n", "http.access.users_file"}, "UsersElsewhere": {"http: {access: {users_file: /u}}\n", "http: {access: {users_file: /v}}\n", ""},
	} {
		next, old := mustLoad(t, smallConfig+row.after), mustLoad(t, smallConfig+row.before)
		next.checkUnchanged(old)
		if f := next.doc.faults; len(f) > 0 != (row.fault != "") || len(f) > 0 && f[0].Key != row.fault {
			t.Error(name, f)
		}
	}
}

// TestCheck_I16_DropsThatOverlapByALink: two drops whose paths differ are still
// the same folder, or one is inside the other, when a link leads there.
func TestCheck_I16_DropsThatOverlapByALink(t *testing.T) {
	secret := secretFile(t, canary, 0o600)
	for name, row := range map[string]struct{ to, says string }{
		"Same":   {"acme", "is the same folder as"},
		"Inside": {"acme/inner", "lies in"},
		"Above":  {"above", "holds"},
		"Apart":  {"other", ""},
	} {
		dir := t.TempDir()
		acme, link := filepath.Join(dir, "acme"), filepath.Join(dir, "link")
		if row.to == "above" {
			acme = filepath.Join(dir, "above", "acme")
		}
		for _, path := range []string{filepath.Join(acme, "inner"), filepath.Join(dir, "other"), filepath.Join(dir, "state")} {
			kit.Must(t, os.MkdirAll(path, 0o700))
		}
		kit.Must(t, os.Symlink(filepath.Join(dir, row.to), link))
		path := filepath.Join(dir, "yaml")
		kit.Must(t, os.WriteFile(path, fmt.Appendf(nil, `service:
  base_url: https://vault.example
  auth: {method: basic, username: u, secret_file: %s}
drops:
  - {name: acme-in, path: %s, vault: V-1}
  - {name: beta-in, path: %s, vault: V-1}
state_dir: %s/state
`, secret, acme, link, dir), 0o600))
		_, err := Check(path, noEnv)
		if row.says == "" {
			kit.Must(t, err)
			continue
		}
		kit.Holds(t, name+": check", fmt.Sprint(err), fmt.Sprintf("drops[1].path: %s %s %s (", link, row.says, acme))
	}
}
