package packager

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// A file that looks cut off makes a folder wait that changed just now, and no other: it is never a reason to refuse one.
func TestHint_CutOffWaitsAndIsThenTaken(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, row := range map[string]struct {
		file, content string
		waits         bool
	}{
		"PDF":           {"a.pdf", "%PDF-1.7 " + long + "\nstartxref\n1\n%%EOF\n", false},
		"PDFCut":        {"a.pdf", "%PDF-1.7 " + long, true},
		"PDFNamedDat":   {"a.dat", "%PDF-1.7 " + long, true},
		"NoPDF":         {"a.pdf", "scanned", false},
		"ZIP":           {"a.xlsx", "PK\x03\x04" + long + "PK\x05\x06" + strings.Repeat("\x00", 18), false},
		"ZIPCut":        {"a.xlsx", "PK\x03\x04" + long, true},
		"XML":           {"a.xml", "\ufeff<?xml version=\"1.0\"?><a>" + long + "</a>\r\n", false},
		"XMLCutInText":  {"a.XML", "<a>" + long, true},
		"XMLCutInTag":   {"a.xml", "<a>" + long + "</", true},
		"ShorterThanIt": {"a.pdf", "%PDF", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{row.file: row.content, "metadata.json": `{"documentType": "Invoice", "documentId": "1", "documentDate": "2026-10-31"}`} {
				kit.Must(t, os.WriteFile(dir+"/"+file, []byte(content), 0o600))
			}
			root, err := os.OpenRoot(dir)
			kit.Must(t, err)
			defer root.Close()
			rules := Rules{Vault: "V", CutOffPatience: 5 * time.Minute, Now: time.Now}
			if _, err := ValidateFolder(t.Context(), root, rules); errors.Is(err, ErrChanged) != row.waits || err != nil && !row.waits {
				t.Errorf("%v", err)
			}
			rules.Now = func() time.Time { return time.Now().Add(6 * time.Minute) }
			if _, err := ValidateFolder(t.Context(), root, rules); err != nil {
				t.Errorf("for ever: %v", err)
			}
			rules.Now = func() time.Time { return time.Now().Add(-time.Hour) } // the file server's clock is ahead
			if _, err := ValidateFolder(t.Context(), root, rules); err != nil {
				t.Errorf("clock behind: %v", err)
			}
		})
	}
}
