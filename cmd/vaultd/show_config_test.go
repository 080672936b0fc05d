package main_test

import (
	"vaultd/internal/test/kit"

	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/config"
)

// check --show tells of every value what it is and where it comes from, and not who signs in.
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
		if s := out.String(); strings.Contains(s, "somebody") || strings.Contains(s, "hunter2") {
			t.Errorf("who signs in is shown:\n%s", s)
		}
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
		if !found {
			t.Errorf("no line %q in\n%s", want, lines)
		}
	}
	var all struct{ Settings []config.Setting }
	kit.Must(t, json.Unmarshal([]byte(show("--json")), &all))
	if n := strings.Count(lines, "\n") - 1; len(all.Settings) != n || n < 40 {
		t.Errorf("%d settings in JSON, %d in text", len(all.Settings), n)
	}
}
