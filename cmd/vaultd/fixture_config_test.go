package main_test

import (
	"vaultd/internal/test/kit"

	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"vaultd/internal/config"
)

func noEnv(string) (string, bool) { return "", false }

func envOf(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// smallConfig is the least that a person must write.
const smallConfig = `service:
  base_url: https://vault.example
  auth: {method: basic, username: u, secret_file: /etc/vaultd/secret}
drops:
  - {name: acme-in, path: /srv/invoices/acme-in, vault: V-1}
`

const canary = "hunter2"

func secretFile(t *testing.T, content string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	kit.Must(t, os.WriteFile(path, []byte(content), 0o600))
	kit.Must(t, os.Chmod(path, mode))
	return path
}

func mustLoad(t *testing.T, text string) config.Config {
	t.Helper()
	cfg, err := config.Load(writeConfig(t, text), noEnv)
	kit.Must(t, err)
	return cfg
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
