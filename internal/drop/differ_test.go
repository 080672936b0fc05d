package drop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// I17, I18: what differs from what was archived is named, in the claim and, after a crash, where the folder is kept; nothing else is.
func TestDifferences_I17_InTheClaimAndKept(t *testing.T) {
	for name, row := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"Nothing":     {func(string) error { return nil }, ""},
		"Missing":     {func(dir string) error { return os.Remove(dir + "/rechnung.pdf") }, ""},
		"SameSize":    {func(dir string) error { return os.WriteFile(dir+"/rechnung.pdf", []byte("RECHNUNG.pdf"), 0o660) }, "rechnung.pdf has another content than when it was archived"},
		"Longer":      {func(dir string) error { return os.WriteFile(dir+"/sub/deep/b.pdf", []byte("long"), 0o660) }, "sub/deep/b.pdf has another size than when it was archived"},
		"Sidecar":     {func(dir string) error { return os.WriteFile(dir+"/metadata.json", []byte("{}"), 0o660) }, "metadata.json has another size than when it was archived"},
		"Added":       {func(dir string) error { return os.WriteFile(dir+"/neu.pdf", nil, 0o660) }, "neu.pdf was not archived"},
		"Link":        {func(dir string) error { return os.Symlink("/etc/passwd", dir+"/x") }, "x is a link or another thing that was not archived"},
		"NoRight":     {func(dir string) error { return os.Chmod(dir+"/rechnung.pdf", 0) }, "rechnung.pdf may not be read any more"},
		"NoRightToIt": {func(dir string) error { return os.Chmod(dir+"/sub/deep", 0) }, "sub/deep may not be read any more"},
	} {
		t.Run(name, func(t *testing.T) {
			path := share(t)
			c, rel, d := kept(t, path)
			f := open(t, config(path))
			at := filepath.Join(path, rel)
			kit.Must(t, row.change(at))
			defer os.Chmod(at+"/sub/deep", 0o770)
			look := func(where string) {
				t.Helper()
				found, err := f.FindDifferences(t.Context(), c, rel, d)
				var words []string
				for _, d := range found {
					words = append(words, d.Path+" "+d.What)
				}
				want := row.want
				if os.Getuid() == 0 && strings.HasPrefix(name, "NoRight") {
					want = "" // root reads it all the same
				}
				kit.Check(t, err == nil && strings.Join(words, ", ") == want,
					"%s: %q %v, want %q", where, words, err, want)
			}
			look("kept")
			claim := filepath.Join(path, ".vaultd/claimed", c.Key.String())
			kit.Must(t, os.MkdirAll(claim, 0o700))
			kit.Must(t, os.Rename(at, filepath.Join(claim, c.Folder)))
			look("claimed")
			kit.Must(t, os.Rename(claim, path+".away"))
			if found, err := f.FindDifferences(t.Context(), c, rel, d); len(found) > 0 || err != nil {
				t.Errorf("in neither place: %v %v", found, err)
			}
			defer os.Chmod(path+".away/"+c.Folder+"/sub/deep", 0o770)
		})
	}
}
