package main

import "testing"

func TestRuledOutBy(t *testing.T) {
	for _, row := range []struct {
		pkg, imported string
		test          bool
		want          string
	}{
		{"drop", "vaultd/internal/archive", false, ""},
		{"drop", "vaultd/internal/archive/sub", false, "mayImport"},
		{"drop", "vaultd/internal/ledger", false, "mayImport"},
		{"drop", "vaultd/internal/ledger", true, ""},
		{"newcomer", "vaultd/internal/archive", false, "mayImport"},
		{"browser", "vaultd/internal/ingest", true, "mayImport"},
		{"daemon", "vaultd/internal/ingest", false, ""},
		{"daemon", "vaultd/internal/config", false, "onlyIn"},
		{"daemon", "vaultd/internal/emulator", false, "onlyIn"},
		{"cmd/vaultd", "vaultd/internal/config", false, ""},
		{"cmd/vaultd", "vaultd/internal/test/simulation", false, "onlyIn"},
		{"cmd/vaultd", "vaultd/cmd/vaultd", true, ""},
		{"daemon", "vaultd/cmd/vaultd", false, "nowhere"},
		{"browser", "vaultd/cmd/vaultd", true, "nowhere"},
		{"test/simulation", "vaultd/internal/emulator", false, ""},
		{"watch", "github.com/fsnotify/fsnotify", false, ""},
		{"drop", "github.com/fsnotify/fsnotify", false, "onlyIn"},
		{"report", "github.com/xuri/excelize/v2", false, ""},
		{"books", "github.com/xuri/excelize/v2", false, "onlyIn"},
		{"web", "log", false, "onlyIn"},
		{"web", "log", true, ""},
		{"web", "log/slog", false, ""},
		{"archive", "os/exec", false, "pure"},
		{"archive", "net/url", false, ""},
		{"archive", "net/http", false, "pure"},
		{"archive", "os", true, ""},
		{"web", "math/rand", true, "nowhere"},
		{"web", "math/rand/v2", true, ""},
		{"web", "gopkg.in/yaml.v3", true, "nowhere"},
	} {
		if got := ruledOutBy(row.pkg, row.imported, row.test); got != row.want {
			t.Errorf("%s imports %s, in a test %v: ruled out by %q, want %q", row.pkg, row.imported, row.test, got, row.want)
		}
	}
}
