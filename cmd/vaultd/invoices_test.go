package main_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// I4: real invoices, that nobody here wrote, come back from fetch byte for byte.
func TestFetch_I4_RealInvoicesByteForByte(t *testing.T) {
	t.Parallel()
	set := invoiceSet(t)
	emu, url := serveEmulator(t, emulator.Config{ArchiveMax: 100 * time.Millisecond})
	emu.GrantDownloads(len(set))
	s := newSite(t, url, fast)
	for _, inv := range set {
		s.drop("acme", inv.folder, map[string][]byte{inv.file: inv.content}, inv.sidecar)
	}
	s.must(0, "run", "--once", "--wait")
	for _, inv := range set {
		got := filepath.Join(t.TempDir(), "got.zip")
		if out, code := s.vaultd("fetch", inv.folder, "-o", got); code != 0 {
			t.Errorf("fetch %s: exit %d: %s", inv.folder, code, out)
			continue
		}
		z := kit.Value(zip.OpenReader(got))(t)
		kit.Want(t, inv.folder, len(z.File), 1)
		for _, f := range z.File {
			r, err := f.Open()
			kit.Must(t, err)
			back, err := io.ReadAll(r)
			kit.Check(t, err == nil && bytes.Equal(back, inv.content),
				"%s: %s differs: %d bytes of %d, %v", inv.folder, f.Name, len(back), len(inv.content), err)
		}
		z.Close()
	}
	s.must(0, "verify", "--whole")
	for _, v := range emu.Violations() {
		t.Errorf("the service saw: %s", v)
	}
}

type realInvoice struct {
	folder, file string
	content      []byte
	sidecar      map[string]any
}

// invoiceSet reads the set of real invoices that may lie beside the checkout, with
// its table of facts; where a required field is unknown, one is invented.
func invoiceSet(t *testing.T) []realInvoice {
	t.Helper()
	root := ""
	for _, up := range []string{"../../../shared/invoices", "../../shared/invoices"} {
		if _, err := os.Stat(filepath.Join(up, "truth.tsv")); err == nil {
			root = up
		}
	}
	if root == "" {
		t.Skip("SKIPPED: no set of real invoices beside the checkout (shared/invoices)")
	}
	table := kit.Value(os.ReadFile(filepath.Join(root, "truth.tsv")))(t)
	lines := strings.Split(strings.TrimRight(string(table), "\n"), "\n")
	columns := strings.Split(lines[0], "\t")
	var set []realInvoice
	for i, line := range lines[1:] {
		fact := map[string]string{}
		for c, value := range strings.Split(line, "\t") {
			fact[columns[c]] = strings.TrimSpace(value)
		}
		content := kit.Value(os.ReadFile(filepath.Join(root, fact["file"])))(t)
		set = append(set, realInvoice{folder: fmt.Sprintf("%02d %s", i+1, filepath.Base(fact["file"])), file: filepath.Base(fact["file"]),
			content: content, sidecar: sidecarOf(fact, i)})
	}
	return set
}

func sidecarOf(fact map[string]string, i int) map[string]any {
	or := func(s, invented string) string {
		if s == "" {
			return invented
		}
		return s
	}
	kind := or(fact["docType"], "Invoice")
	meta := map[string]any{
		"documentType": kind, "documentId": or(fact["documentId"], fmt.Sprint("invented-", i)),
		"documentDate": or(fact["issueDate"], "2026-10-31"),
	}
	text := func(key, value string, most int) {
		if r := []rune(value); value != "" {
			meta[key] = string(r[:min(len(r), most)])
		}
	}
	text("senderName", fact["sellerName"], 150)
	text("recipientName", fact["buyerName"], 150)
	text("currencyCode", fact["currency"], 3)
	text("buyerReferenceId", fact["buyerReference"], 100)
	if amount := fact["payableAmount"]; amount != "" && json.Valid([]byte(amount)) {
		meta["amount"] = json.Number(amount)
	}
	return meta
}
