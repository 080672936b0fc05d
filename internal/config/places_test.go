package config

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"vaultd/internal/test/kit"
)

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
