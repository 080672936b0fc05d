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
