package main_test

import (
	"vaultd/internal/test/kit"

	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A PDF is checked by the rules of the drop that it lies in, and the refusal has the words that the clerk would read.
func TestValidate_SinglePDF(t *testing.T) {
	dir := t.TempDir()
	scans, path := filepath.Join(dir, "scans"), filepath.Join(dir, "config.yaml")
	text := smallConfig + fmt.Sprintf("  - {name: scans, path: %s, route: pdf, receiving: ap@in.example, notify: clerk@acme.example}\n"+
		"pdf: {base_url: 'https://ap.acme.example', auth: {method: basic, username: p, secret_file: /etc/vaultd/secret-pdf}}\n", scans)
	for _, err := range []error{os.WriteFile(path, []byte(text), 0o600), os.MkdirAll(scans+"/Mai", 0o770),
		os.WriteFile(scans+"/good.pdf", []byte("%PDF-1.7 %%EOF"), 0o660), os.WriteFile(scans+"/brief.docx", []byte("PK"), 0o660)} {
		kit.Must(t, err)
	}
	for name, row := range map[string]struct {
		code int
		says string
	}{
		"good.pdf":   {0, "GOOD  good.pdf would be taken by drop scans and delivered to ap@in.example"},
		"brief.docx": {exitData, `NOT SENT. "brief.docx" is no PDF. Save it as PDF, then move the PDF back.`},
		"Mai":        {exitData, `"Mai" is a folder; drop scans takes single PDFs`},
		"gone.pdf":   {exitFailed, "does not exist"},
	} {
		if out, errs, code := runHere("--config", path, "validate", filepath.Join(scans, name)); code != row.code || !strings.Contains(out+errs, row.says) {
			t.Errorf("%s: exit %d: %s%s", name, code, out, errs)
		}
	}
	out, errs, code := runHere("--config", path, "--json", "validate", "--drop", "scans", filepath.Join(scans, "good.pdf"))
	var v validatedShown
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 || !v.Good || v.Route != "pdf" || v.Vault != "" || v.Size != 14 || len(v.Files) != 1 {
		t.Errorf("exit %d: %+v, %v: %s", code, v, err, errs)
	}
	if left, err := os.ReadDir(scans); err != nil || len(left) != 3 {
		t.Errorf("it changed something: %v, %v", left, err)
	}
}
