package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"vaultd/internal/packager"
	"vaultd/internal/test/kit"
)

// grow writes the first documents of a set.
func grow(t *testing.T, name string, docs int, seed uint64) set {
	t.Helper()
	r := recipes()[name]
	r.docs = docs
	s := set{Name: name, Dir: t.TempDir(), Docs: docs}
	must(t, r.writeSet(t.Context(), name, seed, s.Dir))
	return s
}

// content is everything that lies in a folder.
func content(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		all[path], err = os.ReadFile(filepath.Join(dir, path))
		return err
	}))
	return all
}

func TestGen_TheSeedIsAllThatCounts(t *testing.T) {
	long, short, other := content(t, grow(t, "T", 30, 1).Dir), content(t, grow(t, "T", 10, 1).Dir), content(t, grow(t, "T", 10, 2).Dir)
	same := 0
	for path, data := range short {
		kit.Check(t, bytes.Equal(long[path], data), "%s differs between a set of 10 and the beginning of one of 30", path)
		if bytes.Equal(other[path], data) {
			same++
		}
	}
	if len(short) < 30 || same != 10 { // the ten empty markers
		t.Errorf("%d files, of which %d are the same with another seed", len(short), same)
	}
}

func TestGen_MeanSizes(t *testing.T) {
	const docs = 50
	for name, want := range map[string]float64{"S": 489_000, "T": 20_000} {
		s, n := grow(t, name, docs, 1), 0
		for _, data := range content(t, s.Dir) {
			n += len(data)
		}
		mean := float64(n) / docs
		kit.Check(t, mean >= 0.95*want && mean <= 1.05*want, "set %s: %.0f bytes a document instead of %.0f", name, mean, want)
	}
}

func TestGen_EveryFolderIsComplete(t *testing.T) {
	for name := range recipes() {
		docs := 10
		if name == "L" {
			docs = 1
		}
		if name == "L" && kit.Sampled(t, "folders of 95 MB") {
			continue // 95 MB
		}
		t.Run(name, func(t *testing.T) {
			for _, folder := range grow(t, name, docs, 1).folderPaths() {
				root, err := os.OpenRoot(folder)
				must(t, err)
				sealed, err := packager.ValidateFolder(t.Context(), root, packRules("fast"))
				if err := errors.Join(err, root.Close()); err != nil {
					t.Fatalf("%s: %v", folder, err)
				}
				kit.Check(t, sealed.Document.Number == filepath.Base(folder) && len(sealed.Files) != 0,
					"%s: %s with %d files", folder, sealed.Document.Number, len(sealed.Files))
			}
		})
	}
}

func TestGen_InvoicesAreXML(t *testing.T) {
	for _, folder := range grow(t, "T", 10, 1).folderPaths() {
		f, err := os.Open(filepath.Join(folder, "invoice.xml"))
		must(t, err)
		d, lines := xml.NewDecoder(f), 0
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "InvoiceLine" {
				lines++
			}
		}
		must(t, f.Close())
		kit.Check(t, lines >= 3, "%s has %d lines", folder, lines)
	}
}
