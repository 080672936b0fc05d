package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// requireProgram returns the path of a program. Where it is missing the test is skipped; with CI=true it fails.
func requireProgram(t *testing.T, name, debianPackage string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		kit.Missing(t, name+" is not installed: how the page prints; install Debian's package "+debianPackage)
	}
	return path
}

// Printed on A4, each sheet has its number and how many there are, the heads of the table stand on each sheet with rows, and a test
// environment says so on each. A browser prints it: vaultd itself starts none.
func TestHTML_Print(t *testing.T) {
	browser, reader := requireProgram(t, "chromium", "chromium"), requireProgram(t, "pdftotext", "poppler-utils")
	s := filled(t, "test")
	for i := range 60 {
		s.Item(fmt.Sprint("Folder ", i)).Archive(noon.Add(-10*time.Hour), time.Hour)
	}
	page, _ := written(t, examine(t, s.config()), "html")
	dir := t.TempDir()
	file, pdf := filepath.Join(dir, "audit.html"), filepath.Join(dir, "audit.pdf")
	kit.Must(t, os.WriteFile(file, []byte(page), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir="+filepath.Join(dir, "profile"), "--no-pdf-header-footer", "--print-to-pdf="+pdf, "file://"+file).CombinedOutput()
	kit.Need(t, err == nil, "%v\n%s", err, out)
	var text bytes.Buffer
	read := exec.CommandContext(ctx, reader, "-layout", pdf, "-")
	read.Stdout = &text
	kit.Must(t, read.Run())
	sheets := strings.Split(strings.TrimSuffix(text.String(), "\f"), "\f")
	kit.Need(t, len(sheets) >= 4, "%d sheets", len(sheets))
	tables := 0
	for i, sheet := range sheets {
		want := fmt.Sprintf("Page %d of %d", i+1, len(sheets))
		kit.Check(t, strings.Contains(sheet, want), "sheet %d does not say %q", i+1, want)
		kit.Holds(t, "sheet", sheet, TestMark)
		if strings.Contains(sheet, "_RECEIPT.txt") {
			if tables++; !strings.Contains(sheet, "documentId") || !strings.Contains(sheet, "clientUUID") {
				t.Errorf("sheet %d has rows and no heads", i+1)
			}
		}
	}
	kit.Check(t, tables >= 2, "the table is on %d sheets", tables)
}

// I21: entries that are read on all cores are used in their order, each once, and the first error in that order ends it, wherever it is from.
func TestInOrder_I21_KeepsTheOrder(t *testing.T) {
	failed := errors.New("failed")
	const count = 1000
	for name, at := range map[string]struct{ walk, read, use int }{ // each fails at that entry; count: never
		"None": {count, count, count}, "First": {count, 0, count}, "Read": {count, 700, 900}, "Use": {count, 701, 300}, "Walk": {500, count, count}, "ReadBeforeWalk": {500, 3, count},
	} {
		walk := func(fn func(ledger.Entry) error) error {
			for i := range count {
				if i == at.walk {
					return failed
				}
				if err := fn(ledger.Entry{Rev: uint32(i)}); err != nil {
					return err
				}
			}
			return nil
		}
		read := func(e ledger.Entry) (int, error) {
			if int(e.Rev) >= at.read {
				return 0, failed
			}
			return int(e.Rev), nil
		}
		used := 0
		err := inOrder(walk, read, func(n int) error {
			kit.Want(t, name+": entry", n, used)
			if used++; n == at.use {
				return failed
			}
			return nil
		})
		want := min(at.walk, at.read, at.use+1)
		isNone := want >= count
		kit.Check(t, used == min(want, count) && (err == nil) == isNone, "%s: %d were used, want %d: %v", name, used, want, err)
	}
}
