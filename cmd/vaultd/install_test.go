package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// "make install" puts all that the documents speak of where they say it is, and the unit starts the program that was installed.
func TestInstall(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		kit.Missing(t, "make, for the installation")
	}
	program := realProgram(t)
	root := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "make", "-C", "../..", "install", "DESTDIR="+root, "PREFIX=/opt/vaultd", "PROGRAM="+program)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, holds := range map[string]string{
		"lib/systemd/system/vaultd.service":           "ExecStart=/opt/vaultd/bin/vaultd run\n",
		"lib/sysusers.d/vaultd.conf":                  "vaultd",
		"share/man/man8/vaultd.8":                     "vaultd",
		"share/man/man8/vaultd-list.8":                "list",
		"share/bash-completion/completions/vaultd":    "vaultd",
		"share/zsh/site-functions/_vaultd":            "vaultd",
		"share/fish/vendor_completions.d/vaultd.fish": "vaultd",
		"share/vaultd/config.schema.json":             `"base_url"`,
		"share/vaultd/sidecar.schema.json":            `"documentId"`,
		"share/doc/vaultd/config.example.yaml":        "base_url:",
		"share/doc/vaultd/50-site.conf.example":       "ReadWritePaths=",
	} {
		text, err := os.ReadFile(filepath.Join(root, "opt/vaultd", name))
		if err != nil || !strings.Contains(string(text), holds) {
			t.Errorf("%s: %v, without %q", name, err, holds)
		}
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "opt/vaultd/bin/vaultd"), "--version").Output()
	if err != nil || !strings.HasPrefix(string(out), "vaultd ") {
		t.Errorf(`%q: %v, want no error, out that begins with "vaultd "`, out, err)
	}
}
