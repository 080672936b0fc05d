package fill

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vaultd/internal/test/kit"
)

// Replaced puts a folder into the place of dir, with a file of each name and of
// that content, and returns a check that they all stay as they are. The folder
// that was there is at away then; an empty away says that it is gone.
func Replaced(t testing.TB, dir, away, content string, names ...string) (stays func()) {
	t.Helper()
	gone := os.RemoveAll
	if away != "" {
		gone = func(dir string) error { return os.Rename(dir, away) }
	}
	kit.Must(t, errors.Join(gone(dir), os.Mkdir(dir, 0o700)))
	for _, name := range names {
		kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return func() {
		t.Helper()
		left, err := os.ReadDir(dir)
		kit.Check(t, err == nil && len(left) == len(names),
			"left in the other folder: %v (error %v), want %q", left, err, names)
		for _, name := range names {
			kit.Want(t, name+" in the other folder",
				string(kit.Value(os.ReadFile(filepath.Join(dir, name)))(t)), content)
		}
	}
}
