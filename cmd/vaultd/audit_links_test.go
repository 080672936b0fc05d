package main_test

import (
	"vaultd/internal/test/kit"

	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// A page links to a receipt only where whoever opens the page there sees the receipt, too, on this machine and over a share.
func TestAudit_LinksThatWork(t *testing.T) {
	top := t.TempDir()
	s := newShelf(t)
	s.edit("/srv/invoices/acme-in, vault: V-1}", top+"/invoices/acme-in, vault: V-1}\n  - {name: beta-in, path: "+top+"/other/beta-in, vault: V-1}")
	for _, dir := range []string{"invoices/acme-in/_archived", "invoices/acme-in-2", "other/beta-in", "anna"} {
		kit.Must(t, os.MkdirAll(filepath.Join(top, dir), 0o700))
	}
	const kept = "_archived/2026-11/"
	for i, folder := range []string{"Müller 4711", `a#b?c%d"e`, "a#b%d&'e", "javascript:x", "Otto. ", "a\xff", "a\u202eb"} {
		remote := archive.RemoteID(fmt.Sprint("bum-", i))
		s.send(folder, noon.Add(-5*time.Hour), remote)
		s.says(folder, noon.Add(-4*time.Hour), remote, archive.Successful)
		s.tell(folder, noon.Add(-4*time.Hour), nil, ledger.PlaceIntended{Dest: kept + folder}, ledger.Placed{})
	}
	good := []string{kept + "M%C3%BCller%204711/_RECEIPT.txt", kept + "a%23b%25d&amp;%27e/_RECEIPT.txt"}
	for beside, prefix := range map[string]string{
		"invoices/acme-in": "./", "invoices/acme-in/_archived": "../", "invoices": "./acme-in/", "other": "", "other/beta-in": "", "anna": "", "invoices/acme-in-2": "",
	} {
		page := filepath.Join(top, beside, "audit.html")
		if _, errs, code := s.audit("-o", page); code != exitDifferences {
			t.Fatalf("exit %d: %s", code, errs)
		}
		b, err := os.ReadFile(page)
		kit.Must(t, err)
		var got, want []string
		for _, m := range regexp.MustCompile(`href="([^"]*_RECEIPT[^"]*)"`).FindAllStringSubmatch(string(b), -1) {
			got = append(got, m[1])
		}
		for _, link := range good {
			if prefix != "" {
				want = append(want, prefix+link)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("from %s: links %q, want %q", beside, got, want)
		}
	}
	if out, _, _ := s.audit(); strings.Contains(out, "_RECEIPT.txt\"") {
		t.Error("links though nobody knows where the page will lie")
	}
}
