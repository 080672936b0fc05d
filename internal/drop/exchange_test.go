package drop

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"vaultd/internal/test/kit"
)

// TestDispose_I18_OneFileIsExchangedWhileAnotherGoes: whoever still has the folder open reaches into the
// claim. What was compared is looked at once more just before it goes.
func TestDispose_I18_OneFileIsExchangedWhileAnotherGoes(t *testing.T) {
	const precious = "what nobody has archived"
	path := share(t)
	c, rel, d := kept(t, path)
	exchanged := ""
	cfg := config(path)
	cfg.Hook = func(op, on string, do func() error) error {
		if err := do(); err != nil || op != "unlink" || exchanged != "" {
			return err
		}
		return filepath.WalkDir(filepath.Join(path, ".vaultd", "claimed"), func(p string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || exchanged != "" {
				return err
			}
			exchanged = p
			return os.WriteFile(p, []byte(precious), 0o660)
		})
	}
	f := open(t, cfg)
	_, err := f.DisposeFolder(t.Context(), c, rel, d)
	kit.Need(t, exchanged != "", "nothing was exchanged: vacuous")
	found := false
	werr := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			b, readErr := os.ReadFile(p)
			found = found || readErr == nil && string(b) == precious
		}
		return err
	})
	kit.Check(t, werr == nil && found && err != nil,
		"%q was exchanged and is gone, or nobody was told: %v, %v", exchanged, err, werr)
}
