package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

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
		if err != nil && strings.Contains(err.Error(), "CANARY") {
			t.Error("a secret in", err)
		}
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
