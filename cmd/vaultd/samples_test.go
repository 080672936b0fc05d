package main

import (
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
