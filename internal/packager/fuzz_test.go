package packager

import (
	"bytes"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// A file is copied byte for byte, or refused for its own fault: its start or its end, as far as readers look for them.
func FuzzPDF_I4(f *testing.F) {
	for _, s := range []string{goodPDF, "", "%PDF-", "%%EOF", "%%EOF%PDF-", strings.Repeat(" ", 1022) + goodPDF, goodPDF + strings.Repeat("x", 1020), "PK\x03\x04", "\x00\x00", "%PDF-1%%EO"} {
		f.Add([]byte(s), uint16(0))
		f.Add([]byte(s), uint16(chunkSize-7))
	}
	f.Fuzz(func(t *testing.T, content []byte, padding uint16) {
		if at := bytes.Index(content, []byte("%PDF-")); at >= 0 { // far apart, so that the copy takes several pieces
			content = slices.Insert(slices.Clone(content), at+5, bytes.Repeat([]byte("x"), int(padding))...)
		}
		_, root := drop(t, tree{"a.pdf": string(content)})
		s, path, err := copyPDF(t, root, PDFRules{Receiving: "a@b.example", Notify: "a@b.example"}, nil)
		head, tail := content[:min(len(content), 1024)], content[max(0, len(content)-1024):]
		isPDF := bytes.Contains(head, []byte("%PDF-")) && !archive.IsBegunPDF(content)
		kit.Need(t, isPDF == (err == nil) && (err == nil || isRefusal(err)), "%v, whole %v", err, isPDF)
		isWhole := isPDF && bytes.Contains(tail, []byte("%%EOF"))
		waits := CheckFileEnd(root, "a.pdf") != nil
		kit.Check(t, !isWhole || !waits, "a whole PDF waits for its end")
		kit.Check(t, !isWhole || len(s.Endings.Short)+len(s.Endings.Odd) <= 0,
			"endings of a whole PDF = %v, want none", s.Endings)
		if err == nil {
			copied, _ := os.ReadFile(path)
			kit.Check(t, bytes.Equal(copied, content) && s.Content == archive.Sum(content), "the copy is another file")
		}
	})
}

// A list of files names files inside the folder, and its faults are words.
func FuzzManifest(f *testing.F) {
	sum := strings.Repeat("ab", 32)
	for _, s := range []string{sum + "  rechnung.pdf\n", sum + " *a/b.pdf\r\n", sum + "  ../x\n", "\xef\xbb\xbf" + sum + "  ü.pdf", "x", "", sum, sum + "  \x00", "\\" + sum + "  a\\nb\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		all, faults := readManifest("manifest-sha256.txt", src)
		for _, w := range all {
			if p := w.path; p == "" || path.IsAbs(p) || path.Clean(p) != p || p == ".." || strings.HasPrefix(p, "../") {
				t.Errorf("%q is wanted", p)
			}
		}
		if err := newRefusal(faults, archive.AsRead{}); err != nil {
			s := err.Error() + err.(*Refusal).Text()
			kit.Check(t, !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' }), "control character in %q", s)
		}
	})
}
