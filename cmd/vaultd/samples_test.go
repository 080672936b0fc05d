package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/packager"
	"vaultd/testdata"
)

// The demo drops every sample folder there is, and the samples are what the documents say of them: all can be packed but
// one, and two are the same invoice.
func TestSamples(t *testing.T) {
	there, err := fs.Glob(testdata.Drops, "*/*")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, drop := range []string{"acme-in", "beta-in"} {
		if err := os.Mkdir(filepath.Join(dir, drop), 0o770); err != nil {
			t.Fatal(err)
		}
	}
	byContent := map[archive.Digest]string{}
	for _, s := range listSamples() {
		name := path.Join(s.drop, s.folder)
		i := slices.Index(there, name)
		if i < 0 {
			t.Fatalf("%s is not in testdata, or dropped twice", name)
		}
		there = slices.Delete(there, i, i+1)
		s.slow = false
		if err := s.writeFolder(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := packager.ValidateFolder(t.Context(), root, packager.Rules{Vault: "ACME", Sidecar: "metadata.json", Compression: "default"})
		if err := root.Close(); err != nil {
			t.Fatal(err)
		}
		if refused := err != nil; refused != (s.folder == "Schulz 3") || refused && !strings.Contains(err.Error(), "documentDate") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if first, twice := byContent[sealed.Content]; twice != (s.after != "") || twice && first != s.after {
			t.Errorf("%s has the files of %q", name, first)
		}
		byContent[sealed.Content] = s.folder
	}
	if len(there) > 0 {
		t.Errorf("never dropped: %q", there)
	}
}

// The five PDFs of the demo: three can be sent, one repeats another, and one is no PDF.
func TestSamples_PDF(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, pdfDrop), 0o770); err != nil {
		t.Fatal(err)
	}
	ends := map[bool]int{}
	for _, s := range listPDFSamples() {
		if s.as != "" {
			continue // as the first one
		}
		if err := s.drop(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, pdfDrop, s.name))
		if err != nil {
			t.Fatal(err)
		}
		whole := strings.HasPrefix(string(content), "%PDF-1.4\n") && strings.HasSuffix(string(content), "%%EOF\n")
		if ends[whole]++; whole != (s.pages > 0) {
			t.Errorf("%s: %q", s.name, content)
		}
	}
	if ends[true] != 3 || ends[false] != 1 {
		t.Error(ends)
	}
}

// The demo drops every sample there is for the business network. One of them is faulty on purpose: a digit of its recipient's number is missing.
func TestSamples_Network(t *testing.T) {
	there, err := fs.Glob(testdata.Network, networkDrop+"/*")
	if err != nil || len(there) != len(listNetworkSamples()) {
		t.Fatal(there, err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, networkDrop), 0o770); err != nil {
		t.Fatal(err)
	}
	for _, s := range listNetworkSamples() {
		if err := s.drop(dir); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(filepath.Join(dir, networkDrop, s.folder))
		if err != nil {
			t.Fatal(err)
		}
		_, err = packager.ValidateNetwork(t.Context(), root, wireNetworkChecks())
		if err := root.Close(); err != nil {
			t.Fatal(err)
		}
		refusal, isRefused := errors.AsType[*packager.Refusal](err)
		if isRefused != s.isBadNumber || !isRefused && err != nil {
			t.Errorf("%s: %v", s.folder, err)
		}
		if isRefused && !strings.HasPrefix(refusal.Text(), `NOT SENT. document.json, line 12, "sentTo.id": a GLN has 13 digits, this has 12.`) {
			t.Errorf("%s: %s", s.folder, refusal.Text())
		}
	}
}

// The extracts of the samples have every invoice of the sample folders as its sidecar has it, and one that no folder has. One sidecar is faulty
// on purpose, and there the books have what its clerk meant.
func TestSamples_Extracts(t *testing.T) {
	names, err := fs.Glob(testdata.Extracts, "extracts/*/*.json")
	if err != nil || len(names) != sampleExtracts {
		t.Fatal(names, err)
	}
	booked := map[string]string{}
	for _, name := range names {
		content, err := testdata.Extracts.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var records []struct {
			Number   string      `json:"INVOICE_NUM"`
			Supplier string      `json:"SUPPLIER_NAME"`
			Company  string      `json:"ORG_NAME"`
			Date     string      `json:"INVOICE_DATE"`
			Amount   json.Number `json:"GROSS_SUM"`
			Currency string      `json:"CURRENCY_CODE"`
		}
		if err := json.Unmarshal(content, &records); err != nil {
			t.Fatal(name, err)
		}
		for _, r := range records {
			if r.Date < demoFrom { // nobody asks about it
				continue
			}
			if booked[r.Number] != "" {
				t.Errorf("%s is booked twice", r.Number)
			}
			booked[r.Number] = strings.Join([]string{r.Supplier, r.Company, r.Date, string(r.Amount), r.Currency}, " | ")
		}
	}
	for _, s := range listSamples() {
		meta, err := testdata.Drops.ReadFile(path.Join(s.drop, s.folder, "metadata.json"))
		if err != nil {
			t.Fatal(err)
		}
		meta = bytes.ReplaceAll(bytes.ReplaceAll(meta, []byte(`"333,00"`), []byte("333.00")), []byte("31.10.2026"), []byte("2026-10-31"))
		var d struct {
			DocumentID, DocumentDate, SenderName, RecipientName, CurrencyCode string
			Amount                                                            json.Number
		}
		if err := json.Unmarshal(meta, &d); err != nil {
			t.Fatal(s.folder, err)
		}
		want := strings.Join([]string{d.SenderName, d.RecipientName, d.DocumentDate, string(d.Amount), d.CurrencyCode}, " | ")
		if s.after == "" && booked[d.DocumentID] != want {
			t.Errorf("%s: booked as %q, not as %q", s.folder, booked[d.DocumentID], want)
		}
		delete(booked, d.DocumentID)
	}
	if len(booked) != 1 || booked["S-2026-118"] == "" {
		t.Errorf("booked and never dropped: %q", booked)
	}
}

// What the README shows of a sample is in testdata, letter by letter.
func TestSamples_AsTheReadmeShowsThem(t *testing.T) {
	const shown = "acme-in/Müller 4711"
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	meta, err := testdata.Drops.ReadFile(shown + "/metadata.json")
	if err != nil {
		t.Fatal(err)
	}
	indented := "    " + strings.ReplaceAll(strings.TrimSpace(string(meta)), "\n", "\n    ")
	if text := string(readme); !strings.Contains(text, "testdata/"+shown) || !strings.Contains(text, indented) {
		t.Errorf("the README does not show testdata/%s as it is:\n%s", shown, indented)
	}
}
