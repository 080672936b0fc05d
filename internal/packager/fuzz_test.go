package packager

import (
	"path"
	"strings"
	"testing"

	"vaultd/internal/archive"
)

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
			if s := err.Error() + err.(*Refusal).Text(); strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' }) {
				t.Errorf("control character in %q", s)
			}
		}
	})
}
